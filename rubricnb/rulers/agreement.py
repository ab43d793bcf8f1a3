"""Statistics of graded scores: calibrated agreement, stability, verification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates.losses import lost_scores
from rubricnb.core.estimates.reads import (
    By,
    as_list,
    by_cluster,
    groups,
    matched,
)
from rubricnb.core.estimates.reasons import Reason, Why, because
from rubricnb.core.frames import require
from rubricnb.core.support.counting import binned
from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import FloatArray, IntArray, Mask, Row
from rubricnb.rulers.calibration import Calibrator, IsotonicCalibrator, nearest_label
from rubricnb.rulers.evidence import STATUSES
from rubricnb.statistics.human_agreement import numbers_of
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums
from rubricnb.statistics.ranks import leave_out_spearman, spearman

Calibration = Literal["quantile", "isotonic", "none"]
CALIBRATIONS: tuple[Calibration, ...] = get_args(Calibration)
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
    by: By = None,
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
    >>> bundle = load_bundle("minibench")
    >>> grades = grade(items, bundle, SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ...
    >>> labels = calibrated(grades.scores, items, n_calibration=30)
    >>> len(labels), sorted(labels.label.unique().tolist())
    (90, [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    tables = []
    for key, group in _rated_sets(scores, items, by):
        is_calibration = np.zeros(len(group.human), bool)
        if calibration != "none":
            is_calibration = _draw_calibration_items(group, n_calibration, seed)
        columns = {
            **key,
            "item_id": group.item_id,
            "cluster_id": group.cluster_id,
            "label": _predict(group, calibration, is_calibration),
            "human": group.human,
        }
        tables.append(pd.DataFrame(columns)[~is_calibration])
    return pd.concat(tables, ignore_index=True)


def label_agreement(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    calibration: Calibration | Sequence[Calibration] = "quantile",
    n_calibration: int = _N_CALIBRATION,
    n_draws: int = _N_DRAWS,
    seed: int = 0,
    by: By = None,
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
    >>> bundle = load_bundle("minibench")
    >>> grades = grade(items, bundle, SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ...
    >>> kinds = ["quantile", "none"]
    >>> table = label_agreement(grades.scores, items, kinds, n_calibration=30)
    >>> table[["criterion", "calibration", "n_calibration"]].head(2).values.tolist()
    [['accuracy', 'quantile', 30], ['accuracy', 'none', 0]]
    """
    kinds: list[Any] = as_list(calibration)
    for kind in kinds:
        one_of("calibration", kind, CALIBRATIONS)
    training_set = None
    if trained_on is not None:
        _check_one_condition(trained_on[0], "trained_on")
        ((_, training_set),) = _rated_sets(*trained_on, [], average_traits=True)
    rows = []
    for key, group in _rated_sets(
        scores, items, by, average_traits=training_set is not None
    ):
        for kind in kinds:
            draws, n_calibrated, problem = _measure_draws(
                [(group, kind)], n_calibration, n_draws, seed, training_set
            )
            row = {
                **key,
                "calibration": kind,
                "n_items": len(group.human),
                "n_clusters": len(np.unique(group.cluster)),
                "n_unscored": int(np.isnan(group.score).sum()),
                "n_calibration": round(float(np.mean(n_calibrated or 0))),
            }
            for name in _MEASURES:
                estimate = _estimate_over_draws(
                    name, [measured[name] for (measured,) in draws]
                )
                row |= estimate.named(name, *infer.UNTESTED)
            doubts = infer.few_clusters(
                group.cluster, scores=(group.human,)
            ) + infer.alike(row)
            rows.append(row | because(problem or doubts))
    return pd.DataFrame(rows)


