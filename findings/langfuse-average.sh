#!/usr/bin/env bash
# Tool: langfuse 5.0.4, `run_experiment` and the printed summary of its result.
# Input: six texts, without a server. The judge gives 5, 4, True and the text "5",
#   and raises an error for two texts.
# Guess: the summary says over how many texts the average is, or what failed.
# Seen (28 November 2026): "6 items … tone: 3.333". That is (5 + 4 + 1) / 3: True is
#   a 1, the text is left out, and so are the two errors. The log has a line for each
#   failure, the summary has no count. If the task fails for two of six texts, the
#   summary says "4 items".
# What to do: count `item_results[i].evaluations` and the texts yourself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  langfuse==5.0.4
venv/bin/python - <<'PY'
from langfuse import Evaluation, Langfuse

client = Langfuse(
    public_key="none", secret_key="none", base_url="http://127.0.0.1:9",
    tracing_enabled=False,
)
given = {1: 5, 2: 4, 5: True, 6: "5"}


def judge(*, input, output, **more):
    if input not in given:
        raise ValueError("no verdict")
    return Evaluation(name="tone", value=given[input])


def answer(*, item, **more):
    return item["input"]


def answer_some(*, item, **more):
    if item["input"] < 3:
        raise ValueError("no answer")
    return item["input"]


data = [{"input": number} for number in range(1, 7)]
printed = client.run_experiment(
    name="six texts", data=data, task=answer, evaluators=[judge]
).format()
print(printed)
assert "6 items" in printed and "tone: 3.333" in printed
assert "fail" not in printed.lower() and "3 of" not in printed
fewer = client.run_experiment(
    name="six texts", data=data, task=answer_some, evaluators=[judge]
)
assert "4 items" in fewer.format() and len(fewer.item_results) == 4
PY
