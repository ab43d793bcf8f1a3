"""Results of a grading, and the gradings recorded under ``results/rulers``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from rubricnb.core.permutation import Design, code
from rubricnb.core.results import results_folder, slug_of
from rubricnb.core.support.extras import extra
from rubricnb.core.support.types import Row
from rubricnb.rulers.bundle import Bundle

STUDY = "rulers"
_CATEGORICAL = (
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
_READ_KEY = ("text_id", "ordering_index", "ordering", "replicate")


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
    paths = [folder / f"{dataset}-{table}.parquet" for table in Grades._fields]
    if not all(path.exists() for path in paths):
        available = [f"{slug} on {name}" for slug, name in recorded_gradings()]
        raise FileNotFoundError(
            f"no recorded grading of {judge!r} on {dataset!r}; there are: "
            f"{', '.join(available) or 'none'}; grade it with rubricnb.rulers.grade"
        )
    extra("pyarrow", "parquet", f"the recording {folder.name}")
    grades = Grades(*map(pd.read_parquet, paths))
    if design is not None:
        grades = Grades(*(frame[frame["design"] == design] for frame in grades))
    cluster_of_text = grades.scores.drop_duplicates("text_id").set_index("text_id")[
        "cluster_id"
    ]
    cluster_of_quote = grades.evidence["text_id"].map(cluster_of_text)
    return grades._replace(evidence=grades.evidence.assign(cluster_id=cluster_of_quote))


def recorded_gradings() -> list[tuple[str, str]]:
    """List the judges and datasets of which gradings are recorded: slug, dataset.

    Examples
    --------
    >>> ("smollm2-135m-instruct-embedded", "minibench") in recorded_gradings()
    True
    """
    suffix = "-scores.parquet"
    paths = sorted((results_folder() / STUDY).glob(f"*/*{suffix}"))
    return [(path.parent.name, path.name.removesuffix(suffix)) for path in paths]


@dataclass(frozen=True)
class Reading:
    """How texts are read: the rubric, the orders of its levels, number of reads."""

    bundle: Bundle
    design: Design | None = None
    replicates: int = 1
    temperature: float = 0.0
    seed: int = 0

    @property
    def condition(self) -> Row:
        """The columns that tell this reading from others."""
        return {
            "design": self.design.name if self.design else "single",
            "variant": self.bundle.variant,
            "units": self.bundle.units,
            "temperature": self.temperature,
        }

    def of(self, text_id: str) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Yield how a text is read: an ordering's number, its levels, the replicate."""
        offset = self.bundle.scale[0] - 1  # a design orders the options 1, 2, …
        orders = (
            [self.bundle.order]
            if self.design is None
            else self.design.orderings(text_id, self.seed) + offset
        )
        n_reads: Counter[tuple[int, ...]] = Counter()
        for index, levels in enumerate(orders, start=1):
            order = tuple(map(int, levels))
            for _ in range(self.replicates):
                n_reads[order] += 1
                yield index, order, n_reads[order]


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
    if not _has_locks_of(grades.scores, reading.bundle):
        return None
    n_items_of_text = items["text_id"].astype(str).value_counts()
    reads = pd.DataFrame(
        [
            (text_id, ordering_index, code([order])[0], replicate)
            for text_id in n_items_of_text.index
            for ordering_index, order, replicate in reading.of(text_id)
        ],
        columns=list(_READ_KEY),
    )
    condition = {"method": method, **reading.condition}
    found = Grades(*(_select_reads(frame, condition, reads) for frame in grades))
    scores = found.scores[found.scores["item_id"].isin(items["item_id"])]
    n_recorded = scores["text_id"].astype(str).value_counts()
    n_asked = (reads["text_id"].value_counts() * n_items_of_text)[n_recorded.index]
    complete_texts = n_recorded.index[n_recorded == n_asked]
    if not len(complete_texts):
        return None
    found = found._replace(scores=scores)
    return Grades(*(frame[frame["text_id"].isin(complete_texts)] for frame in found))


def joined(parts: Sequence[Grades]) -> Grades:
    """Put gradings under each other."""
    tables = (
        [frame for frame in frames if len(frame)] or frames[:1]
        for frames in zip(*parts, strict=True)
    )
    return Grades(
        *(with_categories(pd.concat(frames, ignore_index=True)) for frames in tables)
    )


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its repeated words as categories."""
    return frame.astype(
        {column: "category" for column in _CATEGORICAL if column in frame}
    )


def _has_locks_of(scores: pd.DataFrame, bundle: Bundle) -> bool:
    """Tell whether RULERS' scores of one variant and unit have this bundle's locks."""
    is_same = (scores["variant"] == bundle.variant) & (scores["units"] == bundle.units)
    is_same &= scores["method"] == "rulers"
    orderings = scores.loc[is_same, ["ordering", "lock"]].astype(str)
    for ordering, lock in orderings.drop_duplicates().itertuples(index=False):
        order = list(map(int, ordering.split("-")))
        if {*order} != {*bundle.order} or bundle.arranged(levels=order).lock[
            :12
        ] != lock:
            return False
    return len(orderings) > 0


def _select_reads(
    frame: pd.DataFrame, condition: Row, reads: pd.DataFrame
) -> pd.DataFrame:
    for column, value in condition.items():
        frame = frame[frame[column] == value]
    read_keys = [frame[column].astype(reads[column].dtype) for column in _READ_KEY]
    keys = pd.MultiIndex.from_arrays(read_keys)
    return frame[keys.isin(pd.MultiIndex.from_frame(reads))]
