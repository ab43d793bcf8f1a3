"""Does an audit in two looks find the same with fewer calls? ``studies.looks``.

Ten judges of known kind score texts of 120 prompts. Each is audited as audits were
before (five neutral edits of every text, one look) and as they are now. Their scores
are a function of the prompt and a seed, so both audits get the same answer to the same
prompt. A second table has how often the interval at which one stops misses the truth,
for means of normal clusters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml
from scipy import special

import rubricnb as rb
from rubricnb.auditing.draw import first_look
from rubricnb.auditing.looks import ask_in_looks
from rubricnb.auditing.plan import audit_requests
from rubricnb.auditing.results import findings
from rubricnb.core.frames import Items, Requests
from rubricnb.core.permutation import decode
from rubricnb.core.support.folders import results_folder
from rubricnb.core.support.hashing import UInt64Array, hash64, mix64

PROMPTS, TEXTS, DRAWS = 120, 3, 6
BEFORE, AFTER = "before", "after"
PLANTED: dict[str, set[str]] = {
    "near-truth": set(),
    "noisy": set(),
    "generous": set(),
    "constant": set(),
    "length": set(),
    "hash": set(),
    "reversed": set(),
    "unchanging": set(),
    "strict with letters": {"letters"},
    "prefers the first": {"position", "descending"},
}
MOVES = ("position", "order", "labels")
SHOWN = ("discrimination", "edits", *MOVES)
_RUBRIC = [
    {
        "rubric_id": "a",
        "criterion": "quality",
        "definition": "Is it good?",
        "levels": {1: "Bad.", 2: "Poor.", 3: "Fair.", 4: "Good.", 5: "Great."},
    }
]


def texts(draw: int) -> Items:
    """Rated texts of many prompts; longer texts are rated a little higher."""
    rng = np.random.default_rng(draw)
    n = PROMPTS * TEXTS
    human = rng.permutation(np.resize(range(1, 6), n))
    words = np.argsort(np.argsort(0.23 * human + rng.normal(0, 1.3, n)))
    table = pd.DataFrame(
        {
            "instruction": [f"Question {i // TEXTS}?" for i in range(n)],
            "response": [f"Text {i}." + " word" * k for i, k in enumerate(words)],
            "human": human,
        }
    )
    with TemporaryDirectory() as folder:
        table.to_csv(f"{folder}/d.csv", index=False)
        with open(f"{folder}/r.yml", "w") as file:
            yaml.safe_dump(_RUBRIC, file)
        return rb.load("csv", path=f"{folder}/d.csv", rubric=f"{folder}/r.yml")


class Asked(NamedTuple):
    """What a judge sees of a request: the text's rating and length, the prompt."""

    human: Any
    fifth: Any
    prompt: UInt64Array  # a hash of the prompt
    read: UInt64Array  # and of which time it is asked
    item: UInt64Array
    letters: Any
    first: Any  # the option shown first


def _asked(requests: Requests, items: Items) -> Asked:
    rows = pd.Index(items["item_id"].astype("object")).get_indexer(
        requests["item_id"].astype("object")
    )
    length = items["response"].str.len().to_numpy()
    fifth = 1 + np.searchsorted(np.quantile(length, [0.2, 0.4, 0.6, 0.8]), length)
    edited = (requests["design"] == "placebo").to_numpy()
    edit = np.where(edited, requests["ordering_index"], 0)
    names = [
        requests[c].astype("str").to_numpy() for c in ("item_id", "ordering", "labels")
    ]
    prompt = mix64(*(hash64(name) for name in names), edit.astype(np.uint64))
    return Asked(
        items["human"].to_numpy(np.int64)[rows],
        fifth[rows],
        prompt,
        mix64(prompt, requests["replicate"].to_numpy(np.uint64)),
        hash64(names[0]),
        (requests["labels"] == "letter").to_numpy(),
        requests["ordering"].map(lambda order: decode(order)[0]).to_numpy(np.int64),
    )


def scores(kind: str, asked: Asked, seed: int) -> Any:
    """Scores of a judge of known kind."""

    def chance(stream: int, of: UInt64Array = asked.read) -> Any:
        return (mix64(of, seed, stream) >> np.uint64(11)).astype(np.float64) / 2.0**53

    human = asked.human
    near = human + (chance(1) < 0.05) - (chance(2) < 0.05)
    once = chance(3, asked.item)
    given = {
        "near-truth": near,
        "noisy": np.round(
            human + 2 * special.ndtri(np.clip(chance(1), 1e-12, 1 - 1e-12))
        ),
        "generous": human + 1,
        "constant": np.full(len(human), 3),
        "length": asked.fifth,
        "hash": 1 + np.floor(5 * chance(1, asked.prompt)),
        "reversed": 6 - human + (chance(1) < 0.05),
        "unchanging": human + (once < 0.1) - (once > 0.9),
        "strict with letters": near - (asked.letters & (chance(4) < 0.5)),
        "prefers the first": np.where(chance(4) < 0.15, asked.first, near),
    }[kind]
    return np.clip(given, 1, 5).astype(np.int64)


def answered(requests: Requests, items: Items, kind: str, seed: int) -> pd.DataFrame:
    """Judgments of a judge of known kind."""
    asked = _asked(requests, items)
    given = scores(kind, asked, seed)
    shown = np.array([decode(order) for order in requests["ordering"]])
    position = 1 + (shown == given[:, None]).argmax(axis=1)
    judged = rb.simulate(requests, items, "unbiased")
    keys = [f"{read:016x}" for read in asked.read]
    return judged.assign(score=given, position=position, key=keys)


