"""Check of a contributed recording: does it match its study and its own card?

Everything that can be computed again is: the plan with its request ids, the prompts
with their keys, counts and sums, the file's SHA-256. ``python -m studies check
results/STUDY/JUDGE``.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException, Schema
from pyarrow.parquet import ParquetFile
from pyarrow.types import is_large_string, is_string

from rubricnb.book.replication import replication, settings
from rubricnb.book.tables import replicated
from rubricnb.core.frames import JUDGMENTS, REQUESTS, STATUSES, Items, Requests, conform
from rubricnb.core.judge import Judge, describe, judges
from rubricnb.core.permutation import decode
from rubricnb.core.plan import with_readout
from rubricnb.core.results import has_todays_key
from rubricnb.core.support.types import FloatArray
from rubricnb.files.tables import read_parquet
from rubricnb.sets.catalogue import load
from studies.recording import counts_of
from studies.replication import TABLES
from studies.study import CONDITIONS, items_of, plans_for, read_study, requests_of

_CARD = (
    "judge",
    "identity",
    "spec",
    "model",
    "licence",
    "conditions",
    "recorded",
    "datasets",
)
_VERSION = r"\d[\w.+]{0,20}"
_FORMS = {  # optional entries of a card, and their form
    "recorded": r"\d{4}-\d\d-\d\d",
    "package": _VERSION,
    "python": _VERSION,
    "machine": r"\w{0,20} \w{0,20}, (\d{1,5}|None) cores"
    r"(; NVIDIA [\w -]{1,40}, driver [\d.]{1,20})?",
    "apart": "True|None",
}
_MAX_FACT_CHARS = 200  # of what a card says of its judge
_FACTS = ("dataset", "cluster_id", "group_id", "candidate")
_NEAR = 1e-3  # of probabilities, which are stored as float32


def problems(folder: Path) -> list[str]:
    """Return a recording's problems, a sentence each; empty if it can be accepted.

    Parameters
    ----------
    folder
        ``…/STUDY/JUDGE``, as `studies.recording.record` writes it.
    """
    folder = folder.resolve()
    try:
        card = _card(folder)
        plans, references = _asked(folder.parent.name, card)
    except ValueError as error:
        return [str(error)]
    found = list(_card_texts(folder / "run.json", card))
    for path in sorted(folder.iterdir()):
        found += [
            f"{path.name}: {said}"
            for said in _why_not_recorded(path, plans, references, card)
        ]
    there = {path.stem for path in folder.glob("*.parquet")}
    for name in sorted(there | set(plans) | set(card["datasets"])):
        places = {
            "a file": there,
            "the study's plan": plans,
            "run.json": card["datasets"],
        }
        if lacking := [place for place, names in places.items() if name not in names]:
            found.append(f"{name} is not in {' nor in '.join(lacking)}")
        else:
            path = folder / f"{name}.parquet"
            try:
                for said in _file_problems(path, card, plans[name]):
                    found.append(f"{path.name}: {said}")
            except (
                Exception
            ) as error:  # a forged value may break a later check than the one it fails
                found.append(f"{path.name}: it is damaged or forged ({_short(error)})")
    return found


def _why_not_recorded(
    path: Path,
    plans: Collection[str],
    references: dict[str, Items],
    card: dict[str, Any],
) -> Iterator[str]:
    """Return why a file does not belong to a recording."""
    if path.is_symlink() or not path.is_file():
        yield "is not a file"
    elif path.name == ".lock":
        if path.stat().st_size:
            yield "is not empty; remove it"
    elif path.name in references:
        yield from _references(path, references[path.name], card["judge"])
    elif path.name not in {"run.json", *(f"{name}.parquet" for name in plans)}:
        yield (
            "a recording is run.json and one .parquet a dataset of its study, and "
            "nothing else"
        )


def shows(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return the papers' findings that a recording replicates, and its tables.

    Returns
    -------
    DataFrame, list of str
        As of `rubricnb.book.tables.replicated`; the files that `studies.replication`
        writes with it.
    """
    found, tables = [], ["replication.csv"]
    for path in sorted(folder.resolve().glob("*.parquet")):
        judgments, items = read_parquet(path), load(path.stem)
        found.append(replication(judgments, items))
        rubric, criteria = settings(judgments)
        for name, (summarise, together) in TABLES.items():
            reads = criteria if together else rubric
            if (
                f"{name}.csv" not in tables
                and len(reads)
                and len(summarise(reads, items))
            ):
                tables.append(f"{name}.csv")
    return replicated(pd.concat(found, ignore_index=True)), tables


