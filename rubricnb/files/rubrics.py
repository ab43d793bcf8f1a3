"""Rubrics: read from YAML or CSV, and shown on scales of another length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from rubricnb.core.support.spelling import nearest
from rubricnb.core.validate import check_rubrics, check_text
from rubricnb.files.cells import as_numbers
from rubricnb.files.reading import written_out
from rubricnb.files.tables import read_table, read_text, reading, require

_FORMAT = (
    "A rubric file is a list of: rubric_id, criterion, definition, levels: {1: text, "
    "2: …}"
)


def read_rubrics(path: Any) -> pd.DataFrame:
    r"""Read a file of rubrics.

    Parameters
    ----------
    path
        YAML: a list of mappings (or one mapping) with ``criterion`` (its name),
        ``definition`` (what it asks), ``levels`` (label → what such a response is
        like), ``rubric_id`` (default: the criterion) and, optionally, ``weight`` (of
        the criterion in `rubricnb.statistics.overall`), ``values`` (label → score) and
        ``paraphrased`` (``definition`` and ``levels`` in other words). Or a CSV with a
        row for every level: ``criterion``, ``definition``, ``score``, ``description``
        and, optionally, ``label``, ``weight``, ``rubric_id`` and ``variant``
        (``standard`` or ``paraphrased``).

        A label that is a number is its own score, also with gaps (1, 3, 5, 7) or
        halves. Of yes and no, pass and fail, true and false, and their first letters,
        the scores are 1 and 0; of letters from A on, the best is A (before it S) and
        the last one has 1; H, M, L (high, medium, low) are 3, 2, 1; E, M, B (exceeds,
        meets, below) too; C, P, I (correct, partial, incorrect) 1, 0.5, 0. A line says
        so. Other labels need ``values`` (in a CSV ``label`` and ``score``). In a CSV,
        empty cells of criterion and definition are those of the row above.

    Returns
    -------
    DataFrame
        The rubrics frame: rubric_id, variant, score, criterion, definition,
        description; with ``label`` where one is not its score, and ``weight`` where one
        is given.

    Raises
    ------
    ValueError
        The file is not YAML or not a list of rubrics, a part is missing or not text, a
        label has no score, or a rubric_id appears twice.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "my_rubric.yml")
    ...     _ = file.write_text(
    ...         "criterion: tone\ndefinition: Is it kind?\nlevels: {1: Rude., 2: Kind.}"
    ...     )
    ...     read_rubrics(file)[["rubric_id", "score", "description"]]
      rubric_id  score description
    0      tone      1       Rude.
    1      tone      2       Kind.
    """
    if not isinstance(path, str | Path):
        with written_out():
            return _of_content(path, "the rubric")
    path = Path(path)
    with reading(path):
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            return _of_table(path)
        try:
            content = yaml.load(read_text(path), Loader=_Loader)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            why = " ".join(str(error).split())
            raise ValueError(
                f"{path.name} is not YAML in UTF-8: {why}. {_FORMAT}"
            ) from error
        return _of_content(content, path.name)


def _of_content(content: Any, file: str) -> pd.DataFrame:
    rubrics = [content] if isinstance(content, Mapping) else content
    if not isinstance(rubrics, list | tuple) or not rubrics:
        raise ValueError(f"{file} holds {_kind(rubrics)}. {_FORMAT}")
    rows = [
        row for k, rubric in enumerate(rubrics, 1) for row in _rows(rubric, file, k)
    ]
    return _with_scores(pd.DataFrame(rows), file)


def _of_table(path: Path) -> pd.DataFrame:
    """Read rubrics from a CSV, in which cells may be merged over some levels."""
    table = read_table(path, [], [])
    require(table, _PARTS, path.name)
    merged = ("criterion", "rubric_id", "definition", "variant")
    names = [c for c in merged if c in table]
    full = table.replace(r"^\s*$", np.nan, regex=True)
    filled = table.copy()
    filled[names] = full[names].ffill().fillna("")
    if not filled.equals(table):
        print(
            f"{path.name}: empty cells of criterion and definition are those of the "
            "row above"
        )
    if "weight" in table:
        weights = full["weight"].groupby(
            [filled[c] for c in names if c != "definition"]
        )
        filled["weight"] = weights.transform("first").fillna("")
    for column in _PARTS:
        check_text(filled[column], path.name)
    defaults = {"rubric_id": filled["criterion"], "variant": "standard"}
    missing = {k: v for k, v in defaults.items() if k not in filled}
    return _with_scores(filled.assign(**missing), path.name)


_PARTS = ["criterion", "definition", "score", "description"]


def _with_scores(levels: pd.DataFrame, file: str) -> pd.DataFrame:
    """Give each level its score; keep labels and weights that say more."""
    labels = (
        levels.get("label", levels["score"]).replace("", np.nan).fillna(levels["score"])
    )
    labels = labels.astype("str").str.strip()
    weight = levels.get("weight", pd.Series(index=levels.index)).replace("", np.nan)
    levels = levels.assign(score=as_numbers(levels["score"]), weight=as_numbers(weight))
    words = levels["score"].isna()
    for rubric_id, own in labels[words].groupby(levels["rubric_id"][words], sort=False):
        scores = _usual_scores(own.unique().tolist(), f"{file}: rubric {rubric_id!r}")
        levels.loc[own.index, "score"] = own.map(scores)
    levels["label"] = labels.mask(as_numbers(labels) == levels["score"])
    folded = levels.assign(label=labels.str.casefold())
    for bad, why in (
        (
            folded.duplicated(["rubric_id", "variant", "label"]),
            "two levels have the label {}",
        ),
        (
            labels.str.contains(r"[\n\[\]<>|]|^$"),
            "the label {} is empty or holds one of [ ] < > |",
        ),
        (
            weight.notna() & ~((levels["weight"] > 0) & (levels["weight"] < np.inf)),
            "its weight is not a number above 0, and finite; of a criterion that takes "
            "points away the worst level has the lowest score",
        ),
    ):
        if bad.any():
            rubric_id, label = levels["rubric_id"][bad].iloc[0], labels[bad].iloc[0]
            raise ValueError(f"{file}: rubric {rubric_id!r}: {why.format(repr(label))}")
    return check_rubrics(levels.dropna(axis="columns", how="all"))


def _usual_scores(labels: list[str], where: str) -> dict[str, float]:
    """Return the scores of labels that are words or letters, and say what they are."""
    folded = {label.casefold(): label for label in labels}
    order = next((words for words in _ORDERS if set(words) == set(folded)), None)
    if order is None:
        blanks = ", ".join(f"{label}: …" for label in labels)
        raise ValueError(
            f"{where}: no score is known for the levels {', '.join(labels)}: add a "
            f"line such as values: {{{blanks}}} with a number for each, the highest "
            "for the best; in a CSV write the labels in a column 'label'"
        )
    low, high = (0, 1) if order in _FROM_0 else (1, len(order))
    steps = np.linspace(low, high, len(order)).tolist()
    scores = {folded[word]: score for word, score in zip(order, steps, strict=True)}
    listed = ", ".join(f"{label} = {score:g}" for label, score in scores.items())
    print(f"{where}: {listed} ('values' in the rubric file sets other scores)")
    return scores


# words, and letters that stand for words, with scores up to 1
_FROM_0: list[tuple[str, ...]] = [("no", "yes"), ("fail", "pass"), ("false", "true")]
_FROM_0 += map(tuple, ("ny", "ft", "fp", "ic", "ipc"))
# letters from the worst to the best; S is above A
_GRADES = "zyxwvutrqponmlkjihgfedcbas"
_ORDERS = [
    *_FROM_0,
    *map(tuple, ("lh", "lmh", "bme")),
    *(tuple(_GRADES[start:25]) for start in range(7, 24)),  # from A on
    *(tuple(_GRADES[start:]) for start in range(17, 24)),
    *map(tuple, ("fdcba", "fdcbas")),  # the grades of schools, which have no E
]


def _rows(rubric: Any, file: str, k: int) -> Iterator[dict[str, object]]:
    where = f"{file}: rubric {k}"
    if not isinstance(rubric, dict):
        raise ValueError(f"{where} is {_kind(rubric)}. {_FORMAT}")
    known = (
        "rubric_id",
        "criterion",
        "definition",
        "levels",
        "values",
        "weight",
        "paraphrased",
    )
    for key in rubric:
        if key not in known:
            raise ValueError(
                f"{where} has the unknown key {key!r}{nearest(key, known)} {_FORMAT}"
            )
    criterion = _text(rubric, "criterion", where)
    rubric_id = _text({"rubric_id": criterion} | rubric, "rubric_id", where)
    where = f"{file}: rubric {rubric_id!r}"
    definition = _text(rubric, "definition", where)
    values, wordings = rubric.get("values", {}), {"standard": rubric}
    if "paraphrased" in rubric:
        wordings["paraphrased"] = {"definition": definition} | rubric["paraphrased"]
    for variant, wording in wordings.items():
        if not isinstance(wording.get("levels"), dict):
            raise ValueError(f"{where} ({variant}) lacks 'levels'. {_FORMAT}")
        for label in wording["levels"]:
            yield {
                "rubric_id": rubric_id,
                "variant": variant,
                "label": label,
                "score": values.get(label, label),
                "criterion": criterion,
                "definition": _text(wording, "definition", where),
                "description": _text(
                    wording["levels"], label, f"{where} ({variant}), level"
                ),
                "weight": rubric.get("weight"),
            }


def _text(mapping: dict[Any, Any], key: Any, where: str) -> str:
    if key not in mapping:
        raise ValueError(f"{where} lacks {key!r}. {_FORMAT}")
    value = mapping[key]
    if not isinstance(value, str):
        # YAML reads 3 and 2026-01-31 as something other than text.
        raise ValueError(
            f"{where} {key!r} is {_kind(value)}, not text: {value!r}; quote it"
        )
    if not value.strip():
        raise ValueError(f"{where} {key!r} is empty")
    return value.strip()


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


class _Loader(yaml.SafeLoader):
    """YAML where yes and no are words, and a key given twice is refused."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        """Build a mapping, or say which key appears twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} appears twice",
                    problem_mark=node.start_mark,
                )
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:bool"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
