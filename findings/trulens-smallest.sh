#!/usr/bin/env bash
# Tool: trulens-feedback 2.16.0 (the function that reads a reply without JSON).
# Input: replies on a scale from 0 to 10 with a sentence before the score.
# Guess: the last number, or the one after "Score:".
# Seen (28 November 2026): the smallest number of the reply that is on the scale.
#   "The text meets 2 of 3 points. Score: 8" is a 2. A decimal is cut, not rounded,
#   unless decimals are allowed: 7.9 is 7. "Score: 11 (1 bonus)", off the scale, is 1.
#   The log has a line about several values; the feedback result has none.
# What to do: compare `score` with the reply kept in the record.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  trulens-core==2.16.0 trulens-feedback==2.16.0
venv/bin/python - <<'PY'
from trulens.feedback.generated import re_configured_rating

replies = {
    "The text meets 2 of 3 points. Score: 8": 2,
    "It has 3 paragraphs.\nScore: 9": 3,
    "Score: 7.9": 7,
    "Score: 11 (1 bonus)": 1,
    "Score: 8": 8,
}
for reply, expected in replies.items():
    seen = re_configured_rating(reply, 0, 10)
    print(repr(reply), "->", seen)
    assert seen == expected
PY