def _card(folder: Path) -> dict[str, Any]:
    """Read ``run.json``, or say why it is not one."""
    path = folder / "run.json"
    if not path.is_file():
        raise ValueError(
            f"{folder} has no run.json: give results/STUDY/JUDGE, as `run` wrote it"
        )
    try:
        card: dict[str, Any] = json.loads(path.read_text("utf-8"))
        missing = [key for key in _CARD if key not in card]
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"run.json is not a card: {error}") from None
    if missing:
        raise ValueError(
            f"run.json lacks {', '.join(missing)}: record it again with this version"
        )
    parts = (card["conditions"], card["datasets"], card.get("question", {}))
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(
            "run.json: conditions, datasets or question are not a JSON object; record "
            "again"
        )
    if card["judge"] != folder.name:
        raise ValueError(
            f"run.json names {card['judge']!r}, but the folder is {folder.name!r}"
        )
    if others := set(card["conditions"]) - set(CONDITIONS):
        raise ValueError(
            f"run.json has a condition {min(others)!r} that a study cannot set"
        )
    known = judges().set_index("slug")["identity"].get(card["judge"], card["identity"])
    if known != card["identity"]:
        raise ValueError(
            f"run.json: identity is {card['identity']!r}, but results/judges.csv "
            f"records {card['judge']!r} as {known!r}"
        )
    return card


def _card_texts(path: Path, card: dict[str, Any]) -> Iterator[str]:
    """Return where a card could hide a text: other keys, and long values."""
    if path.read_text("utf-8") != json.dumps(card, indent=1) + "\n":
        yield "run.json is not as `run` wrote it: record again"
    for key in sorted(card.keys() - {*_CARD, *_FORMS, "question"}):
        yield f"run.json has an unknown key {key!r}"
    facts = {key: card[key] for key in ("spec", "model", "licence")} | card[
        "conditions"
    ]
    facts |= card.get("question", {})
    for key, value in facts.items():
        if isinstance(value, dict | list) or len(str(value)) > _MAX_FACT_CHARS:
            yield (
                f"run.json: {key} is longer than {_MAX_FACT_CHARS} characters, or a "
                "list"
            )
    for key, form in _FORMS.items():
        if not re.fullmatch(form, str(card.get(key))):
            yield f"run.json: {key} is {_short(card.get(key))!r}"


def _asked(
    study: str, card: dict[str, Any]
) -> tuple[dict[str, tuple[list[Requests], Items]], dict[str, Items]]:
    """Return what a study asks this judge, by dataset: its plans and all items.

    And, by file, the items that references were written for.
    """
    entry = {key: card[key] for key in ("spec", "model", "licence", "conditions")}
    content = read_study(study, entry)
    found: dict[str, list[Requests]] = {}
    for part in plans_for(entry, content.get("plans", [])):
        requests = with_readout(requests_of(part, items_of(part)), _judge(card))
        found.setdefault(part["dataset"], []).append(requests)
    plans = {
        name: (parts, pd.concat([part.source for part in parts], ignore_index=True))
        for name, parts in found.items()
    }
    written = content.get("references", [])
    return plans, {
        f"references-{part['dataset']}.csv": items_of(part) for part in written
    }


def _judge(card: dict[str, Any]) -> Judge:
    """Return a card's judge; a decision model with the question that it was asked."""
    return describe(card["spec"], **card.get("question", {}))


def _references(path: Path, items: Items, judge: str) -> Iterator[str]:
    """Return a table of attempts' problems; it must hold no reference's text."""
    slugs = {*judges()["slug"], judge}
    allowed = {
        "item_id": set(items["item_id"]),
        "cluster_id": set(items["cluster_id"]),
        "writer": slugs,
        "reviewer": slugs,
        "status": {*STATUSES, "empty"},
        "accepted": {"True", "False"},
    } | dict.fromkeys(("target", "round", "score", "characters"))
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:
        yield str(error)
        return
    if sorted(table) != sorted(allowed):
        yield f"its columns are {', '.join(map(str, table))}, not {', '.join(allowed)}"
        return
    for column, values in allowed.items():
        known = (
            table[column].isin(values)
            if values
            else table[column].str.fullmatch(r"\d{0,9}")
        )
        yield from _rows(
            ~known,
            lambda i, column=column: f"{column} is {_short(table[column][i])!r}",  # type: ignore[misc]
        )


