"""Rubrics: read from YAML, and shown on scales of another length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from rubricnb.data.tables import read_table
from rubricnb.data.validate import check_rubrics, nearest

_BUNDLED = Path(__file__).parent / "rubrics"
_FORMAT = "A rubric file is a list of: rubric_id, criterion, definition, levels: {1: text, 2: …}"


def read_rubrics(path: str | Path) -> pd.DataFrame:
    r"""Read a file of rubrics.

    Parameters
    ----------
    path
        YAML: a list of mappings (or one mapping) with ``criterion`` (its name), ``definition``
        (what it asks), ``levels`` (from 0 or 1, the worst, up → what such a response is like),
        ``rubric_id`` (default: the criterion) and, optionally, ``paraphrased`` (``definition``
        and ``levels`` in other words). Or a CSV with a row for every level: ``criterion``,
        ``definition``, ``score``, ``description`` and, optionally, ``rubric_id`` and ``variant``
        (``standard`` or ``paraphrased``).

    Returns
    -------
    DataFrame
        The rubrics frame: rubric_id, variant, score, criterion, definition, description.

    Raises
    ------
    ValueError
        The file is not YAML or not a list of rubrics, a part is missing or not text, a level is
        missing, or a rubric_id stands twice.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "my_rubric.yml")
    ...     text = "criterion: tone\ndefinition: Is it kind?\nlevels: {1: Rude., 2: Kind.}"
    ...     _ = file.write_text(text)
    ...     read_rubrics(file)[["rubric_id", "score", "description"]]
      rubric_id  score description
    0      tone      1       Rude.
    1      tone      2       Kind.
    """
    path = Path(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return _of_table(path)
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not YAML in UTF-8: {error}. {_FORMAT}") from error
    rubrics = [content] if isinstance(content, dict) else content
    if not isinstance(rubrics, list) or not rubrics:
        raise ValueError(f"{path.name} holds {_kind(content)}. {_FORMAT}")
    rows = [row for k, rubric in enumerate(rubrics, 1) for row in _rows(rubric, path.name, k)]
    return check_rubrics(pd.DataFrame(rows))


def _of_table(path: Path) -> pd.DataFrame:
    table = read_table(path, ["criterion", "definition", "score", "description"], ["score"])
    if not len(table):
        raise ValueError(f"{path.name} has a header and no levels: write a row for every level")
    defaults = {"rubric_id": table["criterion"], "variant": "standard"}
    return check_rubrics(table.assign(**{k: v for k, v in defaults.items() if k not in table}))


def bundled_rubrics(name: str) -> pd.DataFrame:
    """Read the rubrics that come with this package.

    Parameters
    ----------
    name
        ``minibench``, ``hanna`` or ``summeval``; all are ours.

    Examples
    --------
    >>> sorted(bundled_rubrics("minibench").criterion.unique())
    ['accuracy', 'clarity', 'helpfulness', 'overall']
    """
    return read_rubrics(_BUNDLED / f"{name}.yml")


def resample(rubrics: pd.DataFrame, n: int) -> pd.DataFrame:
    """Show rubrics on a scale of n levels (arXiv:2602.02219v2, §5.4).

    Parameters
    ----------
    rubrics
        A rubrics frame.
    n
        Number of levels. A rubric that has n levels is returned as it is. A five-level rubric
        becomes 2 (its levels 1 and 5), 3 (1, 3 and 5) or 9 levels. For 9 the paper does not say
        what stands between the five; we put a level that says it lies between its neighbours.

    Returns
    -------
    DataFrame
        A rubrics frame with the same rubric_ids, variants, definitions and lowest scores.

    Raises
    ------
    ValueError
        A rubric has no scale of n levels.

    Examples
    --------
    >>> rubrics = bundled_rubrics("minibench")
    >>> five = rubrics[(rubrics.criterion == "clarity") & (rubrics.variant == "standard")]
    >>> resample(five, 3).description.tolist()[1:]
    ['Partly clear; some of the answer confuses.', 'Clear and definite from start to finish.']
    >>> resample(five, 9).description.iloc[1]
    'Between score 1 and score 3: better than score 1, not as good as score 3.'
    """
    scale = rubrics.groupby(["rubric_id", "variant"], sort=False, observed=True).ngroup()
    ordered = rubrics.iloc[np.lexsort((rubrics["score"], scale))]
    sizes = np.bincount(scale)
    first = np.cumsum(sizes) - sizes
    kept = _KEPT.get(n)
    for start, size in zip(first, sizes, strict=True):
        if size != n and (size != 5 or kept is None):
            raise ValueError(_no_scale(ordered["rubric_id"].iloc[start], size, n))
    whole = np.arange(n)
    shown = np.where((sizes == n)[:, None], whole, whole if kept is None else kept)
    out = ordered.iloc[(first[:, None] + shown).ravel()].reset_index(drop=True)
    lowest = ordered["score"].to_numpy()[first]
    out["score"] = (lowest[:, None] + whole).ravel()
    if n == 9:
        between = np.repeat(sizes == 5, n) & np.tile(whole % 2 == 1, len(sizes))
        out.loc[between, "description"] = [_between(s) for s in out.loc[between, "score"]]
    return check_rubrics(out)


def lowest_scores(items: pd.DataFrame) -> NDArray[np.int64]:
    """The lowest score of each item's rubric; 1 where it is not known."""
    rubrics = getattr(items, "rubrics", None)
    if rubrics is None or rubrics["score"].min() == 1:
        return np.ones(len(items), np.int64)
    low = rubrics.groupby("rubric_id", observed=True)["score"].min().astype(np.int64)
    return items["rubric_id"].astype(object).map(low.to_dict()).to_numpy(np.int64)


