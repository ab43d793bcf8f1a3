"""Do the tests and intervals of this package, and the papers', do what they promise?

Studies without an effect, and with a planted one, are simulated and handed to the very
functions that the chapters use. How often a test rejects where there is nothing is its
size, how often an interval holds the planted value is its coverage. The tallies are
kept on disk piece by piece, so a study that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

import rubricnb
from rubricnb.auditing.halo import alike_and_chance, alike_sums

# The study runs the code it judges, so it goes behind the frames: that makes thousands
# of replications a matter of minutes.
from rubricnb.core.estimates.intervals import (
    MARGINS,
    bootstrap_weights,
    correlation,
    detectable,
    few_clusters,
    fisher_jackknife_t,
    jackknife,
    jackknife_se,
    jackknife_t,
    mean_t,
    moments,
    percentile_interval,
    t_estimate,
)
from rubricnb.core.estimates.losses import difference_bounds, lost_scores, open_sign
from rubricnb.core.estimates.reads import FloatArray, IntArray, Reads, by_cluster
from rubricnb.core.permutation import balanced, code
from rubricnb.core.results import results_folder
from rubricnb.corrections.advice import gain_interval
from rubricnb.corrections.error_budget import design_for, error_budget, with_left_out
from rubricnb.corrections.labels import estimate_systems, mean_row, needed_row
from rubricnb.corrections.raters import (
    judge_bias_row,
    p_below_epsilon,
    system_agreement_row,
)
from rubricnb.statistics.budget import permuting_row
from rubricnb.statistics.criterion import friedman, permutation_test
from rubricnb.statistics.human_agreement import papers_interval
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums
from rubricnb.statistics.placement import blocks, place
from rubricnb.statistics.position import (
    cluster_test,
    minimum_detectable_v,
    papers_test,
    position_shares,
)
from rubricnb.statistics.preference import log_preferences
from rubricnb.statistics.probabilities import position_preferences, sums_by_cell
from rubricnb.statistics.ranking import kendall_tau, pair_signs, paired_row
from rubricnb.statistics.ranks import leave_out_spearman, spearman
from rubricnb.statistics.variance import gain_of_averaging
from rubricnb.statistics.variation import components_row

PIECE = 100
PREFERENCE = (0.231, -0.044, -0.098, -0.098, 0.008)  # of a judge like GPT-OSS-20B in v2
_R = (0.470, 0.393)  # of two strategies, whose errors correlate by 0.8
_COMPONENTS = {"item": 0.6, "ordering": 0.1, "item_ordering": 0.3, "reask": 0.2}
_COLUMNS = ["piece", "kind", "quantity", "method", "truth", "n", "sum", "squares"]
_KEYS = ["kind", "quantity", "method", "truth"]
# kind, quantity, method, truth, value
Found = Iterator[tuple[str, str, str, float, float]]


def validity(
    cells: Sequence[str] | None = None,
    replications: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> pd.DataFrame:
    """Simulate studies and tally how often tests reject and intervals hold the truth.

    Parameters
    ----------
    cells
        Names from `cell_names`; default: all.
    replications
        Simulated studies per cell; by default what each cell plans (4,000, fewer where
        one study is costly). What is costly within a cell (a bootstrap) is done in the
        first ones only.
    seed
        Every replication has a stream of its own, from seed, cell and its number.
    folder
        Keep tallies there, one CSV a cell, and do not repeat a piece that is there.

    Returns
    -------
    DataFrame
        One row per quantity and method of a cell:

        * ``cell``; ``kind``: ``size`` (rejections at 5 % without an effect), ``power``
          (with one), ``coverage`` (of 95 % intervals), ``outside`` (estimates outside
          their own), ``doubted`` (results whose ``reason`` says that the interval may
          be too narrow or rests on few events) or ``recovery`` (mean estimate);
        * ``quantity``: what is tested or estimated; ``method``: who does it;
        * ``truth``: what `rate` should be (.05, .95, the planted value; NaN for power);
        * ``rate`` with ``low, high``: 95 % interval over the replications, Wilson's for
          shares, normal for means; ``replications``: those in which it was defined.

    Raises
    ------
    ValueError
        A name that is not a cell's.

    Notes
    -----
    The papers' methods: arXiv:2602.02219v2, §4.4.

    Examples
    --------
    >>> found = validity(["size/independent/1"], replications=20)
    >>> found.method.tolist()
    ['χ² of the papers', 'cluster permutation']
    >>> found.replications.tolist()
    [20, 20]
    """
    known = _cells()
    unknown = set(cells or ()) - set(known)
    if unknown:
        raise ValueError(f"no cell {min(unknown)!r}; there are: {', '.join(known)}")
    frames = []
    for name in cells or known:
        tally = _tally(name, replications or known[name].replications, seed, folder)
        frames.append(_rates(tally).assign(cell=name))
    result = pd.concat(frames, ignore_index=True)
    return result[["cell", *_KEYS, "rate", "low", "high", "replications"]]


def cell_names() -> list[str]:
    """Return the names of all cells.

    Examples
    --------
    >>> cell_names()[0]
    'size/independent/0.05'
    """
    return list(_cells())


def record_validity(
    folder: str | Path | None = None, replications: int | None = None, seed: int = 0
) -> Path:
    """Run the whole study and record ``validity.csv`` and ``run.json``; resumes.

    Parameters
    ----------
    folder
        Default: ``results/validity``.
    replications, seed
        As in `validity`.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        The folder holds the tallies of another seed.
    """
    folder = Path(folder) if folder else results_folder() / "validity"
    path = folder / "run.json"
    earlier_run = (
        json.loads(path.read_text())
        if path.exists()
        else {"seconds": 0.0, "seed": seed}
    )
    if earlier_run["seed"] != seed:
        raise ValueError(
            f"{folder} holds tallies of seed {earlier_run['seed']}; give another folder"
        )
    start_time = process_time()
    facts: dict[str, Any] = {
        "study": "validity",
        "seed": seed,
        "package": rubricnb.__version__,
    }
    facts |= {"python": platform.python_version(), "numpy": np.__version__}
    facts |= {"machine": f"{platform.system()} {platform.machine()}"}
    frames = []
    for name, cell in _cells().items():
        frames.append(validity([name], replications, seed, folder))
        seconds = round(earlier_run["seconds"] + process_time() - start_time, 1)
        facts |= {"recorded": datetime.now(UTC).date().isoformat(), "seconds": seconds}
        facts["replications"] = facts.get("replications", {}) | {
            name: replications or cell.replications
        }
        path.write_text(json.dumps(facts, indent=1) + "\n")
    table = pd.concat(frames, ignore_index=True)
    table.to_csv(
        folder / "validity.csv", index=False, float_format="%.6g", lineterminator="\n"
    )
    return folder


@dataclass(frozen=True)
class _Cell:
    """One kind of study: ``simulate(rng, costly)`` yields a replication's values."""

    simulate: Callable[[np.random.Generator, bool], Found]
    replications: int = 4_000
    n_costly: int = 500  # replications that also do what is costly