def _file_problems(
    path: Path, card: dict[str, Any], planned: tuple[list[Requests], Items]
) -> Iterator[str]:
    """Return the problems of one file."""
    plans, items = planned
    try:
        table = read_parquet(path)
        yield from _beside_the_rows(path, table, items)
        frame = conform(table, "judgments").reset_index(drop=True)
    except (ValueError, OSError, ArrowException) as error:
        yield str(error)
        return
    asked = {*pd.concat(plans), *items}
    optional = {
        c.name
        for c in JUDGMENTS
        if not c.required and (c in REQUESTS or c.name in _FACTS)
    }
    for name in map(str, frame):
        # Several plans about one dataset share a file's columns: one may be empty.
        unasked = name in optional - asked and frame[name].notna().any()
        if not any(c.matches(name) for c in JUDGMENTS) or unasked:
            yield (
                f"column {name!r} is not a column of judgments; a recording must not "
                "hold texts"
            )
    yield from _against_plan(frame, plans)
    yield from _against_items(frame, items)
    judge = replace(_judge(card), identity=card["identity"])
    yield from _against_prompts(frame, plans, judge)
    for name, wanted in (("judge", card["judge"]), ("source", "recorded")):
        yield from _rows(
            frame[name].astype(str) != wanted,
            lambda i, name=name, wanted=wanted: (
                f"{name} is {frame[name][i]!r}, not {wanted!r}"
            ),  # type: ignore[misc]
        )
    yield from _answers(frame)
    yield from _against_card(
        json.loads(json.dumps(counts_of(path))), card["datasets"][path.stem]
    )


def _beside_the_rows(path: Path, table: pd.DataFrame, items: Items) -> Iterator[str]:
    """Return what a file holds beside its rows, where a text could hide."""
    file = ParquetFile(path)
    footer, schema = file.metadata, file.schema_arrow
    groups = [footer.row_group(k) for k in range(footer.num_row_groups)]
    chunks = [group.column(k) for group in groups for k in range(group.num_columns)]
    size = (
        sum(chunk.total_compressed_size for chunk in chunks)
        + footer.serialized_size
        + 12
    )
    if size != path.stat().st_size:
        yield f"{path.stat().st_size - size:,} bytes of the file are in no column"
    notes = {*(footer.metadata or ()), *(schema.metadata or ())}
    notes |= {n for f in schema for n in f.metadata or ()}
    plain = (
        table.columns.name is None
        and not table.attrs
        and notes == {b"ARROW:schema", b"pandas"}
    )
    if (
        not plain
        or _described(schema)
        != _described(Schema.from_pandas(table, preserve_index=False))
        or not _is_as_written(footer.metadata, schema)
    ):
        yield (
            "the file has notes, an index or attributes beside its columns: record "
            "again"
        )
    if not re.fullmatch(r"parquet-cpp-arrow version [\d.]+", footer.created_by):
        yield f"it was written by {_short(footer.created_by)!r}, not by pyarrow"
    for name, entry in _unused_entries(path, schema):
        yield f"column {name!r} has a dictionary entry without a row: {_short(entry)!r}"
    for name in table.select_dtypes("category"):
        # or the dataset's, of which a study may ask a part
        known = {*table[name].dropna()}
        known |= (
            {*items[name].astype("category").cat.categories} if name in items else set()
        )
        if unused := set(table[name].cat.categories) - known:
            yield (
                f"column {name!r} has a category without a row: {_short(min(unused))!r}"
            )


def _is_as_written(notes: dict[bytes, bytes], schema: Schema) -> bool:
    """Whether a file's notes are as pandas and pyarrow write them: no free text."""
    noted = json.loads(schema.metadata[b"pandas"])
    creator, version = noted.get("creator"), str(noted.get("pandas_version"))
    packed = notes[b"ARROW:schema"]
    return (
        json.dumps(noted).encode() == schema.metadata[b"pandas"]
        and isinstance(creator, dict)
        and creator == {"library": "pyarrow", "version": creator.get("version")}
        and all(
            re.fullmatch(_VERSION, text) for text in (str(creator["version"]), version)
        )
        and len(packed) == len(b64encode(schema.serialize()))
    )


