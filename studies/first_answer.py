"""What does the first answer of a call decide? ``python -m studies.first_answer`` recomputes.

Judges scored several criteria in one call, in rotated orders. The probabilities of a later
criterion are read after the most probable scores of the earlier ones have been filled in. A
criterion that is asked first has no answer before it: its score there is its *own*. Written to
``results/recordings/first_answer_*.csv`` are aggregates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from studies.recording import write_tables

QWEN = "qwen2.5-coder-1.5b-instruct-embedded"
CELLS = (
    (QWEN, "minibench"),
    ("smollm2-135m-instruct-embedded", "minibench"),
    ("smollm2-135m-instruct-vllm", "hanna"),
    ("smollm2-135m-instruct-vllm", "summeval"),
)
SCORES = np.arange(1, 6)
ITEM = ["item_id", "criterion"]


def reads(judge: str, dataset: str) -> pd.DataFrame:
    """Return the rotated reads, with the first score of the call and the criterion's own score.

    ``own`` is missing where the criterion got different scores in its calls as the first one.
    ``other_first`` is the first score of a call about the same text that begins with the same
    criterion and lists the others in another order; missing where it is not another score.
    """
    found = rb.recorded(judge, dataset)
    found = found[(found["template"] == "criteria") & (found["design"] == "balanced")]
    place = found["criterion_position"].astype(int)
    found = found.assign(place=place, score=found["score"].astype(float))
    begun = found[found["place"] == 1]
    ends = begun.groupby(ITEM, observed=True)["score"].agg(["min", "max"])
    own = ends["min"].where(ends["min"] == ends["max"])
    both = begun.join(ends, on=ITEM).set_index("request_id")
    other = (both["min"] + both["max"] - both["score"]).where(both["min"] < both["max"])
    return found.assign(
        first=found["request_id"].map(both["score"]),
        other_first=found["request_id"].map(other),
        own=own.reindex(pd.MultiIndex.from_frame(found[ITEM])).to_numpy(),
    )


def slots(found: pd.DataFrame) -> pd.DataFrame:
    """Describe the probabilities at each position: label mass, entropy, mean of both readings."""
    options = found[[f"probability_{score}" for score in SCORES]].to_numpy(float)
    described = found.assign(
        top=options.max(axis=1),
        entropy=-(options * np.log(np.maximum(options, 1e-12))).sum(axis=1),
        score_1=found["score"] == 1,
        probability_1=options[:, 0],
    )
    by_place = described.groupby("place")
    named = ["top", "entropy", "expected_score", "score", "score_1", "probability_1"]
    means = by_place[named].mean().astype(float)
    mass = by_place["label_mass"].median().astype(float)
    return means.assign(label_mass=mass, n_reads=by_place.size()).reset_index()


def shares(found: pd.DataFrame) -> pd.DataFrame:
    """Return what later answers equal, with 95 % jackknife-t intervals over clusters.

    ``repeats`` and ``own``: of the later answers whose criterion has a score of its own that
    differs from the first score of the call, those that equal the one or the other. ``repeats,
    twin`` and ``twin's``: of the later answers of two calls that begin with one criterion and
    different scores, those that equal the first score of their own call or of the other. ``counts
    after 1`` and ``counts after another``: of the later answers with a position that is a score,
    those that equal it, by the first score. ``counts down``: after a first 4 or 5, the later
    answers that are lower by one at each position. Position 0 stands for all positions together.
    """
    later = found[found["place"] > 1]
    torn = later[later["own"].notna() & (later["own"] != later["first"])]
    twins = later[later["other_first"].notna()]
    numbered = later[later["place"] <= SCORES[-1]]
    counts = numbered["score"] == numbered["place"]
    high = later[later["first"].ge(4) & (later["place"] <= later["first"])]
    asked = {
        "repeats": (torn, torn["score"] == torn["first"]),
        "own": (torn, torn["score"] == torn["own"]),
        "repeats, twin": (twins, twins["score"] == twins["first"]),
        "twin's": (twins, twins["score"] == twins["other_first"]),
        "counts": (numbered, counts),
        "counts after 1": (numbered[numbered["first"] == 1], counts),
        "counts after another": (numbered[numbered["first"] != 1], counts),
        "counts down": (high, high["score"] == high["first"] + 1 - high["place"]),
    }
    rows = []
    for quantity, (part, hits) in asked.items():
        for place in (0, *sorted(part["place"].unique())):
            kept = part if place == 0 else part[part["place"] == place]
            rows.append({"quantity": quantity, "place": place, **_share(kept, hits[kept.index])})
    return pd.DataFrame(rows)


def _share(part: pd.DataFrame, hits: pd.Series) -> dict[str, float]:
    equal, cluster = hits.to_numpy(float), part["cluster_id"].astype(str).to_numpy()
    found = (np.nan,) * 3
    if len(part):
        found = rb.jackknifed(lambda kept: float(equal[kept].mean()), cluster)
    counted = {"n_reads": len(part), "n_clusters": len(set(cluster))}
    ends = np.clip(found, 0.0, 1.0)
    return counted | dict(zip(("share", "share_low", "share_high"), ends, strict=True))


def first_minus_later(found: pd.DataFrame) -> pd.DataFrame:
    """Return a criterion's mean where it is asked first, minus elsewhere, of both readings."""
    rows = []
    for criterion, part in found.groupby("criterion", observed=True, sort=False):
        row: dict[str, object] = {"criterion": criterion}
        begins = part["place"].to_numpy() == 1
        cluster = part["cluster_id"].astype(str).to_numpy()
        for name in ("score", "expected_score"):
            value = part[name].to_numpy(float)

            def gap(kept: Any, value: Any = value, begins: Any = begins) -> float:
                return float(value[kept & begins].mean() - value[kept & ~begins].mean())

            ends = rb.jackknifed(gap, cluster)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def compute() -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    described = {"slots": slots, "shares": shares, "gaps": first_minus_later}
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in described}
    for judge, dataset in CELLS:
        found = reads(judge, dataset)
        for name, describe in described.items():
            table = describe(found)
            where = pd.DataFrame({"judge": judge, "dataset": dataset}, table.index)
            tables[name].append(where.join(table))
    return {f"first_answer_{name}": pd.concat(rows) for name, rows in tables.items()}


if __name__ == "__main__":
    write_tables(compute())
