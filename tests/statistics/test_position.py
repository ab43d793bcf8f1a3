from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from planted import FIRST, freedom, make_judgments, plain, plausible, t_interval
from scipy import optimize, special, stats
from statsmodels.discrete.conditional_models import ConditionalLogit
from statsmodels.stats.gof import chisquare_effectsize

import rubricnb as rb
from rubricnb.core.estimates.reads import _repeats, by_cluster, read_groups, reads
from rubricnb.core.permutation import balanced, decode, shuffled, williams
from rubricnb.engines.fitting import stand_in
from rubricnb.sets.papers import claims, verdicts
from rubricnb.statistics import placement as placing
from rubricnb.statistics.placement import blocks, place
from rubricnb.statistics.position import at_reads, quadratic_form

SHARES = [f"share_{p}" for p in range(1, 6)]
GAMMAS = [f"log_preference_{p}" for p in range(1, 6)]


def one(judgments, **options):
    result = rb.position_bias(judgments, **options)
    assert len(result) == 1
    return result.iloc[0]


# --- the papers' columns
# -------------------------------------------------------------------------


def test_the_papers_columns_agree_with_scipy_and_statsmodels():
    judgments = make_judgments(40, 2, gamma=FIRST)
    row = one(judgments)
    counts = judgments["position"].value_counts().sort_index().to_numpy()
    expected = stats.chisquare(counts)
    effect = chisquare_effectsize(np.full(5, 0.2), counts / counts.sum()) / np.sqrt(4)
    assert row.chi2 == pytest.approx(expected.statistic)
    assert row.p_chi2 == pytest.approx(expected.pvalue)
    assert row.cramers_v == pytest.approx(effect)
    assert row.n_reads == counts.sum() == 800
    assert (row.n_items, row.n_clusters, row.reason) == (80, 40, "")


# --- the permutation distribution
# ----------------------------------------------------------------


def _placed(judgments, assignment):
    """Position counts after reads answered under ordering a[j]
    are placed under ordering j.
    """
    n = len(decode(judgments["ordering"].iloc[0]))
    counts = np.zeros(n)
    for ordering, score in zip(judgments["ordering"], judgments["score"], strict=True):
        if not pd.isna(score):
            counts[decode(assignment[ordering]).index(int(score))] += 1
    return counts


def _enumerated(judgments, orderings):
    """Mean (n,) and covariance (n, n)
    of the position counts over all permutations of orderings.
    """
    every = permutations(orderings)
    draws = [_placed(judgments, dict(zip(orderings, p, strict=True))) for p in every]
    return np.mean(draws, axis=0), np.cov(np.transpose(draws), bias=True)


@pytest.mark.parametrize("design", [balanced(3), balanced(2), williams(4), balanced(4)])
def test_mean_and_variance_equal_full_enumeration(design):
    judgments = make_judgments(
        3, 2, design=design, text_noise=1.0, reverse_shift=1.0, seed=4
    )
    orderings = judgments["ordering"].astype(str).unique().tolist()
    n = design.n
    forward = [o for o in orderings if (decode(o)[1] - decode(o)[0]) % n == 1]
    strata = [forward, [o for o in orderings if o not in forward]]
    if design.name == "williams" or n == 2:
        strata = [orderings]
    mean, variance = np.zeros(n), np.zeros((n, n))
    for _, cluster in judgments.groupby("cluster_id", observed=True):
        for stratum in strata:
            part = cluster[cluster["ordering"].isin(stratum)]
            of_part = _enumerated(part, stratum)
            mean, variance = mean + of_part[0], variance + of_part[1]
    placement = place(reads(judgments))
    assert placement.expected.sum(axis=0) == pytest.approx(mean)
    assert placement.variance == pytest.approx(variance)