@cache
def _cells() -> dict[str, _Cell]:
    """All cells, cheap ones first."""
    cells = {}
    for concentration in (0.05, 0.2, 1.0, 5.0):
        cells[f"size/independent/{concentration:g}"] = _Cell(
            partial(_independent, _Judge(concentration))
        )
    cells["size/shared-noise"] = _Cell(partial(_clustered, _Judge(text_noise=1.0)))
    cells["size/duplicated"] = _Cell(_duplicated)
    cells["size/direction"] = _Cell(partial(_clustered, _Judge(reverse_shift=0.5)))
    for concentration in (0.2, 1.0):
        for scale in (0.5, 1.0):
            planted = _Judge(concentration, tuple(scale * g for g in PREFERENCE))
            cells[f"power/{concentration:g}/{scale:g}"] = _Cell(
                partial(_independent, planted), 1_000
            )
    for concentration in (0.2, 1.0):
        cells[f"power/{concentration:g}/mde"] = _Cell(
            partial(_detectable, concentration)
        )
    for n in (10, 20, 40, 96):
        cells[f"coverage/r/{n}"] = _Cell(partial(_correlations, n))
    for n in (10, 20, 40, 96):
        cells[f"coverage/shares/{n}"] = _Cell(partial(_share_intervals, n))
    for name in ("6", "uneven"):
        cells[f"coverage/shares/{name}"] = _Cell(partial(_few_shares, _SIZES[name]))
    for name in ("6", "20", "60", "uneven"):
        cells[f"coverage/flips/{name}"] = _Cell(partial(_rare_flips, _SIZES[name]))
    for levels, names in _HARD.items():
        for name in names:
            simulate = partial(_hard, levels, _SIZES[name])
            cells[f"coverage/{levels}/{name}"] = _Cell(simulate, 400, 200)
    for name in ("10", "20", "40", "96", "uneven"):
        cells[f"labels/{name}"] = _Cell(partial(_with_labels, _SIZES[name]), 2_000)
        cells[f"raters/{name}"] = _Cell(partial(_against_raters, _SIZES[name]), 2_000)
    cells |= _cells_of_labels()
    for n in (20, 60):
        cells[f"orders/{n}"] = _Cell(partial(_do_orders_pay, n), 2_000)
    for n in (5, 20, 40, 160):
        cells[f"equivalence/{n}"] = _Cell(partial(_rare_difference, n))
    for n in (4, 6, 10, 20):
        cells[f"detectable/{n}"] = _Cell(partial(_detectable_mean, n))
    cells["criterion/none"] = _Cell(partial(_criterion_position, 0.0))
    cells["criterion/planted"] = _Cell(partial(_criterion_position, 0.4))
    cells["recovery/variance"] = _Cell(_variance, 1_000)
    for concentration in (0.2, 1.0):
        cells[f"recovery/preference/{concentration:g}"] = _Cell(
            partial(_preference, concentration), 400
        )
    return cells | _cells_of_advice() | _cells_of_losses()


def _tally(
    name: str, replications: int, seed: int, folder: str | Path | None
) -> pd.DataFrame:
    """Sums over pieces of replications: read from disk, new ones appended."""
    cell = _cells()[name]
    path = Path(folder) / f"{name.replace('/', '-')}.csv" if folder else None
    stored = (
        pd.read_csv(path) if path and path.exists() else pd.DataFrame(columns=_COLUMNS)
    )
    pieces = []
    for start in range(0, replications, PIECE):
        stop = min(start + PIECE, replications)
        piece_name = f"{start}-{stop}"
        piece = stored[stored["piece"] == piece_name]
        if piece.empty:
            piece = _piece(name, cell, range(start, stop), seed).assign(
                piece=piece_name
            )[_COLUMNS]
            if path:
                stored = piece if stored.empty else pd.concat([stored, piece])
                _write(stored, path)
        pieces.append(piece)
    return pd.concat(pieces, ignore_index=True)


