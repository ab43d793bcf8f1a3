"""Do the papers' findings hold for another judge? A row for each of them.

A judge of another size cannot repeat a number of the papers, but it can have the same
sign. So each finding is put as a quantity that the papers find to be above zero,
estimated with an interval that respects that items share prompts, and the verdict is
read off that interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd

from rubricnb.book.summary import read_result
from rubricnb.book.tables import interval
from rubricnb.core.estimates.intervals import (
    MARGINS,
    benjamini_hochberg,
    equivalence,
    t_estimate,
)
from rubricnb.core.estimates.losses import MOST_LOST, losses_of, share_lost
from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.types import Row
from rubricnb.sets.papers import VERDICTS
from rubricnb.statistics.criterion import criterion_order
from rubricnb.statistics.human_agreement import strategy_contrast
from rubricnb.statistics.position import position_bias
from rubricnb.statistics.ranking import reversal_effect
from rubricnb.statistics.variation import order_effect

ALPHA = 0.05
REPLICATES, FAILS, UNCLEAR = VERDICTS
COLUMNS = [
    "finding",
    "judge",
    "dataset",
    "estimate",
    "low",
    "high",
    "unit",
    "p",
    "p_adjusted",
    "verdict",
    "n_items",
    "n_clusters",
    "reason",
]


Measures = dict[str, Callable[[], Row]]
"""Finding → what measures it."""


class Finding(NamedTuple):
    """What a paper says of all or most of its judges, and what is above zero then."""

    source: str
    says: str
    quantity: str


_FILE = files("rubricnb.sets") / "published" / "findings.yml"
FINDINGS = {name: Finding(**said) for name, said in read_yaml(str(_FILE)).items()}


def settings(judgments: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pick the papers' conditions: one criterion at a time, and several at once.

    Five levels with numeric labels; BALANCED, FIXED and placebo.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench", n_items=2)
    >>> requests = rb.plan(items, [rb.balanced(5), rb.shuffled(5, 3)], readout="score")
    >>> rubric, criteria = settings(rb.simulate(requests, items, "unbiased"))
    >>> len(rubric), len(criteria)
    (20, 0)
    """
    plain = judgments.query(
        "n_options == 5 and labels == 'numeric' and exemplar == 'none'"
        " and design in ['balanced', 'fixed', 'placebo']"
    )
    rubric = plain[plain["template"] == "rubric"]
    # the papers' own condition, where there are more
    if rubric["reference_score"].nunique() > 1:
        rubric = rubric[rubric["reference_score"] == "auto"]
    return rubric, plain[plain["template"] == "criteria"]


