"""A recording from elsewhere: is it what its study asks for, and what its own card says?

Everything that can be computed again is: the plan with its request ids, the prompts with their
keys, counts and sums, the file's SHA-256. ``python -m studies check results/STUDY/JUDGE``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.data import load
from rubricnb.frames import JUDGMENTS, REQUESTS, Items, Requests, conform
from rubricnb.judging.contract import Unopened
from rubricnb.judging.plan import with_readout
from rubricnb.judging.results import _same_keys, judges
from rubricnb.pages import replicated
from rubricnb.permutation import decode
from rubricnb.replication import replication, settings
from studies.recording import counts_of
from studies.replication import TABLES
from studies.study import CONDITIONS, items_of, plans_for, read_study, requests_of

_CARD = ("judge", "identity", "spec", "model", "licence", "conditions", "recorded", "datasets")
_FACTS = ("dataset", "cluster_id", "group_id", "candidate")
_NEAR = 1e-3  # of probabilities, which are stored as float32


def problems(folder: Path) -> list[str]:
    """Say what is wrong with a recording, a sentence each; nothing if it can be taken in.

    Parameters
    ----------
    folder
        ``…/STUDY/JUDGE``, as `studies.recording.record` writes it.
    """
    folder = folder.resolve()
    try:
        card = _card(folder)
        plans = _plans(folder.parent.name, card)
    except ValueError as error:
        return [str(error)]
    found = [
        f"{path.name}: a recording is run.json and one .parquet a dataset, and nothing else"
        for path in sorted(folder.iterdir())
        if not re.fullmatch(r"run\.json|\.lock|[\w.-]+\.parquet|references-[\w.-]+\.csv", path.name)
    ]
    there = {path.stem for path in folder.glob("*.parquet")}
    for name in sorted(there | set(plans) | set(card["datasets"])):
        places = {"a file": there, "the study's plan": plans, "run.json": card["datasets"]}
        if lacking := [place for place, names in places.items() if name not in names]:
            found.append(f"{name} is not in {' nor in '.join(lacking)}")
        else:
            path = folder / f"{name}.parquet"
            found += [f"{path.name}: {said}" for said in _wrong(path, card, plans[name])]
    return found


def shows(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """Say what a recording shows of the papers' findings, and which tables it is a part of.

    Returns
    -------
    DataFrame, list of str
        As of `rubricnb.pages.replicated`; the files that `studies.replication` writes with it.
    """
    found, tables = [], ["replication.csv"]
    for path in sorted(folder.resolve().glob("*.parquet")):
        judgments, items = pd.read_parquet(path), load(path.stem)
        found.append(replication(judgments, items))
        rubric, criteria = settings(judgments)
        for name, (summarise, together) in TABLES.items():
            reads = criteria if together else rubric
            if f"{name}.csv" not in tables and len(reads) and len(summarise(reads, items)):
                tables.append(f"{name}.csv")
    return replicated(pd.concat(found, ignore_index=True)), tables


def _card(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` as far as it can be one."""
    path = folder / "run.json"
    if not path.is_file():
        raise ValueError(f"{folder} has no run.json: give results/STUDY/JUDGE, as `run` wrote it")
    try:
        card: dict[str, Any] = json.loads(path.read_text("utf-8"))
        missing = [key for key in _CARD if key not in card]
    except (ValueError, TypeError) as error:
        raise ValueError(f"run.json is no card: {error}") from None
    if missing:
        raise ValueError(f"run.json lacks {', '.join(missing)}: record with this version")
    if card["judge"] != folder.name:
        raise ValueError(f"run.json is of {card['judge']!r}, and the folder of {folder.name!r}")
    if others := set(card["conditions"]) - set(CONDITIONS):
        raise ValueError(f"run.json has a condition {min(others)!r} that no study leaves open")
    known = judges().set_index("slug")["identity"].get(card["judge"], card["identity"])
    if known != card["identity"]:
        raise ValueError(
            f"run.json: identity is {card['identity']!r}, and results/judges.csv knows "
            f"{card['judge']!r} as {known!r}"
        )
    return card