def _write(table: pd.DataFrame, path: Path) -> None:
    """Replace the file as a whole: a piece is there or it is not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_suffix(".tmp")
    table.to_csv(partial_file, index=False, lineterminator="\n")
    partial_file.replace(path)


def _piece(name: str, cell: _Cell, numbers: range, seed: int) -> pd.DataFrame:
    rows = []
    for number in numbers:
        rng = np.random.default_rng([seed, crc32(name.encode()), number])
        rows += list(cell.simulate(rng, number < cell.n_costly))
    table = pd.DataFrame(rows, columns=[*_KEYS, "value"]).dropna(subset="value")
    table["square"] = table["value"] ** 2
    grouped = table.groupby(_KEYS, sort=False, dropna=False)
    return grouped.agg(
        n=("value", "size"), sum=("value", "sum"), squares=("square", "sum")
    ).reset_index()


def _rates(tally: pd.DataFrame) -> pd.DataFrame:
    totals = tally.groupby(_KEYS, sort=False, dropna=False)[
        ["n", "sum", "squares"]
    ].sum()
    totals = totals.reset_index()
    n, rate = totals["n"].astype(float), totals["sum"] / totals["n"]
    z = stats.norm.ppf(0.975)
    se = np.sqrt(np.maximum(totals["squares"] / n - rate**2, 0) / np.maximum(n - 1, 1))
    # Wilson's interval of a share: (p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n)
    half_width = (
        z
        * np.sqrt(np.maximum(rate * (1 - rate), 0) / n + z**2 / (4 * n**2))
        / (1 + z**2 / n)
    )
    center = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    is_mean = totals["kind"] == "recovery"
    totals["rate"] = rate
    totals["low"] = np.where(is_mean, rate - z * se, (center - half_width).round(12))
    totals["high"] = np.where(is_mean, rate + z * se, center + half_width)
    return totals.drop(columns=["sum", "squares"]).rename(columns={"n": "replications"})


# -- position bias
# --------------------------------------------------------------------------------------


class _Judge(NamedTuple):
    """P(score | item, ordering) ∝ exp(α + γ[position] + noise), Dirichlet exp(α).

    `text_noise` is the sd of a text × ordering × score effect that the items of a
    cluster share; `reverse_shift` favours high scores in reverse lists.
    """

    concentration: float = 1.0
    gamma: tuple[float, ...] = (0.0,) * 5
    text_noise: float = 0.0
    reverse_shift: float = 0.0


def _independent(judge: _Judge, rng: np.random.Generator, costly: bool) -> Found:
    """One item a text."""
    yield from _tests(
        _answers(judge, 320, 1, rng), "power" if any(judge.gamma) else "size"
    )


def _detectable(concentration: float, rng: np.random.Generator, costly: bool) -> Found:
    """A preference of the size that `position_bias` calls detectable, at 80 %.

    V has no direction, but power has: every replication gives the preference to other
    positions.
    """
    gamma = rng.permutation(_just_detectable(concentration))
    yield from _tests(
        _answers(_Judge(concentration, tuple(gamma)), 320, 1, rng), "power"
    )


@cache
def _just_detectable(concentration: float) -> tuple[float, ...]:
    """The preference, scaled until its V is what 320 independent texts can detect."""
    rng = np.random.default_rng(3)
    studies = [place(_answers(_Judge(concentration), 320, 1, rng)) for _ in range(50)]
    detectable_v = np.mean([minimum_detectable_v(study, 5) for study in studies])

    def scaled(size: float) -> tuple[float, ...]:
        return tuple(size * g for g in PREFERENCE)

    def excess(size: float) -> float:
        utility = _utility(
            _Judge(concentration, scaled(size)), 5_000, 1, np.random.default_rng(4)
        )
        return float(
            np.sqrt(5 / 4 * ((_mean_shares(utility) - 1 / 5) ** 2).sum()) - detectable_v
        )

    return scaled(float(optimize.brentq(excess, 0.01, 10, xtol=1e-4)))


def _clustered(judge: _Judge, rng: np.random.Generator, costly: bool) -> Found:
    """Six items a text, no preference."""
    reads = _answers(judge, 96, 6, rng)
    yield from _tests(reads, "size")
    if costly:
        yield "size", "position", "item permutation", 0.05, _itemwise(reads)
    if judge.reverse_shift and costly:
        # A row that no read used makes the orderings a single block.
        one_block = replace(
            reads, orderings=np.vstack([reads.orderings, np.arange(5, 0, -1)])
        )
        yield (
            "size",
            "position",
            "cluster permutation, unstratified",
            0.05,
            _rejects(one_block),
        )


def _duplicated(rng: np.random.Generator, costly: bool) -> Found:
    """Two scores: 4 reads in 2 distinct orderings of a greedy judge, repeated."""
    reads = _answers(_Judge(gamma=(0.0, 0.0)), 96, 6, rng)
    distinct, first_read, order = np.unique(
        reads.orderings, axis=0, return_index=True, return_inverse=True
    )
    value = reads.value[:, first_read][:, order]
    order = np.broadcast_to(order, value.shape)
    yield from _tests(
        replace(reads, value=value, order=order, orderings=distinct), "size"
    )
    if costly:  # each copy is taken for an ordering of its own
        yield (
            "size",
            "position",
            "item permutation",
            0.05,
            _itemwise(replace(reads, value=value)),
        )


def _tests(reads: Reads, kind: str) -> Found:
    placement = place(reads)
    papers_p = papers_test(reads, placement, [])["p_chi2"]
    our_p = cluster_test(placement, int(reads.cluster.max()) + 1, [])["p_within"]
    yield kind, "position", "χ² of the papers", _nominal(kind), float(papers_p < 0.05)
    yield kind, "position", "cluster permutation", _nominal(kind), float(our_p < 0.05)


def _nominal(kind: str) -> float:
    return 0.05 if kind == "size" else float("nan")


def _rejects(reads: Reads) -> float:
    return float(
        cluster_test(place(reads), int(reads.cluster.max()) + 1, [])["p_within"] < 0.05
    )


def _itemwise(reads: Reads) -> float:
    """The same test where every item is taken for a cluster of its own."""
    return _rejects(replace(reads, cluster=_clusters(len(reads.value), 1)))


@cache
def _clusters(n_clusters: int, per_cluster: int | tuple[int, ...]) -> IntArray:
    return np.repeat(np.arange(n_clusters), per_cluster)


def _answers(
    judge: _Judge,
    n_clusters: int,
    per_cluster: int | tuple[int, ...],
    rng: np.random.Generator,
) -> Reads:
    """Sample a study of the balanced design."""
    utility = _utility(judge, n_clusters, per_cluster, rng)
    score = (utility + rng.gumbel(size=utility.shape)).argmax(axis=2) + 1
    orderings, _ = _orderings(len(judge.gamma))
    order = np.broadcast_to(np.arange(len(orderings)), score.shape)
    cluster = _clusters(n_clusters, per_cluster)
    return _unnamed(cluster, score.astype(np.float64), order, orderings)


def _unnamed(
    cluster: IntArray, value: FloatArray, order: IntArray, orderings: IntArray
) -> Reads:
    """Reads of items that no judgment names."""
    no_names = pd.DataFrame(index=np.arange(len(cluster)))
    return Reads(
        no_names, np.arange(len(cluster)), cluster, value, order, orderings, None, None
    )


def _utility(
    judge: _Judge,
    n_clusters: int,
    per_cluster: int | tuple[int, ...],
    rng: np.random.Generator,
) -> FloatArray:
    """Log-probability of each score up to a constant: (items, orderings, n)."""
    n = len(judge.gamma)
    orderings, position_of = _orderings(n)
    n_items = int(np.broadcast_to(per_cluster, n_clusters).sum())
    dirichlet = rng.dirichlet(np.full(n, judge.concentration), n_items)
    utility = (
        np.log(dirichlet + 1e-12)[:, None, :] + np.asarray(judge.gamma)[position_of]
    )
    if judge.text_noise:
        noise = judge.text_noise * rng.standard_normal((n_clusters, len(orderings), n))
        utility = utility + np.repeat(noise, per_cluster, axis=0)
    if judge.reverse_shift:
        utility[:, n:] += judge.reverse_shift * np.linspace(-1, 1, n)
    return np.asarray(utility)


@cache
def _orderings(n: int) -> tuple[IntArray, IntArray]:
    """The balanced design, and the position of each score in each of its orderings."""
    orderings = np.asarray(balanced(n).orderings(), dtype=np.int64)
    return orderings, np.argsort(orderings, axis=1)


# -- intervals
# --------------------------------------------------------------------------------------


_PREFERRING = _Judge(1.0, PREFERENCE, text_noise=1.0)


def _share_intervals(n_clusters: int, rng: np.random.Generator, costly: bool) -> Found:
    """Shares of first and last position, a planted preference, 6 items a cluster."""
    reads = _answers(_PREFERRING, n_clusters, 6, rng)
    placement, true_shares = place(reads), _true_shares()
    row = position_shares(placement, reads, n_clusters)
    for position in (1, 5):
        low, high = row[f"share_{position}_low"], row[f"share_{position}_high"]
        yield _covers(
            f"share {position}", "cluster t", low, high, true_shares[position - 1]
        )
    if costly:
        item_shares = placement.count / placement.reads[:, None]
        resamples = rng.multinomial(
            len(item_shares), np.full(len(item_shares), 1 / len(item_shares)), 1_000
        )
        resampled_shares = resamples @ item_shares / len(item_shares)
        for position in (1, 5):
            low, high = percentile_interval(resampled_shares[:, position - 1])
            yield _covers(
                f"share {position}",
                "item bootstrap",
                low,
                high,
                true_shares[position - 1],
            )


@cache
def _true_shares() -> FloatArray:
    """Expected shares under the planted preference, from 120,000 independent texts."""
    total = np.zeros(5)
    for part in range(60):
        rng = np.random.default_rng([1, part])
        total += _mean_shares(_utility(_PREFERRING, 2_000, 1, rng))
    return total / 60


def _mean_shares(utility: FloatArray) -> FloatArray:
    """Expected position shares of the balanced design, from log-probabilities."""
    p = special.softmax(utility, axis=2)
    orderings, _ = _orderings(p.shape[2])
    return np.asarray(
        np.take_along_axis(p, orderings[None] - 1, axis=2).mean(axis=(0, 1))
    )


def _covers(
    quantity: str, method: str, low: float, high: float, truth: float
) -> tuple[str, str, str, float, float]:
    defined = np.isfinite(low) and np.isfinite(high)
    return (
        "coverage",
        quantity,
        method,
        0.95,
        float(low <= truth <= high) if defined else np.nan,
    )


def _correlations(n_clusters: int, rng: np.random.Generator, costly: bool) -> Found:
    """r and Δr; 6 items a text, which has half of quality's and error's variance."""
    cluster = np.repeat(np.arange(n_clusters), 6)

    def draw() -> FloatArray:
        item, text = rng.standard_normal(len(cluster)), rng.standard_normal(n_clusters)
        return np.asarray(np.sqrt(0.5) * (item + text[cluster]))

    human, error, other = draw(), draw(), draw()
    errors = error, 0.8 * error + 0.6 * other
    first, second = (
        human + np.sqrt(1 / r**2 - 1) * strategy_error
        for r, strategy_error in zip(_R, errors, strict=True)
    )
    summands = np.stack([moments(side, human) for side in (first, second)], axis=1)
    sums = by_cluster(summands, cluster)
    r = correlation(sums.sum(axis=0))
    jackknifed = correlation(sums.sum(axis=0) - sums)
    low, high = fisher_jackknife_t(float(r[0]), jackknifed[:, 0]).ends
    yield _covers("r", "cluster jackknife-t", low, high, _R[0])
    low, high = jackknife_t(
        float(r[0] - r[1]), jackknifed[:, 0] - jackknifed[:, 1]
    ).ends
    yield _covers("Δr", "cluster jackknife-t", low, high, _R[0] - _R[1])
    if costly:
        seed = int(rng.integers(2**31))
        low, high = papers_interval(first[None], human, 1_000, seed)
        yield _covers("r", "item bootstrap", low, high, _R[0])
        low, high = papers_interval(np.stack([first, second]), human, 2_000, seed)
        yield _covers("Δr", "item bootstrap", low, high, _R[0] - _R[1])


# -- few, unequal and skewed
# -----------------------------------------------------------------------

_SIZES = {n: (6,) * int(n) for n in ("6", "10", "20", "40", "60", "96")}
_SIZES["uneven"] = tuple(int(m) for m in np.linspace(1, 45, 20).round())
_LEVELS = {
    "skewed": (0.03, 0.07, 0.12, 0.92),
    "binary": (0.8,),
    "even": (0.2, 0.4, 0.6, 0.8),
    "ceiling": (0.01, 0.03, 0.07, 0.15),
}
_HARD = {
    "skewed": ("6", "10", "20", "40", "60", "uneven"),
    "binary": ("6", "20", "uneven"),
    "even": ("6", "20", "uneven"),
}
_FLIPS, _FLIP_CORRELATION = 0.02, 0.1
_RESAMPLES = 400


def _few_shares(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """Shares and V² where clusters are few or of very different sizes."""
    reads, true_shares = _answers(_PREFERRING, len(sizes), sizes, rng), _true_shares()
    row = position_shares(place(reads), reads, len(sizes))
    doubted = float(bool(few_clusters(reads.cluster)))
    true_values = {"share_1": true_shares[0], "share_5": true_shares[4]}
    true_values["v2_unbiased"] = 5 / 4 * float(((true_shares - 1 / 5) ** 2).sum())
    for name, true_value in true_values.items():
        quantity = name.replace("_unbiased", "").replace("_", " ").replace("v2", "V²")
        yield _covers(
            quantity, "cluster t", row[f"{name}_low"], row[f"{name}_high"], true_value
        )
        yield "doubted", quantity, "cluster t", float("nan"), doubted


def _rare_flips(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """A flip rate of 2 %; some texts flip more often than others."""
    # Flips of one text correlate by 1 / (a + b + 1) where its rate is Beta(a, b).
    beta_total = 1 / _FLIP_CORRELATION - 1
    flip_rate = rng.beta(_FLIPS * beta_total, (1 - _FLIPS) * beta_total, len(sizes))
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    flips = (rng.random(len(cluster)) < flip_rate[cluster]).astype(np.float64)
    estimate = mean_t(flips, cluster, (0.0, 1.0))
    plain_ends = t_estimate(estimate.value, estimate.se, len(sizes) - 1).ends
    plain_ends = (estimate.value, estimate.value) if estimate.se == 0 else plain_ends
    yield _covers("flip rate", "t, clusters − 1", *plain_ends, _FLIPS)
    yield _covers("flip rate", "Wilson, Satterthwaite", *estimate.ends, _FLIPS)
    doubted = bool(few_clusters(cluster, {"flip_rate": flips}))
    yield "doubted", "flip rate", "Wilson, Satterthwaite", float("nan"), float(doubted)


def _hard(
    levels: str, sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """Scores that are few, tied or mostly one; clusters that are few or unequal."""
    truth, method = _hard_truth(levels), "jackknife-t, Satterthwaite"
    cluster, human, reads = _graded(levels, sizes, rng)
    first_read = reads[:, 0]
    for name, (summands, statistic) in _STATISTICS.items():
        sums = by_cluster(summands(first_read, human), cluster)
        total = sums.sum(axis=0)
        estimate, jackknifed = float(statistic(total)), statistic(total - sums)
        low, high = jackknife_t(estimate, jackknifed).ends
        yield _covers(name, method, low, high, truth[name])
        if costly:
            low, high = _bootstrap_t(sums, statistic)
            yield _covers(name, "bootstrap-t", low, high, truth[name])
            low, high = t_estimate(
                estimate, float(jackknife_se(jackknifed)), len(sizes) - 1
            ).ends
            yield _covers(name, "jackknife-t, clusters − 1", low, high, truth[name])
    jackknifed = leave_out_spearman(first_read, human, cluster)
    low, high = fisher_jackknife_t(float(spearman(first_read, human)), jackknifed).ends
    yield _covers("ρ", method, low, high, truth["ρ"])
    row = components_row(_as_reads(cluster, reads))
    yield _covers("φ", method, row["phi_low"], row["phi_high"], truth["φ"])
    doubted = float(bool(few_clusters(cluster, scores=(first_read, human))))
    yield "doubted", "scores", method, float("nan"), doubted


def _graded(
    levels: str, sizes: tuple[int, ...], rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Cluster and rating of items, and ten reads of each, half of them shared."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    shared, own = (
        rng.standard_normal((2, len(sizes))),
        rng.standard_normal((2, len(cluster))),
    )
    quality, error = (shared[:, cluster] + own) / np.sqrt(2)
    noise = 0.5 * rng.standard_normal((len(cluster), 10))
    latent = ((0.6 * quality + 0.8 * error)[:, None] + noise) / np.sqrt(1.25)
    cuts = special.ndtri(_LEVELS[levels])
    human, reads = (np.searchsorted(cuts, values) + 1.0 for values in (quality, latent))
    return cluster, human, reads


def _as_reads(cluster: IntArray, value: FloatArray) -> Reads:
    order = np.broadcast_to(np.arange(value.shape[1]), value.shape)
    return _unnamed(cluster, value, order, _orderings(5)[0])


@cache
def _hard_truth(levels: str) -> dict[str, float]:
    """Each statistic of 100,000 clusters."""
    rows = []
    for batch in range(10):
        cluster, human, reads = _graded(
            levels, (6,) * 10_000, np.random.default_rng([5, batch])
        )
        first_read = reads[:, 0]
        row = {
            quantity: float(statistic(summands(first_read, human).sum(axis=0)))
            for quantity, (summands, statistic) in _STATISTICS.items()
        }
        row |= {"ρ": float(spearman(first_read, human))}
        rows.append(row | {"φ": components_row(_as_reads(cluster, reads))["phi"]})
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _with_labels(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """The mean rating of skewed texts, labels drawn in three ways; two systems."""
    cluster, human, reads = _graded("skewed", sizes, rng)
    judged = _as_reads(cluster, reads[:, :1])
    judged.items["candidate"] = np.arange(len(cluster)) % 2
    whole_prompts = rng.permutation(len(sizes))[: len(sizes) // 2]
    system_of_prompt = rng.permutation(len(sizes)) % 2
    in_turn = judged.items.assign(at=rng.random(len(cluster)))
    in_turn = in_turn[in_turn["candidate"] == system_of_prompt[cluster]].sort_values(
        "at"
    )
    drawn = {
        "at random": rng.permutation(len(cluster))[: max(len(sizes), 20)],
        "whole prompts": np.flatnonzero(np.isin(cluster, whole_prompts)),
        "one text a prompt": in_turn.index[~in_turn["cluster"].duplicated()],
    }
    for name, labelled in drawn.items():
        labels = np.full(len(human), np.nan)
        labels[labelled] = human[labelled]
        row = mean_row(judged, labels)
        truth = float(human.mean())
        yield _covers("mean with labels", name, row["low"], row["high"], truth)
        low, high = row["labels_only_low"], row["labels_only_high"]
        yield _covers("mean of the labels", name, low, high, truth)
        yield (
            "doubted",
            "mean with labels",
            name,
            float("nan"),
            float(bool(row["reason"])),
        )


def _against_raters(
    sizes: tuple[int, ...], rng: np.random.Generator, costly: bool
) -> Found:
    """A judge just so much worse than a rater as is allowed; a known bias."""
    cluster, human, reads = _graded("skewed", sizes, rng)
    judged = _as_reads(cluster, reads)
    row, truth = judge_bias_row(judged, human), _bias_truth()
    yield _covers("judge − people", "jackknife-t", row["low"], row["high"], truth)
    latent = rng.standard_normal(len(sizes))[cluster] + rng.standard_normal(
        len(cluster)
    )
    cuts = np.sqrt(2) * special.ndtri([0.2, 0.6])  # loses, ties, wins: the mean is .2
    lead = np.asarray(np.searchsorted(cuts, latent) - 1.0, dtype=np.float64)
    for name, groups in (
        ("t over texts (Calderon et al.)", None),
        ("t over prompts", cluster),
    ):
        yield (
            "size",
            "judge instead of people",
            name,
            0.05,
            float(p_below_epsilon(lead, groups, 0.2) < 0.05),
        )


@cache
def _bias_truth() -> float:
    """Mean of judge minus people of 60,000 clusters; means of ten reads."""
    samples = (
        _graded("skewed", (6,) * 10_000, np.random.default_rng([6, k]))
        for k in range(6)
    )
    return float(np.mean([reads.mean() - human.mean() for _, human, reads in samples]))


def _cells_of_labels() -> dict[str, _Cell]:
    """Labels that share prompts, systems, rare errors, refusals, ceilings."""
    cells = {
        f"shared/{g}": _Cell(partial(_shared_labels, g), 400) for g in (10, 20, 40)
    }
    for name, options in _SYSTEMS.items():
        cells[f"systems/{name}"] = _Cell(partial(_labelled_systems, *options), 1_000)
    for percent in (99, 95):
        cells[f"rare/{percent}"] = _Cell(partial(_rarely_wrong, percent), 1_000)
    for name, refusal_rate in (("low", 1.0), ("some", 0.3)):
        cells[f"refused/{name}"] = _Cell(partial(_refused, refusal_rate), 1_000)
    for n in (20, 60, 100, 150):
        cells[f"ceiling/{n}"] = _Cell(partial(_at_the_ceiling, n), 1_000)
    for n in (10, 40):
        cells[f"dominated/{n}"] = _Cell(partial(_dominated, n), 1_000)
    return cells


def _labelled(
    judged: Reads,
    human: FloatArray,
    labelled: IntArray,
    method: str,
    truth: float | None = None,
) -> Found:
    """Whether the mean's interval with these labels holds the truth; what it says."""
    labels = np.full(len(human), np.nan)
    labels[labelled] = human[labelled]
    row = mean_row(judged, labels)
    truth = float(human.mean()) if truth is None else truth
    yield _covers("mean with labels", method, row["low"], row["high"], truth)
    yield (
        "doubted",
        "mean with labels",
        method,
        float("nan"),
        float(bool(row["reason"])),
    )


