#!/usr/bin/env bash
# Tool: pydantic-evals 2.62.0.
# Input: a strict judge for every case (its score is 1), and for one case a
#   mild judge as well (score 5). Both evaluators have the name "tone".
# Guess: an error, or the second judge is "tone_2" wherever it appears.
# Seen (28 November 2026): the number is given case by case, and the evaluators of
#   a case come before those of the dataset. In the case with two judges the mild
#   one is "tone" and the strict one is "tone_2"; in the other case the strict one
#   is "tone". The report gives "tone" the mean 3, of one score by each judge.
# What to do: read `source` of each result, or give the evaluators other names.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  pydantic-evals==2.62.0
venv/bin/python - <<'PY'
from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator


@dataclass
class Judge(Evaluator):
    score: float

    def evaluate(self, ctx):
        return self.score

    def get_default_evaluation_name(self):
        return "tone"


strict, mild = Judge(1.0), Judge(5.0)
cases = [Case(name="a", inputs="a"), Case(name="b", inputs="b", evaluators=(mild,))]
data = Dataset(name="two judges", cases=cases, evaluators=[strict])
report = data.evaluate_sync(lambda text: text, progress=False)
for case in report.cases:
    print(case.name, {name: score.value for name, score in case.scores.items()})
means = report.averages().scores
print("means", means)
assert means == {"tone": 3.0, "tone_2": 1.0}
assert report.cases[1].scores["tone"].source.arguments in ((5.0,), {"score": 5.0})
PY