def _plans(study: str, card: dict[str, Any]) -> dict[str, tuple[list[Requests], Items]]:
    """Make a study's plans for this judge anew: by dataset, with all items they ask about."""
    entry = {key: card[key] for key in ("spec", "model", "licence", "conditions")}
    content = read_study(study, entry)
    found: dict[str, list[Requests]] = {}
    for part in plans_for(entry, content.get("plans", [])):
        requests = with_readout(requests_of(part, items_of(part)), card["spec"])
        found.setdefault(part["dataset"], []).append(requests)
    return {
        name: (parts, pd.concat([part.source for part in parts], ignore_index=True))
        for name, parts in found.items()
    }


def _wrong(
    path: Path, card: dict[str, Any], planned: tuple[list[Requests], Items]
) -> Iterator[str]:
    """Say what is wrong with one file."""
    plans, items = planned
    try:
        frame = conform(pd.read_parquet(path), "judgments").reset_index(drop=True)
    except (ValueError, OSError) as error:
        yield str(error)
        return
    for name in frame:
        if not any(column.matches(str(name)) for column in JUDGMENTS):
            yield f"column {name!r} is none of a judgment's, and a recording holds no texts"
    yield from _against_plan(frame, plans)
    yield from _against_items(frame, items)
    yield from _against_prompts(frame, plans, card["identity"])
    for name, wanted in (("judge", card["judge"]), ("source", "recorded")):
        yield from _rows(
            frame[name].astype(str) != wanted,
            lambda i, name=name, wanted=wanted: f"{name} is {frame[name][i]!r}, not {wanted!r}",  # type: ignore[misc]
        )
    yield from _answers(frame)
    yield from _against_card(json.loads(json.dumps(counts_of(path))), card["datasets"][path.stem])


def _rows(bad: Any, say: Callable[[int], str]) -> Iterator[str]:
    """One sentence about the first bad row, with the number of all of them."""
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows):
        more = f" ({len(rows):,} rows are so)" if len(rows) > 1 else ""
        yield f"row {rows[0] + 1}: {say(int(rows[0]))}{more}"


def _texts(column: pd.Series) -> Any:
    return np.array([str(value) for value in column.astype(object)], dtype=object)


def _against_plan(frame: pd.DataFrame, plans: list[Requests]) -> Iterator[str]:
    """Every row is of the plan, as the plan has it; every request of the plan has its rows."""
    asked = pd.concat([pd.DataFrame(part).astype(object) for part in plans])
    asked = asked.drop_duplicates("request_id").set_index("request_id")
    ids = frame["request_id"]
    stranger = ~ids.isin(asked.index)
    yield from _rows(stranger, lambda i: f"request {ids[i]} is none of the study's plan")
    for column in (c.name for c in REQUESTS if c.name in frame and c.name in asked):
        wanted, said = _texts(asked[column].reindex(ids)), _texts(frame[column])
        yield from _rows(
            (said != wanted) & ~stranger,
            lambda i, column=column, wanted=wanted, said=said: (  # type: ignore[misc]
                f"{column} is {said[i]!r}, and {wanted[i]!r} in the plan"
            ),
        )
    twice = frame.duplicated(["request_id", "criterion"])
    yield from _rows(twice, lambda i: f"request {ids[i]} stands there already")
    several = pd.concat([part.source for part in plans]).groupby("text_id")["criterion"].nunique()
    wanted = pd.Series(1, index=asked.index)
    if "criterion_ordering" in asked:
        together = asked["criterion_ordering"].notna()
        wanted[together] = asked.loc[together, "item_id"].map(several)
    lacking = wanted[wanted > ids.value_counts().reindex(wanted.index, fill_value=0)].index
    if len(lacking):
        one = asked.loc[lacking[0]]
        yield (
            f"{len(lacking):,} of {len(asked):,} requests of the plan lack an answer, the first "
            f"is {one['item_id']}, {one['design']}, {one['ordering']}, read {one['ordering_index']}"
        )


