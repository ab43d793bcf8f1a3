"""One call for all criteria, some, or each? ``python -m studies.chunks``.

Qwen 1.5B scored the same summaries and stories with one prompt that asked for all
criteria, for half of them, or for one (``python -m studies run chunks``), in the order
of the file and in its reverse. The probabilities of a later criterion are read after
the earlier answers have been filled in, which sharpens them. So criteria are compared
by most probable scores, and expected scores serve only to correlate each criterion with
people. Written to ``results/recordings/chunks_*.csv`` are aggregates.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from rubricnb.core.permutation import decode
from studies.recording import write_tables

STUDY = "chunks"
JUDGE = "qwen2.5-coder-1.5b-instruct-embedded"
DATASETS = ("summeval", "hanna")
_ALL_ALIKE = 1 - 1e-6  # a correlation between criteria that always get one score
# for the agreement with people
VALUES = {"feedback": "score", "logprobs": "expected_score"}
_FEWEST_UNLIKE = 10  # texts with different scores, for a correlation of their profiles


def reads(dataset: str, judge: str = JUDGE) -> pd.DataFrame:
    """Return the recorded reads, with the criteria per call in ``per_call``.

    ``item_id`` names text and criterion, as in `rubricnb.load`, so that people's
    ratings match.
    """
    found = rb.recorded(judge, dataset, study=STUDY)
    length = (
        found["criterion_ordering"].astype(object).map(lambda order: len(decode(order)))
    )
    ids = rb.load(dataset).set_index(["text_id", "criterion"])["item_id"]
    asked = pd.MultiIndex.from_frame(found[["item_id", "criterion"]].astype(object))
    return found.assign(
        per_call=length, text_id=found["item_id"], item_id=ids[asked].to_numpy()
    )


def halo(scores: pd.DataFrame) -> float:
    """Return the mean correlation between two criteria; `scores` is texts by criteria.

    A criterion whose scores are all the same has no correlation, and its pairs are left
    out.

    Examples
    --------
    >>> scores = pd.DataFrame({
    ...     "a": [1, 2, 3], "b": [2, 4, 6], "c": [3, 2, 1], "d": [1, 1, 1]})
    >>> round(halo(scores), 3)
    -0.333
    """
    varied = scores.loc[:, scores.std() > 0]
    pairs = [varied[a].corr(varied[b]) for a, b in combinations(varied, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")


def _spread(table: pd.DataFrame, cluster: pd.Series, name: str) -> dict[str, float]:
    """Return a table's halo with its interval by Fisher's z; none where it is 1."""
    value = halo(table)
    if value > _ALL_ALIKE:
        return {name: value, f"{name}_low": np.nan, f"{name}_high": np.nan}

    def fisher(kept: Any) -> float:
        return float(np.arctanh(min(halo(table[kept]), _ALL_ALIKE)))

    z = rb.jackknifed(fisher, cluster.reindex(table.index).to_numpy())
    return dict(zip((name, f"{name}_low", f"{name}_high"), np.tanh(z), strict=True))


def halo_gap(
    one: pd.DataFrame, other: pd.DataFrame, cluster: pd.Series
) -> dict[str, float]:
    """Return the halo of one way to ask minus another's, with its interval.

    Both are means over the criteria whose scores vary in both ways.
    """
    varied = (one.std() > 0) & (other.std() > 0)
    one, other = one.loc[:, varied], other.loc[:, varied]

    def gap(kept: Any) -> float:
        return halo(one[kept]) - halo(other[kept])

    return _named(
        "delta_halo", rb.jackknifed(gap, cluster.reindex(one.index).to_numpy())
    )


def alike(scores: pd.DataFrame) -> pd.Series:
    """Return whether all criteria of a text get one score (1.0 or 0.0)."""
    return (scores.nunique(axis=1) == 1).astype(float)


def alike_by_chance(scores: pd.DataFrame) -> float:
    """Return the expected share of texts of equal criteria under permutation.

    Examples
    --------
    >>> alike_by_chance(pd.DataFrame({"a": [1, 2], "b": [1, 2]}))
    0.5
    """
    shares = [scores[name].value_counts(normalize=True) for name in scores]
    return float(pd.concat(shares, axis=1).fillna(0.0).prod(axis=1).sum())


def profile(scores: pd.DataFrame, human: pd.DataFrame) -> float:
    """Return how differences between a text's criteria correlate with people's.

    The means of the texts and of the criteria are subtracted from both.
    """
    sides = []
    for table in (scores, human[scores.columns]):
        rest = table - table.mean()
        sides.append(rest.sub(rest.mean(axis=1), axis=0).to_numpy().ravel())
    if min(np.ptp(side) for side in sides) < 1e-9:
        return float("nan")
    return float(np.corrcoef(*sides)[0, 1])


def _profiles(
    scores: pd.DataFrame, human: pd.DataFrame, cluster: pd.Series
) -> dict[str, Any]:
    unlike = int((alike(scores) == 0).sum())
    if unlike < _FEWEST_UNLIKE:
        why = f"{unlike} texts differ"
        return _named("profile", (np.nan, np.nan, np.nan)) | {"profile_reason": why}
    found = rb.jackknifed(
        lambda kept: profile(scores[kept], human[kept]),
        cluster.reindex(scores.index).to_numpy(),
    )
    return _named("profile", found) | {"profile_reason": ""}


def _mean(values: pd.Series, cluster: pd.Series, name: str) -> dict[str, float]:
    return _named(
        name, rb.jackknifed(lambda kept: float(values[kept].mean()), cluster.to_numpy())
    )


def _share(values: pd.Series, cluster: pd.Series, name: str) -> dict[str, float]:
    return {
        end: float(np.clip(x, 0, 1)) for end, x in _mean(values, cluster, name).items()
    }


def _named(name: str, found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def table_of(reads: pd.DataFrame, value: str = "score") -> pd.DataFrame:
    """Return reads' scores in one order, probable or written: texts by criteria."""
    return reads.pivot_table(
        value, "text_id", "criterion", "first", observed=True
    ).astype(float)