@pytest.mark.parametrize("design", [balanced(5), shuffled(5, 6)])
def test_mean_and_variance_equal_monte_carlo(design):
    rng = np.random.default_rng(1)
    judgments = make_judgments(12, 3, design=design, gamma=FIRST, text_noise=0.5)
    wide = reads(judgments)
    score, shown = wide.value.astype(int), wide.orderings[wide.order]
    blocks = (
        [np.arange(5), np.arange(5, 10)]
        if design.name == "balanced"
        else [np.arange(6)]
    )
    draws = np.zeros((4000, 5))
    for cluster in range(12):
        rows = np.flatnonzero(wide.cluster == cluster)
        for block in blocks:
            order = rng.permuted(np.tile(block, (len(draws), 1)), axis=1)
            moved = shown[rows][:, order]
            position = (moved == score[rows][:, None, block, None]).argmax(axis=3)
            draws += np.stack(
                [(position == p).sum(axis=(0, 2)) for p in range(5)], axis=1
            )
    placement = place(wide)
    variance = np.cov(draws.T)
    error = np.sqrt(np.diag(variance) / len(draws))
    assert (
        np.abs(draws.mean(axis=0) - placement.expected.sum(axis=0)).max()
        < 4 * error.max()
    )
    assert placement.variance == pytest.approx(variance, abs=0.12 * variance.max())
    # The p-value from χ² is that of the draws.
    d = placement.deviation.sum(axis=0)
    q, _ = quadratic_form(d, placement.variance)
    null = [
        quadratic_form(x, placement.variance)[0]
        for x in draws - placement.expected.sum(axis=0)
    ]
    row = one(judgments)
    assert row.q == pytest.approx(q)
    assert row.p_within == pytest.approx(np.mean(np.array(null) >= q), abs=0.03)


def read_again(judgments, others):
    """The same orderings, read once more with the answers of `others`."""
    both = pd.concat([judgments.assign(replicate=1), others.assign(replicate=2)])
    return both.sort_values(["item_id", "ordering_index"], ignore_index=True)


@pytest.mark.parametrize(
    "design", [balanced(5), shuffled(5, 2), shuffled(5, 4), williams(5)]
)
def test_an_answer_that_is_copied_is_no_further_evidence(design):
    judgments = make_judgments(40, 2, design=design, gamma=FIRST)
    once, twice = one(judgments), one(read_again(judgments, judgments))
    for column in ["q", "df", "p_within", "share_1", "v2_unbiased", "mde"]:
        assert twice[column] == pytest.approx(once[column])


@pytest.mark.parametrize("n_orderings", [2, 3, 4])
def test_repeats_of_an_items_own_orderings_move_together(n_orderings):
    """Oracle: all permutations of the orderings of each of a few items."""
    design, n = shuffled(5, n_orderings), 8
    first, second = (make_judgments(n, design=design, seed=s) for s in (1, 2))
    second = second.assign(ordering=first["ordering"], score=second["score"])
    judgments = read_again(first, second)
    mean, variance = np.zeros(5), np.zeros((5, 5))
    for _, item in judgments.groupby("item_id", observed=True):
        of_item = _enumerated(item, item["ordering"].astype(str).unique())
        mean, variance = mean + of_item[0], variance + of_item[1]
    placement = place(reads(judgments))
    assert placement.expected.sum(axis=0) == pytest.approx(mean)
    assert placement.variance == pytest.approx(variance)


def test_probabilities_that_are_certain_give_the_counts_result():
    judgments = make_judgments(20, 2, gamma=FIRST, readout="logprobs")
    for p in range(1, 6):
        judgments[f"probability_{p}"] = (judgments["position"] == p).astype("float32")
    judgments["expected_score"] = judgments["score"].astype("float32")
    by_score, by_probability = one(judgments), one(judgments, value="expected_score")
    for column in ["q", "df", "p_within", "v2_unbiased", "mde", *SHARES]:
        assert by_probability[column] == pytest.approx(by_score[column])
    assert np.isnan(by_probability.chi2)
    assert "probabilities" in by_probability.reason


# --- designs that see position in part, or not at all
# --------------------------------------------


def test_positions_that_are_never_exchanged_are_tested_but_not_measured():
    shown = [([1] * 20 + [3] * 10, "1-2-3-4-5"), ([2] * 20 + [3] * 10, "2-1-3-4-5")]
    row = one(
        pd.concat([plain(score, ordering=order) for score, order in shown]).assign(
            ordering_index=np.repeat([1, 2], 30)
        )
    )
    assert row.p_within < 1e-4  # 20 of 20 items take the first place
    assert (
        row[["share_1", "v2_unbiased", "cramers_v", "log_preference_1", "mde"]]
        .isna()
        .all()
    )
    assert "leave some positions uncompared" in row.reason


