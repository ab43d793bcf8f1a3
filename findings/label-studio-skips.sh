#!/usr/bin/env bash
# Tool: label-studio-sdk 2.1.2, its converter of exported tasks to CSV.
# Input: four tasks with a rating of stars: two people rated the first, one of them
#   skipped the second, one skipped the third after giving 3 stars, and the
#   fourth has a prediction by a model and no person.
# Guess: a row for each person, empty where the text was skipped.
# Seen (28 November 2026): skipped texts have no row of that person, so "skipped"
#   and "never asked" look alike, and the 3 stars are gone. The task without a
#   person has a row with an empty rating and an empty annotator. A rating is the
#   text [{"rating":5}], not a number.
# What to do: read the JSON export; `was_cancelled` says who skipped.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  label-studio-sdk==2.1.2
venv/bin/python - <<'PY'
import csv
import json

from label_studio_sdk.converter import Converter

form = """<View><Text name="text" value="$text"/>
<Rating name="quality" toName="text" maxRating="5"/></View>"""


def stars(number):
    result = {"from_name": "quality", "to_name": "text", "type": "rating"}
    return [result | {"value": {"rating": number}}]


def by(person, number=None, skipped=False):
    return {
        "id": 10 * person + (number or 0),
        "completed_by": {"id": person, "email": f"rater-{person}@example.org"},
        "result": stars(number) if number else [],
        "was_cancelled": skipped,
        "ground_truth": False,
        "lead_time": 1.0,
        "created_at": "2026-11-01T10:00:00Z",
        "updated_at": "2026-11-01T10:00:00Z",
    }


people = [
    [by(1, 5), by(2, 1)],
    [by(1, 4), by(2, skipped=True)],
    [by(1, 2), by(2, 3, skipped=True)],
    [],
]
tasks = [
    {"id": i, "data": {"text": f"text {i}"}, "annotations": given, "predictions": []}
    for i, given in enumerate(people, start=1)
]
tasks[3]["predictions"] = [{"id": 1, "result": stars(5), "score": 0.5}]
with open("tasks.json", "w") as file:
    json.dump(tasks, file)
converter = Converter(form, ".", download_resources=False)
converter.convert("tasks.json", "out", "CSV", is_dir=False)
with open("out/result.csv") as file:
    rows = [(r["id"], r["annotator"], r["quality"]) for r in csv.DictReader(file)]
for row in rows:
    print(*row, sep=" | ")
people = [(task, person) for task, person, _ in rows]
mail = "rater-{}@example.org".format
assert people == [
    ("1", mail(1)), ("1", mail(2)), ("2", mail(1)), ("3", mail(1)), ("4", "")
]
assert rows[0][2].replace(" ", "") == "[{\"rating\":5}]"
assert rows[4][2] == ""
PY