def levels(
    rubric_id: str, criterion: str, definition: str, descriptions: Iterable[str]
) -> list[dict[str, object]]:
    """List the rows of one rubric in the rubrics frame, its levels from 1 on."""
    return [
        {
            "rubric_id": rubric_id,
            "variant": "standard",
            "score": score,
            "criterion": criterion,
            "definition": definition,
            "description": description,
        }
        for score, description in enumerate(descriptions, 1)
    ]


def rated_criteria(
    rubrics: pd.DataFrame, rated: Iterable[str], dataset: str
) -> list[tuple[str, str]]:
    """List (criterion, rubric_id) of rubrics, each of which must have been rated in the dataset.

    Raises
    ------
    ValueError
        A criterion has no ratings in the dataset.

    Examples
    --------
    >>> rated_criteria(bundled_rubrics("minibench")[:5], ["accuracy", "tone"], "mine")
    [('accuracy', 'minibench-accuracy')]
    """
    rated = list(rated)
    pairs = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    for criterion in pairs["criterion"]:
        if criterion.lower() not in rated:
            raise ValueError(
                f"{dataset} has no ratings for the criterion {criterion!r}; "
                f"it has: {', '.join(rated)}"
            )
    return [(str(c), str(r)) for c, r in pairs.itertuples(index=False)]


# Which of five levels, from 0, stands at each of n.
_KEPT = {2: np.array([0, 4]), 3: np.array([0, 2, 4]), 9: np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])}


def _no_scale(rubric_id: str, size: int, n: int) -> str:
    scales = "2, 3, 5 or 9" if size == 5 else f"{size}"
    return (
        f"rubric {rubric_id!r} has {size} levels and cannot be shown on {n}; "
        f"choose n_options {scales}"
    )


def _between(score: int) -> str:
    return (
        f"Between score {score - 1} and score {score + 1}: better than score {score - 1}, "
        f"not as good as score {score + 1}."
    )


def _rows(rubric: Any, file: str, k: int) -> Iterator[dict[str, object]]:
    where = f"{file}: rubric {k}"
    if not isinstance(rubric, dict):
        raise ValueError(f"{where} is {_kind(rubric)}. {_FORMAT}")
    known = ("rubric_id", "criterion", "definition", "levels", "paraphrased")
    for key in rubric:
        if key not in known:
            raise ValueError(f"{where} has the unknown key {key!r}{nearest(key, known)} {_FORMAT}")
    criterion = _text(rubric, "criterion", where)
    rubric_id = _text({"rubric_id": criterion} | rubric, "rubric_id", where)
    where = f"{file}: rubric {rubric_id!r}"
    definition = _text(rubric, "definition", where)
    wordings = {"standard": rubric}
    if "paraphrased" in rubric:
        if not isinstance(rubric["paraphrased"], dict):
            raise ValueError(f"{where}: 'paraphrased' needs definition and levels of its own")
        wordings["paraphrased"] = {"definition": definition} | rubric["paraphrased"]
    for variant, wording in wordings.items():
        if not isinstance(wording.get("levels"), dict):
            raise ValueError(f"{where} ({variant}) lacks 'levels'. {_FORMAT}")
        for score in wording["levels"]:
            if not str(score).isdigit():
                raise ValueError(f"{where} ({variant}): level {score!r} is not a whole number")
            yield {
                "rubric_id": rubric_id,
                "variant": variant,
                "score": int(score),
                "criterion": criterion,
                "definition": _text(wording, "definition", where),
                "description": _text(wording["levels"], score, f"{where} ({variant}), level"),
            }


def _text(mapping: dict[Any, Any], key: Any, where: str) -> str:
    if key not in mapping:
        raise ValueError(f"{where} lacks {key!r}. {_FORMAT}")
    value = mapping[key]
    if not isinstance(value, str):
        # YAML reads yes, no, 3 and 2026-01-31 as something other than text.
        raise ValueError(f"{where} {key!r} is {_kind(value)}, not text: {value!r}; quote it")
    if not value.strip():
        raise ValueError(f"{where} {key!r} is empty")
    return value.strip()


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, which would silently drop a level."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, or say which key stands twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} stands twice", problem_mark=node.start_mark
                )
        return super().construct_mapping(node, deep)
