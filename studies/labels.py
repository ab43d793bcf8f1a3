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
from rubricnb.statistics.intervals import correlation, moments
from rubricnb.statistics.labels import estimate_systems
from rubricnb.statistics.losses import lost_scores
from rubricnb.statistics.reads import FloatArray, IntArray
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
    """One row a judged item that people rated: judge,
    dataset, and what `cells` needs.
    """
    parts = []
    for name in dict.fromkeys(name for name, _ in JUDGES):
        judgments = rb.load_recording(name)
        judge = (
            judgments["judge"]
            .astype(str)
            .map(lambda j, name=name: JUDGES.get((name, j)))
        )
        kept = judge.notna() & (judgments["replicate"].astype(int) == 1)
        part = pd.DataFrame(judgments[kept]).assign(judge=judge[kept])
        part["score"] = part["score"].to_numpy(dtype=float, na_value=np.nan)
        part["dataset"] = "HANNA" if name == "hanna-llm" else "SummEval"
        text = ["judge", "dataset", "criterion", "cluster_id", "candidate", "item_id"]
        one = part[part["template"].astype(str).isin(FORMS)][[*text, "score"]]
        if name == "hanna-llm":
            mean = part.groupby(text, sort=False, as_index=False, observed=True)[
                "score"
            ].mean()
            one = pd.concat([one, mean.assign(judge=FOUR)])
        rated = judgments.rated[["item_id", "human"]]
        parts.append(one.merge(rated, on="item_id", validate="m:1"))
    return pd.concat(parts, ignore_index=True)


def cells(scores: pd.DataFrame) -> list[Cell]:
    """Put every judge and criterion into matrices;
    a cluster that lacks a score is left out.
    """
    found = []
    for (judge, dataset, criterion), part in scores.groupby(
        ["judge", "dataset", "criterion"], sort=False
    ):
        if part.duplicated(["cluster_id", "candidate"]).any():
            raise ValueError(
                f"{judge}, {criterion}: a text appears twice, so draws would repeat it"
            )
        wide = part.pivot(
            index="cluster_id", columns="candidate", values=["human", "score"]
        )
        wide = wide.dropna()
        if len(wide) < 0.9 * part["cluster_id"].nunique():
            raise ValueError(
                f"{judge}, {criterion}: over a tenth of the clusters lack a score"
            )
        human, score = wide["human"].to_numpy(), wide["score"].to_numpy()
        found.append(
            Cell(judge, dataset, criterion, human, score, tuple(map(str, wide.index)))
        )
    return found


def losses(scores: pd.DataFrame) -> pd.DataFrame:
    """Count the rated texts without a score,
    for which `cells` leaves out a whole cluster.

    ``lost`` of ``asked``; ``lost_mean`` and ``kept_mean``: how people rate them.
    """
    rows = []
    keys = ["judge", "dataset", "criterion"]
    for names, part in scores.groupby(keys, sort=False):
        human, score = (part[name].to_numpy(np.float64) for name in ("human", "score"))
        why = lost_scores(score, human, ("judge", "people"))
        rows.append(
            {**dict(zip(keys, names, strict=True)), **loss_row(len(part), *why)}
        )
    return pd.DataFrame(rows)


# ---- draws
# -------------------------------------------------------------------------------------