def audited(plan: str, kind: str, items: Items, draw: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of one audit, with the calls that it made."""
    looks, edits = (1, 5) if plan == BEFORE else (2, None)
    planned = audit_requests(items, looks, edits=edits, readout="score")
    first = first_look(items, looks)
    how: tuple[Any, ...] = (kind, "", {}, {}, looks)
    asked = ask_in_looks(
        planned,
        first,
        lambda requests: answered(requests, items, kind, draw),
        lambda found, of: findings(found, of, *how).rows,
    )
    calls = sum(found["key"].nunique() for found in asked.answers)
    rows = findings(asked.answers, items, *how).rows
    for row in rows[rows["measure"].isin(SHOWN)].to_dict("records"):
        yield {
            "kind": kind,
            "plan": plan,
            "draw": draw,
            "calls": calls,
            "question": row["question"] if row["measure"] != "position" else "position",
            "verdict": row["verdict"],
            "n_clusters": row["n_clusters"],
            **{k: round(row[k], 4) for k in ("effect", "low", "high")},
        }


def audits(draws: Sequence[int]) -> pd.DataFrame:
    """Audit every kind of judge by both plans, on other texts in each draw."""
    return pd.DataFrame(
        [
            row
            for draw in draws
            for items in [texts(draw)]
            for kind in PLANTED
            for plan in (BEFORE, AFTER)
            for row in audited(plan, kind, items, draw)
        ]
    )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Count by kind and plan: calls, equal verdicts, false alarms, findings."""
    pairs = zip(rows["question"], rows["kind"], strict=True)
    planted = np.array([question in PLANTED[kind] for question, kind in pairs])
    moves = rows["question"].isin(
        ["position", "descending", "letters", "Roman numerals"]
    )
    found = rows["verdict"] == "found"
    wide = rows.pivot(
        index=["kind", "draw", "question"], columns="plan", values="verdict"
    )
    same = (wide[BEFORE] == wide[AFTER]).groupby("kind").mean()
    counts = rows.assign(
        false_alarms=found & moves & ~planted,
        planted=planted,
        planted_found=found & planted,
        inconclusive=rows["verdict"] == "inconclusive",
    )
    out = counts.groupby(["kind", "plan"], sort=False).agg(
        audits=("draw", "nunique"),
        calls=("calls", "mean"),
        rows=("verdict", "size"),
        inconclusive=("inconclusive", "sum"),
        false_alarms=("false_alarms", "sum"),
        planted=("planted", "sum"),
        planted_found=("planted_found", "sum"),
    )
    out["same_verdict"] = same.reindex(out.index.get_level_values("kind")).to_numpy()
    return out.reset_index()


def in_total(rows: pd.DataFrame) -> str:
    """Say what all audits saved, which verdicts differ and what was found."""
    counts = summary(rows)
    wide = counts.pivot(index="kind", columns="plan", values="calls")
    saved = 100 * (1 - wide[AFTER] / wide[BEFORE])
    total = counts.groupby("plan").sum(numeric_only=True)
    calls, alarms = total["calls"], total["false_alarms"]
    verdicts = rows.pivot(
        index=["kind", "draw", "question"], columns="plan", values="verdict"
    )
    differ = verdicts[verdicts[BEFORE] != verdicts[AFTER]]
    unclear = (differ[AFTER] == "inconclusive").sum()
    return (
        f"The audits in two looks save from {saved['noisy']:.0f} % of a judge's calls "
        f"(noisy) to {saved.max():.0f} %. Together they ask "
        f"{100 * (1 - calls[AFTER] / calls[BEFORE]):.0f} % fewer calls, and "
        f"{len(verdicts) - len(differ)} of {len(verdicts)} verdicts are the same; of "
        f"the other {len(differ)}, {unclear} became inconclusive. They find "
        f"{total['planted_found'][AFTER]} of {total['planted'][AFTER]} planted "
        f"effects, and one look {total['planted_found'][BEFORE]}; false alarms: "
        f"{alarms[AFTER]} and {alarms[BEFORE]}."
    )


def misses(replications: int, seed: int = 0) -> pd.DataFrame:
    """Count how often the interval at which one stops misses the mean of clusters.

    One stops after the first look if its interval excludes 0 or lies within ± 0.1, as
    an audit does; ``shared`` intervals are at 97.5 % in both looks, ``naive`` ones at
    95 %.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for effect in (0.0, 0.05, 0.1, 0.2):
        values = rng.normal(effect, 0.5, (replications, PROMPTS))
        for level, name in ((0.975, "shared"), (0.95, "naive")):
            ends = [_ends(values[:, :n], level) for n in (PROMPTS // 3, PROMPTS)]
            low, high = ends[0]
            decided = (low > 0) | (high < 0) | ((low > -0.1) & (high < 0.1))
            at_stop = [np.where(decided, *pair) for pair in zip(*ends, strict=True)]
            missed = (at_stop[0] > effect) | (at_stop[1] < effect)
            rows.append(
                {
                    "effect": effect,
                    "intervals": name,
                    "n": replications,
                    "missed": int(missed.sum()),
                    "stopped_early": int(decided.sum()),
                }
            )
    return pd.DataFrame(rows)


def _ends(values: Any, level: float) -> tuple[Any, Any]:
    n = values.shape[1]
    half = (
        special.stdtrit(n - 1, 0.5 + level / 2)
        * values.std(axis=1, ddof=1)
        / np.sqrt(n)
    )
    mean = values.mean(axis=1)
    return mean - half, mean + half


if __name__ == "__main__":
    draws = range(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
    folder = results_folder() / "validity"
    audits(draws).to_csv(folder / "looks.csv", index=False, lineterminator="\n")
    misses(20_000).to_csv(folder / "looks-misses.csv", index=False, lineterminator="\n")
