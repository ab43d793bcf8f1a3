"""How many human labels? ``python -m studies.labels`` recomputes.

Six large judges, recorded by others (`rubricnb.recordings`: ``summeval-gpt``,
``summeval-six``, ``hanna-llm``), on texts that people have rated one and all. So one
can hide the ratings, draw labels from them a thousand times, and see how near each
estimate comes to the mean of all. The estimators are `rubricnb.systems_with_labels`
itself and that of `rubricnb.mean_with_labels`, written over many draws at once. What is
written to ``results/recordings/labels_*.csv`` are aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

import rubricnb as rb
from rubricnb.core.estimates.intervals import correlation, moments
from rubricnb.core.estimates.losses import lost_scores
from rubricnb.core.estimates.reads import FloatArray, IntArray
from rubricnb.corrections.labels import estimate_systems
from studies.intervals import jackknife_row, loss_row
from studies.recording import write_tables

DRAWS = 1_000
SIZES = (10, 20, 50, 100, 200)  # labels drawn at random
# labels of the three plans, as near as the number of systems allows
PLANNED = (24, 48, 96)
PER_SYSTEM = (2, 4, 8, 16)
WORTH_AT = 50  # labels of the sentence at the top of the chapter
BLOCK = 1e6  # numbers held at a time

JUDGES = {
    ("summeval-gpt", "gpt-4-0314"): "GPT-4-0314",
    ("summeval-gpt", "gpt-3.5-turbo-0301"): "GPT-3.5-0301",
    ("summeval-six", "gpt-4o"): "GPT-4o",
    ("summeval-six", "gemini_flash"): "Gemini Flash",
    ("summeval-six", "gemini_pro"): "Gemini Pro",
    ("hanna-llm", "ChatGPT"): "ChatGPT",
}
# the form in which all judges of the set were asked
FORMS = ("rts", "unknown", "prompt-1")
# the mean over them; beside the judges, in no average over them
FOUR = "ChatGPT, four prompts"


@dataclass(frozen=True)
class Cell:
    """A judge and a criterion: ratings and scores of every text, clusters × systems."""

    judge: str
    dataset: str
    criterion: str
    human: FloatArray
    score: FloatArray
    clusters: tuple[str, ...]

    @property
    def names(self) -> dict[str, str]:
        """The columns that name it."""
        return {
            "judge": self.judge,
            "dataset": self.dataset,
            "criterion": self.criterion,
        }


def loaded() -> pd.DataFrame:
    """One row a judged item that people rated: judge, dataset, and what is needed."""
    frames = []
    for recording in dict.fromkeys(recording for recording, _ in JUDGES):
        judgments = rb.load_recording(recording)
        judge_names = (
            judgments["judge"]
            .astype(str)
            .map(lambda j, recording=recording: JUDGES.get((recording, j)))
        )
        is_used = judge_names.notna() & (judgments["replicate"].astype(int) == 1)
        first_reads = pd.DataFrame(judgments[is_used]).assign(
            judge=judge_names[is_used]
        )
        first_reads["score"] = first_reads["score"].to_numpy(
            dtype=float, na_value=np.nan
        )
        first_reads["dataset"] = "HANNA" if recording == "hanna-llm" else "SummEval"
        keys = ["judge", "dataset", "criterion", "cluster_id", "candidate", "item_id"]
        one_form = first_reads[first_reads["template"].astype(str).isin(FORMS)][
            [*keys, "score"]
        ]
        if recording == "hanna-llm":
            mean_of_forms = first_reads.groupby(
                keys, sort=False, as_index=False, observed=True
            )["score"].mean()
            one_form = pd.concat([one_form, mean_of_forms.assign(judge=FOUR)])
        ratings = judgments.rated[["item_id", "human"]]
        frames.append(one_form.merge(ratings, on="item_id", validate="m:1"))
    return pd.concat(frames, ignore_index=True)


def cells(scores: pd.DataFrame) -> list[Cell]:
    """Put judges and criteria into matrices, without clusters that lack a score."""
    complete = []
    for (judge, dataset, criterion), texts in scores.groupby(
        ["judge", "dataset", "criterion"], sort=False
    ):
        if texts.duplicated(["cluster_id", "candidate"]).any():
            raise ValueError(
                f"{judge}, {criterion}: a text appears twice, so draws would repeat it"
            )
        wide = texts.pivot(
            index="cluster_id", columns="candidate", values=["human", "score"]
        )
        wide = wide.dropna()
        if len(wide) < 0.9 * texts["cluster_id"].nunique():
            raise ValueError(
                f"{judge}, {criterion}: over a tenth of the clusters lack a score"
            )
        human, score = wide["human"].to_numpy(), wide["score"].to_numpy()
        complete.append(
            Cell(judge, dataset, criterion, human, score, tuple(map(str, wide.index)))
        )
    return complete


def losses(scores: pd.DataFrame) -> pd.DataFrame:
    """Count rated texts without a score, which cost `cells` a whole cluster.

    ``lost`` of ``asked``; ``lost_mean`` and ``kept_mean``: how people rate them.
    """
    rows = []
    keys = ["judge", "dataset", "criterion"]
    for values, texts in scores.groupby(keys, sort=False):
        human, score = (texts[name].to_numpy(np.float64) for name in ("human", "score"))
        reasons = lost_scores(score, human, ("judge", "people"))
        rows.append(
            {**dict(zip(keys, values, strict=True)), **loss_row(len(texts), *reasons)}
        )
    return pd.DataFrame(rows)


# ---- draws
# --------------------------------------------------------------------------------------


def chosen(rng: np.random.Generator, total: int, n: int, draws: int) -> IntArray:
    """Draw n of `total` without replacement, many times: (draws, n).

    In a random order, the same on every processor: that of `argpartition` is not.
    """
    block_size = max(1, int(BLOCK // total))
    blocks = [
        rng.random((min(block_size, draws - start), total)).argsort(axis=1)[:, :n]
        for start in range(0, draws, block_size)
    ]
    return np.concatenate(blocks)


def rotated(
    rng: np.random.Generator, clusters: int, systems: int, n: int, draws: int
) -> tuple[IntArray, IntArray]:
    """One text of each of n clusters, systems in turn: both numbers, (draws, n)."""
    cluster = rng.permuted(np.tile(np.arange(clusters), (draws, 1)), axis=1)[:, :n]
    system_order = rng.permuted(np.tile(np.arange(systems), (draws, 1)), axis=1)
    return cluster, system_order[:, np.arange(n) % systems]


# ---- the mean of all texts
# ---------------------------------------------------------------------


def regression(
    y: FloatArray,
    f: FloatArray,
    everything: float,
    total: int,
    strata: IntArray | None = None,
) -> tuple[FloatArray, FloatArray, int]:
    """Mean, standard error and df of each draw, with the judge's scores f.

    As `rubricnb.mean_with_labels` for texts drawn singly; `strata` are centred within.
    """
    n = y.shape[1]
    slope, residuals, ss_f = fitted(y, f, strata)
    varies = ss_f > 0
    df = n - (1 if strata is None else int(strata.max()) + 1) - 1
    mean_gap = everything - f.mean(axis=1)
    # Var = σ² ((1 − n/N) / n + (F̄ − f̄)² / Σ(f − f̄)²), of a regression estimator
    leverage = np.where(varies, mean_gap**2 / np.where(varies, ss_f, 1), 0)
    variance = (
        (residuals**2).sum(axis=1) / (df + ~varies) * ((1 - n / total) / n + leverage)
    )
    return y.mean(axis=1) + slope * mean_gap, np.sqrt(variance), df


def fitted(
    y: FloatArray, f: FloatArray, strata: IntArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slope of a draw's labels on its scores, the labels' rest, Σ of squares of f.

    The last is 0, and the slope too, where scores do not vary.
    """
    centred_y, centred_f = centred(y, strata), centred(f, strata)
    ss_f = (centred_f**2).sum(axis=1)
    ss_f = np.where(ss_f > 1e-12 * y.shape[1], ss_f, 0.0)
    slope = (centred_f * centred_y).sum(axis=1) / np.where(ss_f > 0, ss_f, np.inf)
    return slope, centred_y - slope[:, None] * centred_f, ss_f