def chosen(rng: np.random.Generator, total: int, n: int, draws: int) -> IntArray:
    """Draw n of `total` without replacement, many times: (draws, n).

    In a random order, the same on every processor: that of `argpartition` is not.
    """
    step = max(1, int(BLOCK // total))
    parts = [
        rng.random((min(step, draws - start), total)).argsort(axis=1)[:, :n]
        for start in range(0, draws, step)
    ]
    return np.concatenate(parts)


def rotated(
    rng: np.random.Generator, clusters: int, systems: int, n: int, draws: int
) -> tuple[IntArray, IntArray]:
    """One text of each of n clusters, the systems in turn:
    clusters and systems, (draws, n).
    """
    order = rng.permuted(np.tile(np.arange(clusters), (draws, 1)), axis=1)[:, :n]
    turn = rng.permuted(np.tile(np.arange(systems), (draws, 1)), axis=1)
    return order, turn[:, np.arange(n) % systems]


# ---- the mean of all texts
# ---------------------------------------------------------------------


def regression(
    y: FloatArray,
    f: FloatArray,
    everything: float,
    total: int,
    strata: IntArray | None = None,
) -> tuple[FloatArray, FloatArray, int]:
    """Mean, standard error and degrees of freedom of each draw,
    with the judge's scores f.

    As `rubricnb.mean_with_labels` for texts drawn singly; `strata` are centred within.
    """
    n = y.shape[1]
    slope, error, spread = fitted(y, f, strata)
    varies = spread > 0
    df = n - (1 if strata is None else int(strata.max()) + 1) - 1
    further = everything - f.mean(axis=1)
    away = np.where(varies, further**2 / np.where(varies, spread, 1), 0)
    variance = (error**2).sum(axis=1) / (df + ~varies) * ((1 - n / total) / n + away)
    return y.mean(axis=1) + slope * further, np.sqrt(variance), df


def fitted(
    y: FloatArray, f: FloatArray, strata: IntArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slope of each draw's labels on its scores, what is left of the labels,
    and Σ of squares of f.

    The last is 0, and the slope too, where scores do not vary.
    """
    own_y, own_f = centred(y, strata), centred(f, strata)
    spread = (own_f**2).sum(axis=1)
    spread = np.where(spread > 1e-12 * y.shape[1], spread, 0.0)
    slope = (own_f * own_y).sum(axis=1) / np.where(spread > 0, spread, np.inf)
    return slope, own_y - slope[:, None] * own_f, spread


def alone(
    y: FloatArray, total: int, strata: IntArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """The same from the labels only."""
    n = y.shape[1]
    df = n - (1 if strata is None else int(strata.max()) + 1)
    variance = (centred(y, strata) ** 2).sum(axis=1) / df * (1 - n / total) / n
    return y.mean(axis=1), np.sqrt(variance), df


def centred(x: FloatArray, strata: IntArray | None) -> FloatArray:
    """Each draw about its mean, or about the means of its strata (draws, n)."""
    if strata is None:
        return np.asarray(x - x.mean(axis=1, keepdims=True))
    draws, systems = len(x), int(strata.max()) + 1
    place = (strata + np.arange(draws)[:, None] * systems).ravel()
    size = np.bincount(place, minlength=draws * systems)
    sums = np.bincount(place, weights=x.ravel(), minlength=draws * systems)
    return np.asarray(x - (sums / np.maximum(size, 1))[place].reshape(x.shape))


def whole_clusters(
    y: FloatArray, f: FloatArray, everything: float, clusters: int
) -> tuple[FloatArray, FloatArray, int]:
    """The same where clusters are labelled whole:
    y and f are (draws, clusters, systems).
    """
    draws, g, m = y.shape
    flat, scores = y.reshape(draws, -1), f.reshape(draws, -1)
    slope, rest, _ = fitted(flat, scores)
    error = rest.reshape(y.shape).sum(axis=2)
    variance = (1 - g / clusters) * g / (g - 2) * (error**2).sum(axis=1) / (g * m) ** 2
    mean = flat.mean(axis=1) + slope * (everything - scores.mean(axis=1))
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
    """Texts drawn singly: the judge's gain, other estimators,
    and a judge that knows nothing.
    """
    y, f = cell.human.ravel(), cell.score.ravel()
    truth, everything, total = float(y.mean()), float(f.mean()), len(y)
    rows = []
    for n in SIZES:
        drawn = chosen(rng, total, n, draws)
        mine, theirs = y[drawn], f[drawn]
        labels = alone(mine, total)
        judge = regression(mine, theirs, everything, total)
        shuffled = regression(mine, f[chosen(rng, total, n, draws)], everything, total)
        base = squared(labels[0], truth)
        plain = mine.mean(axis=1) + everything - theirs.mean(axis=1)
        rows.append(
            cell.names
            | {
                "n_labels": n,
                "gain": base / squared(judge[0], truth),
                "coverage": covered(judge, truth),
                "coverage_alone": covered(labels, truth),
                "half_width": float(special.stdtrit(n - 2, 0.975) * judge[1].mean()),
                "half_width_alone": float(
                    special.stdtrit(n - 1, 0.975) * labels[1].mean()
                ),
                "gain_slope_one": base / squared(plain, truth),
                "gain_clipped": base / squared(clipped(mine, theirs, f), truth),
                "gain_worthless": base / squared(shuffled[0], truth),
                "coverage_worthless": covered(shuffled, truth),
            }
        )
    return rows


def clipped(y: FloatArray, f: FloatArray, everything: FloatArray) -> FloatArray:
    """Prediction-powered inference as ppi-python tunes it:
    variance over all, λ in [0, 1].
    """
    n, rest = y.shape[1], len(everything) - y.shape[1]
    both = (centred(y, None) * centred(f, None)).mean(axis=1)
    slope = np.clip(both / ((1 + n / rest) * everything.var(ddof=1)), 0, 1)
    others = (everything.sum() - f.sum(axis=1)) / rest
    return np.asarray(y.mean(axis=1) + slope * (others - f.mean(axis=1)))


def by_plan(
    cell: Cell, rng: np.random.Generator, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """Three ways to choose as many texts, each with and without the judge.

    ``worth`` is how many labels drawn at random, without a judge, are as precise as
    one.
    """
    y, f = cell.human, cell.score
    clusters, systems = y.shape
    truth, everything, total = float(y.mean()), float(f.mean()), y.size

    def row(plan: str, about: int, n: int, judge: Any, labels: Any) -> dict[str, Any]:
        single = y.var(ddof=1) * (1 - n / total) / n
        with_judge, without = squared(judge[0], truth), squared(labels[0], truth)
        return cell.names | {
            "plan": plan,
            "about": about,
            "n_labels": n,
            "gain": without / with_judge,
            "worth": single / with_judge,
            "worth_alone": single / without,
            "coverage": covered(judge, truth),
            "coverage_alone": covered(labels, truth),
        }

    rows = []
    for about in PLANNED:
        # Two labels of every system at least, or the package does not see the rotation.
        n = max(2, min(round(about / systems), clusters // systems)) * systems
        drawn = chosen(rng, total, n, draws)
        mine, theirs = y.ravel()[drawn], f.ravel()[drawn]
        judge, labels = regression(mine, theirs, everything, total), alone(mine, total)
        rows.append(row("at random", about, n, judge, labels))
        of, who = rotated(rng, clusters, systems, n, draws)
        mine, theirs = y[of, who], f[of, who]
        judge = regression(mine, theirs, everything, total, who)
        rows.append(row("one per prompt", about, n, judge, alone(mine, total, who)))
        g = max(3, round(about / systems))
        of = chosen(rng, clusters, g, draws)
        judge = whole_clusters(y[of], f[of], everything, clusters)
        labels = alone(y[of].mean(axis=2), clusters)
        found = row("whole articles", about, g * systems, judge, labels)
        flat = y[of].reshape(draws, -1), f[of].reshape(draws, -1)
        ignored = regression(*flat, everything, total)
        rows.append(found | {"coverage_ignored": covered(ignored, truth)})
    return rows


# ---- a share above a cut
# -----------------------------------------------------------------------


def share(
    cell: Cell, rng: np.random.Generator, n: int = WORTH_AT, draws: int = DRAWS
) -> Any:
    """The share of texts with a high rating: Rogan and Gladen's correction,
    and the alternatives.

    The cut is the whole number that parts people's ratings most evenly. Where the
    labels hold only one side, or the judge looks no better than chance in them, the
    correction is undefined and the labels' own share stands in for it.
    """
    y, f = cell.human.ravel(), cell.score.ravel()
    cut = min((2.0, 3.0, 4.0, 5.0), key=lambda c: abs((y >= c).mean() - 0.5))
    high, flag = (y >= cut).astype(float), (f >= cut).astype(float)
    truth, total = float(high.mean()), len(y)
    drawn = chosen(rng, total, n, draws)
    mine, flagged = high[drawn], flag[drawn]
    corrected, undefined = rogan_gladen(mine, flagged, float(flag.mean()))
    base = squared(mine.mean(axis=1), truth)
    estimators = {
        "rogan_gladen": corrected,
        "flag": regression(mine, flagged, float(flag.mean()), total)[0],
        "score": regression(mine, f[drawn], float(f.mean()), total)[0],
    }
    ratios = {
        f"gain_{name}": base / squared(x, truth) for name, x in estimators.items()
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
    """Correct a judge's share by the sensitivity
    and specificity that the labels show.
    """
    positive = high.sum(axis=1)
    negative = high.shape[1] - positive
    there = (positive > 0) & (negative > 0)
    sensitivity = (high * flagged).sum(axis=1) / np.maximum(positive, 1)
    false = ((1 - high) * flagged).sum(axis=1) / np.maximum(negative, 1)
    better = sensitivity - false
    defined = there & (better > 1e-9)
    estimate = (share_flagged - false) / np.where(defined, better, 1)
    return np.where(defined, np.clip(estimate, 0, 1), high.mean(axis=1)), ~defined


# ---- systems
# -----------------------------------------------------------------------------------


def composites(
    y: FloatArray, f: FloatArray, drawn: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Estimate systems' means and half widths from prompts drawn: (draws, systems, m).

    `y`, `f` are ratings and scores: (systems, prompts).
    """
    system, prompt = (of.ravel() for of in np.indices(y.shape))
    estimate, half = np.empty((2, *drawn.shape[:2]))
    for k, prompts in enumerate(drawn):
        rated = np.full(y.shape, np.nan)
        np.put_along_axis(
            rated, prompts, np.take_along_axis(y, prompts, axis=1), axis=1
        )
        found = estimate_systems(system, prompt, f.ravel(), rated.ravel())
        estimate[k], half[k] = found["estimate"], found["high"] - found["estimate"]
    return estimate, half


def kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's τ-b along the last axis; 0 where one side is all equal."""
    i, j = np.triu_indices(x.shape[-1], 1)
    a, b = np.sign(x[..., i] - x[..., j]), np.sign(y[..., i] - y[..., j])
    size = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    return np.asarray((a * b).sum(axis=-1) / np.where(size > 0, size, 1))


def systems(
    cell: Cell, rng: np.random.Generator, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """Few labels of each system: how near the means come,
    and how well the systems are ranked.
    """
    y, f = cell.human.T, cell.score.T  # systems, prompts
    s, prompts = y.shape
    truth, judge = y.mean(axis=1), f.mean(axis=1)
    rows = []
    for m in PER_SYSTEM:
        for same in (False, True):
            if same:
                drawn = np.repeat(chosen(rng, prompts, m, draws)[:, None], s, axis=1)
            else:
                drawn = chosen(rng, prompts, m, draws * s).reshape(draws, s, m)
            mine = y[np.arange(s)[:, None], drawn]
            estimate, half = composites(y, f, drawn)
            labels = mine.mean(axis=2)
            own_se = mine.std(axis=2, ddof=1) * np.sqrt((1 - m / prompts) / m)
            half_alone = special.stdtrit(m - 1, 0.975) * own_se
            held = {
                "": np.abs(estimate - truth) <= half + 1e-12,
                "_alone": np.abs(labels - truth) <= half_alone + 1e-12,
            }
            per = {f"coverage{k}": float(h.mean()) for k, h in held.items()}
            worst = {f"worst{k}": float(h.mean(axis=0).min()) for k, h in held.items()}
            rows.append(
                cell.names
                | {
                    "per_system": m,
                    "prompts": "the same" if same else "drawn for each",
                    "gain": ((labels - truth) ** 2).mean()
                    / ((estimate - truth) ** 2).mean(),
                    **per,
                    **worst,
                    "tau": float(kendall(estimate, truth).mean()),
                    "tau_labels": float(kendall(labels, truth).mean()),
                    "tau_judge": float(kendall(judge, truth)),
                }
            )
    return rows


# ---- what every cell is, and what its judge should gain
# -----------------------------------------


def described(cell: Cell) -> dict[str, Any]:
    """Size, spread, r, and how alike one cluster's ratings and leftovers are."""
    y, f = cell.human, cell.score
    _, rest, _ = fitted(y.reshape(1, -1), f.reshape(1, -1))
    return cell.names | {
        "n_items": y.size,
        "n_clusters": len(y),
        "n_systems": y.shape[1],
        "r": float(np.corrcoef(y.ravel(), f.ravel())[0, 1]),
        "sd": float(y.std(ddof=1)),
        "mean": float(y.mean()),
        "judge_mean": float(f.mean()),
        "alike": alikeness(y),
        "alike_rest": alikeness(rest.reshape(y.shape)),
    }


def alikeness(x: FloatArray) -> float:
    """Intraclass correlation of the rows of a matrix,
    from one-way analysis of variance.
    """
    g, m = x.shape
    between = m * x.mean(axis=1).var(ddof=1)
    within = ((x - x.mean(axis=1, keepdims=True)) ** 2).sum() / (g * (m - 1))
    return float((between - within) / (between + (m - 1) * within))


def expected(of: list[Cell], n: int = WORTH_AT) -> dict[str, Any]:
    """How many labels without a judge one of n with it is worth:
    geometric mean of cells, interval.

    (n − 3)/(n − 2) ÷ (1 − r²) of every cell, with a jackknife over clusters: each is
    left out of all cells that have it; the two sets are strata.
    """
    logs, without = [], []
    for cell in of:
        sums = moments(cell.human, cell.score).sum(axis=1)
        total = sums.sum(axis=0)
        logs.append(log_gain(total))
        changes = pd.Series(log_gain(total - sums) - logs[-1], index=cell.clusters)
        without.append((cell.dataset, changes))
    variance = 0.0
    for dataset in dict.fromkeys(name for name, _ in without):
        table = pd.concat([c for name, c in without if name == dataset], axis=1).fillna(
            0
        )
        change = table.sum(axis=1).to_numpy() / len(of)
        g = len(change)
        variance += (g - 1) / g * ((change - change.mean()) ** 2).sum()
    middle = float(np.mean(logs)) + np.log((n - 3) / (n - 2))
    df = min(len(c) for _, c in without) - 1
    half = stats.t.ppf(0.975, df) * np.sqrt(variance)
    ends = np.exp([middle, middle - half, middle + half])
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
        {"group": name, "n_cells": len(part), "n_labels": n, **expected(part, n)}
        for name, part in groups.items()
        for n in SIZES
    ]
    return pd.DataFrame(rows)


def forms() -> pd.DataFrame:
    """How ChatGPT ranks HANNA's writers under each of four prompts:
    τ, mean over the criteria.
    """
    judgments = rb.load_recording("hanna-llm")
    kept = (judgments["judge"] == "ChatGPT") & (judgments["replicate"].astype(int) == 1)
    scores = judgments[kept].merge(judgments.rated[["item_id", "human"]], on="item_id")
    scores["score"] = scores["score"].to_numpy(dtype=float, na_value=np.nan)
    rows = []
    for form, part in scores.astype({"template": str}).groupby("template"):
        of = cells(
            part.assign(judge=form, dataset="HANNA")[
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
        names = sorted({name for cell in of for name in cell.clusters})
        taus = np.array([_mean_tau(of, without=name) for name in ("", *names)])
        rows.append(
            {"form": form, **jackknife_row(taus, "tau"), "n_prompts": len(names)}
        )
    return pd.DataFrame(rows)


def _mean_tau(of: list[Cell], without: str = "") -> float:
    """Mean over cells of τ between the judge's means of the systems and people's."""
    found = []
    for cell in of:
        kept = np.array(cell.clusters) != without
        means = cell.score[kept].mean(axis=0), cell.human[kept].mean(axis=0)
        found.append(stats.kendalltau(*means).statistic)
    return float(np.mean(found))


def compute(
    draws: int = DRAWS, of: list[Cell] | None = None
) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file.
    Every cell and table has a stream of its own.
    """
    more: dict[str, pd.DataFrame] = {}
    if of is None:
        scores = loaded()
        of, more = (
            cells(scores),
            {"labels_forms": forms(), "labels_lost": losses(scores)},
        )

    def stream(cell: Cell, table: int) -> np.random.Generator:
        name = "/".join(cell.names.values()).encode()
        return np.random.default_rng([table, *name])

    def each(function: Any, table: int) -> pd.DataFrame:
        rows = [function(cell, stream(cell, table), draws=draws) for cell in of]
        return pd.DataFrame(
            [r for part in rows for r in (part if type(part) is list else [part])]
        )

    return {
        "labels_cells": pd.DataFrame(map(described, of)),
        "labels_expected": expectations(of),
        "labels_random": each(at_random, 0),
        "labels_plans": each(by_plan, 1),
        "labels_share": each(share, 2),
        "labels_systems": each(systems, 3),
    } | more


if __name__ == "__main__":
    write_tables(compute())
