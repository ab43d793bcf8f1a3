"""What graded scores say, against sklearn, loops and planted truths."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rubricnb as rb
from rubricnb.rulers import agreement
from rubricnb.rulers.agreement import (
    calibrated,
    extreme,
    invariance,
    label_agreement,
    label_contrast,
    verification,
    whole_texts,
)
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.calibration import Calibrator
from rubricnb.rulers.grading import grade
from rubricnb.rulers.simulated import SimulatedGrader


def essays(n=600, seed=0, hedging=1.0, prefix="e", n_traits=4):
    """Scores and items of simulated essays on six levels, in the columns of `grade`."""
    rng = np.random.default_rng(seed)
    quality = rng.standard_normal(n)
    label = np.clip(np.round(3.5 + 1.1 * quality + 0.3 * rng.standard_normal(n)), 1, 6)
    traits = 3 + hedging * (quality[:, None] + 0.6 * rng.standard_normal((n, n_traits)))
    traits = np.clip(np.round(traits), 1, 6)
    scores = pd.DataFrame(
        {
            "item_id": [f"{prefix}{k}" for k in range(n)],
            "cluster_id": [f"{prefix}{k}" for k in range(n)],
            "text_id": [f"{prefix}{k}" for k in range(n)],
            "judge": "simulated",
            "method": "rulers",
            "criterion": "holistic",
            "ordering": "6-1",
            "n_options": 6,
            "score": traits.mean(axis=1),
            "score_ungated": traits.mean(axis=1),
            **{f"trait_{k + 1}": traits[:, k] for k in range(n_traits)},
            **{f"ungated_{k + 1}": traits[:, k] for k in range(n_traits)},
            **{
                f"invalid_{k + 1}": rng.binomial(2, 0.1, n) / 2 for k in range(n_traits)
            },
        }
    )
    return scores, pd.DataFrame({"item_id": scores.item_id, "human": label})


SCORED = ("score", "trait_", "ungated_", "invalid_")
BOTH = {"method": "rulers"}, {"method": "dhs"}


def unscored(scores, rows):
    """These rows without anything that the judge gave."""
    return scores.mask(rows[:, None] & scores.columns.str.startswith(SCORED)[None])


def test_kappa_is_that_of_the_labels_that_a_draw_predicts():
    scores, items = essays()
    labels = calibrated(scores, items, seed=3)
    table = label_agreement(scores, items, n_draws=1, seed=3)
    assert len(labels) == 400
    expected = rb.quadratic_weighted_kappa(labels.label, labels.human)
    assert table.qwk[0] == pytest.approx(expected)
    assert table.mae[0] == pytest.approx((labels.label - labels.human).abs().mean())
    phi = scores.set_index("item_id").filter(regex="^(trait|invalid)_")
    train = ~phi.index.isin(labels.item_id)
    own = Calibrator().fit(phi[train], items.human.to_numpy()[train])
    np.testing.assert_array_equal(own.predict(phi[~train]), labels.label)
    other = label_agreement(scores, items, n_draws=1, seed=4).qwk[0]  # shares no draw
    both = label_agreement(scores, items, n_draws=2, seed=3).qwk[0]
    assert both != pytest.approx((expected + other) / 2)


def test_a_draw_is_stratified_and_leaves_no_cluster_on_both_sides():
    scores, items = essays()
    scores["cluster_id"] = [f"c{k // 3}" for k in range(600)]
    labels = calibrated(scores, items, n_calibration=150)
    test = set(labels.cluster_id)
    train = scores[~scores.item_id.isin(labels.item_id)]
    assert not test & set(train.cluster_id)
    assert len(train) == 150
    drawn = items.set_index("item_id").human[train.item_id]
    assert abs(drawn.mean() - items.human.mean()) < 0.1


def one_set(study, **options):
    return label_agreement(*essays(300, study), n_calibration=100, **options).iloc[0]


def one_contrast(study, **options):
    a, items = essays(250, study)
    rng = np.random.default_rng(study)
    worse = np.clip(a.score + rng.normal(0, 1, 250), 1, 6)
    b = a.assign(method="dhs", score=worse, score_ungated=worse)
    sides = BOTH[0], BOTH[1] | {"calibration": "isotonic"}
    found = label_contrast(
        pd.concat([a, b]), items, *sides, n_calibration=100, **options
    )
    ends = {f"difference_{end}": found[end] for end in ("low", "high")}
    return pd.Series(found | ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "names"),
    [
        (one_set, ("qwk", "mae", "rho")),
        (one_contrast, ("difference", "mae_difference", "rho_difference")),
    ],
)
def test_the_interval_of_one_calibration_covers_other_essays_and_draws(study, names):
    """Neither too seldom nor always: about 95 % of 100 studies."""
    studies = pd.DataFrame([study(seed, n_draws=3) for seed in range(100)])
    one = pd.DataFrame([study(seed, n_draws=1, seed=99) for seed in range(100)])
    for name in names:
        half = (studies[f"{name}_high"] - studies[f"{name}_low"]) / 2
        assert (
            0.87 <= ((one[name] - studies[name].mean()).abs() <= half).mean() <= 0.99
        ), name


def test_central_tendency_is_seen_and_the_map_undoes_it():
    table = label_agreement(
        *essays(hedging=0.3), ["none", "isotonic", "quantile"], n_draws=10
    ).set_index("calibration")
    assert table.sd_ratio["none"] < 0.6
    assert table.middle_excess["none"] > 0
    assert abs(table.sd_ratio["quantile"] - 1) < 0.1
    assert table.wasserstein["quantile"] < 0.2 < table.wasserstein["none"]
    assert table.qwk["quantile"] > table.qwk["none"]


def test_measures_of_uncalibrated_labels_match_scipy():
    scores, items = essays(300)
    row = label_agreement(scores, items, "none").iloc[0]
    label = np.clip(np.floor(scores.score + 0.5), 1, 6)
    assert row.n_calibration == 0
    assert row.qwk == pytest.approx(rb.quadratic_weighted_kappa(label, items.human))
    assert row.rho == pytest.approx(stats.spearmanr(label, items.human).statistic)
    assert row.wasserstein == pytest.approx(
        stats.wasserstein_distance(label, items.human)
    )
    assert row.sd_ratio == pytest.approx(label.std(ddof=0) / items.human.std(ddof=0))
    middle, middle_human = (side.isin([3, 4]).mean() for side in (label, items.human))
    assert row.middle_excess == pytest.approx(middle - middle_human)


def test_what_is_left_without_a_cluster_is_measured_anew():
    """The intervals' jackknife against a loop that leaves every cluster out."""
    scores, items = essays(60)
    label = np.clip(np.floor(scores.score.to_numpy() + 0.5), 1, 6)
    human, cluster = items.human.to_numpy(), np.arange(60) // 4
    scale = np.arange(1.0, 7.0)
    at_once = agreement._measured(label, human, cluster, scale)
    for c in range(15):
        rest = cluster != c
        alone = agreement._measured(label[rest], human[rest], cluster[rest], scale)
        for name, values in at_once.items():
            assert values[1 + c] == pytest.approx(alone[name][0], abs=1e-12), name