def always_first(n_clusters=25):
    """A judge that takes the first option of every ordering."""
    judgments = make_judgments(n_clusters)
    return judgments.assign(
        score=judgments["ordering"].astype(str).str[0].astype(int), position=1
    )


def test_a_judge_that_always_takes_the_first_place_has_no_interval_and_is_told_why():
    row = one(always_first())
    assert row.share_1 == pytest.approx(1)
    assert (
        row[["share_1_low", "v2_unbiased_low", "cramers_v_low", "p_equivalent"]]
        .isna()
        .all()
    )
    (alike,) = (code for code in row.codes if code == "no_interval.alike")
    assert {*SHARES, "v2_unbiased", "chi2", "cramers_v"} == {
        *alike.numbers["names"].split(", ")
    }


def test_a_group_without_a_parsed_read_has_this_reason_alone():
    judgments = make_judgments(25)
    judgments["score"] = judgments["score"].mask(judgments["score"].notna())
    assert one(judgments).codes == ("no_read",)


def test_log_preferences_that_one_cluster_alone_shows_have_no_interval_and_a_reason():
    judgments = make_judgments(6, 30, gamma=FIRST)
    first = judgments["cluster_id"] == "c0"
    row = one(judgments.assign(score=judgments["score"].where(first, 3)))
    assert row[GAMMAS].notna().all()
    assert row[[f"{name}_low" for name in GAMMAS]].isna().all()
    assert "log_preference.no_interval" in row.codes


@pytest.mark.parametrize(
    ("is_kept", "code"),
    [
        # a read of each fourth text
        (lambda j: np.arange(len(j)) % 40 == 3, "blind.lost"),
        (
            lambda j: j["score"].isin([1, 2]) & j["ordering_index"].le(2),
            "half_blind.lost",
        ),
    ],
)
def test_losses_are_not_blamed_on_the_orderings(is_kept, code):
    """Orderings that cannot compare positions are called `blind`, whatever is lost."""
    orders = ["1-2-3-4-5", "2-1-3-4-5", "3-4-5-1-2"]
    rows = [
        plain(np.arange(30) % 2 + 1, ordering=order, ordering_index=k + 1)
        for k, order in enumerate(orders)
    ]
    judgments = make_judgments(40) if code == "blind.lost" else pd.concat(rows)
    lost = judgments.assign(score=judgments["score"].where(is_kept(judgments)))
    assert code in one(lost).codes
    asked = judgments[np.asarray(is_kept(judgments))]
    if code == "blind.lost":
        table = rb.score_position(lost)
        assert set(table["codes"].explode()) == {"never_shown", "blind.lost"}
    else:
        assert "half_blind" in one(asked).codes


@pytest.mark.parametrize("n_orderings", [2, 3])
def test_equivalence_is_not_claimed_because_few_orderings_show_little(n_orderings):
    """Two rotations show a third of some preferences, three about seven tenths."""
    whole = make_judgments(1500, gamma=np.array(FIRST) / 2, concentration=5, seed=5)
    few = whole[whole["ordering_index"].isin([1, 2, 3][:n_orderings])]
    full, part = one(whole), one(few)
    assert part.share_1_low < full.share_1 < part.share_1_high
    assert part.p_equivalent > 0.05


@pytest.mark.in_turn
@pytest.mark.parametrize("design", [shuffled(5, 2), shuffled(5, 10), balanced(5)])
def test_shares_do_not_depend_on_the_orderings_that_show_them(design):
    truth = one(make_judgments(3000, gamma=3 * np.array(FIRST), seed=1))
    lost = (
        (lambda item, *_: np.random.default_rng(0).random(len(item)) < 0.3)
        if (design.name == "balanced")
        else None
    )
    row = one(
        make_judgments(
            3000, design=design, gamma=3 * np.array(FIRST), seed=2, lost=lost
        )
    )
    assert row[SHARES].to_numpy(float) == pytest.approx(
        truth[SHARES].to_numpy(float), abs=0.025
    )
    assert row.v2_unbiased == pytest.approx(truth.v2_unbiased, rel=0.08)