def _unused_entries(path: Path, schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield columns of text whose dictionary in the file has unused entries."""
    plain = [f.name for f in schema if is_string(f.type) or is_large_string(f.type)]
    for group in range(
        (file := ParquetFile(path, read_dictionary=plain)).num_row_groups
    ):
        read = file.read_row_group(group, columns=plain)
        for name in plain:
            for chunk in read.column(name).chunks:
                if unused := set(chunk.dictionary.to_pylist()) - set(chunk.to_pylist()):
                    yield name, min(unused)


def _described(schema: Schema) -> dict[str, Any]:
    """Return pandas's own notes of a table in its file, without versions."""
    noted: dict[str, Any] = json.loads(schema.metadata[b"pandas"])
    return {
        key: value
        for key, value in noted.items()
        if key not in ("creator", "pandas_version")
    }


def _rows(bad: Any, say: Callable[[int], str]) -> Iterator[str]:
    """One sentence about the first bad row, with the number of all of them."""
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows):
        more = f" ({len(rows):,} rows are so)" if len(rows) > 1 else ""
        yield f"row {rows[0] + 1}: {say(int(rows[0]))}{more}"


def _texts(column: pd.Series) -> Any:
    return np.array([str(value) for value in column.astype(object)], dtype=object)


def _against_plan(frame: pd.DataFrame, plans: list[Requests]) -> Iterator[str]:
    """Every row is as the plan has it; every request of the plan has its rows."""
    asked = pd.concat([pd.DataFrame(part).astype(object) for part in plans])
    asked = asked.drop_duplicates("request_id").set_index("request_id")
    ids = frame["request_id"]
    stranger = ~ids.isin(asked.index)
    yield from _rows(stranger, lambda i: f"request {ids[i]} is not in the study's plan")
    for column in (c.name for c in REQUESTS if c.name in frame and c.name in asked):
        wanted, said = _texts(asked[column].reindex(ids)), _texts(frame[column])
        yield from _rows(
            (said != wanted) & ~stranger,
            lambda i, column=column, wanted=wanted, said=said: (  # type: ignore[misc]
                f"{column} is {said[i]!r}, and {wanted[i]!r} in the plan"
            ),
        )
    twice = frame.duplicated(["request_id", "criterion"])
    yield from _rows(twice, lambda i: f"request {ids[i]} appears twice")
    several = (
        pd.concat([part.source for part in plans])
        .groupby("text_id")["criterion"]
        .nunique()
    )
    wanted = pd.Series(1, index=asked.index)
    if "criterion_ordering" in asked:
        together = asked["criterion_ordering"].notna()
        wanted[together] = asked.loc[together, "item_id"].map(several)
    lacking = wanted[
        wanted > ids.value_counts().reindex(wanted.index, fill_value=0)
    ].index
    if len(lacking):
        one = asked.loc[lacking[0]]
        yield (
            f"{len(lacking):,} of {len(asked):,} requests of the plan lack an answer, "
            f"the first is {one['item_id']}, {one['design']}, {one['ordering']}, read "
            f"{one['ordering_index']}"
        )


def _against_items(frame: pd.DataFrame, items: Items) -> Iterator[str]:
    """What a row says of its item is what the dataset says."""
    both = pd.concat(
        [items.assign(item_id=items[column]) for column in ("item_id", "text_id")]
    )
    both = both.astype({"item_id": object, "criterion": object})
    facts = both.drop_duplicates(["item_id", "criterion"]).set_index(
        ["item_id", "criterion"]
    )
    rows = facts.reindex(list(zip(frame["item_id"], frame["criterion"], strict=True)))
    unknown = rows["text_id"].isna().to_numpy()
    yield from _rows(
        unknown, lambda i: f"{frame.item_id[i]} has no criterion {frame.criterion[i]}"
    )
    for name in (name for name in _FACTS if name in frame and name in rows):
        wanted = _texts(rows[name])
        yield from _rows(
            (_texts(frame[name]) != wanted) & ~unknown,
            lambda i, name=name, wanted=wanted: (
                f"{name} is {frame[name][i]!r}, not {wanted[i]!r}"
            ),  # type: ignore[misc]
        )