def test_a_calibration_is_carried_to_another_set_and_scale():
    scores, items = essays(500, 1)
    other, rated = essays(500, 2, prefix="f", n_traits=2)
    carried = label_agreement(scores, items, trained_on=(other, rated), n_draws=10)
    at_home = label_agreement(scores, items, n_draws=10)
    assert carried.n_items[0] == 500
    assert 0.4 < carried.qwk[0] <= at_home.qwk[0] + 0.02
    five = other.assign(n_options=5), rated.assign(human=1 + (rated.human - 1) * 4 / 5)
    shrunk = label_agreement(scores, items, trained_on=five, n_draws=10)
    assert shrunk.qwk[0] == pytest.approx(carried.qwk[0], abs=0.02)
    few = items.assign(human=items.human.where(items.human.isin([1, 6]), 6.0))
    unseen = label_agreement(scores, few, trained_on=(other, rated), n_draws=10)
    middle = [
        t.middle_excess[0] + h.human.isin([3, 4]).mean()
        for t, h in ((unseen, few), (carried, items))
    ]
    # it does not look at the tested labels
    assert middle[0] == pytest.approx(middle[1])


@pytest.mark.parametrize(
    ("n", "change", "reason"),
    [
        (15, {}, "7 calibration items with a score: the map needs 10"),
        (60, {"human": 3.0}, "labels are 3"),
    ],
)
def test_what_cannot_be_calibrated_is_nan_with_a_reason(n, change, reason):
    scores, items = essays(n)
    row = label_agreement(scores, items.assign(**change)).iloc[0]
    assert np.isnan(row.qwk)
    assert reason in row.reason
    twice = pd.concat([scores, scores.assign(method="dhs")])
    found = label_contrast(twice, items.assign(**change), *BOTH)
    assert np.isnan(found["difference"])
    assert reason in found["reason"]