# --- the traps
# --------------------------------------------------------------------------------------


def _rejections(replications, n_clusters, kept=range(1, 11), **planted):
    """How many of so many data sets the cluster test rejects at 5 %."""
    judgments = make_judgments(replications * n_clusters, **planted)
    cluster = judgments["cluster_id"].astype(str).str[1:].astype(int)
    judgments = judgments.assign(judge=cluster // n_clusters)
    p = []
    for _, wide in read_groups(
        judgments[judgments["ordering_index"].isin(kept)], "judge", "score"
    ):
        placement = place(wide)
        q, df = quadratic_form(placement.deviation.sum(axis=0), placement.variance)
        p.append(stats.chi2.sf(q, df))
    assert len(p) == replications
    return int((np.array(p) < 0.05).sum())


def _half_of_two_orderings(item, read, score, ordering, rng):
    return (read < 2) & (rng.random(len(read)) < 0.5)


UNDECIDED = {"n_clusters": 80, "concentration": 5}
NULLS = {
    "shuffled": {
        "n_clusters": 25,
        "per_cluster": 2,
        "design": shuffled(5, 5),
        "text_noise": 0.4,
    },
    "williams": {"n_clusters": 30, "per_cluster": 2, "design": williams(5)},
    "three rotations": {
        "n_clusters": 40,
        "per_cluster": 2,
        "text_noise": 0.7,
        "reverse_shift": 0.7,
        "kept": [1, 2, 4, 7, 8, 9],
    },
    "reads lost by ordering": {
        "n_clusters": 60,
        "per_cluster": 2,
        "lost": _half_of_two_orderings,
    },
}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "null",
    [
        UNDECIDED,
        *(pytest.param(v, id=k, marks=pytest.mark.slow) for k, v in NULLS.items()),
    ],
)
def test_size_is_the_level_where_the_study_of_validity_does_not_look(null):
    assert plausible(_rejections(400, **null), 400, 0.05)


def _always_five(item, read, score, ordering, rng):
    return (ordering == "1-2-3-4-5") & (item % 2 == 0)


def test_a_judge_that_always_says_five_has_no_preference_whatever_is_lost():
    judgments = make_judgments(100, 2, lost=_always_five)
    judgments["score"] = judgments["score"].where(judgments["score"].isna(), 5)
    row = one(judgments)
    assert row.p_chi2 < 1e-3  # the papers' test is fooled
    assert (row.q, row.df, row.p_within) == (0, 0, 1)
    assert row[SHARES].to_numpy(float) == pytest.approx(np.full(5, 0.2))
    assert row.v2_unbiased == pytest.approx(0)
    assert "no answer changes" in row.reason


# --- sizes
# --------------------------------------------------------------------------------------


def test_v2_is_the_mean_product_over_pairs_of_clusters():
    judgments = make_judgments(7, 3, gamma=FIRST)
    wide = reads(judgments)
    shares = judgments.pivot_table(
        index="item_id", columns="position", aggfunc="size", fill_value=0, observed=True
    )
    d = shares.reindex(wide.items["item_id"]).to_numpy() / 10 - 0.2
    pairs = [
        d[i] @ d[j]
        for i in range(21)
        for j in range(21)
        if wide.cluster[i] != wide.cluster[j]
    ]
    assert one(judgments).v2_unbiased == pytest.approx(5 / 4 * np.mean(pairs))


