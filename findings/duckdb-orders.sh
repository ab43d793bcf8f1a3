#!/usr/bin/env bash
# Tool: duckdb 2.0.1; polars 2.1.0 for comparison.
# Input: a CSV and a JSON file whose column `ordering` has the orders of a
#   rubric of three levels: 1-2-3, 3-1-2.
# Guess: the column is text.
# Seen (28 November 2026): DuckDB reads it as dates, without being asked. Of the
#   CSV, 3-1-2 becomes 2 January of the year 3; of the JSON file, 2 January 2003.
#   polars, asked to look for dates, takes the last level as the year: 3 January of
#   the year 2. With five levels the column stays text.
# What to do: `types={"ordering": "VARCHAR"}`, or separate the levels by spaces.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  duckdb==2.0.1 polars==2.1.0
venv/bin/python - <<'PY'
import json

import duckdb
import polars as pl

orders = ["1-2-3", "2-3-1", "3-1-2", "3-2-1", "2-1-3", "1-3-2"]
with open("orders.csv", "w") as file:
    file.write("item_id,ordering,score\n")
    file.writelines(f"text-{i},{order},{i % 3 + 1}\n" for i, order in enumerate(orders))
with open("orders.json", "w") as file:
    json.dump([{"item_id": i, "ordering": o} for i, o in enumerate(orders)], file)
seen = {}
for name in ("orders.csv", "orders.json"):
    column = duckdb.sql(f"from {name!r}").project("typeof(ordering), ordering::varchar")
    seen[name] = column.fetchall()[2]
    print("duckdb", name, "3-1-2 ->", *seen[name])
read = pl.read_csv("orders.csv", try_parse_dates=True)["ordering"]
print("polars", "3-1-2 ->", read.dtype, read[2])
assert seen["orders.csv"][0].startswith(("TIMESTAMP", "DATE")), seen
assert seen["orders.csv"][1].startswith("0003-01-02"), seen
assert seen["orders.json"][1].startswith("2003-01-02"), seen
assert str(read[2]) == "0002-01-03", read[2]
with open("five.csv", "w") as file:
    file.write("item_id,ordering\na,5-4-3-2-1\nb,1-2-3-4-5\n")
assert str(duckdb.sql("from 'five.csv'").types[1]) == "VARCHAR"
PY