def test_what_the_judge_left_unscored_is_counted_and_nothing_scored_is_a_reason():
    scores, items = essays(300)
    row = label_agreement(unscored(scores, np.arange(300) < 20), items, n_draws=3).iloc[
        0
    ]
    assert row.n_unscored == 20
    assert 0.3 < row.qwk < 1
    row = label_agreement(unscored(scores, np.ones(300, bool)), items).iloc[0]
    assert np.isnan(row.qwk)
    assert "0 calibration items with a score" in row.reason


def test_bad_arguments_are_named():
    scores, items = essays(60)
    with pytest.raises(ValueError, match="unknown calibration 'platt'"):
        label_agreement(scores, items, "platt")
    with pytest.raises(ValueError, match="items lack the column 'human'"):
        label_agreement(scores, items[["item_id"]])
    with pytest.raises(ValueError, match="no scores for method 'mts': grade it first"):
        label_contrast(scores, items, {"method": "mts"}, {"method": "rulers"})


def test_invariance_is_the_mean_variance_within_items():
    rng = np.random.default_rng(0)
    n, reads = 400, 4
    names = np.repeat([f"i{k}" for k in range(n)], reads)
    score = np.repeat(rng.normal(3, 1, n), reads) + rng.normal(0, 0.5, n * reads)
    scores = pd.DataFrame(
        {"item_id": names, "cluster_id": names, "ordering": "5-1", "score": score}
    )
    row = invariance(scores, by=[]).iloc[0]
    loop = np.mean([g.score.var(ddof=1) for _, g in scores.groupby("item_id")])
    assert row.variance == pytest.approx(loop)
    assert row.variance_low < 0.25 < row.variance_high
    assert row.sd == pytest.approx(np.sqrt(loop))
    one = invariance(scores.assign(cluster_id="a"), by=[]).iloc[0]
    assert one.reason == "one cluster: intervals need two"
    assert np.isnan(one.variance_low)
    assert one.variance == pytest.approx(loop)
    once = invariance(scores.drop_duplicates("item_id"), by=[]).iloc[0]
    assert np.isnan(once.variance)
    assert once.reason == "every item was read once: ask for replicates"
    assert (once.n_items, once.n_lost) == (0, n)


def test_invariance_counts_the_items_that_it_used_and_those_that_it_lost():
    """Item a is scored twice, b once of two reads,
    c once under each of two orderings.
    """
    scores = pd.DataFrame(
        {
            "item_id": list("aabbccdd"),
            "ordering": ["1-2"] * 5 + ["2-1", "1-2", "1-2"],
            "score": [1, 2, 1, None, 1, 2, 2, 2],
        }
    )
    row = invariance(scores.assign(cluster_id=scores.item_id), by=[]).iloc[0]
    assert (row.n_items, row.n_clusters, row.n_lost) == (2, 2, 2)
    assert (row.variance, row.unchanged) == (0.25, 0.5)


def test_verification_rates_recover_what_was_planted():
    items = rb.load("minibench")
    judge = SimulatedGrader(invented=0.2, misplaced=0.1, short=0.05)
    found = grade(items, load_bundle("minibench"), judge, store=":memory:")
    table = verification(found.evidence, by=[]).set_index("status")
    planted = {"not found": 0.2, "wrong unit": 0.1, "too short": 0.05, "verified": 0.65}
    for status, share in planted.items():
        assert abs(table.share[status] - share) < 4 * np.sqrt(
            share * (1 - share) / 360
        ), status
        assert (
            table.share_low[status] <= table.share[status] <= table.share_high[status]
        )
    assert table.share.sum() == pytest.approx(1)
    assert table.n_texts.iloc[0] == 60


def test_the_interval_of_a_rate_is_over_clusters_and_not_over_texts():
    """Texts of a prompt that share their fate are one observation."""
    evidence = pd.DataFrame(
        {
            "cluster_id": np.repeat([f"c{k}" for k in range(10)], 8),
            "text_id": np.repeat([f"t{k}" for k in range(40)], 2),
            "status": np.repeat(["verified", "not found"] * 5, 8),
        }
    )
    row = verification(evidence, by=[]).set_index("status").loc["verified"]
    # Wilson's, of nine: the variance of ten clusters that are all or nothing.
    t2 = stats.t.ppf(0.975, 9) ** 2
    assert row.share_high - row.share == pytest.approx(0.5 * np.sqrt(t2 / (9 + t2)))
    assert row.reason == "10 effective clusters: intervals may be too narrow"
    assert (row.n_texts, row.n_clusters) == (40, 10)


