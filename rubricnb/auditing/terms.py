"""The terms of an audit: its measures, its verdicts, and the sizes that matter.

``measures.yml`` says what is measured, and what a judge must do to get each verdict.
"""

from __future__ import annotations

from importlib.resources import files

import pandas as pd
import yaml

ALPHA = 0.05
MARGINS = {
    "score points": 0.1,
    "points per point": 0.05,
    "percentage points": 2.0,
    "r": 0.02,
    "κ": 0.02,
    "points of r": 0.1,
    "share of scores": 0.25,
}
"""The smallest effects that matter, by unit; score points: on five levels."""
BOUNDS = {
    **dict.fromkeys(("r", "κ", "τ", "share of scores"), 1.0),
    "points of r": 2.0,
    "percentage points": 100.0,
}
"""The largest sizes that there can be, by unit; score points: the span of the scale."""
TOO_FEW = 5
"""Effective clusters below which no judge is asked, and no verdict is given."""
MOSTLY = 0.9
"""Share of scores, or ratings, that are one value, from which an audit says so."""
ENOUGH_PARSED, MODERATE_LEVEL, STRONG_LEVEL = 0.95, 0.3, 0.6
FOUND, SMALL, ABSENT, UNCLEAR = "found", "negligible", "not found", "inconclusive"
STRONG, MODERATE, WEAK, REVERSED = "strong", "moderate", "weak", "reversed"
SHOWN, FAILS, NOTED = "shown", "fails", "measured"
ADVERSE = (FAILS, REVERSED, WEAK, FOUND)
"""Verdicts that speak against a judge."""
WORST_FIRST = (*ADVERSE, UNCLEAR, MODERATE, STRONG, SHOWN, NOTED, SMALL, ABSENT)
MEASURES: dict[str, dict[str, str]]
VERDICTS: list[dict[str, str]]
MEASURES, VERDICTS = yaml.load_all(
    (files("rubricnb.auditing") / "measures.yml").read_text("utf-8"),
    # in C where there is it: three hundredths of a second at every start
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)
"""What is measured (section, kind, unit, claim, meaning, why it may be missing,
advice), and what a judge must do to get each verdict."""
MEASURE_TABLE = pd.DataFrame.from_dict(MEASURES, orient="index")
USUAL_SPAN = 4.0  # of a scale from 1 to 5, to which the margin in score points belongs
