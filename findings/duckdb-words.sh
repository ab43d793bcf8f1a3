#!/usr/bin/env bash
# Tool: duckdb 2.0.1, `read_csv` with its defaults.
# Input: a rating column with the words yes and no, and one with t and f.
# Guess: text; only true and false are booleans.
# Seen (28 November 2026): both columns are BOOLEAN, and the words are gone: a
#   copy of the table as CSV has true and false. A file with one "maybe" or one
#   "n/a" in the column stays text, so two exports of one form differ in type.
# What to do: `all_varchar=true`, or `types={"rating": "VARCHAR"}`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  duckdb==2.0.1
venv/bin/python - <<'PY'
import duckdb

table = "text,rating,mark\n1,yes,t\n2,no,f\n3,yes,t\n"
for name, more in (("plain.csv", ""), ("mixed.csv", "4,maybe,t\n")):
    with open(name, "w") as file:
        file.write(table + more)
plain, mixed = duckdb.sql("from 'plain.csv'"), duckdb.sql("from 'mixed.csv'")
print("yes, no:", plain.types, "with a maybe:", mixed.types)
plain.write_csv("copy.csv")
print(open("copy.csv").read())
assert [str(kind) for kind in plain.types[1:]] == ["BOOLEAN", "BOOLEAN"]
assert str(mixed.types[1]) == "VARCHAR"
assert "1,true,true" in open("copy.csv").read()
PY
