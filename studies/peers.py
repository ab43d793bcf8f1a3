"""Statistics that a user would pick instead: ``python -m studies.peers``.

Packages of the trade beside ours, on simulated studies whose truth is known: tests of
position where texts share prompts, pass rates corrected with few labels, and agreement
where ratings are missing or repeated. The packages are pinned in
``requirements-peers.txt`` and installed in an environment of their own
(``make test-peers``), so they are imported when they are run. What is written is
``results/recordings/peers_*.csv``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binomtest

import rubricnb as rb
from studies.recording import write_tables

Array = NDArray[np.float64]
STUDIES = 200
PROMPTS, TEXTS = 12, 5  # texts of each prompt
RESAMPLES = 400  # of each bootstrap, fewer than by default, to save time
SHARED = 0.8  # log odds: how far prompts differ in what their order does
EFFECT = 0.6  # log odds: a preference for the first option
LABELS = (20, 50)
UNLABELLED = 1_000
LEVELS = [1, 2, 3, 4, 5]
CONDITIONS = {
    "no preference, own prompts": (0.0, 0.0),
    "no preference, shared prompts": (SHARED, 0.0),
    "preference, shared prompts": (SHARED, EFFECT),
}
JUDGES = {"agrees with 90 %": 0.90, "agrees with 98 %": 0.98}


def picks(rng: np.random.Generator, shared: float, effect: float) -> Array:
    """Draw whether the first option shown is chosen: prompts × texts × two orders.

    A text's own quality favours one option, whichever is first. `effect` favours the
    first option of all prompts, and a draw with standard deviation `shared` that of
    one prompt: without an effect it is as often the last one.

    Examples
    --------
    >>> float(picks(np.random.default_rng(1), 0, 50).mean())
    1.0
    """
    quality = rng.normal(0, 1, (PROMPTS, TEXTS, 1)) * [1, -1]
    lean = effect + rng.normal(0, shared, (PROMPTS, 1, 1))
    return (rng.random(quality.shape) < expit(quality + lean)).astype(float)


def ours_position(first: Array) -> bool:
    """Test with `rubricnb.position_bias`, prompts as clusters."""
    prompt, text, order = np.indices(first.shape).reshape(3, -1)
    frame = pd.DataFrame(
        {
            "item_id": [f"{p}-{t}" for p, t in zip(prompt, text, strict=True)],
            "cluster_id": prompt.astype(str),
            "design": "balanced",
            "ordering_index": order + 1,
            "ordering": np.array(["1-2", "2-1"])[order],
            "score": np.where(first.ravel() == 1, order + 1, 2 - order),
        }
    )
    return bool(rb.position_bias(frame)["p_within"][0] < 0.05)


def evalaudit_position(first: Array) -> bool:
    """Test with evalaudit: pairs judged in both orders."""
    shown = np.array([["x", "y"], ["y", "x"]])
    rows = [
        (f"{p}-{t}", *shown[order], shown[order][0 if first[p, t, order] else 1])
        for p, t, order in np.ndindex(*first.shape)
    ]
    names = ["pair_id", "option_a", "option_b", "winner"]
    found = import_module("evalaudit").position_bias(pd.DataFrame(rows, columns=names))
    return bool(found.p_value < 0.05)


def judgecal_position(first: Array) -> bool:
    """Test with judgecal's probe: the share of first picks, items as clusters."""
    core = import_module("judgecal.core")
    probes = import_module("judgecal.probes.position")
    judged = [
        core.Judgment(
            custom_id=f"{p}-{t}-{order}",
            verdict="first" if first[p, t, order] else "second",
            raw_text=None,
            meta={
                "probe": "position",
                "condition": ("orig", "swap")[order],
                "item_id": f"{p}-{t}",
                "repeat": 0,
                "first_is_a": order == 0,
            },
        )
        for p, t, order in np.ndindex(*first.shape)
    ]
    result = probes.PositionProbe().analyze(
        judged, probes.ProbeConfig(n_boot=RESAMPLES)
    )
    share = next(e for e in result.estimates if e.name == "first_pick_rate")
    return bool(share.p_value < 0.05)


