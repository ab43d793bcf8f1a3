"""Statistics of graded scores: agreement with people after calibration,
stability, verification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.counting import binned
from rubricnb.data.validate import one_of
from rubricnb.hashing import hash64, mix64
from rubricnb.rulers.calibration import (
    Calibrator,
    FloatArray,
    IsotonicCalibrator,
    nearest_label,
)
from rubricnb.rulers.evidence import STATUSES
from rubricnb.statistics import intervals as infer
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums
from rubricnb.statistics.losses import lost_scores
from rubricnb.statistics.ranks import leave_out_spearman, spearman
from rubricnb.statistics.reads import (
    IntArray,
    as_list,
    by_cluster,
    groups,
    matched,
    require,
)
from rubricnb.statistics.reasons import Reason, Why, because

Calibration = Literal["quantile", "isotonic", "none"]
CALIBRATIONS: tuple[Calibration, ...] = ("quantile", "isotonic", "none")
GROUPING = (
    "judge",
    "dataset",
    "method",
    "criterion",
    "variant",
    "units",
    "design",
    "temperature",
)
_CONDITIONS = tuple(
    column for column in GROUPING if column not in ("dataset", "criterion")
)
_N_CALIBRATION, _N_DRAWS = 200, 50
_SUMMED = "dress"  # the dataset whose whole score is a sum
_MEASURES = ("qwk", "mae", "rho", "sd_ratio", "middle_excess", "wasserstein")
_CONTRASTED = ("qwk", "mae", "rho", "wasserstein")
_DISTANCES = ("mae", "sd_ratio", "wasserstein")  # from 0 on; the others lie in -1…1


def calibrated(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    calibration: Calibration = "quantile",
    n_calibration: int = _N_CALIBRATION,
    seed: int = 0,
    by: str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Calibrate on a stratified draw of items and predict the labels of all others.

    Parameters
    ----------
    scores, items
        From `grade`, and the items with ``human``.
    calibration
        ``quantile`` (RULERS'), ``isotonic`` (the baselines') or ``none`` (the nearest
        level).
    n_calibration
        Items to calibrate on; at most half of them are taken.
    seed
        Of the draw. Whole clusters are drawn, in proportion along the labels.
    by
        Columns to group by; default: judge, dataset, method, criterion and conditions.

    Returns
    -------
    DataFrame
        One row per test item: the group's columns, item_id, cluster_id, label and
        human.

    Raises
    ------
    ValueError
        Items without ``human``, or a group that cannot be calibrated.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import grade, load_bundle
    >>> from rubricnb.rulers.simulated import SimulatedGrader
    >>> items = rb.load("minibench")
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ...
    >>> labels = calibrated(grades.scores, items, n_calibration=30)
    >>> len(labels), sorted(labels.label.unique().tolist())
    (90, [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    tables = []
    for key, data in _sets(scores, items, by):
        train = np.zeros(len(data.human), bool)
        if calibration != "none":
            train = _drawn(data, n_calibration, seed)
        label = _predict(data, calibration, train)
        found = {"item_id": data.item_id, "cluster_id": data.cluster_id, "label": label}
        tables.append(pd.DataFrame(key | found | {"human": data.human})[~train])
    return pd.concat(tables, ignore_index=True)


def label_agreement(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    calibration: Calibration | Sequence[Calibration] = "quantile",
    n_calibration: int = _N_CALIBRATION,
    n_draws: int = _N_DRAWS,
    seed: int = 0,
    by: str | Sequence[str] | None = None,
    trained_on: tuple[pd.DataFrame, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Agreement of calibrated labels with people's, over calibration draws and essays.

    Parameters
    ----------
    scores, items, n_calibration, seed, by
        As in `calibrated`.
    calibration
        One or more of ``quantile``, ``isotonic`` and ``none``.
    n_draws
        Calibration draws; each predicts the items that it leaves.
    trained_on
        (scores, items) of another set, of one method and condition: calibrate there and
        predict here (transfer). To another scale labels are carried over by their
        place, and what is predicted is its nearest level; features are averaged over
        traits.

    Returns
    -------
    DataFrame
        One row per group and calibration: ``n_items, n_clusters, n_unscored,
        n_calibration``;

        * ``qwk``, ``mae``, ``rho`` (Spearman), each a mean over draws with ``_low,
          _high``: 95 %, from the cluster jackknife's variance (of ρ on Fisher's z) and
          the variance between draws together (a bootstrap of the test set alone ignores
          the draw). That is the interval of *one* calibration; for the mean over draws
          it is too wide rather than too narrow (simulated: it covers 99.5 %);
        * central tendency: ``sd_ratio`` (labels to people's), ``middle_excess`` (share
          of labels in the middle third of the scale, minus people's) and
          ``wasserstein`` (in score points), with such intervals, which for a distance
          near 0 are rough;
        * ``reason``: what could not be computed and why.

    Raises
    ------
    ValueError
        Items without ``human``.

    Notes
    -----
    arXiv RULERS, §4.3–4.4 and Table 3. QWK alone would hide that the map to people's
    distribution raises it while it may worsen the mean error.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import grade, load_bundle
    >>> from rubricnb.rulers.simulated import SimulatedGrader
    >>> items = rb.load("minibench")
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ...
    >>> table = label_agreement(grades.scores, items, ["quantile", "none"], n_calibration=30)
    >>> table[["criterion", "calibration", "n_calibration"]].head(2).values.tolist()
    [['accuracy', 'quantile', 30], ['accuracy', 'none', 0]]
    """
    kinds: list[Any] = (
        [calibration] if isinstance(calibration, str) else list(calibration)
    )
    for kind in kinds:
        one_of("calibration", kind, CALIBRATIONS)
    other = None
    if trained_on is not None:
        _check_one_condition(trained_on[0], "trained_on")
        ((_, other),) = _sets(*trained_on, [], mean=True)
    rows = []
    for key, data in _sets(scores, items, by, mean=other is not None):
        for kind in kinds:
            found, sizes, problem = _draws(
                [(data, kind)], n_calibration, n_draws, seed, other
            )
            row = {
                **key,
                "calibration": kind,
                "n_items": len(data.human),
                "n_clusters": len(np.unique(data.cluster)),
                "n_unscored": int(np.isnan(data.score).sum()),
                "n_calibration": round(float(np.mean(sizes or 0))),
            }
            for name in _MEASURES:
                own = _over_draws(name, [measured[name] for (measured,) in found])
                row |= own.named(name, *infer.UNTESTED)
            doubts = infer.few_clusters(
                data.cluster, scores=(data.human,)
            ) + infer.alike(row)
            rows.append(row | because(problem or doubts))
    return pd.DataFrame(rows)


