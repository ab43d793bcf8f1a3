#!/usr/bin/env bash
# Tools: pandas 3.1.1 with polars 2.1.0, and with duckdb 2.0.1 (pyarrow 26.0.1).
# Input: a column of grades, a pandas Categorical with ordered=True and the
#   levels low < medium < high.
# Guess: polars and DuckDB keep the order, also in a Parquet file.
# Seen (28 November 2026): in polars the highest grade is "medium" and the ranks
#   are those of the alphabet (high 1, low 2.5, medium 4), from the frame and from
#   its Parquet file; back in pandas, `ordered` is False. DuckDB keeps the order
#   (an ENUM), but a Parquet file that it writes has plain text.
# What to do: send the numbers of the levels, or `pl.Enum` with the levels.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  pandas==3.1.1 polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1
venv/bin/python - <<'PY'
import duckdb
import pandas as pd
import polars as pl

levels = ["low", "medium", "high"]
grades = ["low", "medium", "high", "low"]
frame = pd.DataFrame({"grade": pd.Categorical(grades, levels, ordered=True)})
frame.to_parquet("grades.parquet")
assert pd.read_parquet("grades.parquet").grade.max() == "high"
for read in (pl.from_pandas(frame), pl.read_parquet("grades.parquet")):
    grade = read["grade"]
    back = read.to_pandas().grade
    print("polars: max", grade.max(), "ranks", grade.rank().to_list())
    print("back in pandas: ordered", back.dtype.ordered)
    assert grade.max() == "medium"
    assert grade.rank().to_list() == [2.5, 4.0, 1.0, 2.5]
    assert not back.dtype.ordered
assert pl.Series(grades, dtype=pl.Enum(levels)).max() == "high"
highest = duckdb.sql("select max(grade) from frame").fetchall()[0][0]
print("duckdb: max", highest)
assert highest == "high"
duckdb.sql("copy (from frame) to 'written.parquet'")
written = pd.read_parquet("written.parquet").grade
print("written by duckdb:", written.dtype, "max", written.max())
assert not isinstance(written.dtype, pd.CategoricalDtype) and written.max() == "medium"
PY