def judge_kappa_position(first: Array) -> bool:
    """Test with judge-kappa: whether the order effect's interval leaves out 0."""
    positional = import_module("judge_kappa.bias.positional")
    reports = [
        positional.PositionalBiasReport(
            case_id=f"{p}-{t}",
            positional_flip=bool(forward and backward),
            score_instability=0.0,
            control_scores=(forward, 1 - backward),
            treatment_scores=(1 - forward, backward),
        )
        for p, t in np.ndindex(*first.shape[:2])
        for forward, backward in [first[p, t]]
    ]
    estimate = positional.PositionalBiasDetector.estimate_order_effect
    found = estimate(reports, n_bootstrap=RESAMPLES // 4)
    return bool(found.ci_low > 0 or found.ci_high < 0)


POSITION: dict[str, Callable[[Array], bool]] = {
    "rubricnb": ours_position,
    "evalaudit": evalaudit_position,
    "judgecal": judgecal_position,
    "judge-kappa": judge_kappa_position,
}


def position(studies: int = STUDIES) -> pd.DataFrame:
    """Count how often each test finds a preference, under each of `CONDITIONS`."""
    return pd.DataFrame(
        _share(package, condition, [test(first) for first in drawn])
        for condition, (shared, effect) in CONDITIONS.items()
        for drawn in [
            [picks(np.random.default_rng(s), shared, effect) for s in range(studies)]
        ]
        for package, test in POSITION.items()
        if is_installed(package)
    )


Flags = NDArray[np.bool_]
Labelled = tuple[Array, Array, Flags]
Bounds = tuple[float, float]


def labelled(rng: np.random.Generator, n_labels: int, right: float) -> Labelled:
    """Draw pass or fail of all texts, the judge's verdicts, and who is labelled.

    Seven of ten texts pass. The judge gives each its true verdict with probability
    `right`.
    """
    truth = (rng.random(n_labels + UNLABELLED) < 0.7).astype(float)
    judge = np.where(rng.random(truth.size) < right, truth, 1 - truth)
    return truth, judge, np.arange(truth.size) < n_labels


def ours_rate(truth: Array, judge: Array, has_label: Flags) -> Bounds:
    """Estimate with `rubricnb.mean_with_labels`."""
    names = [f"text-{number}" for number in range(truth.size)]
    judged = pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": names,
            "design": "fixed",
            "ordering_index": 1,
            "ordering": "0-1",
            "score": judge,
        }
    )
    labels = pd.DataFrame({"item_id": names, "human": truth})[has_label]
    found = rb.mean_with_labels(judged, labels).iloc[0]
    return float(found["low"]), float(found["high"])


def judgy_rate(truth: Array, judge: Array, has_label: Flags) -> Bounds:
    """Estimate with judgy."""
    import_module("numpy.random").seed(1)  # judgy draws from numpy's global state
    sides = truth[has_label], judge[has_label], judge[~has_label]
    try:
        _, low, high = import_module("judgy").estimate_success_rate(*sides, RESAMPLES)
    except (ValueError, RuntimeError):  # labels of one kind, or a judge below chance
        return np.nan, np.nan
    return float(low), float(high)


def ppi_rate(truth: Array, judge: Array, has_label: Flags) -> Bounds:
    """Estimate with ppi-python, its slope fitted as by default."""
    sides = truth[has_label], judge[has_label], judge[~has_label]
    low, high = import_module("ppi_py").ppi_mean_ci(*sides, alpha=0.05)
    return float(low[0]), float(high[0])


RATES: dict[str, Callable[[Array, Array, Flags], Bounds]] = {
    "rubricnb": ours_rate,
    "judgy": judgy_rate,
    "ppi-python": ppi_rate,
}


def rates(studies: int = STUDIES) -> pd.DataFrame:
    """Count how often each 95 % interval holds the pass rate of all texts.

    Coverage is that of the studies with an interval; ``none`` is the share without
    one, ``no_width`` the share in which both bounds are equal, ``same`` the share in
    which the judge and every label agree.
    """
    rows = []
    for judge, right in JUDGES.items():
        for n_labels in LABELS:
            seeds = map(np.random.default_rng, range(studies))
            drawn = [labelled(rng, n_labels, right) for rng in seeds]
            for package, estimate in RATES.items():
                if is_installed(package):
                    rows.append(_coverage(package, judge, n_labels, drawn, estimate))
    return pd.DataFrame(rows)


def _coverage(
    package: str,
    judge: str,
    n_labels: int,
    drawn: list[Labelled],
    estimate: Callable[..., Bounds],
) -> dict[str, object]:
    low, high = np.array([estimate(*study) for study in drawn]).T
    means = np.array([truth.mean() for truth, _, _ in drawn])
    same = [(t[has] == j[has]).all() for t, j, has in drawn]
    has_interval = np.isfinite(low) & np.isfinite(high)
    held = (low <= means) & (means <= high)
    row = _share(package, judge, held[has_interval])
    return row | {
        "n_labels": n_labels,
        "none": 1 - has_interval.mean(),
        "no_width": (high - low < 1e-12)[has_interval].mean(),
        "width": np.median((high - low)[has_interval]),
        "same": np.mean(same),
    }


def reads(rng: np.random.Generator) -> Array:
    """Draw 40 texts × 4 orders × 10 reads: quality and noise have variance 1 each."""
    return rng.normal(0, 1, (40, 1, 1)) + rng.normal(0, 1, (40, 4, 10))