def replication(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Test the papers' findings on one judge's judgments of one dataset.

    Parameters
    ----------
    judgments
        Of both settings, as `recorded` or `run` return them: BALANCED, beside it FIXED
        for agreement, and FIXED and placebo for reversals. Five levels with numeric
        labels are used.
    items
        Their items, with ``human``.

    Returns
    -------
    DataFrame
        One row per finding of `FINDINGS`: ``estimate, low, high`` (95 %, by cluster) in
        ``unit``, ``p``, ``n_items, n_clusters``, ``reason``, and ``verdict``:
        ``replicates`` (above zero at 5 %, however small), ``does not`` (below zero, or
        shown to be negligible; the preference for the first position has no such test),
        else ``cannot say``.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench")
    >>> requests = rb.plan(items, [rb.balanced(5), rb.fixed(5, 10)], readout="score")
    >>> found = replication(rb.simulate(requests, items, "first-biased"), items)
    >>> found.set_index("finding").verdict[["first", "criteria"]].tolist()
    ['replicates', 'cannot say']
    """
    rubric, criteria = settings(judgments)

    def balanced(part: pd.DataFrame) -> pd.DataFrame:
        if (reads := part[part["design"] == "balanced"]).empty:
            several = (
                "several criteria at once"
                if part is criteria
                else "one criterion at a time"
            )
            raise ValueError(f"no balanced reads of {several}")
        return reads

    measures: Measures = {
        "position": lambda: _position(balanced(rubric)),
        "first": lambda: _first(balanced(rubric)),
        "descending": lambda: _descending(balanced(rubric)),
        "agreement": lambda: _agreement(rubric, items),
        "reversal": lambda: _reversal(rubric),
        "criteria": lambda: _criteria(balanced(criteria)),
    }
    return measured(measures, judgments)


def measured(measures: Measures, answers: pd.DataFrame) -> pd.DataFrame:
    """Measure findings on one judge's answers about one dataset, with verdicts."""
    who = {name: _only(answers, name) for name in ("judge", "dataset")}
    rows = []
    for finding, measure in measures.items():
        try:
            found = measure()
        # a design, a setting or a method that this run does not have
        except ValueError as error:
            found = {"reason": str(error)}
        rows.append({"finding": finding, **who, **found})
    table = pd.DataFrame(rows).reindex(columns=[*COLUMNS, "p_equivalent"])
    # why a number is unknown; for criteria, which one it is about
    known = table["p"].notna() & (table["finding"] != "criteria")
    return judged(table.assign(reason=table["reason"].mask(known, "").astype(str)))


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Adjust each finding's p-values over judges and datasets, and give verdicts.

    Examples
    --------
    >>> one = {"finding": "first", "estimate": 2.0, "p": 0.01, "p_equivalent": 0.9}
    >>> table = pd.DataFrame([one, one | {"estimate": -2.0}, one | {"p": 0.3}])
    >>> judged(table).verdict.tolist()
    ['replicates', 'does not', 'cannot say']
    """
    adjusted = table.groupby("finding")["p"].transform(
        lambda p: pd.Series(benjamini_hochberg(p), p.index)
    )
    clear = adjusted < ALPHA
    # there either sign counts
    ahead = (table["estimate"] > 0) | (table["finding"] == "descending")
    against = (clear & ~ahead) | (~clear & (table["p_equivalent"] < ALPHA))
    verdict = np.select([clear & ahead, against], [REPLICATES, FAILS], UNCLEAR)
    return table.assign(p_adjusted=adjusted, verdict=verdict)


def recorded_replication(*findings: str) -> pd.DataFrame:
    """Read the recorded verdicts that `python -m studies.replication` has written.

    Parameters
    ----------
    findings
        Names in `FINDINGS`; default: all.

    Returns
    -------
    DataFrame
        The rows of ``results/replication.csv``; p-values adjusted over all judges and
        datasets.

    Examples
    --------
    >>> table = recorded_replication("first")
    >>> table.verdict.isin(["replicates", "does not", "cannot say"]).all()
    np.True_
    """
    table = read_result("replication")
    return table[table["finding"].isin(findings or FINDINGS)].reset_index(drop=True)


def _only(frame: pd.DataFrame, column: str) -> str:
    names = frame[column].unique()
    if len(names) != 1:
        raise ValueError(
            f"give one {column} at a time, not {', '.join(map(str, names)) or 'none'}"
        )
    return str(names[0])


def _position(balanced: pd.DataFrame) -> Row:
    row = position_bias(balanced).iloc[0]
    v = np.sqrt(np.maximum(interval(row, "v2_unbiased"), 0))
    return _found(row, v, "V", row.p_within, row.p_equivalent)


def _first(balanced: pd.DataFrame) -> Row:
    row = position_bias(balanced).iloc[0]
    even = 1 / int(balanced["n_options"].iloc[0])
    points = 100 * (np.array(interval(row, "share_1")) - even)
    beyond = t_estimate(row.share_1 - even, row.share_1_se, row.share_1_df)
    return _found(row, points, "percentage points", beyond.p)


def _descending(balanced: pd.DataFrame) -> Row:
    row = order_effect(balanced).iloc[0]
    name = "ascending_minus_descending"
    shift = interval(row, name)
    n = row[f"{name}_df"] + 1
    equal = equivalence(shift[0], row[f"{name}_se"], n, MARGINS["delta_pos"])
    return _found(row, shift, "score points", row[f"{name}_p"], equal)


def _agreement(judgments: pd.DataFrame, items: pd.DataFrame) -> Row:
    if "human" not in items:
        raise ValueError("people have not rated these items")
    row = strategy_contrast(judgments, items, "balanced", "fixed").iloc[0]
    return _found(row, interval(row, "delta_r"), "r", row.p, row.p_equivalent)


def _reversal(judgments: pd.DataFrame) -> Row:
    effects = reversal_effect(judgments).rename(columns={"n_prompts": "n_items"})
    row = effects[
        (effects["measure"] == "flip_strict") & (effects["control"] == "fixed")
    ].iloc[0]
    points = interval(row, "effect", 100)
    return _found(row, points, "percentage points", row.p, row.p_equivalent)


def _criteria(balanced: pd.DataFrame) -> Row:
    rows = criterion_order(balanced).rename(columns={"n_blocks": "n_items"})
    p = rows["p_within_adjusted"].min()  # Simes: some criterion is moved
    if pd.isna(p):
        return {"reason": str(rows["reason"].iloc[0])}
    above = rows["delta_pos"] - rows["delta_pos_null"]
    rows["reason"] = "the largest: " + rows["criterion"].astype(str)
    gap = [above.max(), np.nan, np.nan]
    row = rows.loc[above.idxmax()]
    return _found(row, gap, "score points", p, rows["p_equivalent"].max())


def _found(
    row: pd.Series,
    estimate: Iterable[float],
    unit: str,
    p: float,
    p_equivalent: float = np.nan,
) -> Row:
    """What a statistic's row says of a finding: the estimate, then its interval.

    No verdict where the items that it lost could turn the sign, or are more than a
    detail.
    """
    lost = losses_of(row["codes"])
    if share_lost(lost) > MOST_LOST or {"open_sign", "r_turned"} & {*lost}:
        p = p_equivalent = np.nan
    return {
        **dict(zip(("estimate", "low", "high"), estimate, strict=True)),
        "unit": unit,
        "p": p,
        "p_equivalent": p_equivalent,
        **{name: row[name] for name in ("n_items", "n_clusters", "reason")},
    }
