"""Describe a dataset by numbers that reveal no text and no single rating."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from rubricnb.core.support.counting import binned
from rubricnb.core.support.folders import results_folder

_COUNTED = {
    "texts": "text_id",
    "clusters": "cluster_id",
    "groups": "group_id",
    "candidates": "candidate",
    "categories": "category",
    "criteria": "criterion",
}
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
    >>> about = describe(rb.load("minibench")).query("criterion == ''").set_index("quantity").value
    >>> about[["items", "texts", "clusters", "criteria"]].astype(int).tolist()
    [180, 60, 12, 3]
    """
    rated = next(
        (c for c in ("human", "gold") if c in items and items[c].notna().any()), ""
    )
    share = (
        _cluster_share(items[items[rated].notna()], rated) if rated else float("nan")
    )
    rows = [
        ("", *row)
        for row in (*_counts(items), *_lengths(items), ("cluster_share", share))
    ]
    out = pd.DataFrame(
        [*rows, *_ratings(items)], columns=["criterion", "quantity", "value"]
    )
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
    paths = {
        path.stem: path
        for path in sorted((results_folder() / "datasets").glob("*.csv"))
    }
    if not paths or name not in (None, *paths):
        raise FileNotFoundError(
            f"no recorded description of {name!r}; there are: "
            f"{', '.join(paths) or 'none'}; make one with "
            f"rubricnb.sets.describe(rubricnb.load({name!r}))"
        )
    chosen = paths.values() if name is None else [paths[name]]
    frames = [
        pd.read_csv(path, keep_default_na=False, na_values="nan") for path in chosen
    ]
    return pd.concat(frames, ignore_index=True)


def _counts(items: pd.DataFrame) -> Iterator[tuple[str, float]]:
    yield "items", len(items)
    for name, column in _COUNTED.items():
        yield name, items[column].nunique() if column in items else 0
    rubrics = getattr(items, "rubrics", None)
    if rubrics is not None:
        standard = rubrics[rubrics["variant"] == "standard"].sort_values(
            ["rubric_id", "score"]
        )
        texts = standard.groupby("rubric_id", observed=True).agg(
            {"definition": "first", "description": tuple}
        )
    yield "rubrics", 0 if rubrics is None else len(texts.drop_duplicates())
    for column in ("reference", "human", "gold"):
        yield (
            f"with_{column}",
            int(items[column].notna().sum()) if column in items else 0,
        )
    yield "raters", _raters(items)


def _raters(items: pd.DataFrame) -> float:
    if "human_ratings" in items and items["human_ratings"].notna().any():
        numbers = items["human_ratings"].dropna().map(len).unique()
        return float(numbers[0]) if len(numbers) == 1 else float("nan")
    if "human" not in items or items["human"].notna().sum() == 0:
        return 0.0
    means = items["human"].dropna().to_numpy(dtype=np.float64)
    for k in range(1, _MOST_RATERS + 1):
        if np.allclose(means * k, np.round(means * k), atol=0.01 * k):
            return float(k)
    return float("nan")


def _lengths(items: pd.DataFrame) -> Iterator[tuple[str, float]]:
    texts = items.drop_duplicates("text_id")
    for column in ("instruction", "response"):
        words = (
            texts[column].astype("str").str.split().str.len().to_numpy(dtype=np.float64)
        )
        for q in _QUANTILES:
            yield f"{column}_words_{q}", float(np.percentile(words, q))


def _cluster_share(items: pd.DataFrame, rated: str) -> float:
    """Intraclass correlation within criteria, from mean squares of clusters."""
    of_criterion = items.groupby("criterion", observed=True)[rated]
    value = (items[rated] - of_criterion.transform("mean")).to_numpy(dtype=np.float64)
    code, names = pd.factorize(items["cluster_id"])
    size = binned(code)
    k, total = len(names), len(value)
    if k < 2 or total == k:
        return float("nan")
    mean = binned(code, weights=value) / size
    between = float((size * (mean - value.mean()) ** 2).sum()) / (k - 1)
    within = float(((value - mean[code]) ** 2).sum()) / (total - k)
    typical = (total - float((size**2).sum()) / total) / (k - 1)
    variance = (between - within) / typical
    if variance + within == 0:
        return float("nan")
    return max(variance, 0.0) / (max(variance, 0.0) + within)


def _ratings(items: pd.DataFrame) -> Iterator[tuple[str, str, float]]:
    for column in ("human", "gold"):
        if column not in items or items[column].isna().all():
            continue
        top = int(np.ceil(items[column].max()))
        if (rubrics := getattr(items, "rubrics", None)) is not None:
            top = max(top, int(rubrics["score"].max()))
        for criterion, part in items.groupby("criterion", observed=True, sort=False):
            value = part[column].dropna().to_numpy(dtype=np.float64)
            yield str(criterion), f"{column}_mean", float(value.mean())
            yield str(criterion), f"{column}_sd", float(value.std())
            level = np.clip(np.floor(value + 0.5).astype(int), 1, top)
            for score, count in enumerate(
                binned(level, minlength=top + 1)[1:], start=1
            ):
                yield str(criterion), f"{column}_{score}", int(count)