def test_the_ends_of_v2s_interval_are_t_standard_errors_away():
    judgments = make_judgments(8, 3, gamma=FIRST)
    row = one(judgments)
    position = pd.get_dummies(judgments["position"].astype(int)).astype(float)
    means = position.groupby(judgments["cluster_id"], observed=True).mean() - 0.2
    covariance = 5 / 4 * np.cov(means.T) / 8
    m = means.mean().to_numpy()
    a, b = m @ covariance @ m / (m @ m), 2 * np.trace(covariance @ covariance)
    for end in (row.v2_unbiased_low, row.v2_unbiased_high):
        squared = (row.v2_unbiased - end) ** 2 / (4 * a * end + b)
        df = min(freedom(means[p]) for p in means)
        assert np.sqrt(squared) == pytest.approx(stats.t.isf(0.025, df))
    assert 0 < row.v2_unbiased_low < row.v2_unbiased < row.v2_unbiased_high
    # The papers' V and χ² have a floor, and so have their intervals.
    floor = row.cramers_v**2 - row.v2_unbiased
    ends = np.sqrt(
        np.maximum([row.v2_unbiased_low + floor, row.v2_unbiased_high + floor], 0)
    )
    assert [row.cramers_v_low, row.cramers_v_high] == pytest.approx(ends)
    assert [row.chi2_low, row.chi2_high] == pytest.approx(row.n_reads * 4 * ends**2)


def test_worst_cases_hold_the_loss():
    def some_lost(item, read, score, ordering, rng):
        return rng.random(len(read)) < np.where(read == 3, 0.5, 0.1)

    judgments = make_judgments(60, lost=some_lost)
    row, lost = one(judgments), judgments["score"].isna().sum()
    for p in range(1, 6):
        count = (judgments["position"] == p).sum()
        assert row[f"share_{p}_least"] == pytest.approx(count / 600)
        assert row[f"share_{p}_most"] == pytest.approx((count + lost) / 600)
        assert row[f"share_{p}_least"] <= row[f"share_{p}"] <= row[f"share_{p}_most"]


def test_share_intervals_are_t_intervals_on_cluster_means():
    judgments = make_judgments(15, 4, gamma=FIRST)
    row = one(judgments)
    first = (judgments["position"] == 1).astype(float)
    means = first.groupby(judgments["cluster_id"], observed=True).mean()
    low, high, _ = t_interval(means)
    assert row.share_1 == pytest.approx(means.mean())
    assert (row.share_1_low, row.share_1_high) == pytest.approx((low, high))
    assert row[SHARES].sum() == pytest.approx(1)


def test_groups_that_are_fitted_together_are_fitted_as_each_alone():
    """Judges that prefer a place, no place or nothing else;
    lost reads; three and five options.
    """
    parts = []
    for k, (gamma, n) in enumerate(
        [(FIRST, 5), (None, 5), ((60.0, 0, 0, 0, 0), 5), (None, 3)]
    ):
        gamma = np.zeros(n) if gamma is None else gamma
        part = make_judgments(12 + k, design=balanced(n), gamma=gamma, seed=k)
        part = part.assign(judge=f"judge {k}")
        rng = np.random.default_rng(k)
        lost = part.assign(judge=f"judge {k}, losses")
        lost["score"] = lost["score"].mask(rng.random(len(lost)) < 0.3)
        parts += [part, lost]
    parts.append(parts[0].assign(judge="same", score=2, position=1))
    table = rb.position_bias(pd.concat(parts), by=["judge"]).set_index("judge")
    assert (
        table["codes"].map(lambda codes: "log_preference.infinite" in codes).sum() == 2
    )
    columns = [c for c in table if c.startswith("log_preference")]
    for part in parts:
        alone = rb.position_bias(part, by=["judge"]).iloc[0]
        together = table.loc[alone.judge]
        assert together["codes"] == alone["codes"]
        for column in columns:
            if column not in alone:  # of a longer scale
                assert np.isnan(together[column])
                continue
            # a standard error is a difference quotient
            close = 1e-12 if column in GAMMAS else 1e-8
            assert together[column] == pytest.approx(
                alone[column], abs=close, nan_ok=True
            )


def test_a_group_whose_log_preference_takes_minutes_is_refused_before(monkeypatch):
    judgments = make_judgments(10, design=balanced(5), gamma=np.zeros(5), seed=1)
    whole = rb.position_bias(judgments).iloc[0]
    monkeypatch.setattr("rubricnb.statistics.preference._MOST_IN_ALL", 5)
    monkeypatch.setattr("rubricnb.statistics.preference._permanents", None)
    refused = rb.position_bias(judgments).iloc[0]
    assert "log_preference.many_reads" in refused["codes"]
    assert np.isnan(refused["log_preference_1"]) != np.isnan(whole["log_preference_1"])
    assert refused["v2_unbiased"] == whole["v2_unbiased"]


