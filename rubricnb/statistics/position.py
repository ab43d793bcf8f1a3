"""Does a judge prefer a position? The papers' test, and one that holds (Setting 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from rubricnb.core.estimates import intervals as infer
from rubricnb.core.estimates import reads as arrays
from rubricnb.core.estimates.intervals import noncentrality
from rubricnb.core.estimates.reads import By, Reads, Value
from rubricnb.core.estimates.reasons import Reason, because, because_each
from rubricnb.core.permutation import position_counts
from rubricnb.core.support.counting import binned, repeated
from rubricnb.core.support.types import FloatArray, Records, Row
from rubricnb.statistics.placement import Block, Placement, blocks, place, read_profiles
from rubricnb.statistics.preference import Preference, log_preferences

_ENDS = ("", "_low", "_high")
_PAPERS = (
    "chi2",
    "chi2_low",
    "chi2_high",
    "p_chi2",
    "cramers_v",
    "cramers_v_low",
    "cramers_v_high",
)


def position_bias(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Test and measure whether a judge selects some positions more than others.

    The papers' χ² and Cramér's V are given with a test and sizes that hold when reads
    share an item and items share a text.

    Parameters
    ----------
    judgments
        Judgments of a design with several orderings per item. The papers' columns need
        a balanced one (`balanced`, `williams`); scores are options of their ordering.
    by
        Columns to group by; by default judge, dataset, design and every condition
        column present.
    value
        ``score``, or ``expected_score``: the same formulas on the probability of each
        option (readout ``logprobs``). Then the papers' columns are NaN: expected counts
        have no χ².

    Returns
    -------
    DataFrame
        One row a group: its columns, and

        * ``n_items, n_clusters, n_reads`` (parsed reads);
        * ``chi2, p_chi2, cramers_v``: the papers'; V = sqrt(χ² / (reads (n - 1))) in
          0…1. The size of this test is not its level: reads of an item share its
          quality; ``chi2_low, chi2_high, cramers_v_low, cramers_v_high``: the mean that
          they have in studies of this size, 95 % intervals from that of
          ``v2_unbiased``, raised by the floor;
        * ``q, df, p_within``: within-cluster permutation test in closed form. Its null
          is that order sensitivity is not aligned with position. p is 1 where no answer
          ever changes, and then the sizes have no intervals, ``p_equivalent`` or
          ``mde``: nothing varied. ``p_within_adjusted``: Benjamini–Hochberg over the
          returned rows;
        * ``v2_unbiased``: V² from pairs of items of different clusters; unbiased, so it
          can be negative. Average it over groups before taking a root.
          ``v2_unbiased_low, _high``: 95 % score interval with t quantiles and the
          covariance of the shares over clusters;
        * ``share_1…n`` with ``_low, _high``: share of reads per position, centred at
          what the parsed reads would give by chance, with 95 % t intervals over
          clusters. Where the orderings of an item are not balanced, chance itself holds
          part of a preference; shares and V² are rescaled by what is left of a small
          preference. For a larger one that is too much where items have few orderings:
          share_1 is .327 under ``shuffled(5, 2)`` for a judge with .308 under
          ``balanced(5)``, so compare shares within one design;
        * ``share_1_least, share_1_most`` …: raw shares if no lost read, and if every
          lost read, had stood there; ``p_equivalent``: TOST that every share lies
          within ±0.02 of 1/n;
        * ``log_preference_1…n`` with ``_low, _high``: conditional logit of position
          given each item's scores; they sum to 0. Free of how decided the judge is,
          which shares are not. NaN, with a reason, of a group whose answers would take
          minutes: 80,000 scores on 21 levels;
        * ``mde``: the V that p_within would detect with 80 % power at 5 %; NaN, as the
          intervals, where no answer changes with the ordering: that does not show how
          much one could;
        * ``reason``: what could not be computed and why; empty if everything was.

    Raises
    ------
    ValueError
        A group shows every item in one ordering only (``fixed``, ``single``): position
        and score cannot be told apart. A read has no ordering, or its score is not
        among the options.

    Notes
    -----
    arXiv:2602.02219v2, §3.1, §4.4, Tables 2 and 4. Forward and reverse rotations are
    permuted separately. The ascending and the descending ordering alone leave nothing
    to permute, and a preference for the first place looks like one for a direction:
    test, shares, V², log preferences and mde are NaN, and `rubricnb.order_effect`
    compares the two. Orderings that never exchange some of the positions give
    ``p_within`` only. With fewer than two clusters only the papers' columns and the
    shares are given.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": list("aabbcc"), "cluster_id": list("aabbcc"),
    ...     "design": "balanced", "ordering_index": [1, 2] * 3,
    ...     "ordering": ["1-2", "2-1"] * 3, "score": [1, 2, 1, 1, 1, 2]})
    >>> position_bias(judgments)[["n_reads", "share_1", "cramers_v"]].round(3)
       n_reads  share_1  cramers_v
    0        6    0.833      0.667
    """
    groups = _groups(judgments, by, value)
    preferences = log_preferences(
        [reads for _, reads, _ in groups], [parts for _, _, parts in groups]
    )
    rows = [
        {**key, **_bias(reads, parts, preference)}
        for (key, reads, parts), preference in zip(groups, preferences, strict=True)
    ]
    return infer.adjust(pd.DataFrame(rows), "p_within")


