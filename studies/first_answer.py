"""What does a call's first answer decide? ``python -m studies.first_answer``.

Judges scored several criteria in one call, in rotated orders. The probabilities of a
later criterion are read after the most probable scores of the earlier ones have been
filled in. A criterion that is asked first has no answer before it: its score there is
its *own*. Written to ``results/recordings/first_answer_*.csv`` are aggregates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from rubricnb.core.support.types import FloatArray
from studies.recording import write_tables

QWEN = "qwen2.5-coder-1.5b-instruct-embedded"
CELLS = (
    (QWEN, "minibench"),
    ("smollm2-135m-instruct-embedded", "minibench"),
    ("smollm2-135m-instruct-vllm", "hanna"),
    ("smollm2-135m-instruct-vllm", "summeval"),
)
# and a call of its own for each
ALL_IN_ONE = ((QWEN, "hanna", 6), (QWEN, "summeval", 4))
SCORES = np.arange(1, 6)
PROBABILITIES = [f"probability_{score}" for score in SCORES]
ITEM = ["item_id", "criterion"]
NEAR = 0.10  # two scores whose probabilities differ by no more are nearly tied


def reads(judge: str, dataset: str) -> pd.DataFrame:
    """Return the rotated reads, with the call's first score and the criterion's own.

    ``own`` is missing where the criterion got different scores in its calls as the
    first one. ``other_first`` is the first score of a call about the same text that
    begins with the same criterion and lists the others in another order; missing where
    it is not another score.
    """
    found = rb.recorded(judge, dataset)
    found = found[(found["template"] == "criteria") & (found["design"] == "balanced")]
    place = found["criterion_position"].astype(int)
    found = found.assign(place=place, score=found["score"].astype(float))
    begun = found[found["place"] == 1]
    ends = begun.groupby(ITEM, observed=True)["score"].agg(["min", "max"])
    own = ends["min"].where(ends["min"] == ends["max"])
    chance = begun.groupby(ITEM, observed=True)[PROBABILITIES].mean()
    both = begun.join(ends, on=ITEM).set_index("request_id")
    other = (both["min"] + both["max"] - both["score"]).where(both["min"] < both["max"])
    item = pd.MultiIndex.from_frame(found[ITEM])
    at_place = found.set_index(["request_id", "place"])["score"]
    found = found.assign(
        first=found["request_id"].map(both["score"]),
        other_first=found["request_id"].map(other),
        own=own.reindex(item).to_numpy(),
        previous=at_place.reindex(
            pd.MultiIndex.from_arrays([found["request_id"], found["place"] - 1])
        ).to_numpy(),
    )
    asked_first = chance.reindex(item).to_numpy(float)
    return found.assign(
        own_asked_first=_probability_of(asked_first, found["own"]),
        first_asked_first=_probability_of(asked_first, found["first"]),
        first_later=_probability_of(
            found[PROBABILITIES].to_numpy(float), found["first"]
        ),
    )


def _probability_of(options: FloatArray, score: pd.Series) -> FloatArray:
    """The probability of each row's score; NaN where it has none."""
    known = score.isin(SCORES).to_numpy()
    column = np.where(known, score.fillna(1).to_numpy(float), 1).astype(int) - 1
    return np.where(known, options[np.arange(len(options)), column], np.nan)


def slots(found: pd.DataFrame) -> pd.DataFrame:
    """Describe each position's probabilities: label mass, entropy, both readings."""
    options = found[PROBABILITIES].to_numpy(float)
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

    ``repeats`` and ``own``: of the later answers whose criterion has a score of its own
    that differs from the first score of the call, those that equal the one or the
    other. ``repeats, twin`` and ``twin's``: of the later answers of two calls that
    begin with one criterion and different scores, those that equal the first score of
    their own call or of the other. ``counts after 1`` and ``counts after another``: of
    the later answers with a position that is a score, those that equal it, by the first
    score. ``counts down``: after a first 4 or 5, the later answers that are lower by
    one at each position. Position 0 stands for all positions together.

    Of the answers behind ``repeats``: ``near ties``, those whose two scores differ by
    at most .10 in probability where the criterion is asked first; and the mean
    probability of its own score there (``own, asked first``), of the call's first score
    there (``first, asked first``) and in the later answer (``first, later``). ``first,
    not previous`` and ``previous, not first``: of the later answers that follow two
    different scores, those that equal the one or the other.
    """
    later = found[found["place"] > 1]
    torn = later[later["own"].notna() & (later["own"] != later["first"])]
    twins = later[later["other_first"].notna()]
    numbered = later[later["place"] <= SCORES[-1]]
    counts = numbered["score"] == numbered["place"]
    high = later[later["first"].ge(4) & (later["place"] <= later["first"])]
    apart = later[later["previous"] != later["first"]]
    near = torn["own_asked_first"] - torn["first_asked_first"] <= NEAR
    asked = {
        "repeats": (torn, torn["score"] == torn["first"]),
        "own": (torn, torn["score"] == torn["own"]),
        "near ties": (torn, near),
        "own, asked first": (torn, torn["own_asked_first"]),
        "first, asked first": (torn, torn["first_asked_first"]),
        "first, later": (torn, torn["first_later"]),
        "first, not previous": (apart, apart["score"] == apart["first"]),
        "previous, not first": (apart, apart["score"] == apart["previous"]),
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
            rows.append(
                {"quantity": quantity, "place": place, **_share(kept, hits[kept.index])}
            )
    return pd.DataFrame(rows)


def _share(part: pd.DataFrame, hits: pd.Series) -> dict[str, float]:
    equal, cluster = hits.to_numpy(float), part["cluster_id"].astype(str).to_numpy()
    found = (np.nan,) * 3
    if len(part):
        found = rb.jackknifed(lambda kept: float(equal[kept].mean()), cluster)
    counted = {"n_reads": len(part), "n_clusters": len(set(cluster))}
    ends = np.clip(found, 0.0, 1.0)
    return counted | dict(zip(("share", "share_low", "share_high"), ends, strict=True))


def repeats_of_all(judge: str, dataset: str, n_criteria: int) -> pd.DataFrame:
    """Return ``repeats`` where a criterion's own score has a call to itself."""
    found = rb.recorded(judge, dataset, "chunks")
    found = found.assign(score=found["score"].astype(float))
    size = found.groupby("request_id", observed=True)["item_id"].transform("size")
    alone = found[size == 1].set_index(ITEM)["score"]
    asked = found[size == n_criteria]
    first = asked[asked["criterion_position"] == 1].set_index("request_id")["score"]
    later = asked[asked["criterion_position"] > 1]
    later = later.assign(
        first=later["request_id"].map(first),
        own=alone.reindex(pd.MultiIndex.from_frame(later[ITEM])).to_numpy(),
    )
    torn = later[later["own"].notna() & (later["own"] != later["first"])]
    share = _share(torn, torn["score"] == torn["first"])
    return pd.DataFrame([{"quantity": "repeats, own call", "place": 0, **share}])


def first_minus_later(found: pd.DataFrame) -> pd.DataFrame:
    """Return a criterion's mean where it is first, minus elsewhere, both readings."""
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
    for judge, dataset, n_criteria in ALL_IN_ONE:
        table = repeats_of_all(judge, dataset, n_criteria)
        where = pd.DataFrame({"judge": judge, "dataset": dataset}, table.index)
        tables["shares"].append(where.join(table))
    return {f"first_answer_{name}": pd.concat(rows) for name, rows in tables.items()}


if __name__ == "__main__":
    write_tables(compute())