def test_a_group_of_too_many_reads_leaves_the_others_their_log_preference():
    """40 reads of nine scores have more arrangements than can be summed."""
    parts = [
        make_judgments(10, design=design, gamma=np.zeros(9), seed=k).assign(judge=name)
        for k, (name, design) in enumerate(
            [("first", balanced(9)), ("many", shuffled(9, 40)), ("last", balanced(9))]
        )
    ]
    table = rb.position_bias(pd.concat(parts), by=["judge"]).set_index("judge")
    columns = [f"log_preference_{p}{end}" for p in range(1, 10) for end in ("", "_se")]
    refused = table.loc["many"]
    assert "log_preference.many_reads" in refused["codes"]
    assert refused[columns].isna().all()
    for part in (parts[0], parts[2]):
        alone = rb.position_bias(part, by=["judge"]).iloc[0]
        together = table.loc[alone.judge]
        assert together[columns].to_numpy(float) == pytest.approx(
            alone[columns].to_numpy(float), abs=1e-8
        )


@pytest.mark.filterwarnings("ignore:Dropped .* groups")
@pytest.mark.parametrize("design", [balanced(3), balanced(4), shuffled(3, 5)])
def test_log_preference_is_the_conditional_mle(design):
    """Oracle: statsmodels' conditional logit over all distinct arrangements
    of an item's scores.
    """
    n = design.n
    judgments = make_judgments(
        40, design=design, gamma=np.linspace(0.8, -0.8, n), seed=2
    )
    endog, exog, group = [], [], []
    for name, part in judgments.groupby(["item_id"], observed=True):
        orders = [decode(o) for o in part["ordering"]]
        turn = [design.name == "balanced" and (o[1] - o[0]) % n == 1 for o in orders]
        for block in set(turn):
            rows = [k for k in range(len(orders)) if turn[k] == block]
            scores = tuple(int(part["score"].iloc[k]) for k in rows)
            for arranged in set(permutations(scores)):
                at = [orders[k].index(s) for k, s in zip(rows, arranged, strict=True)]
                exog.append(np.bincount(at, minlength=n)[:-1])
                endog.append(int(arranged == scores))
                group.append(f"{name}/{block}")
    fit = ConditionalLogit(np.array(endog), np.array(exog), groups=np.array(group)).fit(
        disp=0
    )
    gamma = np.append(fit.params, 0)
    found = one(judgments)[[f"log_preference_{p}" for p in range(1, n + 1)]].to_numpy(
        float
    )
    assert found == pytest.approx(gamma - gamma.mean(), abs=2e-4)


@pytest.mark.parametrize(
    ("gamma", "concentration"),
    [*((FIRST, c) for c in (0.2, 1, 5)), ((0.8, 0, -0.2, -0.2, 0.1), 1)],
)
def test_log_preference_is_recovered_whatever_its_size_and_the_indecision(
    gamma, concentration
):
    row = one(make_judgments(600, gamma=gamma, concentration=concentration, seed=3))
    half = row[[f"{g}_high" for g in GAMMAS]].to_numpy() - row[GAMMAS].to_numpy()
    assert (np.abs(row[GAMMAS].to_numpy() - gamma + np.mean(gamma)) < 1.8 * half).all()
    assert row[GAMMAS].sum() == pytest.approx(0, abs=1e-9)


def test_log_preference_is_exact_for_exact_probabilities():
    gamma = np.array([1.0, 0.2, -0.3, -0.4, -0.5])
    judgments = make_judgments(25, gamma=gamma, readout="logprobs", concentration=3)
    row = one(judgments, value="expected_score")
    assert row[GAMMAS].to_numpy(float) == pytest.approx(gamma, abs=2e-3)


