"""How often a gate goes red although nothing changed, and where it seldom does.

Another audit, of as many other texts, errs as much as this one, so that the two differ
by √2 of the standard error. A drift is itself a difference, and 0 if nothing changed.
Of several rows of a measure any may go red, and their shares are added up (Bonferroni).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special

from rubricnb.auditing.terms import ALPHA, MEASURES


def false_alarms(rows: pd.DataFrame, limit: float) -> float:
    """Share of audits of other texts in which some row of a measure crosses a limit.

    At most; NaN where an error is not known.
    """
    center, error, df = _other_audits(rows)
    below = special.stdtr(df, (limit - center) / error)
    if not is_level(rows["measure"].iloc[0]):
        below = 1 - below + special.stdtr(df, (-limit - center) / error)
    return float(np.minimum(1.0, np.sum(below)))


def steady_limits(rows: pd.DataFrame) -> pd.Series:
    """For each row of one measure, the limit at which these are at most 5 %."""
    center, error, df = _other_audits(rows)
    if is_level(rows["measure"].iloc[0]):
        return center + error * special.stdtrit(df, ALPHA / len(rows))
    return center.abs() - error * special.stdtrit(df, ALPHA / len(rows) / 2)


def is_level(measure: str) -> bool:
    """Whether a gate on a measure fails below its limit, and not above."""
    return MEASURES[measure]["kind"] in ("level", "fact")


def _other_audits(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    """What another audit is expected to estimate, its error, and the error's df."""
    center, error, df = rows["effect"], rows["se"], rows["df"]
    if is_level(rows["measure"].iloc[0]):  # as far as its interval reaches down
        error = (center - rows["low"]) / special.ndtri(1 - ALPHA / 2)
        df = pd.Series(1e9, rows.index)
    error = error.where(error > 0)
    if rows["section"].iloc[0] == "against":
        return 0 * center, error, df
    return center, np.sqrt(2) * error, df