def read_frame(drawn: Array) -> pd.DataFrame:
    """Lay reads out as judgments, one row each."""
    text, order, read = np.indices(drawn.shape).reshape(3, -1)
    orders = np.array(["1-2-3-4", "2-3-4-1", "3-4-1-2", "4-1-2-3"])
    return pd.DataFrame(
        {
            "item_id": [f"text-{number}" for number in text],
            "cluster_id": [f"text-{number}" for number in text],
            "design": "balanced",
            "ordering_index": order + 1,
            "ordering": orders[order],
            "replicate": read + 1,
            "score": drawn.ravel(),
        }
    )


def single_reads() -> pd.DataFrame:
    """Reliability of one read, truly .5, from ten reads under each of four orders."""
    values: dict[str, list[float]] = {"rubricnb": [], "pingouin": []}
    for seed in range(STUDIES):
        frame = read_frame(reads(np.random.default_rng(seed)))
        values["rubricnb"].append(
            1 / (1 + float(rb.variance_components(frame)["phi"][0]))
        )
        if is_installed("pingouin"):
            table = import_module("pingouin").intraclass_corr(
                frame, "item_id", "ordering", "score"
            )
            values["pingouin"].append(
                float(table.set_index("Type").loc["ICC(C,1)", "ICC"])
            )
    what = "reliability of one read, ten reads an order"
    return _means(values, what, 0.5)


def unread(rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw ratings by a person and by a judge of 200 texts; NaN where it refused.

    The judge is right, or wrong by one or two levels, half of the time each; it
    refuses eight of ten texts that it would get wrong and one of ten others.
    """
    human = rng.integers(1, 6, 200).astype(float)
    off = rng.choice([-2.0, -1, 1, 2], 200) * (rng.random(200) < 0.5)
    judge = (human + off - 1) % 5 + 1
    refused = rng.random(200) < np.where(off == 0, 0.1, 0.8)
    return human, np.where(refused, np.nan, judge)


def kappas() -> pd.DataFrame:
    """Kappa of a judge that refuses what it would get wrong."""
    names = ["all texts, refusals counted as wrong", "scikit-learn", "statsmodels"]
    values: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(STUDIES):
        human, judge = unread(np.random.default_rng(seed))
        counted = np.where(np.isnan(judge), 0, judge)
        values[names[0]].append(nominal_kappa(human, counted))
        if is_installed("scikit-learn"):
            score = import_module("sklearn.metrics").cohen_kappa_score
            values["scikit-learn"].append(
                float(score(human.astype(int), counted.astype(int), labels=LEVELS))
            )
        if is_installed("statsmodels"):
            raters = import_module("statsmodels.stats.inter_rater")
            table, _ = raters.to_table(np.column_stack([human, judge]))
            values["statsmodels"].append(float(raters.cohens_kappa(table).kappa))
    return _means(values, "kappa, a judge that refuses", np.nan)


def nominal_kappa(a: Array, b: Array) -> float:
    """Return Cohen's kappa of two ratings, without weights."""
    levels = np.unique([a, b])
    shares = [(a == level).mean() * (b == level).mean() for level in levels]
    return float(((a == b).mean() - sum(shares)) / (1 - sum(shares)))


def agreement() -> pd.DataFrame:
    """Return ICC and kappa of each package, beside the truth."""
    return pd.concat([single_reads(), kappas()], ignore_index=True)


def _means(values: dict[str, list[float]], what: str, truth: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "package": package,
            "version": _version(package),
            "what": what,
            "truth": truth,
            "mean": np.mean(found),
            "p5": np.quantile(found, 0.05),
            "p95": np.quantile(found, 0.95),
            "n_studies": len(found),
        }
        for package, found in values.items()
        if found
    )


def _share(
    package: str, condition: str, found: list[bool] | Flags
) -> dict[str, object]:
    n_found, n = int(np.sum(found)), len(found)
    row = {"package": package, "version": _version(package), "condition": condition}
    if not n:
        return row | {"share": np.nan, "low": np.nan, "high": np.nan, "n_studies": 0}
    low, high = binomtest(n_found, n).proportion_ci(method="wilson")
    return row | {"share": n_found / n, "low": low, "high": high, "n_studies": n}


def _version(package: str) -> str:
    return version(package) if package != "rubricnb" and is_installed(package) else ""


def is_installed(package: str) -> bool:
    """Tell whether a package is in this environment."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "position": position,
    "rates": rates,
    "agreement": agreement,
}


if __name__ == "__main__":
    missing = [name for name in [*POSITION, *RATES] if not is_installed(name)]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; make test-peers says how")
    warnings.simplefilter("ignore")
    for name, compute in TABLES.items():
        write_tables({name: compute()}, "peers_")
