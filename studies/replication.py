"""Tables of ``results/`` computed from the recordings, which the chapters read.

The recordings are large and the human ratings are not in the repository, so verdicts
and statistics of every recorded judge are computed once: ``python -m
studies.replication``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from rubricnb.book.replication import (
    COLUMNS,
    judged,
    measured,
    replication,
    settings,
)
from rubricnb.cli.commands import errors
from rubricnb.core.estimates.reads import Value
from rubricnb.core.results import is_apart, judges, recorded, results_folder
from rubricnb.rulers.agreement import label_contrast, whole_texts
from rubricnb.rulers.grades import recorded_grades, recorded_gradings
from rubricnb.sets.catalogue import load
from rubricnb.statistics.cost import bias_cost
from rubricnb.statistics.criterion import counting_along, criterion_order
from rubricnb.statistics.human_agreement import agreement
from rubricnb.statistics.position import position_bias, score_position
from rubricnb.statistics.probabilities import at_temperature
from rubricnb.statistics.ranking import rank_reversal
from rubricnb.statistics.variation import variance_components, within_item_sd
from studies.intervals import recorded_columns

TEMPERATURES = (0.0, 0.3, 0.6, 1.0)  # arXiv:2602.02219v2, Figure 6
DRAWS = 5  # of scores, at a temperature above 0
_CELL = ["judge", "dataset"]
_SIZES = ["cramers_v", "v2_unbiased", "v2_unbiased_low", "v2_unbiased_high"]
_METHODS = {
    "rulers": "RULERS",
    "rulers-unlocked": "RULERS without its lock",
    "dhs": "DHS",
}
_SIDES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rulers": ({"method": "rulers"}, {"method": "dhs", "calibration": "isotonic"}),
    "locking": ({"method": "rulers"}, {"method": "rulers-unlocked"}),
    "evidence": ({"method": "rulers"}, {"method": "rulers", "verified": False}),
    "calibration": ({"method": "rulers"}, {"method": "rulers", "calibration": "none"}),
}


def record_replication() -> Path:
    """Hold every recorded real judge against the findings, on its datasets.

    Writes ``results/replication.csv``. The human ratings are needed to compute
    agreement and are fetched; none is written.
    """
    found = [
        replication(recorded(judge, dataset), load(dataset))
        for judge, dataset in real_judgments()
    ]
    for judge, dataset in recorded_gradings():
        scores = recorded_grades(judge, dataset).scores
        found.append(grading_replication(scores, load(dataset)))
    path = results_folder() / "replication.csv"
    table = judged(pd.concat(found, ignore_index=True))[COLUMNS]
    table.to_csv(path, index=False, float_format="%.6g")
    return path


def grading_replication(scores: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Hold one judge's gradings of one dataset against what RULERS' paper finds.

    Parameters
    ----------
    scores
        Of `rubricnb.rulers.grade` or `recorded_grades`: RULERS, and beside it DHS and
        RULERS without its lock. The standard variant at temperature 0 is used.
    items
        Their items, with ``human``.

    Returns
    -------
    DataFrame
        As of `replication`, text by text; the interval is over clusters and calibration
        draws.
    """
    standard = scores.query(
        "variant == 'standard' and temperature == 0 and design == 'single'"
    )
    standard = standard[
        (standard["units"] == "sentences") & (standard["replicate"] == 1)
    ]
    whole, rated = whole_texts(standard, items)
    return measured(
        {
            finding: partial(_kappas, whole, rated, *sides)
            for finding, sides in _SIDES.items()
        },
        scores,
    )


def _kappas(
    scores: pd.DataFrame, items: pd.DataFrame, a: dict[str, Any], b: dict[str, Any]
) -> dict[str, Any]:
    for side in (a, b):
        if not (scores.loc[scores["method"] == side["method"], "status"] == "ok").any():
            raise ValueError(f"no score of {_METHODS[side['method']]}")
    row = label_contrast(scores, items, a, b)
    return {
        "estimate": row["difference"],
        "low": row["low"],
        "high": row["high"],
        "unit": "QWK",
        "p": row["p"],
        "n_items": row["n_items"],
        "n_clusters": row["n_clusters"],
        "reason": row["reason"],
    }


def record_summaries() -> list[Path]:
    """Compute every table from the recordings and write it to ``results/``.

    The human ratings behind agreement are fetched; none is written.
    """
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for judge, dataset in real_judgments():
        for name, table in summaries_of(judge, dataset).items():
            found[name].append(table)
    paths = []
    for name, tables in found.items():
        paths.append(results_folder() / f"{name}.csv")
        table = recorded_columns(pd.concat(tables, ignore_index=True))
        table.to_csv(paths[-1], index=False, float_format="%.6g")
    return paths