def whole_texts(
    scores: pd.DataFrame, items: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score and rate texts as wholes:
    one row per text and read instead of one per criterion.

    Parameters
    ----------
    scores, items
        From `grade`, and the items with ``human``.

    Returns
    -------
    tuple of DataFrame
        The scores, each the mean of the text's traits, and the items, each ``human``
        the mean over its criteria, and ``human_ratings`` likewise, rater by rater (none
        if the criteria do not have as many raters each); for DREsS, whose scale is 3 to
        15, all times the number of criteria, that is their sums. ``item_id`` is the
        text_id, ``criterion`` is ``whole``; ``lowest``, ``highest`` and ``step`` of the
        scores are the scale of the labels.

    Notes
    -----
    arXiv RULERS, §4.2: the holistic score aggregates the traits'; Table 5 has the
    scales.

    Examples
    --------
    >>> scores = pd.DataFrame({"text_id": "a", "method": "dhs", "criterion": ["x", "y"],
    ...                        "n_options": 5, "trait_1": 2, "trait_2": 3, "ungated_1": 2,
    ...                        "ungated_2": 3})
    >>> items = pd.DataFrame({"text_id": "a", "criterion": ["x", "y"], "human": [2.0, 3.0]})
    >>> scored, rated = whole_texts(scores, items)
    >>> scored[["item_id", "score"]].values.tolist(), rated["human"].tolist()
    ([['a', 2.5]], [2.5])
    """
    reads = [c for c in (*GROUPING, "ordering_index", "replicate") if c in scores]
    scored = scores.drop_duplicates(
        ["text_id", *(c for c in reads if c != "criterion")]
    )
    rated = items.drop_duplicates("text_id")
    is_sum = "dataset" in items and set(items["dataset"]) == {_SUMMED}
    times = items["criterion"].nunique() if is_sum else 1
    means = {
        column: scored.filter(regex=rf"^{family}_\d").mean(axis=1) * times
        for column, family in (("score", "trait"), ("score_ungated", "ungated"))
    }
    low = scored.get("lowest", 1)
    scale = {
        "lowest": times * low,
        "highest": times * (low + scored["n_options"] - 1),
        "step": 0.5 if is_sum else 1.0,
    }
    by_text = items.groupby("text_id", observed=True)
    human = by_text["human"].mean() * times
    if is_sum:  # an incomplete sum is a different quantity
        human = human.where(by_text["human"].count() == by_text.size())
    rated = rated.assign(item_id=rated["text_id"], criterion="whole")
    rated["human"] = human.reindex(rated["text_id"]).to_numpy()
    if "human_ratings" in items:
        of_text = by_text["human_ratings"].agg(_rater_by_rater, times)
        rated["human_ratings"] = of_text.reindex(rated["text_id"]).to_numpy()
    return scored.assign(
        item_id=scored["text_id"], criterion="whole", **means, **scale
    ), rated


def label_contrast(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    a: dict[str, Any],
    b: dict[str, Any],
    n_calibration: int = _N_CALIBRATION,
    n_draws: int = _N_DRAWS,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare two methods, variants or calibrations
    by their kappa on the same test items.

    Parameters
    ----------
    scores, items, n_calibration, n_draws, seed
        As in `label_agreement`.
    a, b
        Which scores, by column (``{"method": "dhs", "variant": "standard"}``), and how
        they are read: ``calibration`` (default ``quantile``) and ``verified`` (default
        True).

    Returns
    -------
    dict
        ``qwk_a, qwk_b``, ``difference`` (a − b) with ``low, high``: 95 %, from the
        cluster jackknife of the difference and its variance between draws; the same for
        ``mae``, ``rho`` and ``wasserstein``, as ``mae_a``, ``mae_b``,
        ``mae_difference``, ``mae_difference_low``, …; ``n_items, n_clusters``, of the
        items that both sides have scored; ``reason``. Both sides have the same
        calibration items in every draw.

    Raises
    ------
    ValueError
        No score fits `a` or `b`, or scores of several conditions do.

    Examples
    --------
    >>> import rubricnb as rb
    >>> from rubricnb.rulers import grade, load_bundle
    >>> from rubricnb.rulers.simulated import SimulatedGrader
    >>> items = rb.load("minibench")
    >>> grades = grade(items, load_bundle("minibench"), SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ...
    >>> same = {"method": "rulers"}
    >>> found = label_contrast(*whole_texts(grades.scores, items), same, same)
    >>> found["difference"], found["n_items"]
    (0.0, 60)
    """
    sides = [_side(scores, items, dict(wanted)) for wanted in (a, b)]
    scored = [data.item_id[~np.isnan(data.score)] for data, _ in sides]
    asked = sides[0][0].item_id.intersection(sides[1][0].item_id, sort=False)
    given = [data.rows(data.item_id.get_indexer(asked)).score for data, _ in sides]
    lost = lost_scores(given[0], given[1], what="rated items")
    common = scored[0].intersection(scored[1], sort=False)
    sides = [
        (data.rows(data.item_id.get_indexer(common)), kind) for data, kind in sides
    ]
    first = sides[0][0]
    found, _, problem = _draws(sides, n_calibration, n_draws, seed)
    row: dict[str, Any] = {
        "n_items": len(common),
        "n_clusters": len(set(first.cluster_id)),
    }
    for name in _CONTRASTED:
        row |= {
            f"{name}_{x}": _mean([draw[k][name] for draw in found])
            for k, x in enumerate("ab")
        }
        own = _over_draws(f"{name}_difference", [a[name] - b[name] for a, b in found])
        if name == "qwk":
            row |= {"difference": own.value, **own.columns()}
        else:
            row |= own.named(f"{name}_difference")
    why: Why = problem or infer.few_clusters(first.cluster, scores=(first.human,))
    if found and np.isnan(row["difference"]):
        why = Reason("kappa_undefined")
    elif found and np.isnan(row["low"]) and row["n_clusters"] > 1:
        why = Reason("no_interval.same_difference")
    return row | because(why, lost)


def extreme(
    table: pd.DataFrame, name: str, largest: bool = False
) -> tuple[float, float, float]:
    """Return the smallest (largest) of several estimates,
    with an interval for a claim about all.

    The row with the smallest estimate would not do: another one may reach lower. "All
    are at least x" holds if the lower end of each does, so the lower end is the lowest
    of theirs. It fails if the upper end of one lies below x, and of several one does by
    chance; so the upper end is the lowest of the upper ends that hold for all of them
    together (Bonferroni).

    Parameters
    ----------
    table
        Rows of `label_agreement`, or of what `label_contrast` returns: the column
        `name` with ``{name}_low, {name}_high, {name}_se, {name}_df``, else ``low, high,
        se, df``.
    name
        Of the estimate; not a ρ, whose standard error is on another scale.
    largest
        The other way round, for "all are at most x".

    Returns
    -------
    tuple of float
        Value, low and high (95 %); NaN if one of the estimates or of their ends is.

    Examples
    --------
    >>> leads = pd.DataFrame({"difference": [0.05, 0.06], "low": [0.01, -0.03],
    ...                       "high": [0.09, 0.15], "se": [0.02, 0.045], "df": 59})
    >>> [round(float(x), 3) for x in extreme(leads, "difference")]
    [0.05, -0.03, 0.096]
    """
    prefix = f"{name}_" if f"{name}_low" in table else ""
    columns = [name, *(f"{prefix}{part}" for part in infer.UNTESTED)]
    require(table, columns, "table")
    value, low, high, se, df = table[columns].to_numpy(dtype=np.float64).T
    if largest:
        value, low, high = -value, -high, -low
    each = (
        infer.Estimate(v, se=s, df=d) for v, s, d in zip(value, se, df, strict=True)
    )
    up_to = np.array([infer.largest(one, len(table)).high for one in each])
    up_to = np.where(np.isnan(high), np.nan, up_to)
    found = np.array([np.min(value), np.min(low), np.min(up_to)])
    if np.isnan(found).any():
        return float("nan"), float("nan"), float("nan")
    smallest, near, far = map(float, 0.0 - found if largest else found)
    return (smallest, far, near) if largest else (smallest, near, far)


def invariance(
    scores: pd.DataFrame, by: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Stochastic invariance: how much a score varies
    when the same question is asked again.

    Parameters
    ----------
    scores
        From `grade` with ``replicates`` of 2 or more and a temperature above 0.
    by
        Columns to group by; default: judge, dataset, method, criterion and conditions.

    Returns
    -------
    DataFrame
        One row per group: ``n_items, n_clusters``; ``variance``, the mean variance
        within an item (ddof 1), with ``_low, _high`` (t interval on clusters); ``sd``,
        its root; ``unchanged``, the share of items whose score is always the same;
        ``reason``.

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
        table = reads.agg(
            variance=("score", "var"), cluster=("cluster_id", "first")
        ).dropna()
        variance, cluster = (
            table["variance"].to_numpy(np.float64),
            _codes(table["cluster"]),
        )
        row: dict[str, Any] = key | {
            "n_items": part["item_id"].nunique(),
            "n_clusters": len(np.unique(cluster)),
            **infer.named_mean("variance", variance, cluster, parts=infer.UNTESTED),
        }
        row["variance_low"] = float(np.maximum(row["variance_low"], 0.0))
        row |= {"sd": row["variance"] ** 0.5, "unchanged": infer.mean_of(variance == 0)}
        why: Why = infer.few_clusters(cluster)
        if not variance.any():
            why = Reason("no_interval.repeats")
        if not len(variance):
            why = Reason("read_once")
        rows.append(row | because(why))
    return pd.DataFrame(rows)


def verification(
    evidence: pd.DataFrame, by: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the share of quotes by the result of their verification,
    with intervals over clusters.

    Parameters
    ----------
    evidence
        From `grade`.
    by
        Columns to group by; default: judge, method and conditions.

    Returns
    -------
    DataFrame
        One row per group and status: ``status, share, share_low, share_high`` (Wilson's
        interval, over clusters), ``n_quotes, n_texts, n_clusters, reason``.

    Examples
    --------
    >>> evidence = pd.DataFrame({"text_id": ["a", "a", "b", "b"], "cluster_id": list("aabb"),
    ...                          "status": ["verified", "not found", "verified", "verified"]})
    >>> verification(evidence, by=[])[["status", "share"]].values.tolist()[0]
    ['verified', 0.75]
    """
    require(evidence, ["text_id", "cluster_id", "status"], "evidence")
    rows = []
    for key, part in groups(evidence, _names(evidence, by)):
        cluster, n_texts = _codes(part["cluster_id"]), part["text_id"].nunique()
        for status in STATUSES:
            hit = (part["status"] == status).to_numpy(dtype=np.float64)
            row = key | {"status": status, "n_quotes": len(hit), "n_texts": n_texts}
            row |= infer.named_mean("share", hit, cluster, (0.0, 1.0), infer.UNTESTED)
            row["n_clusters"] = len(np.unique(cluster))
            rows.append(row | because(infer.few_clusters(cluster, {"share": hit})))
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Set:
    """Items that are calibrated together: features, raw score, labels and clusters."""

    item_id: pd.Index
    phi: FloatArray
    score: FloatArray
    human: FloatArray
    cluster_id: NDArray[Any]
    scale: FloatArray  # the labels there are, from the lowest to the highest

    @cached_property
    def cluster(self) -> IntArray:
        """The clusters as numbers."""
        return _codes(self.cluster_id)

    def rows(self, kept: Any) -> _Set:
        """Some of the items."""
        own = (self.score[kept], self.human[kept], self.cluster_id[kept])
        return _Set(self.item_id[kept], self.phi[kept], *own, self.scale)


_Side = tuple[_Set, Calibration]
_Measured = dict[str, FloatArray]


def _draws(
    sides: list[_Side], n: int, n_draws: int, seed: int, other: _Set | None = None
) -> tuple[list[list[_Measured]], list[int], Reason | None]:
    """Measure the labels of the sides on the test items of every draw,
    all the same items.

    Returns measures by draw and side, the sizes of the draws, and why it broke off, if
    it did.
    """
    first, learnt = sides[0][0], other or sides[0][0]
    if not len(first.human):
        return [], [], Reason("unrated")
    learning = any(kind != "none" for _, kind in sides)
    train = np.zeros(len(learnt.human), bool)
    found: list[list[_Measured]] = []
    sizes: list[int] = []
    for draw in range(n_draws if learning else 1):
        if learning:
            train = _drawn(learnt, n, seed, draw)
        try:
            labels = [_predict(data, kind, train, other) for data, kind in sides]
        except ValueError as problem:
            return found, sizes, Reason("refused", text=str(problem))
        test = ~np.isnan(labels).any(axis=0)
        human, cluster = first.human[test], first.cluster[test]
        found.append(
            [_measured(own[test], human, cluster, first.scale) for own in labels]
        )
        sizes.append(int(train.sum()))
    return found, sizes, None


def _codes(clusters: Any) -> IntArray:
    return np.asarray(pd.factorize(clusters)[0], dtype=np.int64)


def _names(frame: pd.DataFrame, by: str | Sequence[str] | None) -> list[str]:
    return [c for c in GROUPING if c in frame] if by is None else as_list(by)


def _sets(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    by: str | Sequence[str] | None,
    verified: bool = True,
    mean: bool = False,
) -> Iterator[tuple[dict[str, Any], _Set]]:
    """Yield each group's rated items; several reads of an item are averaged.

    The features are the traits' scores and their shares of invalid quotes; without
    verification the scores without the gate. `mean`: one column each, averaged over the
    traits, for a calibration that is carried to a rubric with another number of traits.
    """
    column, *families = (
        ("score", "trait", "invalid") if verified else ("score_ungated", "ungated")
    )
    require(items, ["item_id", "human"], "items")
    require(
        scores,
        ["item_id", "cluster_id", "n_options", column, f"{families[0]}_1"],
        "scores",
    )
    for key, part in groups(scores, _names(scores, by)):
        per_item = part.groupby("item_id", sort=False, observed=True)
        tables = [
            per_item[list(part.filter(regex=rf"^{f}_\d"))].mean() for f in families
        ]
        if mean:
            tables = [table.mean(axis=1) for table in tables]
        # Columns that a method does not fill (DHS has no quotes) are not features.
        phi = pd.concat(tables, axis=1).dropna(axis=1, how="all")
        names = [c for c in ("dataset", "criterion") if c in part]
        rated = matched(per_item[names].first().reset_index(), items, "human")
        human = rated.to_numpy(dtype=np.float64)
        every = _Set(
            phi.index.astype(object),
            phi.to_numpy(dtype=np.float64),
            per_item[column].mean().to_numpy(dtype=np.float64),
            human,
            per_item["cluster_id"].first().to_numpy(),
            _scale(part.iloc[0]),
        )
        yield key, every.rows(~np.isnan(human))


def _scale(row: pd.Series) -> FloatArray:
    """Labels of a row's scale: its levels, or those that `whole_texts` made of them."""
    lowest, step = float(row.get("lowest", 1)), float(row.get("step", 1))
    highest = float(row.get("highest", lowest + row["n_options"] - 1))
    return np.arange(lowest, highest + step / 2, step)


def _rater_by_rater(ratings: pd.Series, times: int) -> tuple[float, ...]:
    """Each rater's mean over the criteria of a text;
    empty if they are not the same number.
    """
    own = [
        tuple(r) if isinstance(r, tuple | list | np.ndarray) else () for r in ratings
    ]
    if len(set(map(len, own))) > 1:
        return ()
    return tuple(float(times * mean) for mean in np.mean(own, axis=0))


def _drawn(data: _Set, n: int, seed: int, draw: int = 0) -> NDArray[np.bool_]:
    """Calibration items: whole clusters, every k-th along their mean label,
    a random start.
    """
    wanted = min(n, len(data.human) // 2)
    n_clusters = int(data.cluster.max()) + 1
    size = binned(data.cluster, minlength=n_clusters)
    label = binned(data.cluster, data.human, minlength=n_clusters) / size
    names = data.cluster_id[np.unique(data.cluster, return_index=True)[1]]
    shuffled = mix64(hash64(names), seed, draw)
    order = np.lexsort((shuffled, label))
    n_drawn = max(1, round(wanted / size.mean()))
    start = float(np.random.default_rng((seed, draw)).random())
    at = ((np.arange(n_drawn) + start) * n_clusters / n_drawn).astype(np.int64)
    return np.isin(data.cluster, order[at])


def _predict(
    data: _Set, kind: Calibration, train: NDArray[np.bool_], other: _Set | None = None
) -> FloatArray:
    """A label per item, learnt from items of this set (which then have none)
    or of another.
    """
    if kind == "none":
        return nearest_label(data.score, data.scale)
    calibrator = IsotonicCalibrator() if kind == "isotonic" else Calibrator()
    x, learnt = (
        own.score if kind == "isotonic" else own.phi for own in (data, other or data)
    )
    if other is None:
        out = np.full(len(x), np.nan)
        out[~train] = calibrator.fit(x[train], data.human[train]).predict(x[~train])
        return out
    place = (other.human[train] - other.scale[0]) / np.ptp(other.scale)
    calibrator.fit(learnt[train], data.scale[0] + place * np.ptp(data.scale))
    label = calibrator.predict(x)
    return (
        label
        if np.array_equal(other.scale, data.scale)
        else nearest_label(label, data.scale)
    )


def _side(scores: pd.DataFrame, items: pd.DataFrame, wanted: dict[str, Any]) -> _Side:
    kind, verified = wanted.pop("calibration", "quantile"), wanted.pop("verified", True)
    chosen = np.ones(len(scores), bool)
    for column, value in wanted.items():
        chosen &= (scores[column] == value).to_numpy()
    if not chosen.any():
        named = ", ".join(f"{column} {value!r}" for column, value in wanted.items())
        raise ValueError(f"no scores for {named}: grade it first")
    _check_one_condition(scores[chosen], "one side")
    ((_, data),) = _sets(scores[chosen], items, [], verified)
    return data, kind


def _check_one_condition(scores: pd.DataFrame, what: str) -> None:
    """Refuse mixed conditions, since the reads
    of an item would be averaged over them.
    """
    for column in _CONDITIONS:
        if column in scores and len(names := scores[column].unique()) > 1:
            raise ValueError(
                f"{what} has several values of {column!r} "
                f"({', '.join(map(str, names))}): choose one"
            )


def _over_draws(name: str, draws: list[FloatArray]) -> infer.Estimate:
    """Mean over draws of a measure (or of a difference),
    with the interval of one calibration.

    Its variance is that over clusters and that between draws; of ρ on Fisher's z scale.
    """
    middle = _mean(draws)
    if not draws:
        return infer.Estimate(middle)
    scaled, back = (_fisher, np.tanh) if name == "rho" else (np.asarray, np.asarray)
    z = [scaled(draw) for draw in draws]
    within = float(np.mean([float(infer.jackknife_se(draw[1:])) ** 2 for draw in z]))
    df = [
        float(infer.freedom(draw[1:] - draw[1:].mean())) for draw in z if len(draw) > 2
    ]
    se = float(np.sqrt(within + _sd([float(draw[0]) for draw in z]) ** 2))
    mean_df = float(np.mean(df)) if df else np.nan
    found = infer.t_estimate(float(scaled(np.array(middle))), se, mean_df)
    ends = back(np.array(found.ends))
    if name in _MEASURES:
        ends = np.clip(ends, *((0.0, np.inf) if name in _DISTANCES else (-1.0, 1.0)))
    return replace(found, value=middle, low=float(ends[0]), high=float(ends[1]))


def _mean(draws: list[FloatArray]) -> float:
    return infer.mean_of(np.array([draw[0] for draw in draws]))


def _sd(draws: list[float]) -> float:
    return float(np.std(draws, ddof=1)) if len(draws) > 1 else 0.0


def _measured(
    label: FloatArray, human: FloatArray, cluster: IntArray, scale: FloatArray
) -> dict[str, FloatArray]:
    """Every measure on one test set, then without each of its clusters:
    shape (1 + clusters,).
    """
    if not len(label):
        return dict.fromkeys(_MEASURES, np.full(1, np.nan))
    cluster = np.asarray(np.unique(cluster, return_inverse=True)[1])
    values = np.unique(np.concatenate([label, human]))
    given, rated = (side[:, None] == values for side in (label, human))
    central = _middle(values, scale)
    columns = (kappa_sums(label, human), np.abs(label - human)[:, None], given, rated)
    parts = by_cluster(np.concatenate(columns, axis=1, dtype=np.float64), cluster)
    total = parts.sum(axis=0)
    rest = np.concatenate([total[None], total - parts])
    sums, error, given, rated = np.split(rest, [6, 7, 7 + len(values)], axis=1)
    n, x, y, xx, yy, _ = sums.T
    n = np.where(n > 0, n, np.nan)
    spread = [np.maximum(ss / n - (s / n) ** 2, 0.0) for s, ss in ((x, xx), (y, yy))]
    known = spread[1] > 1e-12
    apart = np.abs(np.cumsum(given - rated, axis=1)[:, :-1]) @ np.diff(values) / n
    return {
        "qwk": kappa_of_sums(sums),
        "mae": error[:, 0] / n,
        "rho": np.append(
            spearman(label, human), leave_out_spearman(label, human, cluster)
        ),
        "sd_ratio": np.where(
            known, np.sqrt(spread[0] / np.where(known, spread[1], 1)), np.nan
        ),
        "middle_excess": (given - rated)[:, central].sum(axis=1) / n,
        "wasserstein": apart,
    }


def _middle(labels: FloatArray, scale: FloatArray) -> NDArray[np.bool_]:
    """Which labels lie in the middle third of the scale."""
    place = (labels - scale[0]) / (scale[-1] - scale[0])
    return np.asarray(np.abs(place - 0.5) <= 1 / 6 + 1e-9)


def _fisher(rho: FloatArray) -> FloatArray:
    """Fisher's z; NaN where it is infinite."""
    return np.arctanh(np.where(np.abs(rho) < 1, rho, np.nan))