def two_methods():
    a, items = essays(n=300, seed=1)
    noise = np.random.default_rng(2).normal(0, 0.7, 300)
    b = a.assign(method="dhs", score=a.score + noise, score_ungated=a.score + noise)
    return pd.concat([a, b], ignore_index=True), items


def test_a_contrast_is_the_difference_of_the_two_kappas_on_the_same_draws():
    scores, items = two_methods()
    sides = {"method": "rulers"}, {"method": "dhs", "calibration": "isotonic"}
    found = label_contrast(scores, items, *sides, n_draws=5)
    kinds = ["quantile", "isotonic"]
    alone = label_agreement(scores, items, kinds, n_draws=5, by="method")
    kappa = alone.set_index(["method", "calibration"]).qwk
    assert found["qwk_a"] == pytest.approx(kappa["rulers", "quantile"])
    assert found["qwk_b"] == pytest.approx(kappa["dhs", "isotonic"])
    assert found["low"] < found["difference"] < found["high"]
    for name in ("mae", "rho", "wasserstein"):
        own = alone.set_index(["method", "calibration"])[name]
        expected = own["rulers", "quantile"] - own["dhs", "isotonic"]
        assert found[f"{name}_difference"] == pytest.approx(expected)
        assert found[f"{name}_a"] - found[f"{name}_b"] == pytest.approx(expected)
        low, high = (found[f"{name}_difference_{end}"] for end in ("low", "high"))
        assert low < found[f"{name}_difference"] < high
    turned = label_contrast(scores, items, *sides[::-1], n_draws=5)
    assert turned["difference"] == pytest.approx(-found["difference"])
    assert turned["low"] == pytest.approx(-found["high"])


def test_a_contrast_knows_the_raw_scores_and_those_without_the_gate():
    scores, items = two_methods()
    raw = {"method": "rulers", "calibration": "none"}
    found = label_contrast(scores, items, raw, raw | {"verified": False})
    labels = calibrated(scores[scores.method == "rulers"], items, "none")
    assert found["qwk_a"] == pytest.approx(
        rb.quadratic_weighted_kappa(labels.label, labels.human)
    )
    assert found["difference"] == 0
    assert np.isnan([found["low"], found["high"]]).all()
    assert found["reason"] == "every cluster has the same difference: no interval"
    gated = scores.filter(regex="^trait_").clip(upper=3)
    capped = scores.assign(**gated, score=gated.mean(axis=1))
    found = label_contrast(
        capped, items, BOTH[0], BOTH[0] | {"verified": False}, n_draws=5
    )
    assert found["qwk_b"] > found["qwk_a"]


def test_a_contrast_is_about_the_items_that_both_have_scored():
    """They are counted, and both sides learn from the same of them."""
    scores, items = two_methods()
    lost = scores.item_id.isin([f"e{k}" for k in range(40)])
    some = unscored(scores, (lost & (scores.method == "dhs")).to_numpy())
    found = label_contrast(some, items, *BOTH, n_draws=3)
    assert (found["n_items"], found["n_clusters"]) == (260, 260)
    expected = label_contrast(scores[~lost], items, *BOTH, n_draws=3)
    why = ["reason", "codes"]
    assert pd.Series(found).drop(why).equals(pd.Series(expected).drop(why))
    assert [code.numbers["lost"] for code in found["codes"] if code == "lost"] == [40]
    none = unscored(scores, (scores.method == "dhs").to_numpy())
    for kind in ("quantile", "none"):
        found = label_contrast(
            none, items, *(side | {"calibration": kind} for side in BOTH)
        )
        assert np.isnan(found["difference"])
        assert found["n_items"] == 0
        assert "no item has both a score and a human rating" in found["reason"]


def test_conditions_never_mix_in_a_contrast_or_a_transfer():
    scores, items = two_methods()
    scores = scores.assign(temperature=0.0)
    mixed = pd.concat([scores, scores.assign(temperature=1.0)], ignore_index=True)
    with pytest.raises(
        ValueError, match="one side has several values of 'temperature'"
    ):
        label_contrast(mixed, items, *BOTH)
    named = [side | {"temperature": 1.0} for side in BOTH]
    assert label_contrast(mixed, items, *named, n_draws=2)["n_items"] == 300
    with pytest.raises(ValueError, match="trained_on has several values of 'method'"):
        label_agreement(*essays(60), trained_on=(scores, items))


