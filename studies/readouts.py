"""Do written answers and probabilities say the same? ``python -m studies.readouts`` recomputes.

Qwen 1.5B was asked in the papers' own way (``feedback``: a review that ends in ``[RESULT] N``)
and for the probabilities of the five scores (``logprobs``): the same texts in the same orders, on
a GPU or (SummEval) on a processor. Written to ``results/recordings/readouts*.csv`` are aggregates.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import rubricnb as rb
from rubricnb.statistics._inference import correlation, fisher_jackknife_t, jackknife, moments
from rubricnb.statistics._reads import by_cluster
from studies.intervals import bounded, ratio_row
from studies.recording import write_tables

ON_GPU = ("qwen2.5-coder-1.5b-instruct-vllm", "feedback")  # judge and study
ON_PROCESSOR = "qwen2.5-coder-1.5b-instruct-embedded"
DATASETS = ("minibench", "mt-bench", "vicuna", "summeval")
BOTH = ("minibench", "summeval")  # where both readouts were recorded
SAME_READ = ["item_id", "design", "ordering_index", "replicate"]


def reads(dataset: str) -> pd.DataFrame:
    """Return the recorded reads of both readouts."""
    if dataset != "summeval":
        judge, study = ON_GPU
        return rb.recorded(judge, dataset, study=study)
    written = rb.recorded(ON_PROCESSOR, dataset, study="written")
    probable = rb.recorded(ON_PROCESSOR, dataset, study="qwen-1.5b")
    return pd.concat([written, probable[probable["item_id"].isin(written["item_id"])]])


def status() -> pd.DataFrame:
    """Return how many written answers have a score, by dataset and design."""
    rows = []
    for dataset in DATASETS:
        written = reads(dataset).query("readout == 'feedback'")
        for design, part in written.groupby("design", observed=True):
            part = part.drop_duplicates("key")  # a copy of a greedy answer is not another answer
            counts = part["status"].value_counts()
            seen = {name: int(counts.get(name, 0)) for name in ("ok", "unparsed", "truncated")}
            rows.append({
                "dataset": dataset, "design": design, "n_answers": len(part), **seen,
                "median_tokens": float(part["completion_tokens"].median()),
            })  # fmt: skip
    return pd.DataFrame(rows)


def both(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the balanced reads that have a score in both readouts, a row each.

    Examples
    --------
    >>> paired = both(reads("minibench"))
    >>> bool(paired["written"].between(1, 5).all())
    True
    """
    balanced = frame[frame["design"] == "balanced"]
    parts = dict(tuple(balanced.groupby("readout", observed=True)))
    written = parts["feedback"].set_index(SAME_READ)["score"].rename("written")
    probable = parts["logprobs"].set_index(SAME_READ)[["score", "expected_score", "cluster_id"]]
    return probable.join(written).dropna(subset=["written"]).reset_index()


def pairs() -> pd.DataFrame:
    """Compare the two readouts read by read, with 95 % intervals over prompts or articles."""
    return pd.concat([_pairs(dataset) for dataset in BOTH], ignore_index=True)


def _pairs(dataset: str) -> pd.DataFrame:
    paired = both(reads(dataset))
    differs = paired["written"] - paired["score"]
    values = {
        "same_score": (differs == 0).astype(float),
        "absolute_difference": differs.abs(),
        "written_minus_probable": differs,
        "written_minus_expected": paired["written"] - paired["expected_score"],
    }
    cluster = pd.factorize(paired["cluster_id"])[0]
    size = by_cluster(np.ones(len(paired)), cluster)
    rows = [
        {"measure": name, **ratio_row(by_cluster(value.to_numpy(), cluster), size, "estimate")}
        for name, value in values.items()
    ]
    each = moments(*(paired[name].to_numpy(np.float64) for name in ("written", "score")))
    r = jackknife(each, cluster, correlation, fisher_jackknife_t)
    rows.append({"measure": "r", **bounded("estimate", *r)})
    found = pd.DataFrame(rows).assign(n_reads=len(paired), n_clusters=len(size))
    found.insert(0, "dataset", dataset)
    return found


def position() -> pd.DataFrame:
    """Return the position test of each readout: on all its reads, and on reads that have both."""
    rows = []
    for dataset in DATASETS:
        balanced = reads(dataset).query("design == 'balanced'")
        sets = {"all": balanced}
        if dataset in BOTH:
            keys = both(balanced).set_index(SAME_READ).index
            sets["both"] = balanced[pd.MultiIndex.from_frame(balanced[SAME_READ]).isin(keys)]
        for name, part in sets.items():
            table = rb.position_bias(part, by=["readout"]).assign(dataset=dataset, reads=name)
            rows.append(table)
    table = pd.concat(rows, ignore_index=True)
    ends = ("", "_low", "_high")
    shares = [f"share_{place}{end}" for place in range(1, 6) for end in ends]
    bounds = [f"share_{place}_{end}" for place in (1, 5) for end in ("least", "most")]
    size = [f"v2_unbiased{end}" for end in ends]
    return table[["dataset", "reads", "readout", "n_reads", *size, "p_within", *shares, *bounds]]


def compute() -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    return {
        "readouts_status": status(),
        "readouts_pairs": pairs(),
        "readouts_position": position(),
    }


if __name__ == "__main__":
    write_tables(compute())
