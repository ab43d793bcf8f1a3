"""What graded scores say: agreement with people after calibration, stability, verification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from rubricnb.hashing import hash64, mix64
from rubricnb.rulers.calibration import (
    MIN_ITEMS,
    Calibrator,
    FloatArray,
    IsotonicCalibrator,
    nearest_label,
)
from rubricnb.statistics._inference import (
    cluster_mean,
    jackknife_se,
    mean_t,
    t_quantile,
)
from rubricnb.statistics._reads import IntArray, as_list, by_cluster, groups, require
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums

Calibration = Literal["quantile", "isotonic", "none"]
CALIBRATIONS: tuple[Calibration, ...] = ("quantile", "isotonic", "none")
GROUPING = (
    "judge", "dataset", "method", "criterion", "variant", "units", "design", "temperature",
)  # fmt: skip
_N_CALIBRATION, _N_DRAWS = 200, 50


def features(scores: pd.DataFrame, verified: bool = True, mean: bool = False) -> pd.DataFrame:
    """Return φ, what `Calibrator` learns from: one row per item, in order of appearance.

    Parameters
    ----------
    scores
        From `grade`, of one method and criterion. Several reads of an item are averaged.
    verified
        The traits' scores and their shares of invalid quotes; False: the scores without the gate,
        as if nothing had been verified.
    mean
        One column each, averaged over the traits: for a calibration that is carried to a rubric
        with another number of traits.

    Returns
    -------
    DataFrame
        The index is the item_id.

    Examples
    --------
    >>> scores = pd.DataFrame({"item_id": ["a", "a"], "trait_1": [2, 3], "invalid_1": [0.5, 0]})
    >>> features(scores).reset_index().values.tolist()
    [['a', 2.5, 0.25]]
    """
    families = ("trait", "invalid") if verified else ("ungated",)
    columns = {f: [c for c in scores if str(c).startswith(f"{f}_")] for f in families}
    if not columns[families[0]]:
        raise ValueError(f"scores lack the columns {families[0]}_1, …: take them from grade")
    per_item = scores.groupby("item_id", sort=False, observed=True)
    table = per_item[[c for own in columns.values() for c in own]].mean()
    # What a method does not have (DHS has no quotes; of six columns it fills one) is no feature.
    table = table.dropna(axis=1, how="all")
    if not mean:
        return table
    averages = {f: table[[c for c in own if c in table]].mean(axis=1) for f, own in columns.items()}
    return pd.DataFrame(averages).dropna(axis=1, how="all")


def calibrated(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    calibration: Calibration = "quantile",
    n_calibration: int = _N_CALIBRATION,
    seed: int = 0,
    by: str | Sequence[str] | None = None,
    verified: bool = True,
) -> pd.DataFrame:
    """Calibrate on a stratified draw of items and predict the labels of all others.

    Parameters
    ----------
    scores, items
        From `grade`, and the items with ``human``.
    calibration
        ``quantile`` (RULERS'), ``isotonic`` (the baselines') or ``none`` (the nearest level).
    n_calibration
        Items to calibrate on; at most half of them are taken.
    seed
        Of the draw. Whole clusters are drawn, in proportion along the labels.
    by
        Columns to group by; default: judge, dataset, method, criterion and conditions.
    verified
        False: as if no quote had been verified.

    Returns
    -------
    DataFrame
        One row per test item: the group's columns, item_id, cluster_id, label and human.

    Raises
    ------
    ValueError
        Items without ``human``, or a group that cannot be calibrated.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import SimulatedGrader, grade, load_bundle
    >>> items = rb.load("minibench")
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ... s
    >>> labels = calibrated(grades.scores, items, n_calibration=30)
    >>> len(labels), sorted(labels.label.unique().tolist())
    (90, [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    tables = []
    for key, data in _sets(scores, items, by, verified):
        train = _drawn(data, n_calibration, seed) if calibration != "none" else None
        label = _predict(data, train, calibration)
        test = ~train if train is not None else np.ones(len(label), bool)
        tables.append(
            pd.DataFrame({
                **key,
                "item_id": data.phi.index[test],
                "cluster_id": data.cluster_id[test],
                "label": label[test],
                "human": data.human[test],
            })
        )  # fmt: skip
    return pd.concat(tables, ignore_index=True)


def label_agreement(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    calibration: Calibration | Sequence[Calibration] = "quantile",
    n_calibration: int = _N_CALIBRATION,
    n_draws: int = _N_DRAWS,
    seed: int = 0,
    by: str | Sequence[str] | None = None,
    verified: bool = True,
    trained_on: tuple[pd.DataFrame, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Agreement of calibrated labels with people's, over calibration draws and essays.

    Parameters
    ----------
    scores, items, n_calibration, seed, by, verified
        As in `calibrated`.
    calibration
        One or more of ``quantile``, ``isotonic`` and ``none``.
    n_draws
        Calibration draws; each predicts the items that it leaves.
    trained_on
        (scores, items) of another set: calibrate there and predict here (transfer). Labels are
        carried over by their place on the scale; features are averaged over traits.

    Returns
    -------
    DataFrame
        One row per group and calibration: ``n_items, n_clusters, n_unscored, n_calibration,
        n_draws``;

        * ``qwk``, ``mae``, each a mean over draws with ``_low, _high``: 95 %, from the cluster
          jackknife's variance and the variance between draws together (a bootstrap of the test
          set alone ignores the draw). That is the interval of *one* calibration; for the mean over
          draws it is too wide rather than too narrow (simulated: it covers 99.5 %).
          ``qwk_sd_draws``; ``rho`` (Spearman);
        * central tendency: ``sd_ratio`` (labels to people's), ``middle`` and ``middle_human``
          (shares in the middle third of the scale), ``wasserstein`` (in score points);
        * ``reason``: what could not be computed and why.

    Raises
    ------
    ValueError
        Items without ``human``.

    Notes
    -----
    arXiv RULERS, §4.3–4.4 and Table 3. QWK alone would hide that the map to people's distribution
    raises it while it may worsen the mean error.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import SimulatedGrader, grade, load_bundle
    >>> items = rb.load("minibench")
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ... s
    >>> table = label_agreement(grades.scores, items, ["quantile", "none"], n_calibration=30)
    >>> table[["criterion", "calibration", "n_calibration"]].head(2).values.tolist()
    [['accuracy', 'quantile', 30], ['accuracy', 'none', 0]]
    """
    kinds: list[Any] = [calibration] if isinstance(calibration, str) else list(calibration)
    for kind in kinds:
        if kind not in CALIBRATIONS:
            raise ValueError(f"unknown calibration {kind!r}: choose from {', '.join(CALIBRATIONS)}")
    other = None
    if trained_on is not None:
        ((_, other),) = _sets(*trained_on, [], verified, mean=True)
    rows = []
    for key, data in _sets(scores, items, by, verified, mean=other is not None):
        for kind in kinds:
            about = {**key, "calibration": kind}
            rows.append(about | _agreement(data, kind, n_calibration, n_draws, seed, other))
    return pd.DataFrame(rows)


def whole_texts(scores: pd.DataFrame, items: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score and rate texts as wholes: one row per text and read instead of one per criterion.

    Parameters
    ----------
    scores, items
        From `grade`, and the items with ``human``.

    Returns
    -------
    tuple of DataFrame
        The scores, each the mean of the text's traits, and the items, each ``human`` the mean over
        its criteria. ``item_id`` is the text_id, ``criterion`` is ``whole``.

    Notes
    -----
    arXiv RULERS, §4.2: the holistic score aggregates the traits'.

    Examples
    --------
    >>> scores = pd.DataFrame({"text_id": "a", "method": "dhs", "criterion": ["x", "y"],
    ...                        "trait_1": 2, "trait_2": 3, "ungated_1": 2, "ungated_2": 3})
    >>> items = pd.DataFrame({"text_id": "a", "criterion": ["x", "y"], "human": [2.0, 3.0]})
    >>> scored, rated = whole_texts(scores, items)
    >>> scored[["item_id", "score"]].values.tolist(), rated["human"].tolist()
    ([['a', 2.5]], [2.5])
    """
    reads = [c for c in (*GROUPING, "ordering_index", "replicate") if c in scores]
    names = ["text_id", *(c for c in reads if c != "criterion")]
    scored = scores.drop_duplicates(names)
    means = {
        column: scored.filter(regex=rf"^{family}_\d").mean(axis=1)
        for column, family in (("score", "trait"), ("score_ungated", "ungated"))
    }
    human = items.groupby("text_id", observed=True)["human"].mean()
    rated = items.drop_duplicates("text_id")
    return (
        scored.assign(item_id=scored["text_id"], criterion="whole", **means),
        rated.assign(
            item_id=rated["text_id"],
            criterion="whole",
            human=human.reindex(rated["text_id"]).to_numpy(),
        ),
    )


def label_contrast(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    a: dict[str, Any],
    b: dict[str, Any],
    n_calibration: int = _N_CALIBRATION,
    n_draws: int = _N_DRAWS,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare two methods, variants or calibrations by their kappa on the same test items.

    Parameters
    ----------
    scores, items, n_calibration, n_draws, seed
        As in `label_agreement`.
    a, b
        Which scores, by column (``{"method": "dhs", "variant": "standard"}``), and how they are
        read: ``calibration`` (default ``quantile``) and ``verified`` (default True).

    Returns
    -------
    dict
        ``qwk_a, qwk_b``, ``difference`` (a − b) with ``low, high``: 95 %, from the cluster
        jackknife of the difference and its variance between draws; ``n_items, n_clusters``;
        ``reason``. Both sides have the same calibration items in every draw.

    Raises
    ------
    ValueError
        No score fits `a` or `b`.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import SimulatedGrader, grade, load_bundle
    >>> items = rb.load("minibench")
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ... s
    >>> same = {"method": "rulers"}
    >>> found = label_contrast(*whole_texts(grades.scores, items), same, same)
    >>> found["difference"], found["n_items"]
    (0.0, 60)
    """
    sides = [_side(scores, items, dict(wanted)) for wanted in (a, b)]
    (one, _), (other, _) = sides
    common = one.phi.index.intersection(other.phi.index, sort=False)
    sides = [(_of_items(data, common), kind) for data, kind in sides]
    found, reason = [], ""
    for draw in range(n_draws if any(kind != "none" for _, kind in sides) else 1):
        try:
            found.append(_difference(sides, n_calibration, seed + draw))
        except ValueError as problem:
            reason = str(problem)
            break
    row: dict[str, Any] = {"n_items": len(common), "n_clusters": len(set(sides[0][0].cluster_id))}
    names = ("qwk_a", "qwk_b", "difference")
    if not found:
        return row | dict.fromkeys((*names, "low", "high"), float("nan")) | {"reason": reason}
    table = np.array(found)
    means = dict(zip(names, map(float, table[:, :3].mean(axis=0)), strict=True))
    if np.isnan(means["difference"]):
        reason = "a kappa is not defined: no test item has both labels, or all are equal"
    between = float(table[:, 2].var(ddof=1)) if len(found) > 1 else 0.0
    half = t_quantile(int(table[0, 4])) * np.sqrt(table[:, 3].mean() + between)
    bounds = {"low": means["difference"] - half, "high": means["difference"] + half}
    return row | means | {name: float(bound) for name, bound in bounds.items()} | {"reason": reason}


def invariance(scores: pd.DataFrame, by: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Stochastic invariance: how much a score varies when the same question is asked again.

    Parameters
    ----------
    scores
        From `grade` with ``replicates`` of 2 or more and a temperature above 0.
    by
        Columns to group by; default: judge, dataset, method, criterion and conditions.

    Returns
    -------
    DataFrame
        One row per group: ``n_items, n_clusters, n_reads``; ``variance``, the mean variance within
        an item (ddof 1), with ``_low, _high`` (t interval on clusters); ``sd``, its root;
        ``unchanged``, the share of items whose score is always the same; ``reason``.

    Notes
    -----
    arXiv RULERS, Eq. 1, which the paper measures nowhere.

    Examples
    --------
    >>> scores = pd.DataFrame({"item_id": list("aabb"), "cluster_id": list("aabb"),
    ...                        "ordering": "5-4-3-2-1", "score": [3, 5, 2, 2]})
    >>> invariance(scores, by=[])[["variance", "sd", "unchanged"]].values.tolist()
    [[1.0, 1.0, 0.5]]
    """
    require(scores, ["item_id", "cluster_id", "ordering", "score"], "scores")
    rows = []
    for key, part in groups(scores, _names(scores, by)):
        reads = part.dropna(subset="score").groupby(
            ["item_id", "ordering"], sort=False, observed=True
        )
        table = pd.DataFrame({
            "variance": reads["score"].var(ddof=1),
            "cluster": reads["cluster_id"].first(),
            "n": reads.size(),
        }).dropna(subset="variance")  # fmt: skip
        variance = table["variance"].to_numpy(dtype=np.float64)
        cluster = pd.factorize(table["cluster"])[0]
        low, high, _, _ = mean_t(variance, cluster)
        mean = cluster_mean(variance, cluster)[0]
        rows.append({
            **key,
            "n_items": part["item_id"].nunique(),
            "n_clusters": len(np.unique(cluster)),
            "n_reads": int(table["n"].sum()),
            "variance": mean,
            "variance_low": max(low, 0.0) if not np.isnan(low) else low,
            "variance_high": high,
            "sd": float(np.sqrt(mean)),
            "unchanged": float((variance == 0).mean()) if len(variance) else float("nan"),
            "reason": "" if len(variance) else "every item was read once: ask for replicates",
        })  # fmt: skip
    return pd.DataFrame(rows)


def verification(evidence: pd.DataFrame, by: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Share of quotes by what became of them, with intervals over texts.

    Parameters
    ----------
    evidence
        From `grade`.
    by
        Columns to group by; default: judge, method and conditions.

    Returns
    -------
    DataFrame
        One row per group and status: ``status, share, share_low, share_high, n_quotes, n_texts``.

    Examples
    --------
    >>> evidence = pd.DataFrame({"text_id": ["a", "a", "b", "b"],
    ...                          "status": ["verified", "not found", "verified", "verified"]})
    >>> verification(evidence, by=[])[["status", "share"]].values.tolist()[0]
    ['verified', 0.75]
    """
    from rubricnb.rulers.evidence import STATUSES

    require(evidence, ["text_id", "status"], "evidence")
    rows = []
    for key, part in groups(evidence, _names(evidence, by)):
        text = pd.factorize(part["text_id"])[0]
        for status in STATUSES:
            hit = (part["status"] == status).to_numpy(dtype=np.float64)
            low, high, _, _ = mean_t(hit, text)
            rows.append({
                **key,
                "status": status,
                "share": float(hit.mean()),
                "share_low": float(np.clip(low, 0, 1)),
                "share_high": float(np.clip(high, 0, 1)),
                "n_quotes": len(hit),
                "n_texts": len(np.unique(text)),
            })  # fmt: skip
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Set:
    """What is calibrated together: features, raw score, labels and clusters of the items."""

    phi: pd.DataFrame
    score: FloatArray
    human: FloatArray
    cluster_id: NDArray[Any]
    cluster: IntArray
    levels: int

    @cached_property
    def raw(self) -> pd.DataFrame:
        """The raw score as the only feature."""
        return pd.DataFrame({"score": self.score}, index=self.phi.index)


def _names(frame: pd.DataFrame, by: str | Sequence[str] | None) -> list[str]:
    return [c for c in GROUPING if c in frame] if by is None else as_list(by)


def _sets(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    by: str | Sequence[str] | None,
    verified: bool,
    mean: bool = False,
) -> Iterator[tuple[dict[str, Any], _Set]]:
    require(items, ["item_id", "human"], "items")
    require(scores, ["item_id", "cluster_id", "score", "score_ungated", "n_options"], "scores")
    human = items.set_index(items["item_id"].astype(object))["human"]
    for key, part in groups(scores, _names(scores, by)):
        phi = features(part, verified, mean)
        column = "score" if verified else "score_ungated"
        per_item = part.groupby("item_id", sort=False, observed=True)
        ids = phi.index.astype(object)
        rated = human.reindex(ids).to_numpy(dtype=np.float64)
        cluster_id = per_item["cluster_id"].first().to_numpy()
        keep = ~np.isnan(rated)
        yield (
            key,
            _Set(
                phi.set_axis(ids)[keep],
                per_item[column].mean().to_numpy(dtype=np.float64)[keep],
                rated[keep],
                cluster_id[keep],
                np.asarray(pd.factorize(cluster_id[keep])[0], dtype=np.int64),
                int(part["n_options"].iloc[0]),
            ),
        )


def _drawn(data: _Set, n: int, seed: int) -> NDArray[np.bool_]:
    """Calibration items: whole clusters, every k-th along their mean label, a random start."""
    wanted = min(n, len(data.human) // 2)
    n_clusters = int(data.cluster.max()) + 1
    size = np.bincount(data.cluster, minlength=n_clusters)
    label = np.bincount(data.cluster, data.human, minlength=n_clusters) / size
    names = data.cluster_id[np.unique(data.cluster, return_index=True)[1]]
    shuffled = mix64(hash64(names), seed)
    order = np.lexsort((shuffled, label))
    n_drawn = max(1, round(wanted / size.mean()))
    start = float(np.random.default_rng(seed).random())
    at = ((np.arange(n_drawn) + start) * n_clusters / n_drawn).astype(np.int64)
    return np.isin(data.cluster, order[at])


def _predict(data: _Set, train: NDArray[np.bool_] | None, kind: Calibration) -> FloatArray:
    """A label per item; NaN for calibration items and where there is no score."""
    levels = np.arange(1, data.levels + 1)
    if train is None:
        out = np.full(len(data.score), np.nan)
        scored = ~np.isnan(data.score)
        out[scored] = nearest_label(data.score[scored], levels)
        return out
    calibrator, x = _calibrator(data, kind)
    out = np.full(len(data.score), np.nan)
    out[~train] = calibrator.fit(x[train], data.human[train]).predict(x[~train])
    return out


def _calibrator(
    data: _Set, kind: Calibration
) -> tuple[Calibrator | IsotonicCalibrator, pd.DataFrame]:
    labels = list(range(1, data.levels + 1))
    if kind == "isotonic":
        return IsotonicCalibrator(labels), data.raw
    return Calibrator(labels), data.phi


def _agreement(
    data: _Set, kind: Calibration, n: int, n_draws: int, seed: int, other: _Set | None
) -> dict[str, Any]:
    draws = 1 if kind == "none" else n_draws
    found, sizes = [], []
    reason = ""
    for draw in range(draws):
        try:
            label, test, size = _one_draw(data, kind, n, seed + draw, other)
        except ValueError as problem:
            reason = str(problem)
            break
        sizes.append(size)
        found.append(_measured(label[test], data.human[test], data.cluster[test], data.levels))
    row: dict[str, Any] = {
        "n_items": len(data.human),
        "n_clusters": len(np.unique(data.cluster)),
        "n_unscored": int(np.isnan(data.score).sum()),
        "n_calibration": round(float(np.mean(sizes))) if sizes else 0,
        "n_draws": len(found) if kind != "none" else 0,
    }
    return row | _over_draws(found) | {"reason": reason}


def _one_draw(
    data: _Set, kind: Calibration, n: int, seed: int, other: _Set | None
) -> tuple[FloatArray, NDArray[np.bool_], int]:
    """Labels, which of them are tests, and the number of calibration items."""
    everything = np.ones(len(data.human), bool)
    if kind == "none":
        label, test, size = _predict(data, None, kind), everything, 0
    elif other is None:
        train = _drawn(data, n, seed)
        if train.sum() < MIN_ITEMS:
            raise ValueError(
                f"{len(data.human)} items leave {train.sum()} for calibration: the map needs "
                f"{MIN_ITEMS}"
            )
        label, test, size = _predict(data, train, kind), ~train, int(train.sum())
    else:
        train = _drawn(other, n, seed)
        calibrator, x = _calibrator(other, kind)
        calibrator.fit(x[train], _rescaled(other.human[train], other.levels, data.levels))
        label = nearest_label(calibrator.predict(_calibrator(data, kind)[1]), np.unique(data.human))
        test, size = everything, int(train.sum())
    return label, test & ~np.isnan(label), size


def _side(
    scores: pd.DataFrame, items: pd.DataFrame, wanted: dict[str, Any]
) -> tuple[_Set, Calibration]:
    kind, verified = wanted.pop("calibration", "quantile"), wanted.pop("verified", True)
    chosen = np.ones(len(scores), bool)
    for column, value in wanted.items():
        chosen &= (scores[column] == value).to_numpy()
    if not chosen.any():
        named = ", ".join(f"{column} {value!r}" for column, value in wanted.items())
        raise ValueError(f"no score has {named}: grade it first")
    ((_, data),) = _sets(scores[chosen], items, [], verified)
    return data, kind


def _of_items(data: _Set, ids: pd.Index) -> _Set:
    rows = data.phi.index.get_indexer(ids)
    cluster_id = data.cluster_id[rows]
    return _Set(
        data.phi.iloc[rows],
        data.score[rows],
        data.human[rows],
        cluster_id,
        np.asarray(pd.factorize(cluster_id)[0], dtype=np.int64),
        data.levels,
    )


def _difference(sides: list[tuple[_Set, Calibration]], n: int, seed: int) -> list[float]:
    """Both kappas, their difference, its squared standard error, and the number of clusters."""
    first = sides[0][0]
    if all(kind == "none" for _, kind in sides):
        train = np.zeros(len(first.human), bool)
    elif (train := _drawn(first, n, seed)).sum() < MIN_ITEMS:
        raise ValueError(
            f"{len(train)} items leave {train.sum()} for calibration: the map needs {MIN_ITEMS}"
        )
    labels = [_predict(data, None if kind == "none" else train, kind) for data, kind in sides]
    test = ~train & ~np.isnan(labels).any(axis=0)
    cluster = np.unique(first.cluster[test], return_inverse=True)[1]
    parts = [by_cluster(kappa_sums(label[test], first.human[test]), cluster) for label in labels]
    a, b = (float(kappa_of_sums(part.sum(axis=0))) for part in parts)
    left_out = [kappa_of_sums(part.sum(axis=0) - part) for part in parts]
    error = jackknife_se(left_out[0] - left_out[1])
    return [a, b, a - b, float(error**2), float(len(parts[0]))]


def _rescaled(labels: FloatArray, from_levels: int, to_levels: int) -> FloatArray:
    return 1 + (labels - 1) * (to_levels - 1) / (from_levels - 1)


_MEASURES = ("qwk", "mae", "rho", "sd_ratio", "middle", "middle_human", "wasserstein")


def _measured(
    label: FloatArray, human: FloatArray, cluster: IntArray, levels: int
) -> dict[str, float]:
    """Every measure on one test set, and the squared standard errors over clusters."""
    cluster = np.asarray(np.unique(cluster, return_inverse=True)[1])
    parts = by_cluster(kappa_sums(label, human), cluster)
    total = parts.sum(axis=0)
    error = np.abs(label - human)
    spread = [float(v.std()) if len(v) else float("nan") for v in (label, human)]
    varied = len(label) > 1 and min(spread) > 0
    return {
        "qwk": float(kappa_of_sums(total)),
        "qwk_variance": float(jackknife_se(kappa_of_sums(total - parts)) ** 2),
        "mae": float(error.mean()) if len(error) else float("nan"),
        "mae_variance": float(cluster_mean(error, cluster)[1] ** 2),
        "rho": float(stats.spearmanr(label, human).statistic) if varied else float("nan"),
        "sd_ratio": spread[0] / spread[1] if spread[1] > 0 else float("nan"),
        "middle": _middle(label, levels),
        "middle_human": _middle(human, levels),
        "wasserstein": (
            float(stats.wasserstein_distance(label, human)) if len(label) else float("nan")
        ),
        "n_clusters": len(parts),
    }


def _middle(labels: FloatArray, levels: int) -> float:
    """Share of the labels in the middle third of the scale."""
    place = (labels - 1) / (levels - 1)
    return float((np.abs(place - 0.5) <= 1 / 6 + 1e-9).mean()) if len(labels) else float("nan")


def _over_draws(found: list[dict[str, float]]) -> dict[str, float]:
    if not found:
        empty = dict.fromkeys(_MEASURES, float("nan"))
        bounds = ("qwk_low", "qwk_high", "qwk_sd_draws", "mae_low", "mae_high")
        return empty | dict.fromkeys(bounds, float("nan"))
    mean = {name: float(np.mean([f[name] for f in found])) for name in _MEASURES}
    half = {}
    for name in ("qwk", "mae"):
        within = float(np.mean([f[f"{name}_variance"] for f in found]))
        between = float(np.var([f[name] for f in found], ddof=1)) if len(found) > 1 else 0.0
        half[name] = t_quantile(int(found[0]["n_clusters"])) * np.sqrt(within + between)
        half[f"{name}_sd"] = np.sqrt(between)
    return mean | {
        "qwk_low": mean["qwk"] - half["qwk"],
        "qwk_high": min(mean["qwk"] + half["qwk"], 1.0),
        "qwk_sd_draws": float(half["qwk_sd"]),
        "mae_low": max(mean["mae"] - half["mae"], 0.0),
        "mae_high": mean["mae"] + half["mae"],
    }
