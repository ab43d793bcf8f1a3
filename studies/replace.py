"""May a judge replace people, do more judges help? ``-m studies.replace``.

Fifteen judges of SummEval, recorded by others (`rubricnb.recordings`: ``summeval-six``
and ``summeval-gpt``), beside the same three experts, on the 4,800 items that all were
asked about. Two panels (means of eleven judges) and a judge that gives every summary
the same score stand beside them. What is written to
``results/recordings/replace_*.csv`` are aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

import rubricnb as rb
from rubricnb.core.estimates.losses import lost_scores
from rubricnb.core.estimates.reads import by_cluster
from rubricnb.core.support.types import FloatArray
from studies.intervals import jackknife_row, loss_row, recorded_columns
from studies.recording import write_tables

SETS = ("summeval-six", "summeval-gpt")
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
FORM = "rts"  # of the earlier judges, the form in which all five were asked
N_EXPERTS = 3
EPSILON = 0.2  # of the alternative annotator test, beside experts
EPSILONS = (0.0, 0.1, 0.15, EPSILON)
HALF_WIDTH = 0.1  # points; of the interval for a mean rating
PANEL, ROUNDED, CONSTANT = (
    "mean of eleven",
    "mean of eleven, rounded",
    "always the same score",
)
NAMES = {
    "gemini_flash": "Gemini Flash",
    "gemini_pro": "Gemini Pro",
    "gpt-4o": "GPT-4o",
    "gpt-4o-mini": "GPT-4o-mini",
    "llama-31": "Llama-3.1",
    "mistral-v03": "Mistral v0.3",
    "gpt-3.5-turbo-0301": "GPT-3.5-0301",
    "gpt-4-0314": "GPT-4-0314",
    "llama-2-7b-chat-hf": "Llama-2-7B",
    "llama-2-13b-chat-hf": "Llama-2-13B",
    "llama-2-70b-chat-hf": "Llama-2-70B",
}


def loaded() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judgments of fifteen judges, first reads, and the items that all were asked."""
    recordings = {name: rb.load_recording(name) for name in SETS}
    items = recordings["summeval-gpt"].rated
    shared_items = set(items["item_id"]) & set(
        recordings["summeval-six"].rated["item_id"]
    )
    check_same_experts(items, recordings["summeval-six"].rated)
    frames = []
    for recording in recordings.values():
        first_reads = recording[
            recording["item_id"].isin(shared_items)
            & (recording["replicate"].astype(int) == 1)
        ]
        judge_names = first_reads["judge"].astype(str).map(NAMES)
        is_other_form = ~first_reads["template"].astype(str).isin([FORM, "unknown"])
        judge_names = judge_names.where(
            ~is_other_form, judge_names + ", " + first_reads["template"].astype(str)
        )
        frames.append(
            pd.DataFrame(first_reads).assign(judge=judge_names, template="unknown")
        )
    judgments = pd.concat(frames, ignore_index=True)
    return judgments, items[items["item_id"].isin(shared_items)].reset_index(drop=True)