def test_log_preference_of_probabilities_is_the_maximum_of_their_likelihood():
    """By a general optimiser of the same model, an α for every text and direction."""
    judgments = make_judgments(4, 2, gamma=FIRST, text_noise=0.5, readout="logprobs")
    wide = reads(judgments, "expected_score")
    p, shown = wide.probability, wide.orderings[wide.order] - 1
    row = np.arange(8)[:, None, None] * 2 + (np.arange(10) >= 5)[None, :, None]

    def loss(x):
        eta = x[: 16 * 5].reshape(16, 5)[row, shown] + np.append(x[80:], -x[80:].sum())
        return -(p * (eta - special.logsumexp(eta, axis=2, keepdims=True))).sum()

    found = optimize.minimize(loss, np.zeros(84), method="BFGS", tol=1e-9).x[80:]
    got = one(judgments, value="expected_score")[GAMMAS].to_numpy(float)
    assert got == pytest.approx(np.append(found, -found.sum()), abs=1e-3)


@pytest.mark.parametrize("at_once", [placing.AT_ONCE, 1])
@pytest.mark.parametrize("lost", [0, 7])
@pytest.mark.parametrize("kept", [5, 3])
def test_what_clusters_share_is_added_up_as_if_every_placement_were_written_out(
    kept, lost, at_once, monkeypatch
):
    judgments = make_judgments(6, 3, gamma=FIRST, text_noise=0.5)
    wide = reads(judgments[judgments["ordering_index"] <= kept].iloc[lost:])
    variance, sight, n = np.zeros((5, 5)), np.zeros((5, 5)), 0
    for block in blocks(wide):
        placed = placing._placed(block.count, block.profile, block.shown)
        flat = by_cluster(placed, wide.cluster).reshape(-1, 5)
        variance += flat.T @ flat / (kept - 1)
        sight += placing._visible_share(block.count, block.shown)
        n += block.count.sum()
    monkeypatch.setattr(placing, "AT_ONCE", at_once)
    assert place(wide).variance == pytest.approx(variance, abs=1e-12)
    assert place(wide).sight == pytest.approx(sight / n, abs=1e-12)


@given(hnp.arrays(np.int64, (4, 6), elements=st.integers(-1, 2)), st.integers(0, 99))
def test_repeats_are_those_of_a_loop_over_all_pairs(order, seed):
    value = np.random.default_rng(seed).choice([1.0, 2.0, np.nan], order.shape)
    table = pd.DataFrame(
        {
            "item_id": np.arange(4).repeat(6),
            "cluster_id": np.arange(4).repeat(6),
            "ordering_index": np.tile(np.arange(6), 4),
            "score": value.ravel(),
            "ordering": np.array(["1-2", "2-1", "1-2"])[order.ravel() % 2],
        }
    )
    wide = replace(reads(table), order=order)
    repeat, differs = np.zeros(order.shape, bool), np.zeros(4, bool)
    for i, j, k in product(range(4), range(6), range(6)):
        if j < k and order[i, j] == order[i, k] >= 0:
            repeat[i, k] = True
            differs[i] |= abs(value[i, j] - value[i, k]) > 0
    found = _repeats(wide, keyed=False)
    assert (found[0] == repeat).all()
    assert (found[1] == differs).all()


# --- score_position
# ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["score", "expected_score"])
def test_scores_have_the_same_places_where_products_are_added_up(value, monkeypatch):
    judgments = make_judgments(6, 3, gamma=FIRST, readout="logprobs")
    written_out = rb.score_position(judgments, value=value)
    monkeypatch.setattr(placing, "AT_ONCE", 1)
    added_up = rb.score_position(judgments, value=value)
    pd.testing.assert_frame_equal(added_up, written_out, rtol=1e-12)


@pytest.mark.parametrize("value", ["score", "expected_score"])
def test_score_position_weights_places_by_answers_or_their_probabilities(value):
    judgments = make_judgments(30, 2, gamma=FIRST, readout="logprobs")
    answers = pd.get_dummies(judgments["position"].astype(int)).to_numpy(float)
    if value == "expected_score":
        answers = judgments[[f"probability_{p}" for p in range(1, 6)]].to_numpy(float)
    shown = np.array([decode(o) for o in judgments["ordering"]])
    weight = np.array(
        [np.where(shown == s, answers, 0).sum(axis=0) for s in range(1, 6)]
    )
    table = rb.score_position(judgments, value=value)
    found = table.pivot(index="score", columns="position", values="share").to_numpy()
    assert found == pytest.approx(weight / weight.sum(axis=1, keepdims=True), abs=1e-5)
    assert table.groupby("score")["n"].first().sum() == pytest.approx(600)
    assert table["share_null"].to_numpy() == pytest.approx(np.full(25, 0.2))


