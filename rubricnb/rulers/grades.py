"""Results of a grading, and the gradings recorded under ``results/rulers``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rubricnb.extras import extra
from rubricnb.judging.results import results_folder, slug_of
from rubricnb.permutation import Design, code
from rubricnb.rulers.bundle import Bundle

STUDY = "rulers"
_REPEATED = (
    "dataset",
    "candidate",
    "criterion",
    "judge",
    "source",
    "method",
    "lock",
    "design",
    "ordering",
    "variant",
    "units",
    "status",
    "trait",
    "item",
)
_READ = ("text_id", "ordering_index", "ordering", "replicate")


class Grades(NamedTuple):
    """What a grading found.

    Attributes
    ----------
    scores
        One row per item, method, ordering and replicate. The item's columns; judge,
        source, method, lock (first digits), design, ordering_index, ordering (of the
        levels), variant, units, replicate, temperature; ``status`` and ``reason``.

        ``score`` before calibration (of the trait that is called like the criterion,
        else the mean of the traits) and ``score_ungated``; ``trait_1…K`` and
        ``invalid_1…K``, the traits' scores and shares of quotes that are not verified
        (the features of `Calibrator`); ``ungated_1…K``.

        ``n_options``, ``n_units``, ``n_quotes``, ``n_verified``, ``ties`` (traits whose
        score was rounded up from a half), ``unsupported`` (decisions 2 of traits
        without any verified quote); tokens and seconds.
    decisions
        One row per text and checklist item: trait, item, decision.
    evidence
        One row per quote: text_id, cluster_id, trait, number (from 1 within the text),
        unit, found_in, status, whether it is ``valid`` evidence (verified, and not a
        repeat), characters, and the slice of the text (``text``), which goes into no
        file that is committed.
    """

    scores: pd.DataFrame
    decisions: pd.DataFrame
    evidence: pd.DataFrame


def recorded_grades(judge: str, dataset: str, design: str | None = None) -> Grades:
    """Read the recorded gradings of a judge on a dataset.

    Parameters
    ----------
    judge
        Slug or spec (``results/judges.csv`` maps them).
    dataset
        Name of the dataset.
    design
        Only what was graded under this design; ``single`` is the bundle's own order of
        levels.

    Returns
    -------
    Grades
        As from `grade`, with every method, variant, segmentation and replicate that was
        recorded; ``source`` is ``recorded``. Evidence has no slices of the texts.

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
    >>> len(recorded_grades("embedded", "minibench", design="balanced").scores)
    0
    """
    folder = results_folder() / STUDY / slug_of(judge)
    paths = [folder / f"{dataset}-{part}.parquet" for part in Grades._fields]
    if not all(path.exists() for path in paths):
        there = [f"{slug} on {name}" for slug, name in recorded_gradings()]
        raise FileNotFoundError(
            f"no recorded grading of {judge!r} on {dataset!r}; there are: "
            f"{', '.join(there) or 'none'}; grade it with rubricnb.rulers.grade"
        )
    extra("pyarrow", "parquet", f"the recording {folder.name}")
    grades = Grades(*map(pd.read_parquet, paths))
    if design is not None:
        grades = Grades(*(frame[frame["design"] == design] for frame in grades))
    clusters = grades.scores.drop_duplicates("text_id").set_index("text_id")[
        "cluster_id"
    ]
    own = grades.evidence["text_id"].map(clusters)
    return grades._replace(evidence=grades.evidence.assign(cluster_id=own))


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


@dataclass(frozen=True)
class Reading:
    """How texts are read: the rubric, the orders of its levels,
    and the number of reads.
    """

    bundle: Bundle
    design: Design | None = None
    replicates: int = 1
    temperature: float = 0.0
    seed: int = 0

    @property
    def condition(self) -> dict[str, Any]:
        """The columns that tell this reading from others."""
        return {
            "design": self.design.name if self.design else "single",
            "variant": self.bundle.variant,
            "units": self.bundle.units,
            "temperature": self.temperature,
        }

    def of(self, text_id: str) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Yield how a text is read: the number of an ordering,
        the levels in it, the replicate.
        """
        own = tuple(score for score, _ in self.bundle.traits[0].levels)
        above = self.bundle.scale[0] - 1  # a design orders the options 1, 2, …
        rows = (
            [own]
            if self.design is None
            else self.design.orderings(text_id, self.seed) + above
        )
        seen: Counter[tuple[int, ...]] = Counter()
        for index, row in enumerate(rows, start=1):
            order = tuple(map(int, row))
            for _ in range(self.replicates):
                seen[order] += 1
                yield index, order, seen[order]


def recorded_part(
    items: pd.DataFrame, judge: str, method: str, reading: Reading
) -> Grades | None:
    """Return the recorded part of a grading (completely recorded texts), or None.

    A read counts if it was made under the same ordering of the levels and with this
    very bundle. RULERS' scores carry its lock, those of other methods do not: any count
    only if all of RULERS' recorded scores of the same variant and units have locks of
    this bundle.
    """
    try:
        grades = recorded_grades(judge, str(items["dataset"].iloc[0]))
    except FileNotFoundError:
        return None
    if not _made_with(grades.scores, reading.bundle):
        return None
    n_items = items["text_id"].astype(str).value_counts()
    reads = pd.DataFrame(
        [
            (text_id, index, code([order])[0], replicate)
            for text_id in n_items.index
            for index, order, replicate in reading.of(text_id)
        ],
        columns=list(_READ),
    )
    condition = {"method": method, **reading.condition}
    scores, decisions, evidence = (_rows(frame, condition, reads) for frame in grades)
    scores = scores[scores["item_id"].isin(items["item_id"])]
    there = scores["text_id"].astype(str).value_counts()
    whole = there.index[
        there == (reads["text_id"].value_counts() * n_items)[there.index]
    ]
    if not len(whole):
        return None
    return Grades(*(f[f["text_id"].isin(whole)] for f in (scores, decisions, evidence)))


def joined(parts: Sequence[Grades]) -> Grades:
    """Put gradings under each other."""
    several = (
        [f for f in frames if len(f)] or frames[:1]
        for frames in zip(*parts, strict=True)
    )
    return Grades(*(with_categories(pd.concat(f, ignore_index=True)) for f in several))


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its repeated words as categories."""
    return frame.astype({column: "category" for column in _REPEATED if column in frame})


def _made_with(scores: pd.DataFrame, bundle: Bundle) -> bool:
    """Tell whether RULERS' scores of the same variant
    and units have locks of this bundle.
    """
    same = (scores["variant"] == bundle.variant) & (scores["units"] == bundle.units)
    made = scores.loc[
        same & (scores["method"] == "rulers"), ["ordering", "lock"]
    ].astype(str)
    levels = {score for score, _ in bundle.traits[0].levels}
    for ordering, lock in made.drop_duplicates().itertuples(index=False):
        order = list(map(int, ordering.split("-")))
        if set(order) != levels or bundle.arranged(levels=order).lock[:12] != lock:
            return False
    return len(made) > 0


def _rows(
    frame: pd.DataFrame, condition: dict[str, Any], reads: pd.DataFrame
) -> pd.DataFrame:
    rows = np.ones(len(frame), bool)
    for column, value in condition.items():
        rows &= (frame[column] == value).to_numpy()
    of_reads = [frame[c].astype(reads[c].dtype) for c in _READ]
    return frame[
        rows & pd.MultiIndex.from_arrays(of_reads).isin(pd.MultiIndex.from_frame(reads))
    ]