def _shared_labels(g: int, rng: np.random.Generator, costly: bool) -> Found:
    """Labels of g of 96 prompts of six texts, or of g of 96 texts, four criteria."""
    cluster, human, reads = _graded("even", _SIZES["96"], rng)
    judged = _as_reads(cluster, reads[:, :1])
    whole_prompts = rng.permutation(
        np.flatnonzero(np.isin(cluster, rng.permutation(96)[:g]))
    )
    yield from _labelled(judged, human, whole_prompts, "prompts rated whole")
    yield from _labelled(judged, human, whole_prompts[1:], "one rating missing")
    yield from _labelled(
        judged, human, whole_prompts[2 * g :], "a third of the ratings missing"
    )
    taken_singly = replace(judged, cluster=_clusters(len(cluster), 1))
    yield from _labelled(
        taken_singly, human, whole_prompts[1:], "one missing, labels taken singly"
    )
    text, human, reads = _graded("even", (4,) * 96, rng)
    judged = _as_reads(text // 4, reads[:, :1])  # four texts a prompt
    judged.items["criterion"] = np.tile(np.arange(4), 96)
    labelled = np.flatnonzero(np.isin(text, rng.permutation(96)[:g]))
    yield from _labelled(
        judged, human, labelled, "texts under four criteria, not named"
    )
    judged.items["candidate"] = text % 4
    yield from _labelled(judged, human, labelled, "texts under four criteria, named")


_SYSTEMS = {  # systems, whether they are labelled on the same prompts, points of favour
    "10": (10, True, 0.0),
    "20": (20, True, 0.0),
    "40": (40, True, 0.0),
    "apart": (20, False, 0.0),
    "favoured": (20, True, 1.0),
}


def _labelled_systems(
    n_systems: int,
    same_prompts: bool,
    favour: float,
    rng: np.random.Generator,
    costly: bool,
) -> Found:
    """Four labels of each system; prompts vary, and the judge may favour one."""
    quality = 3 + 0.3 * rng.standard_normal(n_systems)[:, None]
    text_effect = 0.5 * rng.standard_normal((1, 100)) + 0.6 * rng.standard_normal(
        (n_systems, 100)
    )
    human = np.clip(np.round(quality + text_effect), 1, 5)
    favour_of_system = favour * (np.arange(n_systems) == 0)[:, None]
    error = 0.15 * rng.standard_normal((n_systems, 1)) + 0.6 * rng.standard_normal(
        (n_systems, 100)
    )
    score = np.clip(
        np.round(1 + 0.8 * quality + 0.6 * text_effect + favour_of_system + error), 1, 5
    )
    drawn = rng.random((n_systems, 100)).argsort(axis=1)[:, :4]
    rated = np.full((n_systems, 100), np.nan)
    drawn = np.broadcast_to(drawn[:1], drawn.shape) if same_prompts else drawn
    np.put_along_axis(rated, drawn, np.take_along_axis(human, drawn, axis=1), axis=1)
    system, prompt = (index.ravel() for index in np.indices(human.shape))
    estimated = estimate_systems(system, prompt, score.ravel(), rated.ravel())
    truth = human.mean(axis=1)
    covered = (estimated["low"] <= truth) & (truth <= estimated["high"])
    yield "coverage", "mean of a system", "all systems", 0.95, float(covered.mean())
    if favour:
        yield (
            "coverage",
            "mean of a system",
            "the favoured one",
            0.95,
            float(covered[0]),
        )
        doubted = float(estimated["codes"][0] is not None)
        yield "doubted", "mean of a system", "the favoured one", float("nan"), doubted


def _rarely_wrong(percent: int, rng: np.random.Generator, costly: bool) -> Found:
    """A judge right about so many of 100 texts, two points off elsewhere; 20 labels."""
    human = rng.integers(1, 6, 100).astype(np.float64)
    wrong = rng.permutation(100)[percent:]
    score = human.copy()
    score[wrong] += np.where(human[wrong] > 3, -2, 2)
    judged = _as_reads(np.arange(100), score[:, None])
    labelled = rng.permutation(100)[:20]
    yield from _labelled(judged, human, labelled, "judge rarely wrong")
    labels = np.where(np.isin(np.arange(100), labelled), human, np.nan)
    no_interval = float(np.isnan(mean_row(judged, labels)["low"]))
    yield "doubted", "mean with labels", "no interval", float("nan"), no_interval


def _refused(refusal_rate: float, rng: np.random.Generator, costly: bool) -> Found:
    """The judge refuses texts rated 2 or lower, or some; 60 of 400 are labelled."""
    _, human, reads = _graded("even", (1,) * 400, rng)
    score = np.where(
        (human <= 2) & (rng.random(400) < refusal_rate), np.nan, reads[:, 0]
    )
    judged = _as_reads(np.arange(400), score[:, None])
    labelled = rng.permutation(400)[:60]
    is_scored = ~np.isnan(score)
    yield from _labelled(
        judged, human, labelled, "of the scored texts", float(human[is_scored].mean())
    )
    yield from _labelled(judged, human, labelled, "taken for all texts")


def _at_the_ceiling(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """85 % of ratings and scores are a 5; n labels of 400 texts."""
    _, human, reads = _graded("ceiling", (1,) * 400, rng)
    judged = _as_reads(np.arange(400), reads[:, :1])
    yield from _labelled(judged, human, rng.permutation(400)[:n], "85 % at the ceiling")


def _dominated(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """One of n prompts holds half of the texts; half of quality and error is shared."""
    sizes = (6 * (n - 1), *(6,) * (n - 1))
    cluster = np.repeat(np.arange(n), sizes)
    human, error = (
        (rng.standard_normal(n)[cluster] + rng.standard_normal(len(cluster)))
        / np.sqrt(2)
        for _ in "12"
    )
    score = human + error + 0.3
    row = judge_bias_row(_as_reads(cluster, score[:, None]), human)
    yield _covers("judge − people", "jackknife-t", row["low"], row["high"], 0.3)
    low, high = _usual_t(score - human, cluster)
    yield _covers("judge − people", "t over prompts", low, high, 0.3)
    sums = by_cluster(moments(score, human), cluster)
    jackknifed = correlation(sums.sum(axis=0) - sums)
    r = float(correlation(sums.sum(axis=0)))
    low, high = fisher_jackknife_t(r, jackknifed).ends
    yield _covers("r", "jackknife-t", low, high, float(np.sqrt(0.5)))
    doubted = float(bool({"few_clusters", "few_clusters_alike"} & {*row["codes"]}))
    yield "doubted", "judge − people", "jackknife-t", float("nan"), doubted


def _usual_t(x: FloatArray, cluster: IntArray) -> tuple[float, float]:
    """t interval of a mean, as most software has it: CR1, clusters − 1 degrees."""
    mean, n = x.mean(), len(np.unique(cluster))
    # CR1: Var = n/(n − 1) · Σ (cluster's summed deviations)² / N²
    sums = by_cluster(x - mean, cluster)
    half_width = (
        special.stdtrit(n - 1, 0.975) * np.sqrt(n / (n - 1) * (sums**2).sum()) / len(x)
    )
    return mean - half_width, mean + half_width


def _do_orders_pay(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """Pilots of n texts where ten orders bring little or much: who errs?"""
    gains = ((1.02, "go"), (1.037, "go"), (1.063, "stop"), (1.25, "stop"))
    for gain, wrong in gains:
        # gain² = (1 + φ) / (1 + φ/10), solved for the noise φ of one read
        phi = (gain**2 - 1) / (1 - gain**2 / 10)
        scores = rng.standard_normal((n, 1)) + np.sqrt(phi) * rng.standard_normal(
            (n, 10)
        )
        row = permuting_row(scores + 0.5 * rng.standard_normal(10), np.arange(n), 10)
        name = f"gain of {gain:g}"
        yield "size", name, f"“{wrong}”", 0.05, float(row["verdict"] == wrong)
        congeneric = row["gain_congeneric"]
        old_verdict = (
            "go" if congeneric > 1.05 else "stop" if row["gain"] < 1.05 else "unsure"
        )
        yield (
            "size",
            name,
            f"“{wrong}” of the estimate alone",
            0.05,
            float(old_verdict == wrong),
        )
        yield _covers(name, "jackknife-t", row["gain_low"], row["gain_high"], gain)
    noise_verdict = permuting_row(rng.standard_normal((n, 10)), np.arange(n), 10)[
        "verdict"
    ]
    yield "size", "texts that do not differ", "“go”", 0.05, float(noise_verdict == "go")


# -- advice and plans
# ------------------------------------------------------------------------------


def _cells_of_advice() -> dict[str, _Cell]:
    """Gains of prompts with several texts, labels of weak judges, plans for noise."""
    cells = {
        f"advice/gain/{n}": _Cell(partial(_gain_of_orders, n), 400) for n in (20, 60)
    }
    for r in (0.1, 0.3, 0.6):
        cells[f"advice/labels/{r:g}"] = _Cell(partial(_gain_of_labels, r), 1_000)
    for n in (10, 20, 40):
        cells[f"advice/needed/{n}"] = _Cell(partial(_labels_as_needed, n), 400)
    for variance in (0.0, 0.01, 0.1):
        cells[f"advice/plan/{variance:g}"] = _Cell(partial(_plans, variance), 400)
    return cells


def _crossed(
    n_prompts: int, n_candidates: int, favour: float, rng: np.random.Generator
) -> tuple[Any, float]:
    """Judgments of n prompts × m candidates × ten orders, and the φ of their reads."""
    spread = {"prompt": 0.5, "item": 0.25, "noise": 1.0}
    effects = {
        name: np.sqrt(variance) * rng.standard_normal((n_prompts, n_candidates, 10))
        for name, variance in spread.items()
    }
    systems = np.linspace(-0.5, 0.5, n_candidates)
    scores = (
        effects["prompt"][:, :1, :1]
        + effects["item"][:, :, :1]
        + systems[:, None]
        + effects["noise"]
    )
    scores = scores + 0.3 * rng.standard_normal(10)
    scores = scores + np.sqrt(favour) * rng.standard_normal((n_candidates, 10))
    prompt, candidate, order = (index.ravel() for index in np.indices(scores.shape))
    table = pd.DataFrame(
        {
            "item_id": prompt * n_candidates + candidate,
            "cluster_id": prompt,
            "candidate": candidate,
            "ordering": np.array(code(_orderings(5)[0]))[order],
            "score": scores.ravel(),
        }
    )
    return table, spread["noise"] / (0.75 + systems.var())


def _gain_of_orders(n_prompts: int, rng: np.random.Generator, costly: bool) -> Found:
    """Ten orders over one where n prompts hold six texts: shared in full, or part.

    Advice once took the component "item" for all of it.
    """
    table, phi = _crossed(n_prompts, 6, 0.0, rng)
    true_gain = float(gain_of_averaging(np.array([phi]), 10)[0])
    cluster = table["cluster_id"].to_numpy()
    row = permuting_row(table["score"].to_numpy().reshape(-1, 10), cluster[::10], 10)
    name, all_sources, item_only = (
        "gain of ten orders",
        "item + prompt + candidate",
        "item alone",
    )
    yield _covers(name, all_sources, row["gain_low"], row["gain_high"], true_gain)
    yield "recovery", name, all_sources, true_gain, row["gain"]
    variances = dict(zip(*with_left_out(error_budget(table, by=[])), strict=True))
    item = variances["item"]
    gain = gain_of_averaging(
        variances["order × item"] / np.where(item > 0, item, np.nan), 10
    )
    low, high = jackknife_t(float(gain[0]), gain[1:]).ends
    yield _covers(name, item_only, low, high, true_gain)
    yield "recovery", name, item_only, true_gain, float(gain[0])


def _gain_of_labels(r: float, rng: np.random.Generator, costly: bool) -> Found:
    """What 25 labels are worth with a judge that correlates by r; 400 texts.

    The truth is the ratio of the mean squared errors without the judge and with it.
    """
    human = rng.standard_normal(400)
    score = r * human + np.sqrt(1 - r**2) * rng.standard_normal(400)
    labelled = rng.permutation(400)[:25]
    labels = np.full(400, np.nan)
    labels[labelled] = human[labelled]
    row = mean_row(_as_reads(np.arange(400), score[:, None]), labels)
    summands = moments(score[labelled], human[labelled])
    low, high = fisher_jackknife_t(
        row["r"], correlation(summands.sum(axis=0) - summands)
    ).ends
    # (n − 3)/(n − 2) of 25 labels, for the slope that is fitted, over 1 − r²
    truth = 22 / 23 / (1 - r**2)
    name, method = "gain of labels with the judge", "interval of the gain"
    ends = gain_interval(row["gain"], row["r"], (low, high))
    yield _covers(name, method, *ends, truth=truth)
    yield "outside", name, method, 0.0, _outside(row["gain"], *ends)
    squares = 0.0 if low < 0 < high else min(low**2, high**2), max(low**2, high**2)
    old_ends = [22 / 23 / (1 - square) for square in squares]
    old_method = "interval of another number"
    yield _covers(name, old_method, old_ends[0], old_ends[1], truth)
    yield "outside", name, old_method, 0.0, _outside(row["gain"], *old_ends)


def _outside(value: float, low: float, high: float) -> float:
    return float(not low <= value <= high)


def _labels_as_needed(g: int, rng: np.random.Generator, costly: bool) -> Found:
    """Labels of g of 400 prompts plan for others: are these precise as wanted?

    Wanted is the half width that 60 prompts labelled whole would give.
    """
    cluster, human, reads = _graded("even", (6,) * 400, rng)
    judged, order = _as_reads(cluster, reads[:, :1]), rng.permutation(400)

    def labels_of(prompts: IntArray) -> FloatArray:
        return np.where(np.isin(cluster, prompts), human, np.nan)

    row = mean_row(judged, labels_of(order[:60]))
    wanted = row["high"] - row["mean"]
    needed = needed_row(judged, labels_of(order[:g]), wanted)["needed"]
    yield "recovery", "labels needed", "of whole prompts", 360.0, needed
    n_prompts = int(np.clip(np.ceil(needed / 6), 3, 400))
    row = mean_row(judged, labels_of(rng.permutation(400)[:n_prompts]))
    half_width_ratio = (row["high"] - row["mean"]) / wanted
    yield (
        "recovery",
        "half width over the wanted one",
        "of whole prompts",
        1.0,
        half_width_ratio,
    )


def _plans(favour: float, rng: np.random.Generator, costly: bool) -> Found:
    """Whether noise buys orders, where these prefer candidates or do not."""
    table, _ = _crossed(40, 5, favour, rng)
    budget = error_budget(table, by=[])
    # the estimate is planned with, whatever its interval
    estimate_only = budget.assign(low=1.0)
    kind = "power" if favour else "size"
    for method, budget_used in (
        ("where the interval is above 0", budget),
        ("the estimate", estimate_only),
    ):
        plans = design_for(budget_used, 0.2)
        buys_orders = plans["orders"].iloc[0] > 1 or np.isinf(plans["items"]).any()
        yield (
            kind,
            "order × candidate is planned with",
            method,
            _nominal(kind),
            float(buys_orders),
        )


# -- lost answers, noise and chance
# ----------------------------------------------------------------


def _cells_of_losses() -> dict[str, _Cell]:
    """Lost answers, dealt orders, unchanged noisy judges, close systems.

    In most of these some method stays bad, which is what they are there to show.
    """
    cells = {
        f"lost/{name}": _Cell(partial(_lost_answers, *options), 1_000)
        for name, options in _LOSSES.items()
    }
    for n in (20, 30, 60):
        cells[f"prior/{n}"] = _Cell(partial(_dealt_orders, n), 1_000)
    for n in (36, 120):
        cells[f"drift/{n}"] = _Cell(partial(_unchanged, n), 1_000)
    for name, share in (("even", 0.2), ("mostly", 0.9)):
        cells[f"halo/{name}"] = _Cell(partial(_independent_criteria, share), 1_000)
    for name, options in (("5", (5, 0.5)), ("20", (20, 0.5)), ("close", (20, 0.2))):
        cells[f"tau/{name}"] = _Cell(partial(_ranked_systems, *options), 400)
    return cells


_LOSSES = {"few": (1.0, 0.05), "many": (1.0, 0.6), "unrelated": (0.0, 0.6)}
"""How strongly a loss depends on what would have been answered,
and the share of answers lost.
"""


def _lost_answers(
    dependence: float, share: float, rng: np.random.Generator, costly: bool
) -> Found:
    """A condition moves 200 texts by −.56, most where its answers are lost."""
    before = np.clip(np.round(3 + rng.standard_normal(200)), 1, 5)
    uniform = rng.random(200)
    after = np.clip(before - (uniform > 0.6) - (uniform > 0.84), 1, 5)
    propensity = dependence * (before - after) + 0.5 * rng.standard_normal(200)
    after[np.argsort(-propensity)[: int(share * 200)]] = np.nan
    truth = _shift_truth()
    is_kept = ~np.isnan(after)
    estimate = mean_t((after - before)[is_kept], np.arange(is_kept.sum()))
    yield _covers(
        "shift with lost answers", "kept texts", estimate.low, estimate.high, truth
    )
    low, high = difference_bounds(after, before, (1.0, 5.0))
    yield _covers("shift with lost answers", "bounds, any lost score", low, high, truth)
    open_reason = open_sign(after, before, (1.0, 5.0), estimate.ends, "shift")
    reports_loss = float(bool(lost_scores(after, before)))
    yield (
        "doubted",
        "shift with lost answers",
        "says what is lost",
        float("nan"),
        reports_loss,
    )
    yield (
        "doubted",
        "shift with lost answers",
        "sign left open",
        float("nan"),
        float(bool(open_reason)),
    )


@cache
def _shift_truth() -> float:
    """Mean shift of a million texts."""
    rng = np.random.default_rng(7)
    before = np.clip(np.round(3 + rng.standard_normal(1_000_000)), 1, 5)
    uniform = rng.random(1_000_000)
    return float(
        (np.clip(before - (uniform > 0.6) - (uniform > 0.84), 1, 5) - before).mean()
    )


def _dealt_orders(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """The preference for the first position, each text asked in one order."""
    orders = _orderings(5)[0]
    order_of_prompt = rng.permutation(n) % len(orders)
    quality = 3 + 0.9 * rng.standard_normal((n, 1))
    logs = np.array(PREFERENCE) - (orders[order_of_prompt] - quality) ** 2
    logs = logs - logs.mean(axis=1, keepdims=True)
    truth = float(PREFERENCE[0] - np.mean(PREFERENCE))
    sums = sums_by_cell(logs, orders[order_of_prompt], np.arange(n))
    total = sums.sum(axis=0)
    estimate = position_preferences(total)
    jackknifed = position_preferences(total - sums)
    refitted = jackknife_t(float(estimate[0]), jackknifed[:, 0])
    name = "preference from one order a prompt"
    yield _covers(
        name, "jackknife-t, cells refitted", refitted.low, refitted.high, truth
    )
    cell_counts = sums[:, 1].sum(axis=0)
    cell_means = sums[:, 0].sum(axis=0) / cell_counts
    shown = orders[order_of_prompt] - 1
    position = np.arange(5)
    # An item moves the mean of its cell in proportion to 1 / the cell's count.
    influence = (logs - cell_means[position, shown]) * (
        n / 5 / cell_counts[position, shown]
    )
    values = estimate + influence - influence.mean(axis=1, keepdims=True)
    naive = mean_t(values[:, 0], np.arange(n))
    yield _covers(name, "t, cells taken as known", naive.low, naive.high, truth)


def _unchanged(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """A judge that changes half of its answers when asked again, on two days."""
    quality = rng.uniform(1, 5, n)
    answers = np.clip(np.round(quality + 0.6 * rng.standard_normal((4, n))), 1, 5)
    then, now = answers[:2], answers[2:]
    between = np.mean([one != other for one in then for other in now], axis=0)
    within = ((then[0] != then[1]) * 1.0 + (now[0] != now[1])) / 2
    for method, share in (("differ", between), ("minus asked again", between - within)):
        estimate = mean_t(share, np.arange(n), (-1.0, 1.0))
        yield (
            "size",
            "drift of an unchanged judge",
            method,
            0.05,
            float(estimate.low > 0.25),
        )


def _independent_criteria(
    share: float, rng: np.random.Generator, costly: bool
) -> Found:
    """A judge of three independent criteria, 120 texts, three raters who read.

    `share`: of its scores that are a 4.
    """
    quality = 3 + rng.standard_normal((120, 1))
    noise = rng.standard_normal((3, 120, 3))
    raters = np.clip(np.round(quality + noise), 1, 5)
    probabilities = np.full(5, (1 - share) / 4)
    probabilities[3] = share
    judge = rng.choice(np.arange(1.0, 6.0), (120, 3), p=probabilities)
    scores = np.stack([judge, *raters], axis=1)
    sums = alike_sums(scores)
    beyond_chance = jackknife(
        sums,
        np.arange(120),
        lambda one: np.subtract(*alike_and_chance(one, 3)) @ np.array([1.0, -1.0]),
    )
    ratings = np.round(raters.mean(axis=0))
    alike = [(side == side[:, :1]).all(axis=1) * 1.0 for side in (judge, ratings)]
    difference = mean_t(alike[0] - alike[1], np.arange(120), (-1.0, 1.0))
    for method, low in (
        ("alike minus mean ratings", difference.low),
        ("beyond chance", beyond_chance.low),
    ):
        yield "size", "halo of independent criteria", method, 0.05, float(low > 0.25)


def _ranked_systems(
    n_systems: int, spread: float, rng: np.random.Generator, costly: bool
) -> Found:
    """τ of n systems' true means, judge and people (r = .8), from 40 prompts."""
    people = spread * rng.standard_normal(n_systems)
    judge = 0.8 * people + 0.6 * spread * rng.standard_normal(n_systems)
    truth = float(kendall_tau(pair_signs(people), pair_signs(judge)))
    sides = [
        true_means
        + rng.standard_normal((40, n_systems))
        + 0.5 * rng.standard_normal((40, 1))
        for true_means in (judge, people)
    ]
    cluster, system = (index.ravel() for index in np.indices((40, n_systems)))
    judged = _as_reads(cluster, sides[0].reshape(-1, 1))
    judged.items["candidate"] = system
    row = system_agreement_row(judged, sides[1].ravel())
    yield _covers(
        "τ of true means", "percentiles", row["tau_low"], row["tau_high"], truth
    )
    warns_of_low = float("tau.low" in row["codes"])
    yield "doubted", "τ of true means", "percentiles", float("nan"), warns_of_low
    yield (
        "recovery",
        "τ, estimate minus truth",
        "τ of the means",
        0.0,
        row["tau"] - truth,
    )


def _fisher(sums: FloatArray) -> FloatArray:
    """Fisher's z of r; NaN where it is infinite."""
    r = correlation(sums)
    return np.asarray(np.arctanh(np.where(np.abs(r) < 1, r, np.nan)))


def _sd_ratio(sums: FloatArray) -> FloatArray:
    """Standard deviation of x over y's, from summed `moments`; NaN: y constant."""
    n, x, y, xx, yy, _ = np.moveaxis(sums, -1, 0)
    var_x, var_y = (
        np.maximum(squares / n - (total / n) ** 2, 0.0)
        for total, squares in ((x, xx), (y, yy))
    )
    varies = var_y > 1e-12
    return np.asarray(
        np.where(varies, np.sqrt(var_x / np.where(varies, var_y, 1.0)), np.nan)
    )


_STATISTICS: dict[str, tuple[Any, Any]] = {
    "r": (moments, _fisher),  # on the scale of its interval
    "QWK": (kappa_sums, kappa_of_sums),
    "sd ratio": (moments, _sd_ratio),
}


def _bootstrap_t(sums: FloatArray, statistic: Any) -> tuple[float, float]:
    """95 % bootstrap-t interval over clusters, by a resample's jackknife se.

    Resamples in which it is undefined or 0 are left out.
    """
    n, total = len(sums), sums.sum(axis=0)
    weights = np.concatenate(
        list(bootstrap_weights(n, _RESAMPLES, np.random.default_rng(0)))
    )
    resampled = weights @ sums
    jackknifed = statistic(resampled[:, None] - sums)
    jackknifed = np.where(weights > 0, jackknifed, 0.0)
    # A cluster drawn w times gives w leave-one-out values, all the same.
    mean = (weights * jackknifed).sum(axis=1, keepdims=True) / n
    se = np.sqrt((n - 1) / n * (weights * (jackknifed - mean) ** 2).sum(axis=1))
    estimate = float(statistic(total))
    t = (statistic(resampled) - estimate) / np.where(se > 1e-12, se, np.nan)
    low, high = percentile_interval(t)
    sample_se = float(jackknife_se(statistic(total - sums)))
    return estimate - high * sample_se, estimate - low * sample_se


def _rare_difference(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """5 % of the prompts flip, which is the margin: who calls that nothing?"""
    flips = (rng.random(n) < MARGINS["flips"]).astype(np.float64)
    row = paired_row(flips, np.arange(n))
    mean, se = flips.mean(), max(float(stats.sem(flips)), 1e-9)
    naive_p = float(special.stdtr(n - 1, (mean - MARGINS["flips"]) / se))
    yield "size", "equivalence of flips", "t", 0.05, float(naive_p < 0.05)
    rejected = float(row["p_equivalent"] < 0.05)
    yield "size", "equivalence of flips", "t, variance at the margin", 0.05, rejected


def _detectable_mean(n: int, rng: np.random.Generator, costly: bool) -> Found:
    """An effect called detectable, or 2.8 standard errors: who finds it?"""
    noise, se = rng.standard_normal(n), 1 / np.sqrt(n)
    for method, effect in (
        ("2.8 standard errors", 2.8 * se),
        ("ours", detectable(se, n - 1)),
    ):
        p = mean_t(noise + effect, np.arange(n)).p
        yield "power", "detectable effect", method, float("nan"), float(p < 0.05)


# -- what was planted comes back
# -------------------------------------------------------------------


def _criterion_position(gap: float, rng: np.random.Generator, costly: bool) -> Found:
    """Six criterion positions, 96 texts of 4 responses that share an effect."""
    effect = gap * np.linspace(0.5, -0.5, 6)
    shared = np.repeat(0.3 * rng.standard_normal((96, 6)), 4, axis=0)
    scores = 3 + shared + effect + 0.42 * rng.standard_normal((384, 6))
    sums = by_cluster(scores, np.repeat(np.arange(96), 4))
    kind = "power" if gap else "size"
    friedman_p, our_p = friedman(scores)[1], permutation_test(sums, len(scores))[1]
    yield (
        kind,
        "criterion position",
        "Friedman of the papers",
        _nominal(kind),
        float(friedman_p < 0.05),
    )
    yield (
        kind,
        "criterion position",
        "cluster permutation",
        _nominal(kind),
        float(our_p < 0.05),
    )
    if costly:
        position_means = scores.mean(axis=0)
        yield (
            "recovery",
            "ΔPos",
            "largest − smallest (the papers)",
            gap,
            float(np.ptp(position_means)),
        )
        yield (
            "recovery",
            "ΔPos",
            "first − last, named beforehand",
            gap,
            float(position_means[0] - position_means[-1]),
        )


def _variance(rng: np.random.Generator, costly: bool) -> Found:
    """Variance components of 60 items × 10 orderings × 2 re-asks."""
    sd = {name: np.sqrt(variance) for name, variance in _COMPONENTS.items()}
    shape = (60, 10)
    scores = (
        3
        + sd["item"] * rng.standard_normal((60, 1))
        + sd["ordering"] * rng.standard_normal(10)
    )
    scores = scores + sd["item_ordering"] * rng.standard_normal(shape)
    scores = np.concatenate(
        [scores + sd["reask"] * rng.standard_normal(shape) for _ in "12"], axis=1
    )
    item, read = (index.ravel() for index in np.indices(scores.shape))
    columns = {
        "item_id": item,
        "cluster_id": item,
        "ordering": read % 10,
        "score": scores.ravel(),
    }
    variances = error_budget(pd.DataFrame(columns), by=[]).set_index("source")[
        "variance"
    ]
    sources = ("item", "order", "order × item", "re-read")
    for (name, truth), source in zip(_COMPONENTS.items(), sources, strict=True):
        yield "recovery", f"variance {name}", "components", truth, variances[source]


def _preference(concentration: float, rng: np.random.Generator, costly: bool) -> Found:
    """Log-preference of the first position in a study of 320 independent items."""
    truth = np.array(PREFERENCE) - np.mean(PREFERENCE)
    reads = _answers(_Judge(concentration, PREFERENCE), 320, 1, rng)
    row = log_preferences([reads], [blocks(reads)])[0].columns
    yield "recovery", "γ1", "conditional logit", truth[0], row["log_preference_1"]
    low, high = row["log_preference_1_low"], row["log_preference_1_high"]
    yield _covers("γ1", "conditional logit, jackknife-t", low, high, truth[0])
    log_shares = np.log(place(reads).count.sum(axis=0))
    yield (
        "recovery",
        "γ1",
        "log of the shares",
        truth[0],
        float(log_shares[0] - log_shares.mean()),
    )


if __name__ == "__main__":
    print(f"recorded: {record_validity()}")