def position_sizes(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> Records:
    """Rows of `position_bias` without log preferences, which take most of its time."""
    groups = _groups(judgments, by, value)
    return [{**key, **_bias(reads, parts)} for key, reads, parts in groups]


def _groups(
    judgments: pd.DataFrame, by: By, value: Value
) -> list[tuple[Row, Reads, list[Block]]]:
    groups = []
    for key, reads in arrays.read_groups(judgments, by, value):
        arrays.require_options(reads)
        _check_orderings(key, reads)
        groups.append((key, reads, blocks(reads)))
    return groups


def score_position(
    judgments: pd.DataFrame, by: By = None, value: Value = "score"
) -> pd.DataFrame:
    """Tabulate the position of each score when it is selected: P(position | score).

    Parameters
    ----------
    judgments, by, value
        As in `position_bias`.

    Returns
    -------
    DataFrame
        One row a group, score and position: ``score, position, share`` (among reads
        with this score), ``n`` (those reads; expected ones for probabilities),
        ``share_null`` (its permutation mean), ``share_null_sd`` (its permutation
        standard deviation) and ``reason``: shares are NaN of a score that was never
        given, at a position where it never stood, and where the orderings leave nothing
        to permute (see `position_bias`).

    Notes
    -----
    arXiv:2602.02219v1, Table 5 (which prints per cent). There is a row for each score
    and position, so time may grow with the square of the number of levels: 80,000
    judgments on 101 levels take about fifty times what 5 levels take.

    Examples
    --------
    >>> import pandas as pd
    >>> judgments = pd.DataFrame({
    ...     "item_id": ["a", "a", "b", "b"], "cluster_id": ["a", "a", "b", "b"],
    ...     "design": "balanced", "ordering_index": [1, 2, 1, 2],
    ...     "ordering": ["1-2", "2-1", "1-2", "2-1"], "score": [1, 2, 1, 1]})
    >>> score_position(judgments)[["score", "position", "share", "n"]].round(2)
       score  position  share    n
    0      1         1   0.67  3.0
    1      1         2   0.33  3.0
    2      2         1   1.00  1.0
    3      2         2   0.00  1.0
    """
    return arrays.row_per_group(judgments, by, value, _score_position)


def at_reads(bias: pd.DataFrame, n_reads: ArrayLike) -> pd.DataFrame:
    """Convert the papers' χ² and V to a study with a different number of reads.

    χ² grows with the number of reads, and V has a floor that falls with it. So neither
    of two studies can be compared unless both have the same number.

    Parameters
    ----------
    bias
        From `position_bias` (with ``n_options``), scores (not probabilities), balanced
        design.
    n_reads
        Reads of the other study, for all rows or for each in their order (a Series'
        index does not count).

    Returns
    -------
    DataFrame
        ``n_reads, chi2, chi2_low, chi2_high, cramers_v, cramers_v_low,
        cramers_v_high``: their means in studies of ``n_reads`` reads of texts like
        these. V²_U stays, what V² is above it falls as one over the reads. With as many
        reads as `bias` has, its own numbers.

    Raises
    ------
    ValueError
        A number of reads is not above 0, or there are neither one nor as many as rows,
        or a cell is not a number.

    Examples
    --------
    >>> import rubricnb as rb
    >>> items = rb.load("minibench")
    >>> judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "first-biased")
    >>> bias = rb.position_bias(judgments)
    >>> bool(np.isclose(at_reads(bias, bias.n_reads).chi2, bias.chi2).all())
    True
    """
    given = np.asarray(n_reads)
    if given.ndim and given.shape != (len(bias),):
        raise ValueError(
            f"{given.size} numbers of reads for {len(bias)} rows: give one for all or "
            "one for each"
        )
    if not (given > 0).all():
        raise ValueError(
            f"n_reads: {given[~(given > 0)].flat[0]} is not a number above 0"
        )
    each = pd.Series(np.broadcast_to(given, len(bias)), bias.index)
    # A row turned into a table has columns of objects, in which a NaN compares as 0.
    sizes = bias.filter(regex="^(n_|cramers_v|v2_unbiased)").astype("float64")
    return pd.DataFrame(
        {"n_reads": each} | _carried(sizes, each, sizes["n_options"], _ENDS)
    )


def _carried(bias: Any, n_reads: Any, n_options: Any, ends: Sequence[str]) -> Row:
    """The papers' χ² and V at a number of reads, of rows or of one row.

    V²_U and its interval are raised by what V² is above V²_U: the floor of a study of
    this size.
    """
    floor = (bias["cramers_v"] ** 2 - bias["v2_unbiased"]) * bias["n_reads"] / n_reads
    out: Row = {}
    for end in ends:
        # some processors report the NaN of an empty shape
        with np.errstate(invalid="ignore"):
            v2 = np.clip(bias[f"v2_unbiased{end}"] + floor, 0.0, 1.0)
        out |= {
            f"chi2{end}": n_reads * (n_options - 1) * v2,
            f"cramers_v{end}": v2**0.5,
        }
    return out


def _check_orderings(key: Row, reads: Reads) -> None:
    """Refuse groups in which no item was seen in two orderings."""
    order = np.where(
        reads.order < 0, reads.order.max(axis=1, keepdims=True), reads.order
    )
    if (order.min(axis=1) < order.max(axis=1)).any():
        return
    design = f"design {key['design']!r}" if "design" in key else "a group"
    raise ValueError(
        f"{design} shows every item in one ordering, so position and score cannot be "
        "told apart; pass judgments of a design with several orderings, such as "
        "judgments[judgments.design == 'balanced']"
    )


def _bias(
    reads: Reads, parts: Sequence[Block], preference: Preference | None = None
) -> Row:
    n = reads.n_options
    cluster = reads.cluster
    placement = place(reads, parts)
    n_reads = int(reads.parsed.sum())
    row: Row = infer.counted(placement.reads > 0, cluster) | {"n_reads": n_reads}
    n_clusters = row["n_clusters"]
    reasons: list[Reason] = []
    if n_reads == 0:
        reasons.append(Reason("no_read"))
    row |= papers_test(reads, placement, reasons)
    comparable = placement.comparable if n_reads else n - 1
    row |= cluster_test(placement, n_clusters, reasons)
    row |= position_shares(placement, reads, n_clusters)
    if comparable < n - 1:
        reasons.append(_why_uncompared(reads, comparable))
        sizes = ("share_", "v2_unbiased", "p_equivalent")
        row |= dict.fromkeys([c for c in row if c.startswith(sizes)], np.nan)
    elif row["df"] == 0:  # nothing varied: the sizes have no standard error
        row |= dict.fromkeys(
            [c for c in row if c.endswith(("_low", "_high", "_se", "_df"))], np.nan
        )
        row["p_equivalent"] = np.nan
    row |= _carried(row, max(n_reads, 1), n, _ENDS[1:])
    if row["df"] > 0:
        reasons += infer.alike(row)
    if preference is not None:
        row |= preference.columns
        reasons += preference.why if comparable and n_reads else ()
    if n_clusters > 1:
        reasons += infer.few_clusters(cluster[placement.reads > 0])
    able = n_clusters > 1 and comparable == n - 1 and row["df"] > 0
    row["mde"] = minimum_detectable_v(placement.as_if_balanced(), n) if able else np.nan
    if row["mde"] > 1:
        row["mde"] = np.nan
        reasons.append(Reason("mde.none"))
    return row | because(reasons)


def _why_uncompared(reads: Reads, comparable: int) -> Reason:
    """Return why positions cannot be compared: the orderings, or lost reads."""
    by_design, by_losses = (
        ("half_blind", "half_blind.lost") if comparable else ("blind", "blind.lost")
    )
    if not reads.parsed[reads.order >= 0].all():
        # as if every read had been parsed
        first = np.where(reads.order >= 0, 1.0, np.nan)
        whole = place(replace(reads, value=first, probability=None, scale=None))
        if whole.comparable > comparable:
            return Reason(by_losses)
    return Reason(by_design)


def papers_test(
    reads: Reads, placement: Placement, reasons: list[Reason]
) -> dict[str, float]:
    """Compute the papers' χ² of the chosen positions, its p and Cramér's V.

    NaN, with a reason appended to `reasons`, where reads are probabilities or scores
    were not shown equally often everywhere.
    """
    undefined = dict.fromkeys(_PAPERS, np.nan)
    if reads.probability is not None:
        reasons.append(Reason("chi2.probabilities"))
        return undefined
    n, asked = reads.n_options, reads.order[reads.order >= 0]
    times = binned(asked, minlength=len(reads.orderings))
    shown = np.stack([binned(at - 1, times, n) for at in reads.orderings.T])
    if (shown != shown[0, 0]).any():
        reasons.append(Reason("chi2.unbalanced"))
        return undefined
    count = placement.count.sum(axis=0)
    if count.sum() == 0:
        return undefined
    expected = count.mean()
    chi2 = ((count - expected) ** 2 / expected).sum()
    p = special.chdtrc(n - 1, chi2)
    v = np.sqrt(chi2 / (count.sum() * (n - 1)))
    return undefined | {"chi2": float(chi2), "p_chi2": float(p), "cramers_v": float(v)}


def cluster_test(placement: Placement, n_clusters: int, reasons: list[Reason]) -> Row:
    """Test "every score is chosen alike at every position", with clusters for units.

    Q = d′V⁻d of the summed deviations d against χ² with the rank of V. A doubt is
    appended to `reasons`. Returns ``q``, ``df`` and ``p_within``.
    """
    if n_clusters == 1:
        reasons.append(Reason("no_test"))
    if n_clusters < 2 or placement.comparable == 0:
        return {"q": np.nan, "df": 0, "p_within": np.nan}
    d = placement.deviation.sum(axis=0)
    q, df = quadratic_form(d, placement.variance)
    if df == 0:
        reasons.append(Reason("unchanged"))
    p = float(special.chdtrc(df, q)) if df else 1.0
    return {"q": q, "df": df, "p_within": p}


def quadratic_form(d: FloatArray, variance: FloatArray) -> tuple[float, int]:
    """Return Q = d′V⁻d and the rank of V."""
    values, vectors = np.linalg.eigh(variance)
    nonzero = values > max(1e-9 * values[-1], 1e-9)
    q = float(((vectors[:, nonzero].T @ d) ** 2 / values[nonzero]).sum())
    return q, int(nonzero.sum())


def position_shares(
    placement: Placement, reads: Reads, n_clusters: int
) -> dict[str, float]:
    """V²_U and position shares, centred at the permutation mean, as if balanced."""
    n = reads.n_options
    placement = placement.as_if_balanced()
    has_reads = placement.reads > 0
    cluster = reads.cluster[has_reads]
    deviation, size = placement.deviation[has_reads], placement.reads[has_reads]
    out = _v2_unbiased(deviation / size[:, None], cluster)
    shares, equal = [infer.Estimate()] * n, [np.nan]
    if len(size):
        share = 1 / n + deviation.sum(axis=0) / size.sum()
        shares = [infer.Estimate(value) for value in share]
        rest = arrays.by_cluster(deviation - (share - 1 / n) * size[:, None], cluster)
        if n_clusters > 1:
            weight = arrays.by_cluster(size, cluster) / size.sum()
            rest, df = infer.adjusted(rest / size.sum(), weight)
            ways = zip(share, np.sqrt((rest**2).sum(axis=0)), df, strict=True)
            shares = [infer.t_estimate(*map(float, way)) for way in ways]
            margin = infer.MARGINS["share"]
            equal = [
                infer.equivalence(e.value - 1 / n, e.se, e.df + 1, margin)
                for e in shares
            ]
    count, asked = placement.count.sum(axis=0), int((reads.order >= 0).sum())
    for p, share_of_p in enumerate(shares):
        name = f"share_{p + 1}"
        out |= share_of_p.within(0.0, 1.0).named(name, *infer.UNTESTED)
        out[f"{name}_least"] = count[p] / asked  # no lost read stood there
        # all of them did
        out[f"{name}_most"] = (count[p] + asked - count.sum()) / asked
    return out | {"p_equivalent": float(np.max(equal))}


def _v2_unbiased(d: FloatArray, cluster: np.ndarray[Any, Any]) -> dict[str, float]:
    """n/(n-1) times the mean of d_i·d_j over items of different clusters."""
    cluster = np.unique(cluster, return_inverse=True)[1]
    size = binned(cluster).astype(float)
    n_pairs = size.sum() ** 2 - (size**2).sum()
    if n_pairs == 0:
        return infer.Estimate().named("v2_unbiased", "low", "high")
    sums, scale = arrays.by_cluster(d, cluster), d.shape[1] / (d.shape[1] - 1)
    v2 = scale * ((sums.sum(axis=0) ** 2).sum() - (sums**2).sum()) / n_pairs
    mean = d.mean(axis=0)
    apart = (sums - size[:, None] * mean) / len(d)
    rest, df = infer.adjusted(apart, size / len(d))
    covariance = scale * rest.T @ rest
    if np.trace(covariance) < 1e-24:
        return infer.Estimate(float(v2)).named("v2_unbiased", "low", "high")
    # The interval is of all x at most t standard errors from v2, of variance 4 a x + b
    # at V² = x. (Below 0 it is b.) A standard error at the estimate would be too small
    # where the estimate is.
    t = infer.t_quantile(float(df.min()))
    length = float((mean**2).sum())
    a = float(mean @ covariance @ mean) / length if length > 0 else 0.0
    at_0 = t * float(np.sqrt(2 * (covariance**2).sum()))
    middle = v2 + 2 * a * t**2
    reach = float(np.sqrt(np.maximum(middle**2 - v2**2 + at_0**2, 0.0)))
    low = float(middle - reach if v2 > at_0 else v2 - at_0)
    high = float(middle + reach if v2 >= -at_0 else v2 + at_0)
    found = infer.Estimate(float(v2), min(low, 1.0), min(high, 1.0))
    return found.named("v2_unbiased", "low", "high")


def minimum_detectable_v(placement: Placement, n: int) -> float:
    """V that the cluster test detects with 80 % power: sqrt(λ D / (M (n - 1))).

    D is the permutation mean of χ² over its degrees of freedom: the dispersion,
    clusters included.
    """
    n_reads = placement.count.sum()
    if np.trace(placement.variance) <= 1e-12:
        return np.nan  # no answer changes: nothing shows how much one could
    mean_chi2 = np.trace(placement.variance) / (n_reads / n)
    return float(
        np.sqrt(noncentrality(n - 1) * mean_chi2 / (n - 1) / (n_reads * (n - 1)))
    )


def _score_position(reads: Reads) -> Records:
    arrays.require_options(reads)
    n = reads.n_options
    answers = read_profiles(reads)[reads.parsed]
    given = answers.sum(axis=0)
    shown = position_counts(reads.orderings[reads.order[reads.parsed]]) > 0
    parts = blocks(reads)
    is_blind = bool(given.any()) and place(reads, parts).comparable == 0
    blind = _why_uncompared(reads, 0) if is_blind else None
    why = [
        Reason("never_given")
        if count == 0
        else blind
        if is_shown
        else Reason("never_shown")
        for count, is_shown in zip(repeated(given, n), shown.ravel(), strict=True)
    ]
    size = np.where(
        shown & (given > 0)[:, None] & (not is_blind), given[:, None], np.nan
    )
    placements = [
        place(reads, [replace(part, profile=part.profile * own) for part in parts])
        for own in np.eye(n)
    ]
    count = np.stack([placement.count.sum(axis=0) for placement in placements])
    null = np.stack([placement.expected.sum(axis=0) for placement in placements])
    sd = np.sqrt(
        np.maximum([np.diag(placement.variance) for placement in placements], 0)
    )
    return pd.DataFrame(
        {
            "score": repeated(reads.scores, n),
            "position": np.tile(np.arange(1, n + 1), n),
            "share": (count / size).ravel(),
            "n": repeated(given, n),
            "share_null": (null / size).ravel(),
            "share_null_sd": (sd / size).ravel(),
            **because_each(*why),
        }
    ).to_dict("records")
