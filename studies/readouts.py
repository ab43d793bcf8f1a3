"""Do written answers and probabilities say the same? ``-m studies.readouts``.

Qwen 1.5B was asked in the papers' own way (``feedback``: a review that ends in
``[RESULT] N``) and for the probabilities of the five scores (``logprobs``): the same
texts in the same orders, on a GPU or (SummEval) on a processor. Written to
``results/recordings/readouts*.csv`` are aggregates.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

import rubricnb as rb
from rubricnb.core.estimates.intervals import (
    correlation,
    fisher_jackknife_t,
    jackknife,
    moments,
)
from rubricnb.core.estimates.reads import by_cluster
from rubricnb.core.support.types import FloatArray
from studies.intervals import bounded, jackknife_row, ratio_row
from studies.recording import write_tables

ON_GPU = ("qwen2.5-coder-1.5b-instruct-vllm", "feedback")  # judge and study
ON_PROCESSOR = "qwen2.5-coder-1.5b-instruct-embedded"
DATASETS = ("minibench", "mt-bench", "vicuna", "summeval")
BOTH = ("minibench", "summeval")  # where both readouts were recorded
ASCENDING = "1-2-3-4-5"
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
            # a copy of a greedy answer is not another answer
            part = part.drop_duplicates("key")
            counts = part["status"].value_counts()
            seen = {
                name: int(counts.get(name, 0))
                for name in ("ok", "unparsed", "truncated")
            }
            rows.append(
                {
                    "dataset": dataset,
                    "design": design,
                    "n_answers": len(part),
                    **seen,
                    "median_tokens": float(part["completion_tokens"].median()),
                }
            )
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
    probable = parts["logprobs"].set_index(SAME_READ)[
        ["score", "expected_score", "cluster_id"]
    ]
    return probable.join(written).dropna(subset=["written"]).reset_index()


def pairs() -> pd.DataFrame:
    """Compare two readouts read by read, with 95 % intervals over prompts."""
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
        {
            "measure": name,
            **ratio_row(by_cluster(value.to_numpy(), cluster), size, "estimate"),
        }
        for name, value in values.items()
    ]
    each = moments(
        *(paired[name].to_numpy(np.float64) for name in ("written", "score"))
    )
    r = jackknife(each, cluster, correlation, fisher_jackknife_t)
    rows.append({"measure": "r", **bounded("estimate", r)})
    frame = _read_both_ways(reads(dataset))
    names = frame["cluster_id"].unique()
    kept = [frame, *(frame[frame["cluster_id"] != name] for name in names)]
    gaps = np.array([_position_gaps(part) for part in kept])
    for name, gap in zip(
        ("first_minus_probable", "v_minus_probable"), gaps.T, strict=True
    ):
        rows.append({"measure": name, **jackknife_row(gap, "estimate")})
    found = pd.DataFrame(rows).assign(n_reads=len(paired), n_clusters=len(size))
    found.insert(0, "dataset", dataset)
    return found


def _read_both_ways(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the balanced reads of both readouts whose written answer has a score."""
    balanced = frame[frame["design"] == "balanced"]
    keys = both(balanced).set_index(SAME_READ).index
    return balanced[pd.MultiIndex.from_frame(balanced[SAME_READ]).isin(keys)]


def _position_gaps(frame: pd.DataFrame) -> tuple[float, float]:
    """Return how much written scores exceed probable ones: position 1, and V."""
    table = rb.position_bias(frame, by=["readout"]).set_index("readout")
    v = np.sqrt(table["v2_unbiased"].clip(lower=0))
    share = table["share_1"]
    return share["feedback"] - share["logprobs"], v["feedback"] - v["logprobs"]


def missing() -> pd.DataFrame:
    """Return the share of written answers with a score, by order and rating.

    The rows ``contrast`` compare the ascending order with the other nine, and the
    lowest rating with the highest; intervals are over prompts or articles. Cochran's Q
    compares all orders, and treats texts as independent.
    """
    return pd.concat([_missing(dataset) for dataset in BOTH], ignore_index=True)


