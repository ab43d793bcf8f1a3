#!/usr/bin/env bash
# Tool: irrCAC 0.4.4, `CAC` of raw ratings.
# Input: two raters, eight texts; one text has a rating by one rater only.
# Guess: that text cannot show agreement, so every coefficient leaves it out.
# Seen (28 November 2026): Krippendorff alpha and Brennan-Prediger leave it out
#   (.381, .3571 with and without the text). Fleiss kappa and Gwet AC1 count its
#   rating in the agreement expected by chance: .3546 with it and .3333 without,
#   .3584 with it and .3684 without. So their values depend on who rated alone.
# What to do: say whether texts with one rating were left out; drop them first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  irrCAC==0.4.4
venv/bin/python - <<'PY'
import warnings

import pandas as pd
from irrCAC.raw import CAC

warnings.simplefilter("ignore")
ratings = pd.DataFrame(
    {"a": [1, 2, 3, 1, 3, 2, 1, 3], "b": [None, 3, 3, 2, 3, 2, 1, 2]}, dtype=float
)
names = ("gwet", "fleiss", "krippendorff", "bp")


def coefficients(frame):
    table = CAC(frame, digits=4)
    return {
        name: float(getattr(table, name)()["est"]["coefficient_value"])
        for name in names
    }


alone, without = coefficients(ratings), coefficients(ratings.dropna())
print("with the text rated once", alone)
print("without it              ", without)
assert alone["krippendorff"] == without["krippendorff"] == 0.381
assert alone["bp"] == without["bp"] == 0.3571
assert (alone["fleiss"], without["fleiss"]) == (0.3546, 0.3333)
assert (alone["gwet"], without["gwet"]) == (0.3584, 0.3684)
PY