# --- the papers' number of reads
# ------------------------------------------------------------------


def test_chi2_is_compared_at_the_papers_number_of_reads():
    """A bias fitted to one cell of Table 2, seen on a tenth of its items,
    is no contradiction.
    """
    items = stand_in("hanna")
    said = claims("05").query("claim_id == 'v2/table-2/gemma-3-27b/hanna/chi2'")
    cell, printed = "v2/gemma-3-27b/hanna", said.published.item()
    verdict = {"as it is": [], "at the paper's reads": []}
    values = []
    for part in range(8):
        some = items.iloc[60 * part : 60 * (part + 1)]
        asked = rb.plan(some, rb.balanced(5), readout="score")
        bias = rb.position_bias(rb.simulate(asked, items, cell))
        there = at_reads(bias, 10 * len(items))
        values.append(there.chi2.item())
        for name, row in zip(verdict, (bias.iloc[0], there.iloc[0]), strict=True):
            found = {"value": row.chi2, "low": row.chi2_low, "high": row.chi2_high}
            found = pd.DataFrame([{"claim_id": said.claim_id.item()} | found])
            verdict[name].append(verdicts(said, found).verdict.item())
    assert verdict["as it is"].count("does not") >= 6
    assert "does not" not in verdict["at the paper's reads"]
    assert np.mean(values) == pytest.approx(printed, rel=0.25)


def test_other_numbers_of_reads_belong_to_the_rows_in_their_order():
    parts = [
        make_judgments(20, gamma=FIRST, seed=s).assign(judge=f"j{s}") for s in (1, 2)
    ]
    bias = rb.position_bias(pd.concat(parts), by=["judge", "n_options"])
    wanted = at_reads(bias, [400, 900])
    names = pd.Series([400, 900], index=["x", "y"])
    pd.testing.assert_frame_equal(at_reads(bias, names), wanted)
    assert wanted.notna().all(axis=None)
    for wrong in (0, [400, -1], np.nan, [400], [1, 2, 3]):
        with pytest.raises(ValueError, match="reads"):
            at_reads(bias, wrong)


def test_a_row_turned_into_a_table_stays_undefined():
    """Its columns hold objects, in which the larger of NaN and 0 is 0."""
    bias = rb.position_bias(make_judgments(1, 4, gamma=FIRST), by=["n_options"])
    assert bias.v2_unbiased.isna().all()  # one cluster
    row = bias.iloc[0].to_frame().T
    assert row.dtypes.eq(object).all()
    known = [bias.cramers_v.item(), bias.chi2.item()]
    assert np.isfinite(known).all()
    assert at_reads(row, 400).filter(regex="chi2|cramers").isna().all(axis=None)
    with pytest.raises(ValueError, match="could not convert"):
        at_reads(row.assign(cramers_v="much"), 400)


def test_with_the_same_reads_nothing_changes_and_without_bias_only_the_floor_does():
    items = stand_in("mt-bench")
    bias = rb.position_bias(
        rb.simulate(rb.plan(items, rb.balanced(5)), items, "unbiased")
    )
    own = at_reads(bias, bias.n_reads)
    names = [
        f"{x}{end}" for x in ("chi2", "cramers_v") for end in ("", "_low", "_high")
    ]
    assert own[names].to_numpy() == pytest.approx(bias[names].to_numpy(float), rel=1e-6)
    unbiased = bias.assign(v2_unbiased=0.0)
    assert at_reads(unbiased, 4 * bias.n_reads).chi2.item() == pytest.approx(
        bias.chi2.item()
    )
    assert at_reads(unbiased, 4 * bias.n_reads).cramers_v.item() == pytest.approx(
        bias.cramers_v.item() / 2
    )