def _against_items(frame: pd.DataFrame, items: Items) -> Iterator[str]:
    """What a row says of its item is what the dataset says."""
    both = pd.concat([items.assign(item_id=items[column]) for column in ("item_id", "text_id")])
    both = both.astype({"item_id": object, "criterion": object})
    facts = both.drop_duplicates(["item_id", "criterion"]).set_index(["item_id", "criterion"])
    rows = facts.reindex(list(zip(frame["item_id"], frame["criterion"], strict=True)))
    unknown = rows["text_id"].isna().to_numpy()
    yield from _rows(unknown, lambda i: f"{frame.item_id[i]} has no criterion {frame.criterion[i]}")
    for name in (name for name in _FACTS if name in frame and name in rows):
        wanted = _texts(rows[name])
        yield from _rows(
            (_texts(frame[name]) != wanted) & ~unknown,
            lambda i, name=name, wanted=wanted: f"{name} is {frame[name][i]!r}, not {wanted[i]!r}",  # type: ignore[misc]
        )


def _against_prompts(frame: pd.DataFrame, plans: list[Requests], identity: str) -> Iterator[str]:
    """The key of every row is that of today's prompt to that judge."""
    same = pd.Series(False, index=frame.index)
    for part in plans:
        same |= _same_keys(frame, Unopened(identity), part, False)
    if not same.any():
        yield f"no key is that of a prompt to {identity!r}: the judge or the prompts were others"
    else:
        yield from _rows(
            ~same & frame["request_id"].isin(pd.concat(plans)["request_id"]),
            lambda i: f"the key {frame.key[i][:12]}… is not that of its prompt to {identity!r}",
        )


def _answers(frame: pd.DataFrame) -> Iterator[str]:
    """Scores are on the scale and where they stood; probabilities are probabilities."""
    options = {code: decode(code) for code in frame["ordering"].unique()}
    orders = [options[code] for code in frame["ordering"]]
    score = [None if pd.isna(x) else float(x) for x in frame["score"]]
    place = [0 if pd.isna(x) else int(x) for x in frame["position"]]
    ok = frame["status"].astype(str) == "ok"
    yield from _rows(
        ok == frame["score"].isna(),
        lambda i: f"status is {frame.status[i]!r}, and the score {score[i]}",
    )
    rows = list(zip(score, place, orders, strict=True))
    off = np.array([s is not None and s not in order for s, _, order in rows])
    yield from _rows(off, lambda i: f"score {score[i]:g} is not on the scale {frame.ordering[i]}")
    moved = [
        s is not None and (not 1 <= p <= len(order) or order[p - 1] != s) for s, p, order in rows
    ]
    yield from _rows(
        np.array(moved) & ~off,
        lambda i: f"score {score[i]:g} does not stand at place {place[i]} of {frame.ordering[i]}",
    )
    columns = [c for c in frame if str(c).startswith("probability_")]
    if not columns:
        return
    p = frame[columns].astype(float).to_numpy()
    given = ~np.isnan(p).all(axis=1)
    total = np.nansum(p, axis=1)
    bad = given & ((abs(total - 1) > _NEAR) | (np.nan_to_num(p) < 0).any(axis=1))
    yield from _rows(bad, lambda i: f"its probabilities sum to {total[i]:.4f}")
    width = len(columns)
    weights = np.array([(*order, *[0] * width)[:width] for order in orders], dtype=float)
    mean = np.nansum(p * weights, axis=1)
    said = frame["expected_score"].astype(float).to_numpy()
    yield from _rows(
        given & ~bad & ~(abs(mean - said) < 10 * _NEAR),
        lambda i: f"expected_score is {said[i]:.4f}, and {mean[i]:.4f} by its probabilities",
    )
    chosen = np.array([row[k - 1] if 0 < k <= width else np.nan for row, k in zip(p, place)])  # noqa: B905
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
            yield f"{name} is {_brief(value, said[name])}, and run.json says " + _brief(
                said[name], value
            )


def _brief(value: Any, other: Any) -> str:
    """Of counts by name, those that are not the other's."""
    if isinstance(value, dict) and isinstance(other, dict):
        differ = [key for key in {**value, **other} if value.get(key) != other.get(key)]
        return ", ".join(f"{k}: {_brief(value.get(k), other.get(k))}" for k in differ[:3])
    return str(value)