def _against_prompts(
    frame: pd.DataFrame, plans: list[Requests], judge: Judge
) -> Iterator[str]:
    """The key of every row is that of today's prompt to that judge."""
    same, who = pd.Series(False, index=frame.index), repr(judge.identity)
    for part in plans:
        same |= has_todays_key(frame, judge, part)
    if not same.any():
        yield (
            f"no key is that of a prompt to {who}: the judge or the prompts were others"
        )
    else:
        yield from _rows(
            ~same & frame["request_id"].isin(pd.concat(plans)["request_id"]),
            lambda i: (
                f"the key {frame.key[i][:12]}… is not that of its prompt to {who}"
            ),
        )


def _answers(frame: pd.DataFrame) -> Iterator[str]:
    """Scores are on the scale and where they stood; probabilities are probabilities."""
    options = {code: decode(code) for code in frame["ordering"].unique()}
    orders = [options[code] for code in frame["ordering"]]
    score = [None if pd.isna(x) else float(x) for x in frame["score"]]
    place = [0 if pd.isna(x) else int(x) for x in frame["position"]]
    status = frame["status"].astype(str)
    yield from _rows(~status.isin(STATUSES), lambda i: f"status is {status[i]!r}")
    ok = status == "ok"
    yield from _rows(
        ok == frame["score"].isna(),
        lambda i: f"status is {frame.status[i]!r}, and the score {score[i]}",
    )
    rows = list(zip(score, place, orders, strict=True))
    off = np.array([s is not None and s not in order for s, _, order in rows])
    yield from _rows(
        off, lambda i: f"score {score[i]:g} is not on the scale {frame.ordering[i]}"
    )
    moved = [
        s is not None and (not 1 <= p <= len(order) or order[p - 1] != s)
        for s, p, order in rows
    ]
    yield from _rows(
        np.array(moved) & ~off,
        lambda i: (
            f"score {score[i]:g} is not at place {place[i]} of {frame.ordering[i]}"
        ),
    )
    columns = [c for c in frame if str(c).startswith("probability_")]
    if columns:
        p = frame[columns].astype(float).to_numpy()
        yield from _probabilities(frame, p, place, orders)


def _probabilities(
    frame: pd.DataFrame, p: FloatArray, place: list[int], orders: list[Any]
) -> Iterator[str]:
    """Probabilities sum to 1, and give the expected score and the place that stand."""
    given = np.asarray(~np.isnan(p).all(axis=1))
    total = np.nansum(p, axis=1)
    bad = given & ((abs(total - 1) > _NEAR) | (np.nan_to_num(p) < 0).any(axis=1))
    yield from _rows(bad, lambda i: f"its probabilities sum to {total[i]:.4f}")
    width = p.shape[1]
    weights = np.array(
        [(*order, *[0] * width)[:width] for order in orders], dtype=float
    )
    mean = np.nansum(p * weights, axis=1)
    said = frame["expected_score"].astype(float).to_numpy()
    yield from _rows(
        given & ~bad & ~(abs(mean - said) < 10 * _NEAR),
        lambda i: (
            f"expected_score is {said[i]:.4f}, and {mean[i]:.4f} by its probabilities"
        ),
    )
    chosen = np.array(
        [
            row[k - 1] if 0 < k <= width else np.nan
            for row, k in zip(p, place, strict=True)
        ]
    )
    most = np.nanmax(np.where(given[:, None], p, 0), axis=1)
    yield from _rows(
        given & ~bad & (chosen < most - _NEAR),
        lambda i: f"place {place[i]} was taken, which is not the most probable",
    )


def _against_card(counted: dict[str, Any], said: dict[str, Any]) -> Iterator[str]:
    """What is counted again is what the card says."""
    for name, value in counted.items():
        if name not in said:
            yield f"run.json says no {name}"
        elif said[name] != value:
            yield (
                f"{name} is {_differing_counts(value, said[name])}, and run.json says "
                + _differing_counts(said[name], value)
            )
    for name in sorted(said.keys() - counted.keys()):
        yield f"run.json has an unknown key {name!r}"


def _short(text: Any) -> str:
    return str(text)[:_MAX_FACT_CHARS]


def _differing_counts(value: Any, other: Any) -> str:
    """Return the counts that differ from the other's."""
    if isinstance(value, dict) and isinstance(other, dict):
        differ = [key for key in {**value, **other} if value.get(key) != other.get(key)]
        return ", ".join(
            f"{k}: {_differing_counts(value.get(k), other.get(k))}" for k in differ[:3]
        )
    return str(value)