def summaries_of(judge: str, dataset: str) -> dict[str, pd.DataFrame]:
    """Return what a judge's recorded judgments of a dataset add to each table."""
    rubric, criteria = settings(recorded(judge, dataset))
    items = load(dataset)
    return {
        name: summarise(criteria if together else rubric, items)
        for name, (summarise, together) in TABLES.items()
        if not (criteria if together else rubric).empty
    }


def real_judgments() -> Iterator[tuple[str, str]]:
    """Name every recorded judge that is not simulated, with its datasets.

    Studies that are recorded apart, which ask a judge again in another way, are left
    out.

    Examples
    --------
    >>> ("smollm2-135m-instruct-embedded", "minibench") in real_judgments()
    True
    """
    known = judges()
    for slug in sorted(known.loc[~known["spec"].str.startswith("simulated"), "slug"]):
        paths = results_folder().glob(f"*/{slug}/*.parquet")
        for dataset in sorted({p.stem for p in paths if not is_apart(p.parent)}):
            if not dataset.endswith(
                ("-scores", "-decisions", "-evidence", "-references")
            ):
                yield slug, dataset


def _balanced(reads: pd.DataFrame) -> pd.DataFrame:
    return reads[reads["design"] == "balanced"]


def _position(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Add the commonest score, and the median label mass: read shares with both."""
    balanced = _balanced(reads)
    given = balanced["score"].value_counts(normalize=True)
    added = {"commonest": given.index[0], "commonest_share": given.iloc[0]}
    mass = balanced.get("label_mass", pd.Series(dtype=float)).median()
    return position_bias(balanced).assign(**added, label_mass=mass)


def _agreement(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    if "human" not in items:
        return pd.DataFrame()
    found = agreement(reads[reads["design"] != "placebo"], items, [*_CELL, "design"])
    columns = [
        "r",
        "r_low",
        "r_high",
        "k_effective",
        "ceiling",
        "n_items",
        "n_clusters",
        "reason",
    ]
    return found[[*_CELL, "design", *columns]]


def _components(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """By likeliest scores, and by expected ones where probabilities are recorded."""
    values: list[Value] = (
        ["score", "expected_score"] if "probability_1" in reads else ["score"]
    )
    parts = []
    for value in values:
        part = variance_components(_balanced(reads), _CELL, value=value)
        part.insert(len(_CELL), "value", value)
        parts.append(part)
    return pd.concat(parts)


def _ranking(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    if "fixed" not in set(reads["design"]):
        return pd.DataFrame()
    found = rank_reversal(reads, by=_CELL)
    return found[found["n_prompts"] > 0]


def _criteria(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    return criterion_order(_balanced(reads), _CELL)


def _counting(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    return counting_along(_balanced(reads), _CELL)


def _cost(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    return bias_cost(score_position(_balanced(reads), _CELL))


def _temperature(reads: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """V under BALANCED and the spread within items at temperatures, over draws.

    The intervals are means too, so they are those of one draw: a little too wide for
    the mean.
    """
    if "probability_1" not in reads:
        return pd.DataFrame()
    rows = []
    for temperature in TEMPERATURES:
        for seed in range(DRAWS if temperature else 1):
            drawn = at_temperature(
                reads[reads["design"] != "placebo"], temperature, seed
            )
            by = [*_CELL, "design"]
            sizes = within_item_sd(drawn, by)[[*by, "sd", "sd_low", "sd_high"]]
            bias = position_bias(_balanced(drawn), by)[[*by, *_SIZES]]
            rows.append(sizes.merge(bias, how="left").assign(temperature=temperature))
    return (
        pd.concat(rows)
        .groupby([*_CELL, "design", "temperature"], as_index=False)
        .mean()
    )


TABLES: dict[str, tuple[Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame], bool]] = {
    "position": (_position, False),
    "agreement": (_agreement, False),
    "components": (_components, False),
    "ranking": (_ranking, False),
    "criteria": (_criteria, True),
    "counting": (_counting, True),
    "cost": (_cost, False),
    "temperature": (_temperature, False),
}
"""The tables, each with its function and whether it takes reads
of several criteria at once.
"""


if __name__ == "__main__":
    with errors():
        for path in [record_replication(), *record_summaries()]:
            print(f"written: {path}")