def whole_texts(
    scores: pd.DataFrame, items: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score and rate texts as wholes: one row per text and read, not per criterion.

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
    >>> scores = pd.DataFrame({
    ...     "text_id": "a", "method": "dhs", "criterion": ["x", "y"], "n_options": 5,
    ...     "trait_1": 2, "trait_2": 3, "ungated_1": 2, "ungated_2": 3})
    >>> items = pd.DataFrame({
    ...     "text_id": "a", "criterion": ["x", "y"], "human": [2.0, 3.0]})
    >>> scored, rated = whole_texts(scores, items)
    >>> scored[["item_id", "score"]].values.tolist(), rated["human"].tolist()
    ([['a', 2.5]], [2.5])
    """
    read_columns = {*GROUPING, "ordering_index", "replicate", "text_id"} - {"criterion"}
    scored = scores.drop_duplicates([*scores.columns.intersection([*read_columns])])
    rated = items.drop_duplicates("text_id")
    is_sum = "dataset" in items and set(items["dataset"]) == {_SUMMED}
    # a sum of traits is their mean times their number
    n_summed = items["criterion"].nunique() if is_sum else 1
    score_columns = {
        column: scored.filter(regex=rf"^{family}_\d").mean(axis=1) * n_summed
        for column, family in (("score", "trait"), ("score_ungated", "ungated"))
    }
    lowest = scored.get("lowest", 1)
    scale = {
        "lowest": n_summed * lowest,
        "highest": n_summed * (lowest + scored["n_options"] - 1),
        "step": 0.5 if is_sum else 1.0,
    }
    by_text = items.groupby("text_id", observed=True)
    human_of_text = by_text["human"].mean() * n_summed
    if is_sum:  # an incomplete sum is a different quantity
        human_of_text = human_of_text.where(by_text["human"].count() == by_text.size())
    rated = rated.assign(item_id=rated["text_id"], criterion="whole")
    rated["human"] = human_of_text.reindex(rated["text_id"]).to_numpy()
    if "human_ratings" in items:
        ratings_of_text = by_text["human_ratings"].agg(_rater_by_rater, n_summed)
        rated["human_ratings"] = ratings_of_text.reindex(rated["text_id"]).to_numpy()
    return scored.assign(
        item_id=scored["text_id"], criterion="whole", **score_columns, **scale
    ), rated


def label_contrast(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    a: Row,
    b: Row,
    n_calibration: int = _N_CALIBRATION,
    n_draws: int = _N_DRAWS,
    seed: int = 0,
) -> Row:
    """Compare two methods, variants or calibrations by kappa on the same test items.

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
    >>> bundle = load_bundle("minibench")
    >>> grades = grade(items, bundle, SimulatedGrader(), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:grader: 60 of 60 in ...
    >>> same = {"method": "rulers"}
    >>> found = label_contrast(*whole_texts(grades.scores, items), same, same)
    >>> found["difference"], found["n_items"]
    (0.0, 60)
    """
    (first_side, kind_a), (second_side, kind_b) = (
        _select_side(scores, items, dict(selection)) for selection in (a, b)
    )
    asked_ids = first_side.item_id.intersection(second_side.item_id, sort=False)
    first_side = first_side.subset(first_side.item_id.get_indexer(asked_ids))
    second_side = second_side.subset(second_side.item_id.get_indexer(asked_ids))
    losses = lost_scores(first_side.score, second_side.score, what="rated items")
    is_common = ~np.isnan(first_side.score + second_side.score)
    row: Row = infer.counted(is_common, first_side.cluster)
    first_side = first_side.subset(is_common)
    sides = [(first_side, kind_a), (second_side.subset(is_common), kind_b)]
    draws, _, problem = _measure_draws(sides, n_calibration, n_draws, seed)
    for name in _CONTRASTED:
        row |= {
            f"{name}_{letter}": _mean_of_draws([draw[side][name] for draw in draws])
            for side, letter in enumerate("ab")
        }
        difference = _estimate_over_draws(
            f"{name}_difference", [of_a[name] - of_b[name] for of_a, of_b in draws]
        )
        if name == "qwk":
            row |= {"difference": difference.value, **difference.columns()}
        else:
            row |= difference.named(f"{name}_difference")
    why: Why = problem or infer.few_clusters(
        first_side.cluster, scores=(first_side.human,)
    )
    if draws and np.isnan(row["difference"]):
        why = Reason("kappa_undefined")
    elif draws and np.isnan(row["low"]) and row["n_clusters"] > 1:
        why = Reason("no_interval.same_difference")
    return row | because(why, losses)


def extreme(
    table: pd.DataFrame, name: str, largest: bool = False
) -> tuple[float, float, float]:
    """Return the smallest (largest) of several estimates, its interval for all.

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
    value, low, high, se, df = table[columns].to_numpy(float).T
    # The largest is minus the smallest of the negatives.
    if largest:
        value, low, high = -value, -high, -low
    of_several = [
        infer.largest(infer.Estimate(v, se=s, df=d), len(table)).high
        for v, s, d in zip(value, se, df, strict=True)
    ]
    joint_high = np.where(np.isnan(high), np.nan, of_several)
    of_all = np.min([value, low, joint_high], axis=1)
    if np.isnan(of_all).any():
        return np.nan, np.nan, np.nan
    extreme_value, *ends = map(float, 0.0 - of_all if largest else of_all)
    return extreme_value, min(ends), max(ends)


def invariance(scores: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Stochastic invariance: how much a score varies when one asks again.

    Parameters
    ----------
    scores
        From `grade` with ``replicates`` of 2 or more and a temperature above 0.
    by
        Columns to group by; default: judge, dataset, method, criterion and conditions.

    Returns
    -------
    DataFrame
        One row per group. A question is an item under one ordering. ``n_items,
        n_clusters`` whose questions have two scores or more; ``n_lost``, the items
        without such a question; ``variance``, the mean variance of a question's scores
        (ddof 1), with ``_low, _high`` (t interval on clusters); ``sd``, its root;
        ``unchanged``, the share of questions whose score is always the same;
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
    for key, group in groups(scores, _group_columns(scores, by)):
        by_question = group.dropna(subset="score").groupby(
            ["item_id", "ordering"], sort=False, observed=True
        )
        per_question = by_question.agg(
            variance=("score", "var"), cluster=("cluster_id", "first")
        ).dropna()
        variance = per_question["variance"].to_numpy(float)
        cluster = _cluster_codes(per_question["cluster"])
        n_items = per_question.index.get_level_values("item_id").nunique()
        row: Row = key | {
            "n_items": n_items,
            "n_clusters": len(np.unique(cluster)),
            "n_lost": group["item_id"].nunique() - n_items,
            **infer.mean_t(variance, cluster)
            .within(0.0, np.inf)
            .named("variance", *infer.UNTESTED),
        }
        row |= {"sd": row["variance"] ** 0.5, "unchanged": infer.mean_of(variance == 0)}
        why: Why = infer.few_clusters(cluster)
        if not variance.any():
            why = Reason("no_interval.repeats" if len(variance) else "read_once")
        rows.append(row | because(why))
    return pd.DataFrame(rows)


def verification(evidence: pd.DataFrame, by: By = None) -> pd.DataFrame:
    """Return shares of quotes by verification, with intervals over clusters.

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
    >>> evidence = pd.DataFrame({
    ...     "text_id": ["a", "a", "b", "b"], "cluster_id": list("aabb"),
    ...     "status": ["verified", "not found", "verified", "verified"]})
    >>> verification(evidence, by=[])[["status", "share"]].values.tolist()[0]
    ['verified', 0.75]
    """
    require(evidence, ["text_id", "cluster_id", "status"], "evidence")
    rows = []
    for key, group in groups(evidence, _group_columns(evidence, by)):
        cluster = _cluster_codes(group["cluster_id"])
        for status in STATUSES:
            has_status = (group["status"] == status).to_numpy(float)
            row = {
                **key,
                "status": status,
                "n_quotes": len(has_status),
                "n_texts": group["text_id"].nunique(),
                **infer.named_mean(
                    "share", has_status, cluster, (0.0, 1.0), infer.UNTESTED
                ),
                "n_clusters": len(np.unique(cluster)),
                **because(infer.few_clusters(cluster, {"share": has_status})),
            }
            rows.append(row)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Set:
    """Items that are calibrated together: features, raw score, labels and clusters."""

    item_id: pd.Index
    features: FloatArray  # shape (items, features)
    score: FloatArray
    human: FloatArray
    cluster_id: NDArray[Any]
    scale: FloatArray  # the labels there are, from the lowest to the highest

    @cached_property
    def cluster(self) -> IntArray:
        """The clusters as numbers."""
        return _cluster_codes(self.cluster_id)

    def subset(self, chosen: Any) -> _Set:
        """Some of the items, by a mask or their numbers."""
        return _Set(
            self.item_id[chosen],
            self.features[chosen],
            self.score[chosen],
            self.human[chosen],
            self.cluster_id[chosen],
            self.scale,
        )


_Side = tuple[_Set, Calibration]
_Measured = dict[str, FloatArray]


def _measure_draws(
    sides: list[_Side],
    n_calibration: int,
    n_draws: int,
    seed: int,
    trained_on: _Set | None = None,
) -> tuple[list[list[_Measured]], list[int], Reason | None]:
    """Measure the sides' labels on the test items of every draw, the same for all.

    Returns measures by draw and side, the sizes of the draws, and why it broke off, if
    it did.
    """
    first_side, calibrated_on = sides[0][0], trained_on or sides[0][0]
    if not len(first_side.human):
        return [], [], Reason("unrated")
    calibrates = any(kind != "none" for _, kind in sides)
    is_calibration = np.zeros(len(calibrated_on.human), bool)
    draws: list[list[_Measured]] = []
    n_calibrated: list[int] = []
    for draw in range(n_draws if calibrates else 1):
        if calibrates:
            is_calibration = _draw_calibration_items(
                calibrated_on, n_calibration, seed, draw
            )
        try:
            labels_of_side = [
                _predict(rated_set, kind, is_calibration, trained_on)
                for rated_set, kind in sides
            ]
        except ValueError as problem:
            return draws, n_calibrated, Reason("refused", text=str(problem))
        is_test = ~np.isnan(labels_of_side).any(axis=0)
        human, cluster = first_side.human[is_test], first_side.cluster[is_test]
        draws.append(
            [
                _measured(labels[is_test], human, cluster, first_side.scale)
                for labels in labels_of_side
            ]
        )
        n_calibrated.append(int(is_calibration.sum()))
    return draws, n_calibrated, None


def _cluster_codes(clusters: Any) -> IntArray:
    return np.asarray(pd.factorize(clusters)[0], dtype=np.int64)


def _group_columns(frame: pd.DataFrame, by: By) -> list[str]:
    return [c for c in GROUPING if c in frame] if by is None else as_list(by)


def _rated_sets(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    by: By,
    verified: bool = True,
    average_traits: bool = False,
) -> Iterator[tuple[Row, _Set]]:
    """Yield each group's rated items; several reads of an item are averaged.

    The features are the traits' scores and their shares of invalid quotes; without
    verification the scores without the gate. `average_traits`: one column each,
    averaged over the traits, for a calibration that is carried to a rubric with another
    number of traits.
    """
    score_column, *families = (
        ("score", "trait", "invalid") if verified else ("score_ungated", "ungated")
    )
    require(items, ["item_id", "human"], "items")
    require(
        scores,
        ["item_id", "cluster_id", "n_options", score_column, f"{families[0]}_1"],
        "scores",
    )
    for key, group in groups(scores, _group_columns(scores, by)):
        per_item = group.groupby("item_id", sort=False, observed=True)
        feature_tables = [
            per_item[list(group.filter(regex=rf"^{family}_\d"))].mean()
            for family in families
        ]
        if average_traits:
            feature_tables = [table.mean(axis=1) for table in feature_tables]
        # Columns that a method does not fill (DHS has no quotes) are not features.
        features = pd.concat(feature_tables, axis=1).dropna(axis=1, how="all")
        first_reads = group.drop_duplicates("item_id")
        human = matched(first_reads, items, "human").to_numpy(float)
        all_items = _Set(
            features.index.astype(object),
            features.to_numpy(float),
            per_item[score_column].mean().to_numpy(float),
            human,
            first_reads["cluster_id"].to_numpy(),
            _scale(group.iloc[0]),
        )
        yield key, all_items.subset(~np.isnan(human))


def _scale(row: pd.Series) -> FloatArray:
    """Labels of a row's scale: its levels, or those that `whole_texts` made of them."""
    lowest, step = float(row.get("lowest", 1)), float(row.get("step", 1))
    highest = float(row.get("highest", lowest + row["n_options"] - 1))
    return np.arange(lowest, highest + step / 2, step)


def _rater_by_rater(ratings: pd.Series, n_summed: int) -> tuple[float, ...]:
    """Each rater's mean over a text's criteria; empty if their numbers differ."""
    by_criterion = [numbers_of(by_rater) for by_rater in ratings]
    if len(set(map(len, by_criterion))) > 1:
        return ()
    return tuple(float(n_summed * mean) for mean in np.mean(by_criterion, axis=0))


def _draw_calibration_items(
    rated_set: _Set, n_calibration: int, seed: int, draw: int = 0
) -> Mask:
    """Calibration items: whole clusters, every k-th by mean label, a random start."""
    n_wanted = min(n_calibration, len(rated_set.human) // 2)
    cluster_size = binned(rated_set.cluster)
    n_clusters = len(cluster_size)
    mean_label = binned(rated_set.cluster, rated_set.human) / cluster_size
    # clusters are numbered as they appear
    tie_breaker = mix64(hash64(pd.unique(rated_set.cluster_id)), seed, draw)
    by_label = np.lexsort((tie_breaker, mean_label))
    n_drawn_clusters = max(1, round(n_wanted / cluster_size.mean()))
    offset = float(np.random.default_rng((seed, draw)).random())
    # A systematic draw takes places (k + offset) · n_clusters / n_drawn_clusters.
    positions = (
        (np.arange(n_drawn_clusters) + offset) * n_clusters / n_drawn_clusters
    ).astype(np.int64)
    return np.isin(rated_set.cluster, by_label[positions])


def _predict(
    rated_set: _Set,
    kind: Calibration,
    is_calibration: Mask,
    trained_on: _Set | None = None,
) -> FloatArray:
    """A label per item, learnt from others of this set or from another set."""
    if kind == "none":
        return nearest_label(rated_set.score, rated_set.scale)
    calibrator = IsotonicCalibrator() if kind == "isotonic" else Calibrator()
    inputs, training_inputs = (
        source.score if kind == "isotonic" else source.features
        for source in (rated_set, trained_on or rated_set)
    )
    if trained_on is None:
        labels = np.full(len(inputs), np.nan)
        labels[~is_calibration] = calibrator.fit(
            inputs[is_calibration], rated_set.human[is_calibration]
        ).predict(inputs[~is_calibration])
        return labels
    # a label keeps its place between the ends of the scale, from 0 to 1
    place = (trained_on.human[is_calibration] - trained_on.scale[0]) / np.ptp(
        trained_on.scale
    )
    calibrator.fit(
        training_inputs[is_calibration],
        rated_set.scale[0] + place * np.ptp(rated_set.scale),
    )
    labels = calibrator.predict(inputs)
    return (
        labels
        if np.array_equal(trained_on.scale, rated_set.scale)
        else nearest_label(labels, rated_set.scale)
    )


def _select_side(scores: pd.DataFrame, items: pd.DataFrame, selection: Row) -> _Side:
    kind = selection.pop("calibration", "quantile")
    verified = selection.pop("verified", True)
    for column, value in selection.items():
        scores = scores[scores[column] == value]
    if scores.empty:
        listed = ", ".join(f"{column} {value!r}" for column, value in selection.items())
        raise ValueError(f"no scores for {listed}: grade it first")
    _check_one_condition(scores, "one side")
    ((_, rated_set),) = _rated_sets(scores, items, [], verified)
    return rated_set, kind


def _check_one_condition(scores: pd.DataFrame, what: str) -> None:
    """Refuse mixed conditions, over which an item's reads would be averaged."""
    for column in _CONDITIONS:
        if column in scores and len(values := scores[column].unique()) > 1:
            raise ValueError(
                f"{what} has several values of {column!r} "
                f"({', '.join(map(str, values))}): choose one"
            )


def _estimate_over_draws(name: str, draws: list[FloatArray]) -> infer.Estimate:
    """Mean of a measure over draws, with the interval of one calibration.

    Its variance is that over clusters and that between draws; of ρ on Fisher's z scale.
    """
    mean = _mean_of_draws(draws)
    if not draws:
        return infer.Estimate(mean)

    def scaled(draw: FloatArray) -> FloatArray:
        """Fisher's z of ρ; NaN where it is infinite."""
        return np.arctanh(np.where(np.abs(draw) < 1, draw, np.nan)) if is_rho else draw

    is_rho = name == "rho"
    of_draws = [infer.jackknife_t(draw[0], draw[1:]) for draw in map(scaled, draws)]
    variance_within = np.mean([one.se**2 for one in of_draws])
    # se² = mean over draws of the jackknife's variance + variance between draws
    values = [one.value for one in of_draws]
    sd_between = np.std(values, ddof=1) if len(values) > 1 else 0.0
    se = float(np.sqrt(variance_within + sd_between**2))
    mean_df = float(np.mean([one.df for one in of_draws]))
    estimate = infer.t_estimate(float(scaled(np.array(mean))), se, mean_df)
    ends = np.tanh(estimate.ends) if is_rho else np.array(estimate.ends)
    found = replace(estimate, value=mean, low=float(ends[0]), high=float(ends[1]))
    if name not in _MEASURES:
        return found
    return found.within(*((0.0, np.inf) if name in _DISTANCES else (-1.0, 1.0)))


def _mean_of_draws(draws: list[FloatArray]) -> float:
    return infer.mean_of(np.array([draw[0] for draw in draws]))


def _measured(
    label: FloatArray, human: FloatArray, cluster: IntArray, scale: FloatArray
) -> _Measured:
    """Every measure on one test set, and without each cluster: (1 + clusters,)."""
    if not len(label):
        return dict.fromkeys(_MEASURES, np.full(1, np.nan))
    distinct_labels = np.unique(np.concatenate([label, human]))
    label_is, human_is = (side[:, None] == distinct_labels for side in (label, human))
    # in the middle third of the scale
    place = (distinct_labels - scale[0]) / (scale[-1] - scale[0])
    is_central = np.abs(place - 0.5) <= 1 / 6 + 1e-9
    summands = (
        kappa_sums(label, human),
        np.abs(label - human)[:, None],
        label_is,
        human_is,
    )
    cluster_sums = by_cluster(
        np.concatenate(summands, axis=1, dtype=np.float64), cluster
    )
    total = cluster_sums.sum(axis=0)
    left_out_sums = np.concatenate([total[None], total - cluster_sums])
    moments, error_sum, label_count, human_count = np.split(
        left_out_sums, [6, 7, 7 + len(distinct_labels)], axis=1
    )
    n, x, y, xx, yy, _ = moments.T
    n = np.where(n > 0, n, np.nan)
    # variance = Σx²/n − (Σx/n)², of the labels (x) and of people's (y)
    variances = [np.maximum(ss / n - (s / n) ** 2, 0.0) for s, ss in ((x, xx), (y, yy))]
    human_variance = np.where(variances[1] > 1e-12, variances[1], np.nan)
    # W₁ = Σ |F_label − F_human| over the gaps between neighbouring labels
    wasserstein = (
        np.abs(np.cumsum(label_count - human_count, axis=1)[:, :-1])
        @ np.diff(distinct_labels)
        / n
    )
    return {
        "qwk": kappa_of_sums(moments),
        "mae": error_sum[:, 0] / n,
        "rho": np.append(
            spearman(label, human), leave_out_spearman(label, human, cluster)
        ),
        "sd_ratio": np.sqrt(variances[0] / human_variance),
        "middle_excess": (label_count - human_count)[:, is_central].sum(axis=1) / n,
        "wasserstein": wasserstein,
    }