def alone(
    y: FloatArray, total: int, strata: IntArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """The same from the labels only."""
    n = y.shape[1]
    df = n - (1 if strata is None else int(strata.max()) + 1)
    # Variance of a mean drawn without replacement: s² (1 − n/N) / n.
    variance = (centred(y, strata) ** 2).sum(axis=1) / df * (1 - n / total) / n
    return y.mean(axis=1), np.sqrt(variance), df


def centred(x: FloatArray, strata: IntArray | None) -> FloatArray:
    """Each draw about its mean, or about the means of its strata (draws, n)."""
    if strata is None:
        return np.asarray(x - x.mean(axis=1, keepdims=True))
    draws, n_strata = len(x), int(strata.max()) + 1
    stratum_of_label = (strata + np.arange(draws)[:, None] * n_strata).ravel()
    n_labels = np.bincount(stratum_of_label, minlength=draws * n_strata)
    sums = np.bincount(stratum_of_label, weights=x.ravel(), minlength=draws * n_strata)
    return np.asarray(
        x - (sums / np.maximum(n_labels, 1))[stratum_of_label].reshape(x.shape)
    )


def whole_clusters(
    y: FloatArray, f: FloatArray, everything: float, clusters: int
) -> tuple[FloatArray, FloatArray, int]:
    """The same for clusters labelled whole: y and f (draws, clusters, systems)."""
    draws, g, m = y.shape  # g clusters of m texts
    flat_y, flat_f = y.reshape(draws, -1), f.reshape(draws, -1)
    slope, residuals, _ = fitted(flat_y, flat_f)
    # Var = (1 − g/G) · g/(g − 2) · Σ e² / (g m)², where e sums a cluster's residuals.
    # The 2 counts the mean and the slope.
    errors = residuals.reshape(y.shape).sum(axis=2)
    variance = (1 - g / clusters) * g / (g - 2) * (errors**2).sum(axis=1) / (g * m) ** 2
    mean = flat_y.mean(axis=1) + slope * (everything - flat_f.mean(axis=1))
    return mean, np.sqrt(variance), g - 1


def covered(found: tuple[FloatArray, FloatArray, int], truth: float) -> float:
    """Share of the draws whose 95 % interval holds the truth."""
    mean, se, df = found
    return float(
        (np.abs(mean - truth) <= special.stdtrit(df, 0.975) * se + 1e-12).mean()
    )


def squared(estimates: FloatArray, truth: float) -> float:
    """Mean squared error of the draws."""
    return float(((estimates - truth) ** 2).mean())


def at_random(
    cell: Cell, rng: np.random.Generator, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """Texts drawn singly: the judge's gain, other estimators, an ignorant judge."""
    y, f = cell.human.ravel(), cell.score.ravel()
    truth, mean_score, total = float(y.mean()), float(f.mean()), len(y)
    rows = []
    for n in SIZES:
        drawn = chosen(rng, total, n, draws)
        drawn_y, drawn_f = y[drawn], f[drawn]
        labels_only = alone(drawn_y, total)
        with_judge = regression(drawn_y, drawn_f, mean_score, total)
        with_shuffled = regression(
            drawn_y, f[chosen(rng, total, n, draws)], mean_score, total
        )
        mse_labels = squared(labels_only[0], truth)
        slope_one = drawn_y.mean(axis=1) + mean_score - drawn_f.mean(axis=1)
        rows.append(
            cell.names
            | {
                "n_labels": n,
                "gain": mse_labels / squared(with_judge[0], truth),
                "coverage": covered(with_judge, truth),
                "coverage_alone": covered(labels_only, truth),
                "half_width": float(
                    special.stdtrit(n - 2, 0.975) * with_judge[1].mean()
                ),
                "half_width_alone": float(
                    special.stdtrit(n - 1, 0.975) * labels_only[1].mean()
                ),
                "gain_slope_one": mse_labels / squared(slope_one, truth),
                "gain_clipped": mse_labels
                / squared(clipped(drawn_y, drawn_f, f), truth),
                "gain_worthless": mse_labels / squared(with_shuffled[0], truth),
                "coverage_worthless": covered(with_shuffled, truth),
            }
        )
    return rows


def clipped(y: FloatArray, f: FloatArray, everything: FloatArray) -> FloatArray:
    """Prediction-powered inference as ppi-python tunes it: λ in [0, 1]."""
    n, n_rest = y.shape[1], len(everything) - y.shape[1]
    # λ = cov(y, f) / ((1 + n/N) var f) has the least variance, n labels and N others.
    covariance = (centred(y, None) * centred(f, None)).mean(axis=1)
    slope = np.clip(covariance / ((1 + n / n_rest) * everything.var(ddof=1)), 0, 1)
    mean_of_rest = (everything.sum() - f.sum(axis=1)) / n_rest
    return np.asarray(y.mean(axis=1) + slope * (mean_of_rest - f.mean(axis=1)))


def by_plan(
    cell: Cell, rng: np.random.Generator, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """Three ways to choose as many texts, each with and without the judge.

    ``worth`` is how many labels drawn at random, without a judge, are as precise as
    one.
    """
    y, f = cell.human, cell.score
    clusters, systems = y.shape
    truth, mean_score, total = float(y.mean()), float(f.mean()), y.size

    def row(
        plan: str, about: int, n: int, with_judge: Any, labels_only: Any
    ) -> dict[str, Any]:
        variance_at_random = y.var(ddof=1) * (1 - n / total) / n
        mse_judge = squared(with_judge[0], truth)
        mse_labels = squared(labels_only[0], truth)
        return cell.names | {
            "plan": plan,
            "about": about,
            "n_labels": n,
            "gain": mse_labels / mse_judge,
            "worth": variance_at_random / mse_judge,
            "worth_alone": variance_at_random / mse_labels,
            "coverage": covered(with_judge, truth),
            "coverage_alone": covered(labels_only, truth),
        }

    rows = []
    for about in PLANNED:
        # Two labels of every system at least, or the package does not see the rotation.
        n = max(2, min(round(about / systems), clusters // systems)) * systems
        drawn = chosen(rng, total, n, draws)
        drawn_y, drawn_f = y.ravel()[drawn], f.ravel()[drawn]
        with_judge = regression(drawn_y, drawn_f, mean_score, total)
        labels_only = alone(drawn_y, total)
        rows.append(row("at random", about, n, with_judge, labels_only))
        cluster, system = rotated(rng, clusters, systems, n, draws)
        drawn_y, drawn_f = y[cluster, system], f[cluster, system]
        with_judge = regression(drawn_y, drawn_f, mean_score, total, system)
        rows.append(
            row("one per prompt", about, n, with_judge, alone(drawn_y, total, system))
        )
        n_whole = max(3, round(about / systems))
        whole = chosen(rng, clusters, n_whole, draws)
        with_judge = whole_clusters(y[whole], f[whole], mean_score, clusters)
        labels_only = alone(y[whole].mean(axis=2), clusters)
        plan_row = row(
            "whole articles", about, n_whole * systems, with_judge, labels_only
        )
        flat_pair = y[whole].reshape(draws, -1), f[whole].reshape(draws, -1)
        taken_singly = regression(*flat_pair, mean_score, total)
        rows.append(plan_row | {"coverage_ignored": covered(taken_singly, truth)})
    return rows


# ---- a share above a cut
# -----------------------------------------------------------------------


def share(
    cell: Cell, rng: np.random.Generator, n: int = WORTH_AT, draws: int = DRAWS
) -> Any:
    """The share of highly rated texts: Rogan and Gladen's correction, and others.

    The cut is the whole number that parts people's ratings most evenly. Where the
    labels hold only one side, or the judge looks no better than chance in them, the
    correction is undefined and the labels' own share stands in for it.
    """
    y, f = cell.human.ravel(), cell.score.ravel()
    cut = min((2.0, 3.0, 4.0, 5.0), key=lambda c: abs((y >= c).mean() - 0.5))
    high, flag = (y >= cut).astype(float), (f >= cut).astype(float)
    truth, total = float(high.mean()), len(y)
    drawn = chosen(rng, total, n, draws)
    drawn_high, drawn_flag = high[drawn], flag[drawn]
    corrected, undefined = rogan_gladen(drawn_high, drawn_flag, float(flag.mean()))
    mse_labels = squared(drawn_high.mean(axis=1), truth)
    estimators = {
        "rogan_gladen": corrected,
        "flag": regression(drawn_high, drawn_flag, float(flag.mean()), total)[0],
        "score": regression(drawn_high, f[drawn], float(f.mean()), total)[0],
    }
    ratios = {
        f"gain_{name}": mse_labels / squared(estimate, truth)
        for name, estimate in estimators.items()
    }
    return cell.names | {
        "n_labels": n,
        "cut": cut,
        "share": truth,
        "sensitivity": float(flag[high == 1].mean()),
        "specificity": float(1 - flag[high == 0].mean()),
        "undefined": float(undefined.mean()),
        **ratios,
    }


def rogan_gladen(
    high: FloatArray, flagged: FloatArray, share_flagged: float
) -> tuple[FloatArray, np.ndarray]:
    """Correct a judge's share by the sensitivity and specificity of the labels."""
    n_high = high.sum(axis=1)
    n_low = high.shape[1] - n_high
    has_both = (n_high > 0) & (n_low > 0)
    # share_flagged = share · sensitivity + (1 − share) · false_positive_rate
    sensitivity = (high * flagged).sum(axis=1) / np.maximum(n_high, 1)
    false_positive_rate = ((1 - high) * flagged).sum(axis=1) / np.maximum(n_low, 1)
    youden = sensitivity - false_positive_rate
    defined = has_both & (youden > 1e-9)
    estimate = (share_flagged - false_positive_rate) / np.where(defined, youden, 1)
    return np.where(defined, np.clip(estimate, 0, 1), high.mean(axis=1)), ~defined


# ---- systems
# --------------------------------------------------------------------------------------


def composites(
    y: FloatArray, f: FloatArray, drawn: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Estimate systems' means and half widths from prompts drawn: (draws, systems, m).

    `y`, `f` are ratings and scores: (systems, prompts).
    """
    system, prompt = (index.ravel() for index in np.indices(y.shape))
    estimate, half_width = np.empty((2, *drawn.shape[:2]))
    for draw, prompts in enumerate(drawn):
        rated = np.full(y.shape, np.nan)
        np.put_along_axis(
            rated, prompts, np.take_along_axis(y, prompts, axis=1), axis=1
        )
        estimated = estimate_systems(system, prompt, f.ravel(), rated.ravel())
        estimate[draw], half_width[draw] = (
            estimated["estimate"],
            estimated["high"] - estimated["estimate"],
        )
    return estimate, half_width


def kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's τ-b along the last axis; 0 where one side is all equal."""
    i, j = np.triu_indices(x.shape[-1], 1)
    signs_x, signs_y = np.sign(x[..., i] - x[..., j]), np.sign(y[..., i] - y[..., j])
    # τ-b divides by the geometric mean of the two numbers of untied pairs.
    norm = np.sqrt((signs_x**2).sum(axis=-1) * (signs_y**2).sum(axis=-1))
    return np.asarray((signs_x * signs_y).sum(axis=-1) / np.where(norm > 0, norm, 1))


def systems(
    cell: Cell, rng: np.random.Generator, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """Few labels of each system: how near the means come, and their ranking."""
    y, f = cell.human.T, cell.score.T  # systems, prompts
    n_systems, n_prompts = y.shape
    truth, judge_means = y.mean(axis=1), f.mean(axis=1)
    rows = []
    for m in PER_SYSTEM:
        for same in (False, True):
            if same:
                drawn = np.repeat(
                    chosen(rng, n_prompts, m, draws)[:, None], n_systems, axis=1
                )
            else:
                drawn = chosen(rng, n_prompts, m, draws * n_systems).reshape(
                    draws, n_systems, m
                )
            drawn_y = y[np.arange(n_systems)[:, None], drawn]
            estimate, half_width = composites(y, f, drawn)
            label_means = drawn_y.mean(axis=2)
            se = drawn_y.std(axis=2, ddof=1) * np.sqrt((1 - m / n_prompts) / m)
            half_width_alone = special.stdtrit(m - 1, 0.975) * se
            is_covered = {
                "": np.abs(estimate - truth) <= half_width + 1e-12,
                "_alone": np.abs(label_means - truth) <= half_width_alone + 1e-12,
            }
            coverage = {
                f"coverage{suffix}": float(hits.mean())
                for suffix, hits in is_covered.items()
            }
            worst_coverage = {
                f"worst{suffix}": float(hits.mean(axis=0).min())
                for suffix, hits in is_covered.items()
            }
            rows.append(
                cell.names
                | {
                    "per_system": m,
                    "prompts": "the same" if same else "drawn for each",
                    "gain": ((label_means - truth) ** 2).mean()
                    / ((estimate - truth) ** 2).mean(),
                    **coverage,
                    **worst_coverage,
                    "tau": float(kendall(estimate, truth).mean()),
                    "tau_labels": float(kendall(label_means, truth).mean()),
                    "tau_judge": float(kendall(judge_means, truth)),
                }
            )
    return rows


# ---- what every cell is, and what its judge should gain
# -----------------------------------------


def described(cell: Cell) -> dict[str, Any]:
    """Size, spread, r, and how alike one cluster's ratings and leftovers are."""
    y, f = cell.human, cell.score
    _, residuals, _ = fitted(y.reshape(1, -1), f.reshape(1, -1))
    return cell.names | {
        "n_items": y.size,
        "n_clusters": len(y),
        "n_systems": y.shape[1],
        "r": float(np.corrcoef(y.ravel(), f.ravel())[0, 1]),
        "sd": float(y.std(ddof=1)),
        "mean": float(y.mean()),
        "judge_mean": float(f.mean()),
        "alike": alikeness(y),
        "alike_rest": alikeness(residuals.reshape(y.shape)),
    }


def alikeness(x: FloatArray) -> float:
    """Intraclass correlation of a matrix's rows, from one-way analysis of variance."""
    g, m = x.shape
    # ICC(1) = (MSB − MSW) / (MSB + (m − 1) MSW), for g rows of m values
    ms_between = m * x.mean(axis=1).var(ddof=1)
    ms_within = ((x - x.mean(axis=1, keepdims=True)) ** 2).sum() / (g * (m - 1))
    return float((ms_between - ms_within) / (ms_between + (m - 1) * ms_within))


def expected(of: list[Cell], n: int = WORTH_AT) -> dict[str, Any]:
    """How many labels alone one of n with a judge is worth: geometric mean of cells.

    (n − 3)/(n − 2) ÷ (1 − r²) of every cell, with a jackknife over clusters: each is
    left out of all cells that have it; the two sets are strata.
    """
    log_gains, changes_by_set = [], []
    for cell in of:
        sums = moments(cell.human, cell.score).sum(axis=1)
        total = sums.sum(axis=0)
        log_gains.append(log_gain(total))
        changes = pd.Series(log_gain(total - sums) - log_gains[-1], index=cell.clusters)
        changes_by_set.append((cell.dataset, changes))
    variance = 0.0
    for dataset in dict.fromkeys(name for name, _ in changes_by_set):
        table = pd.concat(
            [c for name, c in changes_by_set if name == dataset], axis=1
        ).fillna(0)
        change = table.sum(axis=1).to_numpy() / len(of)
        g = len(change)
        # The jackknife variance of g leave-one-out changes.
        variance += (g - 1) / g * ((change - change.mean()) ** 2).sum()
    mean_log = float(np.mean(log_gains)) + np.log((n - 3) / (n - 2))
    df = min(len(c) for _, c in changes_by_set) - 1
    half_width = stats.t.ppf(0.975, df) * np.sqrt(variance)
    ends = np.exp([mean_log, mean_log - half_width, mean_log + half_width])
    return dict(zip(("gain", "low", "high"), map(float, ends), strict=True))


def log_gain(sums: FloatArray) -> Any:
    """−log(1 − r²) from summed `moments`."""
    return -np.log1p(-(correlation(sums) ** 2))


def expectations(of: list[Cell]) -> pd.DataFrame:
    """`expected` of all cells, of each set and of each judge, by number of labels."""
    groups = {"all": [c for c in of if c.judge != FOUR]}
    groups |= {
        c.dataset: [d for d in groups["all"] if d.dataset == c.dataset] for c in of
    }
    groups |= {c.judge: [d for d in of if d.judge == c.judge] for c in of}
    rows = [
        {"group": name, "n_cells": len(members), "n_labels": n, **expected(members, n)}
        for name, members in groups.items()
        for n in SIZES
    ]
    return pd.DataFrame(rows)


def forms() -> pd.DataFrame:
    """How ChatGPT ranks HANNA's writers under four prompts: mean τ over criteria."""
    judgments = rb.load_recording("hanna-llm")
    is_used = (judgments["judge"] == "ChatGPT") & (
        judgments["replicate"].astype(int) == 1
    )
    scores = judgments[is_used].merge(
        judgments.rated[["item_id", "human"]], on="item_id"
    )
    scores["score"] = scores["score"].to_numpy(dtype=float, na_value=np.nan)
    rows = []
    for form, texts in scores.astype({"template": str}).groupby("template"):
        form_cells = cells(
            texts.assign(judge=form, dataset="HANNA")[
                [
                    "judge",
                    "dataset",
                    "criterion",
                    "cluster_id",
                    "candidate",
                    "score",
                    "human",
                ]
            ].astype({"criterion": str, "cluster_id": str, "candidate": str})
        )
        clusters = sorted({name for cell in form_cells for name in cell.clusters})
        taus = np.array(
            [_mean_tau(form_cells, without=name) for name in ("", *clusters)]
        )
        rows.append(
            {"form": form, **jackknife_row(taus, "tau"), "n_prompts": len(clusters)}
        )
    return pd.DataFrame(rows)


def _mean_tau(form_cells: list[Cell], without: str = "") -> float:
    """Mean over cells of τ between the judge's means of the systems and people's."""
    taus = []
    for cell in form_cells:
        is_kept = np.array(cell.clusters) != without
        means = cell.score[is_kept].mean(axis=0), cell.human[is_kept].mean(axis=0)
        taus.append(stats.kendalltau(*means).statistic)
    return float(np.mean(taus))


def compute(
    draws: int = DRAWS, of: list[Cell] | None = None
) -> dict[str, pd.DataFrame]:
    """All tables of the chapter by file; each cell and table has its own stream."""
    extra_tables: dict[str, pd.DataFrame] = {}
    if of is None:
        scores = loaded()
        of, extra_tables = (
            cells(scores),
            {"labels_forms": forms(), "labels_lost": losses(scores)},
        )

    def stream(cell: Cell, table: int) -> np.random.Generator:
        name = "/".join(cell.names.values()).encode()
        return np.random.default_rng([table, *name])

    def each(function: Any, table: int) -> pd.DataFrame:
        results = [function(cell, stream(cell, table), draws=draws) for cell in of]
        return pd.DataFrame(
            [
                row
                for result in results
                for row in (result if type(result) is list else [result])
            ]
        )

    return {
        "labels_cells": pd.DataFrame(map(described, of)),
        "labels_expected": expectations(of),
        "labels_random": each(at_random, 0),
        "labels_plans": each(by_plan, 1),
        "labels_share": each(share, 2),
        "labels_systems": each(systems, 3),
    } | extra_tables


if __name__ == "__main__":
    write_tables(compute())