def check_same_experts(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Refuse two sets whose experts rated the same item differently."""
    pairs = one.merge(other, on="item_id", suffixes=("", "_other"))
    differs = pairs[pairs["human_ratings"] != pairs["human_ratings_other"]]
    if len(differs):
        raise ValueError(
            f"{len(differs)} items have different expert ratings in the two sets, such "
            f"as {differs['item_id'].iloc[0]!r}: they do not describe the same people"
        )


def wide(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Scores, one row an item in the order of `items`, one column a judge."""
    table = judgments.pivot(index="item_id", columns="judge", values="score")
    return table.reindex(items["item_id"])


def eleven(scores: pd.DataFrame) -> list[str]:
    """Name the panel's judges: each model once, in the form that all were asked."""
    return [name for name in NAMES.values() if name in scores]


def with_panels(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Add the mean of eleven judges, the same rounded, and the commonest rating."""
    scores = wide(judgments, items)
    mean = scores[eleven(scores)].mean(axis=1)
    ratings = items.explode("human_ratings").groupby("criterion")["human_ratings"]
    commonest = items["criterion"].map(ratings.agg(lambda r: r.mode().iloc[0]))
    judgments_of_one = (
        judgments[judgments["judge"] == "GPT-4o"]
        .set_index("item_id")
        .loc[items["item_id"]]
    )
    added = {PANEL: mean, ROUNDED: np.floor(mean + 0.5), CONSTANT: commonest}
    added_judgments = [
        judgments_of_one.assign(
            judge=name, score=np.asarray(score, dtype=float)
        ).reset_index()
        for name, score in added.items()
    ]
    return pd.concat([judgments, *added_judgments], ignore_index=True)


def by_judge(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Bias, slope, annotator test, ranking and r: judge by criterion."""
    keys = ["judge", "criterion"]
    annotator_tests = rb.statistics.alternative_annotator(
        judgments, items, epsilon=EPSILON, by=keys
    )
    tables = [
        recorded_columns(rb.statistics.judge_bias(judgments, items, by=keys)).drop(
            columns=["p", "reason"]
        ),
        recorded_columns(annotator_tests).drop(
            columns=["n_items", "n_clusters", "reason"]
        ),
        rb.statistics.system_agreement(judgments, items, by=keys)[
            [*keys, "n_systems", "tau", "tau_low", "tau_high"]
        ],
        rb.agreement(judgments, items, by=keys)[[*keys, "r", "r_low", "r_high"]],
    ]
    table = tables[0].rename(columns={"low": "bias_low", "high": "bias_high"})
    for other in tables[1:]:
        table = table.merge(other, on=keys, validate="1:1")
    return table


def by_epsilon(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """The alternative annotator test at several ε, over clusters."""
    tests = [
        rb.statistics.alternative_annotator(
            judgments, items, epsilon=epsilon, by=["judge", "criterion"]
        ).assign(epsilon=epsilon)
        for epsilon in EPSILONS
    ]
    columns = [
        "epsilon",
        "judge",
        "criterion",
        "winning_rate_clusters",
        "passes_clusters",
    ]
    return pd.concat(tests, ignore_index=True)[columns]


def labels_saved(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Labels for a mean rating within `HALF_WIDTH`, with each judge and without."""
    keys = ["judge", "criterion"]
    needed = rb.labels_needed(judgments, items, half_width=HALF_WIDTH, by=keys)
    columns = [
        "n_items",
        "needed",
        "needed_low",
        "needed_high",
        "needed_alone",
        "reason",
    ]
    return needed[[*keys, *columns]]


def labels_drawn(
    judgments: pd.DataFrame,
    items: pd.DataFrame,
    criterion: str = "relevance",
    judges: Sequence[str] = ("GPT-4o-mini", "Llama-2-7B", PANEL),
    draws: int = 600,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw as many labels as `labels_saved` says: does the interval hold?"""
    rated = items[items["criterion"] == criterion]
    rows = []
    for judge in judges:
        is_chosen = (judgments["judge"] == judge) & (
            judgments["criterion"] == criterion
        )
        scores = judgments[is_chosen]
        n = int(labels_saved(scores, rated)["needed"].iloc[0])
        rng = np.random.default_rng(seed)
        estimates = pd.concat(
            rb.mean_with_labels(scores, rated.sample(n, random_state=rng), by="judge")
            for _ in range(draws)
        )
        is_covered = estimates["low"].le(rated["human"].mean()) & estimates["high"].ge(
            rated["human"].mean()
        )
        ends = stats.binomtest(int(is_covered.sum()), draws).proportion_ci(
            method="wilson"
        )
        rows.append(
            {
                "judge": judge,
                "criterion": criterion,
                "n_labels": n,
                "draws": draws,
                "coverage": is_covered.mean(),
                "coverage_low": ends.low,
                "coverage_high": ends.high,
                "half_width": (estimates["high"] - estimates["low"]).mean() / 2,
            }
        )
    return pd.DataFrame(rows)


# ---- how many judges are eleven?
# --------------------------------------------------------------


def cross_moments(
    scores: FloatArray, ratings: FloatArray, criterion: np.ndarray, cluster: np.ndarray
) -> FloatArray:
    """Count, sums and products, (clusters, criteria, 1 + m + m²), of all raters."""
    columns = np.column_stack([scores, ratings])
    if np.isnan(columns).any():
        raise ValueError(
            "a score or a rating is missing: give the items that have all of them"
        )
    columns = columns - columns.mean(axis=0)
    products = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
    summands = np.column_stack([np.ones(len(columns)), columns, products])
    cells = np.stack(
        [summands * (criterion == name)[:, None] for name in np.unique(criterion)],
        axis=1,
    )
    return by_cluster(cells, pd.factorize(cluster)[0])


def covariance(sums: FloatArray) -> FloatArray:
    """Covariance of columns about their means by criterion, (…, criteria, 1+m+m²)."""
    # The last axis has 1 + m + m² entries, so m is the positive root.
    m = round((sums.shape[-1] - 0.75) ** 0.5 - 0.5)
    n, total = sums[..., 0], sums[..., 1 : m + 1]
    products = sums[..., m + 1 :].reshape(*sums.shape[:-1], m, m)
    centred = products - total[..., :, None] * total[..., None, :] / n[..., None, None]
    return np.asarray(centred.sum(axis=-3) / (n - 1).sum(axis=-1)[..., None, None])


def panel(cov: FloatArray, n_experts: int) -> dict[str, FloatArray]:
    """What a covariance of k judges and some experts says of the judges as a panel.

    Error is the judge's score minus the experts' mean. The experts' noise is in every
    judge's error; its variance, item × expert residual over their number, is taken out
    where a name ends in ``_free``. ``_given`` is the correlation of what is left of the
    judges' scores when the part that goes with the (noiseless) ratings is removed:
    judges that compress the scale alike share errors, but not these.
    """
    k = cov.shape[-1] - n_experts
    judge, cross, expert = cov[..., :k, :k], cov[..., :k, k:], cov[..., k:, k:]
    shared = off_diagonal(expert)  # variance of ratings without noise
    residual = np.trace(expert, axis1=-2, axis2=-1) / n_experts - shared
    noise = residual / n_experts
    with_mean = cross.mean(axis=-1)
    # cov(jᵢ − ē, jₖ − ē) = cov(jᵢ, jₖ) − cov(jᵢ, ē) − cov(jₖ, ē) + var ē
    error = (
        judge
        - with_mean[..., :, None]
        - with_mean[..., None, :]
        + expert.mean(axis=(-2, -1))[..., None, None]
    )
    free = error - noise[..., None, None]
    slope = with_mean / shared[..., None]
    given = judge - slope[..., :, None] * slope[..., None, :] * shared[..., None, None]
    figures = {"expert_noise": residual}
    for name, matrix in (("", error), ("_free", free), ("_given", given)):
        sd = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
        rho = off_diagonal(matrix / (sd[..., :, None] * sd[..., None, :]))
        # k judges whose errors correlate by ρ count as k / (1 + (k − 1) ρ).
        figures |= {f"correlation{name}": rho, f"judges{name}": k / (1 + (k - 1) * rho)}
    variance = np.diagonal(free, axis1=-2, axis2=-1)
    figures["panel_error"] = np.sqrt(free.mean(axis=(-2, -1)))
    figures["best_error"] = np.sqrt(variance.min(axis=-1))
    figures["mean_error"] = np.sqrt(variance.mean(axis=-1))
    sd = np.sqrt(np.diagonal(judge, axis1=-2, axis2=-1))
    true_sd = np.sqrt(shared)
    figures["best_r"] = (with_mean / sd).max(axis=-1) / true_sd
    figures["panel_r"] = (
        with_mean.mean(axis=-1) / np.sqrt(judge.mean(axis=(-2, -1))) / true_sd
    )
    figures["error_spared"] = figures["best_error"] - figures["panel_error"]
    figures["r_gained"] = figures["panel_r"] - figures["best_r"]
    return figures


def off_diagonal(matrix: FloatArray) -> FloatArray:
    """Mean of what is not on the diagonal."""
    k = matrix.shape[-1]
    trace = np.trace(matrix, axis1=-2, axis2=-1)
    return np.asarray((matrix.sum(axis=(-2, -1)) - trace) / (k * (k - 1)))


def effective(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Apply `panel` to three panels, with 95 % jackknife-t intervals over articles."""
    scores = wide(judgments, items)
    names = eleven(scores)
    earlier = [n for n in names if n.startswith(("GPT-3.5", "GPT-4-", "Llama-2"))]
    panels = {
        "eleven judges": names,
        "six judges of 2024": [n for n in names if n not in earlier],
        "five judges of 2023": earlier,
        "GPT-3.5-0301 in five forms": [n for n in scores if n.startswith("GPT-3.5")],
        "GPT-4o, GPT-4-0314 and Gemini Pro": ["GPT-4o", "GPT-4-0314", "Gemini Pro"],
    }
    criterion = items["criterion"].to_numpy()
    rows = []
    for name, members in panels.items():
        is_complete = scores[members].notna().all(axis=1).to_numpy()
        for part in ("all", *CRITERIA) if name == "eleven judges" else ("all",):
            is_used = (
                is_complete if part == "all" else is_complete & (criterion == part)
            )
            estimates = covariances(scores[members], items, is_used)
            for quantity, values in panel(estimates, N_EXPERTS).items():
                rows.append(
                    {
                        "panel": name,
                        "criterion": part,
                        "n_judges": len(members),
                        "n_items": int(is_used.sum()),
                        "n_clusters": len(estimates) - 1,
                        "quantity": quantity,
                        **jackknife_row(values),
                    }
                )
    return pd.DataFrame(rows)


def losses(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Count items that a judge has no score for, and those lost to the panel.

    ``lost`` of ``asked``; ``lost_mean`` and ``kept_mean``: how the experts rate them.
    """
    scores = wide(judgments, items)
    names = eleven(scores)
    human = items["human"].to_numpy(float)
    scores_by_name = {
        "eleven judges": np.where(scores[names].notna().all(axis=1), 0.0, np.nan)
    }
    scores_by_name |= {name: scores[name].to_numpy(float) for name in scores}
    return pd.DataFrame(
        {
            "judge": name,
            **loss_row(
                len(human), *lost_scores(judge_scores, human, (name, "experts"))
            ),
        }
        for name, judge_scores in scores_by_name.items()
    )


def covariances(
    scores: pd.DataFrame, items: pd.DataFrame, used: np.ndarray
) -> FloatArray:
    """Covariance of judges and experts on the items used, then without each cluster."""
    used_items = items[used]
    ratings = np.array(used_items["human_ratings"].tolist(), dtype=float)
    sums = cross_moments(
        scores.to_numpy(float)[used],
        ratings,
        used_items["criterion"].to_numpy(),
        used_items["cluster_id"].to_numpy(),
    )
    total = sums.sum(axis=0)
    return covariance(np.concatenate([total[None], total - sums]))


def subsets(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Agreement and worth of every panel of eleven judges, on common items.

    A column for each judge says whether it is a member: row k has those of the bits of
    k + 1. ``r`` is the correlation of the panel's mean with noiseless ratings,
    ``worth`` the number of judges with independent errors, 1 for a single judge.
    ``constant`` is the worth together with the judge that always gives the same score,
    which changes no r.
    """
    scores = wide(with_panels(judgments, items), items)
    names = [*eleven(scores), CONSTANT]
    is_used = scores[names].notna().all(axis=1).to_numpy()
    estimates = covariances(scores[names], items, is_used)
    experts, constant = range(len(names), estimates.shape[-1]), len(names) - 1

    def of(members: Sequence[int]) -> dict[str, FloatArray]:
        columns = [*members, *experts]
        # slope of a constant; one judge
        with np.errstate(invalid="ignore", divide="ignore"):
            figures = panel(estimates[:, columns][:, :, columns], N_EXPERTS)
        return figures | (
            {"judges_free": np.ones(len(estimates))} if len(members) == 1 else {}
        )

    rows = []
    for bits in range(1, 2**constant):
        members = [k for k in range(constant) if bits >> k & 1]
        alone, joined = of(members), of([*members, constant])
        jackknifed_by_name = {
            "r": alone["panel_r"],
            "worth": alone["judges_free"],
            "constant": joined["judges_free"],
        }
        row = {name: float(k in members) for k, name in enumerate(names[:-1])}
        for name, jackknifed in jackknifed_by_name.items():
            interval = jackknife_row(jackknifed, name)
            row |= {
                name: interval[name],
                f"{name}_low": interval["low"],
                f"{name}_high": interval["high"],
            }
        rows.append(row)
    return pd.DataFrame(rows).round(3)


def compute() -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file."""
    judgments, items = loaded()
    everyone = with_panels(judgments, items)
    panels = everyone[everyone["judge"] != CONSTANT]
    return {
        "replace_judges": by_judge(everyone, items),
        "replace_epsilon": by_epsilon(everyone, items),
        "replace_lost": losses(judgments, items),
        "replace_panels": effective(judgments, items),
        "replace_subsets": subsets(judgments, items),
        "replace_labels": labels_saved(panels, items),
        "replace_draws": labels_drawn(panels, items),
    }


if __name__ == "__main__":
    write_tables(compute())