def _missing(dataset: str) -> pd.DataFrame:
    written = reads(dataset).query("readout == 'feedback' and design == 'balanced'")
    rating = rb.load(dataset).set_index("item_id")["human"].round()
    written = written.assign(
        order=written["ordering"].astype(str),
        rating=written["item_id"].astype(str).map(rating),
        scored=written["score"].notna().astype(float),
    )
    cluster = pd.factorize(written["cluster_id"])[0]
    one, scored = np.ones(len(written)), written["scored"].to_numpy(np.float64)

    def counted(mask: pd.Series) -> FloatArray:
        kept = mask.to_numpy(np.float64)
        return np.stack([scored * kept, one * kept], axis=1)

    rows = []
    for name in ("order", "rating"):
        for level in sorted(written[name].dropna().unique()):
            values = by_cluster(counted(written[name] == level), cluster)
            rows.append(
                {
                    "by": name,
                    "level": str(level),
                    "n_answers": int(values[:, 1].sum()),
                    **ratio_row(values[:, 0], values[:, 1], "scored"),
                }
            )
    ascending, rating = written["order"] == ASCENDING, written["rating"]
    contrasts = {
        "ascending minus the rest": (ascending, ~ascending),
        "lowest minus highest rating": (rating == rating.min(), rating == rating.max()),
    }
    for level, sides in contrasts.items():
        values = np.concatenate([counted(side) for side in sides], axis=1)
        gap = jackknife(values, cluster, _share_gap)
        rows.append({"by": "contrast", "level": level, **bounded("scored", gap)})
    table = written.pivot(index="item_id", columns="order", values="scored")
    q = cochran_q(table.to_numpy())
    df = table.shape[1] - 1
    rows.append({"by": "Cochran's Q", "q": q, "df": df, "p": stats.chi2.sf(q, df)})
    found = pd.DataFrame(rows)
    found.insert(0, "dataset", dataset)
    return found


def _share_gap(sums: FloatArray) -> FloatArray:
    gap: FloatArray = sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3]
    return gap


def cochran_q(answers: FloatArray) -> float:
    """Return Cochran's Q of zeros and ones: texts in rows, orders in columns.

    Examples
    --------
    >>> answers = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(cochran_q(answers), 3)  # McNemar: 1 / 3
    0.333
    """
    k, of_order, of_text = answers.shape[1], answers.sum(axis=0), answers.sum(axis=1)
    between = k * (of_order**2).sum() - of_order.sum() ** 2
    return float((k - 1) * between / (k * of_text.sum() - (of_text**2).sum()))


def position() -> pd.DataFrame:
    """Return each readout's position test: on all its reads, and on common reads."""
    rows = []
    for dataset in DATASETS:
        balanced = reads(dataset).query("design == 'balanced'")
        sets = {"all": balanced}
        if dataset in BOTH:
            sets["both"] = _read_both_ways(balanced)
        for name, part in sets.items():
            table = rb.position_bias(part, by=["readout"]).assign(
                dataset=dataset, reads=name
            )
            rows.append(table)
    table = pd.concat(rows, ignore_index=True)
    ends = ("", "_low", "_high")
    shares = [f"share_{place}{end}" for place in range(1, 6) for end in ends]
    bounds = [f"share_{place}_{end}" for place in (1, 5) for end in ("least", "most")]
    size = [f"v2_unbiased{end}" for end in ends]
    return table[
        ["dataset", "reads", "readout", "n_reads", *size, "p_within", *shares, *bounds]
    ]


def compute() -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    return {
        "readouts_status": status(),
        "readouts_pairs": pairs(),
        "readouts_position": position(),
        "readouts_missing": missing(),
    }


if __name__ == "__main__":
    write_tables(compute())
