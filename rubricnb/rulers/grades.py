"""What a grading found, and the gradings that are recorded under ``results/rulers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from rubricnb.judging.results import results_folder, slug_of
from rubricnb.permutation import Design
from rubricnb.rulers.bundle import Bundle

STUDY = "rulers"
_REPEATED = (
    "dataset", "candidate", "criterion", "judge", "source", "method", "lock", "design", "ordering",
    "variant", "units", "status", "trait", "item",
)  # fmt: skip


class Grades(NamedTuple):
    """What a grading found.

    Attributes
    ----------
    scores
        One row per item, method, ordering and replicate. The item's columns; judge, source,
        method, lock (first digits), design, ordering_index, ordering (of the levels), variant,
        units, replicate, temperature; ``status`` and ``reason``.

        ``score`` before calibration (of the trait that is called like the criterion, else the mean
        of the traits) and ``score_ungated``; ``trait_1…K`` and ``invalid_1…K``, the traits' scores
        and shares of quotes that are not verified (the features of `Calibrator`);
        ``ungated_1…K``.

        ``n_options``, ``n_units``, ``n_quotes``, ``n_verified``, ``ties`` (traits whose score was
        rounded up from a half), ``unsupported`` (decisions 2 of traits without any verified
        quote); tokens and seconds.
    decisions
        One row per text and checklist item: trait, item, decision.
    evidence
        One row per quote: trait, number (from 1 within the text), unit, found_in, status, whether
        it is ``valid`` evidence (verified, and not a repeat), characters, and the slice of the text
        (``text``), which goes into no file that is committed.
    """

    scores: pd.DataFrame
    decisions: pd.DataFrame
    evidence: pd.DataFrame


def recorded_grades(judge: str, dataset: str) -> Grades:
    """Read the recorded gradings of a judge on a dataset.

    Parameters
    ----------
    judge
        Slug or spec (``results/judges.csv`` maps them).
    dataset
        Name of the dataset.

    Returns
    -------
    Grades
        As from `grade`, with every method, variant, segmentation and replicate that was recorded;
        ``source`` is ``recorded``. Evidence has no slices of the texts.

    Raises
    ------
    FileNotFoundError
        There is no such recording; names those there are.

    Examples
    --------
    >>> recorded_grades("nobody", "minibench")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    FileNotFoundError: no recorded grading of 'nobody' on 'minibench'; there are: ...
    """
    folder = results_folder() / STUDY / slug_of(judge)
    paths = [folder / f"{dataset}-{part}.parquet" for part in Grades._fields]
    if not all(path.exists() for path in paths):
        there = [f"{slug} on {name}" for slug, name in recorded_gradings()]
        raise FileNotFoundError(
            f"no recorded grading of {judge!r} on {dataset!r}; there are: "
            f"{', '.join(there) or 'none'}; grade it with rubricnb.rulers.grade"
        )
    return Grades(*map(pd.read_parquet, paths))


def recorded_gradings() -> list[tuple[str, str]]:
    """List the judges and datasets of which gradings are recorded: slug, dataset.

    Examples
    --------
    >>> ("smollm2-135m-instruct-embedded", "minibench") in recorded_gradings()
    True
    """
    end = "-scores.parquet"
    paths = sorted((results_folder() / STUDY).glob(f"*/*{end}"))
    return [(path.parent.name, path.name.removesuffix(end)) for path in paths]


def recorded_part(
    items: pd.DataFrame,
    bundle: Bundle,
    judge: str,
    method: str,
    design: Design | None = None,
    replicates: int = 1,
    temperature: float = 0.0,
) -> Grades | None:
    """Return what is recorded of a grading: the texts that are recorded whole. None: nothing is.

    A recording counts if it was made with this very bundle, which its lock tells.

    Parameters
    ----------
    items, bundle, judge, method, design, replicates, temperature
        As in `grade`; one method.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import load_bundle
    >>> items = rb.load("minibench", n_items=15)
    >>> recorded_part(items, load_bundle("minibench"), "nobody", "rulers") is None
    True
    """
    condition = {
        "method": method,
        "design": design.name if design else "single",
        "variant": bundle.variant,
        "units": bundle.units,
        "temperature": temperature,
    }
    reads = replicates * (design.k if design else 1)
    found = []
    for dataset in items["dataset"].unique():
        try:
            grades = recorded_grades(judge, str(dataset))
        except FileNotFoundError:
            continue
        locks = grades.scores.loc[grades.scores["method"] == "rulers", "lock"]
        if bundle.lock[:12] in set(locks.astype(str)):
            found.append(_of_condition(grades, items, condition, replicates, reads))
    return joined(found) if any(len(grades.scores) for grades in found) else None


def joined(parts: Sequence[Grades]) -> Grades:
    """Put gradings under each other.

    Examples
    --------
    >>> frame = pd.DataFrame({"method": ["dhs"]})
    >>> len(joined([Grades(frame, frame, frame), Grades(frame, frame.head(0), frame)]).decisions)
    1
    """
    return Grades(*map(_under_each_other, zip(*parts, strict=True)))


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its repeated words as categories.

    Examples
    --------
    >>> str(with_categories(pd.DataFrame({"method": ["dhs"]})).dtypes["method"])
    'category'
    """
    return frame.astype({column: "category" for column in _REPEATED if column in frame})


def _under_each_other(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)] or [frames[0]]
    return with_categories(pd.concat(filled, ignore_index=True))


def _of_condition(
    grades: Grades, items: pd.DataFrame, condition: dict[str, Any], replicates: int, reads: int
) -> Grades:
    scores, decisions, evidence = (_rows(frame, condition, replicates) for frame in grades)
    scores = scores[scores["item_id"].isin(items["item_id"])]
    counts = scores.groupby("item_id", observed=True).size().reindex(items["item_id"])
    short = items.loc[(counts != reads).to_numpy(), "text_id"]
    texts = set(items["text_id"]) - set(short)
    return Grades(*(f[f["text_id"].isin(texts)] for f in (scores, decisions, evidence)))


def _rows(frame: pd.DataFrame, condition: dict[str, Any], replicates: int) -> pd.DataFrame:
    rows = frame["replicate"] <= replicates
    for column, value in condition.items():
        rows &= frame[column] == value
    return frame[rows]
