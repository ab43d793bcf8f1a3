"""Describe a dataset by numbers that reveal no text and no single rating."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.rendering import rubric_texts
from rubricnb.core.support.folders import results_folder

_COUNTED = {
    "texts": "text_id",
    "clusters": "cluster_id",
    "groups": "group_id",
    "candidates": "candidate",
    "categories": "category",
    "criteria": "criterion",
}
_FILLED = ("reference", "human", "gold")
_QUANTILES = (10, 50, 90)
_MOST_RATERS = 20


def describe(items: pd.DataFrame) -> pd.DataFrame:
    """Describe a dataset by counts, lengths and histograms.

    Parameters
    ----------
    items
        From `rubricnb.load`.

    Returns
    -------
    DataFrame
        dataset, criterion (empty: of all), quantity, value. The quantities are

        * ``items, texts, clusters, groups, candidates, categories, criteria``, and
          ``rubrics`` (different texts of definition and levels);
        * ``with_reference, with_human, with_gold``: items that have one;
        * ``raters``: of each human rating; where only means are given, the least number
          whose means they can be; NaN if ratings differ in number;
        * ``instruction_words_10, _50, _90`` and ``response_words_…``: quantiles over
          texts;
        * ``cluster_share``: share of the variance of the rating within criteria that
          lies between clusters (one-way analysis of variance, not below 0), of
          ``human``, else of ``gold``;
        * for each criterion and for ``human`` and ``gold``: ``human_mean, human_sd``
          and the histogram ``human_1, human_2, …`` of ratings rounded half up.

    Examples
    --------
    >>> import rubricnb as rb
    >>> overall = describe(rb.load("minibench")).query("criterion == ''")
    >>> about = overall.set_index("quantity").value
    >>> about[["items", "texts", "clusters", "criteria"]].astype(int).tolist()
    [180, 60, 12, 3]
    """
    rows = [("", *row) for row in (*_counts(items), *_lengths(items))]
    rows += [("", "cluster_share", _cluster_share(items)), *_ratings(items)]
    out = pd.DataFrame(rows, columns=["criterion", "quantity", "value"])
    out.insert(0, "dataset", str(items["dataset"].iloc[0]))
    return out.astype({"value": "float64"})


def described(name: str | None = None) -> pd.DataFrame:
    """Read the recorded descriptions of datasets, which need no dataset.

    Parameters
    ----------
    name
        A dataset; default: all that are recorded (by ``python -m
        studies.descriptions``).

    Returns
    -------
    DataFrame
        As from `describe`.

    Raises
    ------
    FileNotFoundError
        None is recorded; names those that are.

    Examples
    --------
    >>> described("hanna").query("quantity == 'clusters'").value.item()
    96.0
    """
    folder = results_folder() / "datasets"
    known = {path.stem: path for path in sorted(folder.glob("*.csv"))}
    chosen = [name] if name in known else [*known] if name is None else []
    if not chosen:
        raise FileNotFoundError(
            f"no recorded description of {name!r}; there are: "
            f"{', '.join(known) or 'none'}; make one with "
            f"rubricnb.sets.describe(rubricnb.load({name!r}))"
        )
    how: Any = {"keep_default_na": False, "na_values": "nan"}
    frames = [pd.read_csv(known[one], **how) for one in chosen]
    return pd.concat(frames, ignore_index=True)


def _counts(items: pd.DataFrame) -> Iterator[tuple[str, float]]:
    known = items.reindex(columns=[*_COUNTED.values(), *_FILLED])
    yield "items", len(items)
    yield from zip(_COUNTED, known[[*_COUNTED.values()]].nunique(), strict=True)
    rubrics = getattr(items, "rubrics", None)
    n_rubrics = 0
    if rubrics is not None:
        standard = rubrics[rubrics["variant"] == "standard"]
        n_rubrics = len({*map(repr, rubric_texts(standard).values())})
    yield "rubrics", n_rubrics
    yield from known[[*_FILLED]].count().add_prefix("with_").items()
    yield "raters", _raters(items)


def _raters(items: pd.DataFrame) -> float:
    known = items.reindex(columns=["human", "human_ratings"])
    means = known["human"].astype("float64").dropna()
    numbers = known["human_ratings"].dropna().map(len).unique()
    if len(numbers):
        return float(numbers[0]) if len(numbers) == 1 else float("nan")
    for k in range(1, _MOST_RATERS + 1) if len(means) else [0]:
        if np.allclose(means * k, np.round(means * k), atol=0.01 * k):
            return float(k)
    return float("nan")


def _lengths(items: pd.DataFrame) -> Iterator[tuple[str, float]]:
    texts = items.drop_duplicates("text_id")
    for column in ("instruction", "response"):
        words = texts[column].astype("str").str.split().str.len()
        for q in _QUANTILES:
            yield f"{column}_words_{q}", words.quantile(q / 100)


def _cluster_share(items: pd.DataFrame) -> float:
    """Intraclass correlation within criteria, from mean squares of clusters."""
    ratings = items.reindex(columns=["human", "gold"]).dropna(axis=1, how="all")
    if ratings.empty:
        return float("nan")
    rating = ratings.iloc[:, 0].dropna().astype("float64")
    rated = items.loc[rating.index]
    value = rating - rating.groupby(rated["criterion"], observed=True).transform("mean")
    of_cluster = value.groupby(rated["cluster_id"].to_numpy())
    size = of_cluster.size()
    k, total = len(size), len(value)
    if k < 2 or total == k:
        return float("nan")
    typical = (total - (size**2).sum() / total) / (k - 1)
    within = ((value - of_cluster.transform("mean")) ** 2).sum() / (total - k)
    # the mean of all is 0, as that of each criterion
    between = (size * of_cluster.mean() ** 2).sum() / (k - 1)
    variance = max((between - within) / typical, 0.0)
    return float(variance / (variance + within)) if variance + within else float("nan")


def _ratings(items: pd.DataFrame) -> Iterator[tuple[str, str, float]]:
    rubrics = getattr(items, "rubrics", pd.DataFrame({"score": [0]}))
    for column in items.columns.intersection(["human", "gold"]):
        top = np.ceil(max(items[column].max(), rubrics["score"].max()))
        rated = items.dropna(subset=column)
        for criterion, part in rated.groupby("criterion", observed=True, sort=False):
            value = part[column].astype("float64")
            level = np.floor(value + 0.5).clip(1, top).astype(int)
            counts = level.value_counts().reindex(range(1, int(top) + 1), fill_value=0)
            found = {"mean": value.mean(), "sd": value.std(ddof=0), **counts}
            for what, number in found.items():
                yield str(criterion), f"{column}_{what}", number
