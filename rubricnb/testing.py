"""Thresholds for a judge in a team's own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rubricnb.auditing.record import Audit, read_audit


def assert_judge(
    audit: Audit | str | Path, require: str | None = None, judge: Any = None, **how: Any
) -> None:
    """Assert that an audit meets thresholds, and that the judge has not changed since.

    Parameters
    ----------
    audit
        From `rubricnb.audit`, or the ``.json`` that it wrote.
    require
        What must hold: ``"order<0.2, agreement>0.5"``, with names and units of
        `rubricnb.auditing.MEASURES`; of several rows the worst counts. What the design
        cannot see does not hold. An empty text is an error, as an unset variable would
        disable the gate.
    judge, **how
        The judge as it is now, with ``items=`` and whatever else it was audited with
        (see `rubricnb.auditing.Audit.changes`); it is asked nothing.

    Raises
    ------
    AssertionError
        One line per threshold that is not met, with the number and its interval, and
        per part (template, rubric, parser, model) that has changed.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.testing import assert_judge
    >>> human = [1, 2, 3, 4, 5, 4, 3, 2]
    >>> log = {"item_id": list("abcdefgh"), "score": 3, "human": human}
    >>> import pandas as pd
    >>> found = rb.audit(judgments=pd.DataFrame(log), scale=(1, 5))
    >>> assert_judge(found, "agreement>0.5")
    ... # doctest: +ELLIPSIS, +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    AssertionError: the judge: every text gets the same score (3)
    agreement: not known: every text gets the same score (3)
    """
    found = audit if isinstance(audit, Audit) else read_audit(audit)
    changes = [] if judge is None else found.changes(judge, **how)
    if failures := changes + found.failures(require=require):
        raise AssertionError("\n".join(failures))
