"""One call for all criteria, for some, or for each? ``python -m studies.chunks`` recomputes.

Qwen 1.5B scored the same summaries and stories with one prompt that asked for all criteria, for
half of them, or for one (``python -m studies run chunks``), in the order of the file and in its
reverse. Written to ``results/recordings/chunks_*.csv`` are aggregates.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from rubricnb.permutation import decode
from studies.recording import write_tables

STUDY = "chunks"
JUDGE = "qwen2.5-coder-1.5b-instruct-embedded"
DATASETS = ("summeval", "hanna")
_ALL_ALIKE = 1 - 1e-6  # a correlation between criteria that always get one score
VALUES = {"feedback": "score", "logprobs": "expected_score"}


def reads(dataset: str, judge: str = JUDGE) -> pd.DataFrame:
    """Return the recorded reads, with the criteria per call in ``per_call``.

    ``item_id`` names text and criterion, as in `rubricnb.load`, so that people's ratings match.
    """
    found = rb.recorded(judge, dataset, study=STUDY)
    length = found["criterion_ordering"].astype(object).map(lambda order: len(decode(order)))
    ids = rb.load(dataset).set_index(["text_id", "criterion"])["item_id"]
    asked = pd.MultiIndex.from_frame(found[["item_id", "criterion"]].astype(object))
    return found.assign(per_call=length, text_id=found["item_id"], item_id=ids[asked].to_numpy())


def halo(scores: pd.DataFrame) -> float:
    """Return the mean correlation between two criteria; `scores` is texts by criteria.

    A criterion whose scores are all the same has no correlation, and its pairs are left out.

    Examples
    --------
    >>> scores = pd.DataFrame({"a": [1, 2, 3], "b": [2, 4, 6], "c": [3, 2, 1], "d": [1, 1, 1]})
    >>> round(halo(scores), 3)
    -0.333
    """
    varied = scores.loc[:, scores.std() > 0]
    pairs = [varied[a].corr(varied[b]) for a, b in combinations(varied, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")


def _spread(table: pd.DataFrame, cluster: pd.Series, name: str) -> dict[str, float]:
    """Return the halo of a table, with its interval over clusters by Fisher's z unless it is 1."""
    value = halo(table)
    if value > _ALL_ALIKE:
        return {name: value, f"{name}_low": np.nan, f"{name}_high": np.nan}

    def fisher(kept: Any) -> float:
        return float(np.arctanh(min(halo(table[kept]), _ALL_ALIKE)))

    z = rb.jackknifed(fisher, cluster.reindex(table.index).to_numpy())
    return dict(zip((name, f"{name}_low", f"{name}_high"), np.tanh(z), strict=True))


def halo_gap(one: pd.DataFrame, other: pd.DataFrame, cluster: pd.Series) -> dict[str, float]:
    """Return the halo of one way to ask minus that of another, with its interval over clusters."""

    def gap(kept: Any) -> float:
        return halo(one[kept]) - halo(other[kept])

    value = rb.jackknifed(gap, cluster.reindex(one.index).to_numpy())
    return dict(zip(("delta_halo", "delta_halo_low", "delta_halo_high"), value, strict=True))


def _mean(values: pd.Series, cluster: pd.Series, name: str) -> dict[str, float]:
    value = rb.jackknifed(lambda kept: float(values[kept].mean()), cluster.to_numpy())
    return dict(zip((name, f"{name}_low", f"{name}_high"), value, strict=True))


def cell(part: pd.DataFrame, items: pd.DataFrame, value: Any) -> dict[str, Any]:
    """Describe one way to ask: agreement, effect of the order, halo, failures, tokens."""
    in_order = part[part["design"] == "fixed"]
    agreed = rb.agreement(in_order, items, by=["dataset"], value=value).iloc[0]
    cluster = in_order.drop_duplicates("text_id").set_index("text_id")["cluster_id"]
    both = part.pivot_table(value, "item_id", "design", "first", observed=True).dropna()
    found = {
        "n_texts": in_order["text_id"].nunique(),
        "n_clusters": in_order["cluster_id"].nunique(),
        "r": agreed["r_macro"], "r_low": agreed["r_macro_low"], "r_high": agreed["r_macro_high"],
    }  # fmt: skip
    found["reason"] = "not asked in reverse"  # of `moved`
    if {"fixed", "descending"} <= set(both):
        moved = (both["fixed"] - both["descending"]).abs()
        of_item = part.drop_duplicates("item_id").set_index("item_id")["cluster_id"]
        found |= _mean(moved, of_item[both.index], "moved") | {"reason": ""}
    table = in_order.pivot_table(value, "text_id", "criterion", "first", observed=True)
    found |= _spread(table.astype(float), cluster, "halo")
    given = in_order.pivot_table("score", "text_id", "criterion", "first", observed=True)
    found["alike"] = float((given.nunique(axis=1) == 1).mean())  # all criteria get one score
    rated = items.pivot_table("human", "text_id", "criterion", "first", observed=True)
    found |= _spread(rated.loc[table.index], cluster, "people_halo")
    calls = in_order.drop_duplicates("request_id")
    return found | {
        "failed": float((part["status"] != "ok").mean()),
        "calls_per_text": len(calls) / found["n_texts"],
        "prompt_tokens": calls["prompt_tokens"].sum() / found["n_texts"],
        "completion_tokens": calls["completion_tokens"].sum() / found["n_texts"],
    }


def compute(judge: str = JUDGE) -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    rows, gaps = [], []
    for dataset in DATASETS:
        items, found = rb.load(dataset), reads(dataset, judge)
        for readout, part in found.groupby("readout", observed=True, sort=False):
            value: Any = VALUES[readout]
            where = {"dataset": dataset, "readout": readout}
            for per_call, own in part.groupby("per_call"):
                rows.append({**where, "per_call": per_call, **cell(own, items, value)})
            in_order = part[part["design"] == "fixed"]
            named = in_order.assign(design=in_order["per_call"].astype(str))
            tables = {
                length: own.pivot_table(value, "text_id", "criterion", "first", observed=True)
                for length, own in named.groupby("design")
            }
            of_text = named.drop_duplicates("text_id").set_index("text_id")["cluster_id"]
            for per_call in sorted(set(tables) - {"1"}) if "1" in tables else ():
                gap = rb.strategy_contrast(named, items, per_call, "1", ["dataset"], value).iloc[0]
                kept = {name: gap[f"delta_r_macro{name}"] for name in ("", "_low", "_high", "_p")}
                gaps.append(where | {"per_call": int(per_call), "minus": 1} | {
                    f"delta_r{name}": number for name, number in kept.items()
                } | halo_gap(tables[per_call], tables["1"], of_text))  # fmt: skip
    return {"chunks_ways": pd.DataFrame(rows), "chunks_gaps": pd.DataFrame(gaps)}


if __name__ == "__main__":
    write_tables(compute())