def cell(
    part: pd.DataFrame, items: pd.DataFrame, value: Any = "score"
) -> dict[str, Any]:
    """Describe a way to ask: agreement, order, halo, failures, tokens."""
    in_order = part[part["design"] == "fixed"]
    agreed = rb.agreement(in_order, items, by=["dataset"], value=value).iloc[0]
    cluster = in_order.drop_duplicates("text_id").set_index("text_id")["cluster_id"]
    both = part.pivot_table(
        "score", "item_id", "design", "first", observed=True
    ).dropna()
    found = {
        "n_texts": in_order["text_id"].nunique(),
        "n_clusters": in_order["cluster_id"].nunique(),
        "r": agreed["r_macro"],
        "r_low": agreed["r_macro_low"],
        "r_high": agreed["r_macro_high"],
    }
    found["reason"] = "not asked in reverse"  # of `moved`
    if {"fixed", "descending"} <= set(both):
        moved = (both["fixed"] - both["descending"]).abs().astype(float)
        of_item = part.drop_duplicates("item_id").set_index("item_id")["cluster_id"]
        found |= _mean(moved, of_item[both.index], "moved") | {"reason": ""}
    table = table_of(in_order)
    rated = items.pivot_table("human", "text_id", "criterion", "first", observed=True)
    rated = rated.loc[table.index]
    found |= _spread(table, cluster, "halo") | _spread(rated, cluster, "people_halo")
    found |= _share(alike(table), cluster.reindex(table.index), "alike")
    found["alike_chance"] = alike_by_chance(table)
    found |= _profiles(table, rated, cluster)
    if value != "score":
        soft = _profiles(table_of(in_order, value), rated, cluster)
        ends = ("", "_low", "_high")
        found |= {f"profile_expected{end}": soft[f"profile{end}"] for end in ends}
    calls = in_order.drop_duplicates("request_id")
    return found | {
        "failed": float((part["status"] != "ok").mean()),
        "calls_per_text": len(calls) / found["n_texts"],
        "prompt_tokens": calls["prompt_tokens"].sum() / found["n_texts"],
        "completion_tokens": calls["completion_tokens"].sum() / found["n_texts"],
    }


def gap(
    named: pd.DataFrame, items: pd.DataFrame, per_call: str, other: str, value: Any
) -> dict[str, float]:
    """Compare two ways to ask (in ``design``) text by text: agreement, halo, ties."""
    one, two = (table_of(named[named["design"] == way]) for way in (per_call, other))
    cluster = named.drop_duplicates("text_id").set_index("text_id")["cluster_id"]
    agreed = rb.strategy_contrast(
        named, items, per_call, other, ["dataset"], value
    ).iloc[0]
    unlike = _mean(alike(one) - alike(two), cluster.reindex(one.index), "delta_alike")
    kept = {
        f"delta_r{end}": agreed[f"delta_r_macro{end}"]
        for end in ("", "_low", "_high", "_p")
    }
    return kept | halo_gap(one, two, cluster) | unlike


def compute(judge: str = JUDGE) -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    rows, gaps = [], []
    for dataset in DATASETS:
        items, found = rb.load(dataset), reads(dataset, judge)
        for readout, part in found.groupby("readout", observed=True, sort=False):
            where = {"dataset": dataset, "readout": readout}
            for per_call, own in part.groupby("per_call"):
                rows.append(
                    {**where, "per_call": per_call, **cell(own, items, VALUES[readout])}
                )
            in_order = part[part["design"] == "fixed"]
            named = in_order.assign(design=in_order["per_call"].astype(str))
            ways = sorted(set(named["design"]))
            for per_call in ways[1:] if ways[0] == "1" else ():
                pair = where | {"per_call": int(per_call), "minus": 1}
                gaps.append(pair | gap(named, items, per_call, "1", VALUES[readout]))
    return {"chunks_ways": pd.DataFrame(rows), "chunks_gaps": pd.DataFrame(gaps)}


if __name__ == "__main__":
    write_tables(compute())