def planted(estimates, half, df=399):
    return pd.DataFrame(
        {
            "difference": estimates,
            "low": np.subtract(estimates, half),
            "high": np.add(estimates, half),
            "se": np.divide(half, stats.t.ppf(0.975, df)),
            "df": df,
        }
    )


def test_what_is_said_of_all_needs_the_lower_end_of_all():
    """The smallest lead is clear of zero, another one is not."""
    leads = planted([0.05, 0.06], [0.04, 0.09])
    value, low, high = extreme(leads, "difference")
    assert (value, low) == (0.05, pytest.approx(-0.03))
    assert high > 0.09
    turned = leads.assign(
        difference=-leads.difference, low=-leads.high, high=-leads.low
    )
    assert extreme(turned, "difference", largest=True) == pytest.approx(
        (-value, -high, -low)
    )
    assert extreme(leads[:1], "difference") == pytest.approx((0.05, 0.01, 0.09))
    assert np.isnan(extreme(leads.assign(high=[0.09, np.nan]), "difference")).all()


def test_one_of_many_estimates_below_zero_by_chance_refutes_nothing():
    """Twelve leads, all truly zero: an upper end below zero in one study of forty."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((1_000, 12))
    tables = (planted(z, stats.t.ppf(0.975, 399)) for z in draws)
    refuted = np.mean([extreme(table, "difference")[2] < 0 for table in tables])
    assert stats.binom.ppf(0.0005, 1_000, 0.02) / 1_000 <= refuted
    assert refuted <= stats.binom.ppf(0.9995, 1_000, 0.025) / 1_000


def test_whole_texts_average_every_rater_over_the_criteria():
    scores, _ = essays(2, n_traits=2)
    items = pd.DataFrame(
        {
            "text_id": ["e0", "e0", "e1", "e1"],
            "criterion": ["x", "y"] * 2,
            "human": [2.0] * 4,
            "human_ratings": [(1, 3), (2, 5), (4, 4), (4, 4, 4)],
        }
    )
    _, rated = whole_texts(scores, items)
    assert rated.human_ratings.tolist() == [(1.5, 4.0), ()]


@pytest.fixture
def dress(tmp_path):
    """Essays like those of DREsS: three traits in half points,
    graded by a simulated grader.
    """
    rng = np.random.default_rng(0)
    level = np.clip(rng.normal(3.3, 0.8, 60), 1, 5)
    rows = ["id\tprompt\tessay\tcontent\torganization\tlanguage"]
    for k, mean in enumerate(level):
        rated = np.clip(np.round(2 * (mean + rng.normal(0, 0.4, 3))) / 2, 1, 5)
        rows.append(
            f"{k}\tIs it?\tIt is, since essay {k} says so. It goes on for a while.\t"
            + "\t".join(map(str, rated))
        )
    file = tmp_path / "dress.tsv"
    file.write_text("\n".join(rows) + "\n")
    items = rb.load("dress", path=file)
    methods = ["rulers", "dhs"]
    return items, grade(
        items, load_bundle("dress"), SimulatedGrader(), methods, store=":memory:"
    )


def test_a_whole_score_of_dress_is_a_sum_in_half_points_from_3_to_15(dress):
    items, grades = dress
    scored, rated = whole_texts(grades.scores, items)
    total = items.groupby("text_id", observed=True).human.sum()
    assert rated.set_index("text_id").human.equals(total[rated.text_id])
    traits = scored[["trait_1", "trait_2", "trait_3"]].sum(axis=1)
    np.testing.assert_allclose(scored.score, traits)
    labels = calibrated(scored, rated, "none")
    assert set(labels.label) <= set(np.arange(3, 15.5, 0.5))
    assert labels.label.max() > 5
    lacking = items.assign(
        human=items.human.where(items.item_id != items.item_id.iloc[0])
    )
    assert whole_texts(grades.scores, lacking)[1].human.isna().sum() == 1
    far = scored[scored.method == "rulers"], rated
    found = label_agreement(*essays(200, 4, n_traits=3), trained_on=far, n_draws=3)
    assert found.mae[0] < 3  # not on a scale that reaches to 15
    assert 0 < found.sd_ratio[0] < 3
