"""A mean, and the means of systems, from few labels and a judge."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from people import judged, labelled, people, plausible, systems, world
from scipy import stats

import rubricnb as rb
from rubricnb.corrections.labels import _composite, estimate_systems, sampling_variance


def estimated(judgments, human, chosen):
    return rb.mean_with_labels(judgments, labelled(judgments, human, chosen)).iloc[0]


def test_mean_is_the_prediction_of_a_regression_at_the_judges_mean():
    """Oracle: the predicted mean of ordinary least squares, and its standard error."""
    rng = np.random.default_rng(1)
    human, judge = world(rng, 100_000)
    chosen = rng.choice(100_000, 40, replace=False)
    row = estimated(judged(judge), human, chosen)
    fit = sm.OLS(human[chosen], sm.add_constant(judge[chosen])).fit()
    wanted = fit.get_prediction([[1, judge.mean()]]).summary_frame(alpha=0.05).iloc[0]
    assert row["mean"] == pytest.approx(wanted["mean"], rel=1e-9)
    # All but the share of texts that is labelled, 40 of 100,000.
    assert row["low"] == pytest.approx(wanted["mean_ci_lower"], abs=2e-4)
    assert row["high"] == pytest.approx(wanted["mean_ci_upper"], abs=2e-4)
    assert row["r"] == pytest.approx(np.corrcoef(human[chosen], judge[chosen])[0, 1])
    assert row["slope"] == pytest.approx(fit.params[1])


def test_mean_is_prediction_powered_inference_with_the_slope_of_the_labels():
    """The point estimate of PPI++, whose lambda is the slope times (N - n) / N."""
    rng = np.random.default_rng(2)
    human, judge = world(rng, 300)
    chosen = rng.choice(300, 30, replace=False)
    rest = np.setdiff1d(np.arange(300), chosen)
    row = estimated(judged(judge), human, chosen)
    tuned = row["slope"] * len(rest) / 300
    wanted = tuned * judge[rest].mean() + (human[chosen] - tuned * judge[chosen]).mean()
    assert row["mean"] == pytest.approx(wanted)


def test_all_labelled_is_the_mean_itself_and_leaves_nothing_to_gain():
    human, judge = world(np.random.default_rng(3), 60)
    row = estimated(judged(judge), human, np.arange(60))
    assert row["mean"] == row["low"] == row["high"] == pytest.approx(human.mean())
    assert np.isnan(row.gain)
    assert "every text is labelled" in row.reason


def test_a_judge_without_variance_leaves_the_labels_alone():
    human, _ = world(np.random.default_rng(8), 50)
    row = estimated(judged(np.full(50, 3)), human, np.arange(10))
    assert row["mean"] == row["labels_only"] == pytest.approx(human[:10].mean())
    assert row["gain"] == pytest.approx(1.0)
    assert "one score" in row["reason"]
    assert np.isnan(row["r"])


# ---- coverage, however labels are drawn
# ----------------------------------------------------------


def single(n, r=0.6):
    """Labels of n texts that share nothing."""

    def draw(rng):
        human, judge = world(rng, r=r)
        return judged(judge), human, rng.choice(400, n, replace=False)

    return draw


def prompts(rng, by_system=0.0):
    """60 prompts of six texts, half of the variance shared."""
    cluster, system = np.divmod(np.arange(360), 6)
    quality, noise = (
        rng.normal(size=60)[cluster] + rng.normal(size=360) for _ in range(2)
    )
    human = np.clip(np.round(3 + 0.7 * quality), 1, 5) + by_system * system
    score = (
        np.clip(np.round(3.5 + 0.5 * quality + 0.6 * noise), 1, 5)
        + by_system * system / 2
    )
    return judged(score, cluster, np.array([*"abcdef"])[system]), human


def whole_prompts(n=10, drop=0):
    """Labels of n prompts, all but some."""

    def draw(rng):
        judgments, human = prompts(rng)
        taken = judgments["cluster_id"].isin(rng.choice(60, n, replace=False))
        return judgments, human, rng.permutation(np.flatnonzero(taken))[drop:]

    return draw


def any_of_prompts(rng):
    return *prompts(rng), rng.choice(360, 60, replace=False)


def rotated(rng):
    """One text of half of the prompts, the systems in turn."""
    prompt = rng.choice(60, 30, replace=False)
    chosen = prompt * 6 + (np.arange(30) + rng.integers(6)) % 6
    return *prompts(rng, by_system=0.5), np.sort(chosen)


def texts(n, named):
    """SummEval's shape: 25 articles, 4 systems, 4 criteria;
    n texts, labelled under all.
    """

    def draw(rng):
        article, system, criterion = (a.ravel() for a in np.indices((25, 4, 4)))
        text = article * 4 + system
        human = 3 + rng.normal(size=100)[text] + 0.3 * rng.normal(size=400)
        score = np.clip(np.round(3 + 0.3 * human + rng.normal(size=100)[text]), 1, 5)
        judgments = judged(
            score, article, system if named else None, criterion=criterion
        )
        return (
            judgments,
            human,
            np.flatnonzero(np.isin(text, rng.choice(100, n, replace=False))),
        )

    return draw


def results(draw, times=80, seed=1, apart=False):
    """Estimates from several draws; `apart`: as if no text shared its prompt."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(times):
        judgments, human, chosen = draw(rng)
        if apart:
            judgments = judgments.assign(cluster_id=judgments["item_id"])
        row, truth = estimated(judgments, human, chosen), human.mean()
        held = row["low"] <= truth <= row["high"]
        rows.append(
            {
                **row,
                "held": held,
                "off": row["mean"] - truth,
                "off_alone": row["labels_only"] - truth,
            }
        )
    return pd.DataFrame(rows).assign(
        half=lambda found: (found["high"] - found["low"]) / 2
    )


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("draw", "drawn"),
    [
        (single(20), "items"),
        (single(50), "items"),
        (whole_prompts(12), "clusters"),
        (whole_prompts(drop=1), "clusters"),
        (whole_prompts(drop=20), "clusters"),
        (any_of_prompts, "items"),
        (rotated, "one per cluster"),
        (texts(50, True), "texts"),
        (texts(15, False), "items"),
    ],
)
def test_the_interval_covers(draw, drawn):
    rows = results(draw)
    assert plausible(rows["held"].sum(), len(rows))
    assert rows["drawn"].mode().item() == drawn


@pytest.mark.in_turn
def test_a_judge_that_agrees_pays_and_its_bias_does_no_harm():
    rows = results(single(50, r=0.85), 150)
    assert (rows["off_alone"] ** 2).mean() / (rows["off"] ** 2).mean() > 1.3
    assert abs(rows["off"].mean()) < 0.03  # the judge is a point too high


@pytest.mark.in_turn
def test_labels_count_for_less_only_where_they_were_drawn_together():
    together, taken_apart = (
        results(whole_prompts(), apart=apart) for apart in (False, True)
    )
    assert taken_apart["held"].mean() < together["held"].mean() - 0.05
    singly, taken_apart = (
        results(any_of_prompts, apart=apart) for apart in (False, True)
    )
    assert (singly["half"] / taken_apart["half"]).mean() < 1.1


@pytest.mark.parametrize("drop", [1, 10])
def test_a_missing_rating_does_not_shorten_the_interval_of_whole_prompts(drop):
    judgments, human, chosen = whole_prompts()(np.random.default_rng(0))
    whole, less = (
        estimated(judgments, human, kept) for kept in (chosen, chosen[drop:])
    )
    assert less["high"] - less["low"] > 0.9 * (whole["high"] - whole["low"])
    assert less["drawn"] == "clusters"
    assert "effective clusters" in less["reason"]


def test_the_variance_of_whole_clusters_is_that_of_their_means():
    """Oracle: clusters of one size labelled whole
    are a simple draw of cluster means.
    """
    rng = np.random.default_rng(4)
    items = pd.DataFrame({"cluster": np.repeat(np.arange(20), 5)})
    labelled_items = np.isin(items["cluster"], rng.choice(20, 8, replace=False))
    values = rng.normal(size=20)[items["cluster"]] + rng.normal(size=100)
    error = values[labelled_items] - values[labelled_items].mean()
    found = sampling_variance(items, labelled_items, error)
    means = error.reshape(8, 5).mean(axis=1)
    assert found.variance == pytest.approx((1 - 8 / 20) * means.var(ddof=1) / 8)
    assert found.df == pytest.approx(7)
    assert found.unit == "clusters"


def test_the_variance_of_labels_of_uneven_clusters_and_texts_is_right_on_average():
    """Three levels, drawn again and again: the estimate is unbiased or cautious."""
    rng = np.random.default_rng(5)
    size = rng.integers(2, 6, 40)
    cluster = np.repeat(np.repeat(np.arange(40), size), 3)
    text = np.repeat(np.arange(size.sum()), 3)
    first = np.unique(cluster, return_index=True)[1]
    items = pd.DataFrame(
        {
            "cluster": cluster,
            "candidate": text - text[first][cluster],
            "criterion": np.tile([*"abc"], size.sum()),
        }
    )
    off, found = [], []
    for _ in range(500):
        values = rng.normal(size=40)[cluster] + rng.normal(size=size.sum())[text]
        values = values + rng.normal(size=len(text))
        chosen = np.isin(cluster, rng.choice(40, 15, replace=False)) & (
            rng.random(len(text)) < 0.7
        )
        error = values[chosen] - values[chosen].mean()
        found.append(sampling_variance(items, chosen, error).variance)
        off.append((values[chosen].mean() - values.mean()) ** 2)
    assert 0.9 < np.mean(found) / np.mean(off) < 1.35


# ---- planning
# --------------------------------------------------------------------------------------


def test_labels_needed_gives_the_half_width_it_promises():
    rng = np.random.default_rng(10)
    human, judge = world(rng, 2_000, r=0.8)
    judgments = judged(judge)

    def drawn(n):
        return labelled(judgments, human, rng.choice(2_000, n, replace=False))

    needed = rb.labels_needed(judgments, drawn(400), 0.15).iloc[0]
    found = pd.concat(
        rb.mean_with_labels(judgments, drawn(int(needed["needed"]))) for _ in range(60)
    )
    assert ((found["high"] - found["low"]) / 2).mean() == pytest.approx(0.15, rel=0.05)
    assert needed["needed_low"] <= needed["needed"] <= needed["needed_high"]
    assert needed["needed"] < needed["needed_alone"]


@pytest.mark.parametrize(("draw", "n"), [(whole_prompts(), 60), (texts(50, True), 200)])
def test_labels_needed_are_those_that_there_are_for_the_width_that_there_is(draw, n):
    """Planning and estimating have one variance:
    ten whole prompts are not sixty draws.
    """
    judgments, human, chosen = draw(np.random.default_rng(6))
    row, labels = (
        estimated(judgments, human, chosen),
        labelled(judgments, human, chosen),
    )
    half = (row["high"] - row["low"]) / 2
    needed = rb.labels_needed(judgments, labels, half).iloc[0]
    assert needed["needed"] == pytest.approx(n, rel=0.15)
    apart = judgments.assign(cluster_id=judgments["item_id"])
    assert rb.labels_needed(apart, labels, half)["needed"].iloc[0] < 0.5 * n


# ---- what is not certain
# -------------------------------------------------------------------------


def test_labels_chosen_by_score_are_noticed_and_others_are_not():
    rng = np.random.default_rng(7)
    human, judge = world(rng)
    best = np.argsort(-judge, kind="stable")[:40]
    assert "look chosen" in estimated(judged(judge), human, best)["reason"]
    assert (
        estimated(judged(judge), human, rng.choice(400, 40, replace=False))["reason"]
        == ""
    )
    judgments, human, _ = systems(19)
    judgments["score"] += 2.0 * np.arange(40)[np.arange(480) // 12] / 40
    row = estimated(judgments, human, np.arange(360, 480))
    assert row["drawn"] == "clusters"
    assert "look chosen" in row["reason"]


def test_labels_chosen_for_what_the_judge_does_not_see_cannot_be_told():
    """Said in the chapter: only what shows in the scores can be noticed."""
    rng = np.random.default_rng(20)
    human, judge = world(rng)
    row = estimated(judged(rng.permutation(judge)), human, np.argsort(-human)[:40])
    assert row["reason"] == ""
    assert row["low"] > human.mean()


def test_labels_that_equal_the_scores_leave_no_interval_but_a_bound():
    score = np.tile([1, 2, 3, 4, 5], 40)
    row = estimated(judged(score), score, np.arange(20))
    assert row["mean"] == pytest.approx(3.0)
    assert np.isnan(row["low"])
    assert "up to 14 %" in row["reason"]  # 1 - .05 ** (1 / 20)


def test_a_judge_that_is_rarely_wrong_is_covered_or_doubted():
    rng = np.random.default_rng(7)
    held, doubted = [], []
    for _ in range(150):
        score = rng.integers(1, 6, 100).astype(float)
        human = score.copy()
        wrong = rng.integers(100)
        human[wrong] = 1 if score[wrong] > 3 else 5
        row = estimated(judged(score), human, rng.choice(100, 20, replace=False))
        if np.isfinite(row["low"]):
            held.append(row["low"] <= human.mean() <= row["high"])
            doubted.append("alike" in row["reason"])
    assert np.mean(held) >= 0.9
    assert np.mean(doubted) == 1


def test_few_labels_at_the_ceiling_are_doubted():
    rng = np.random.default_rng(8)
    score = np.where(rng.random(400) < 0.85, 5, rng.integers(1, 5, 400))
    human = np.clip(score - (rng.random(400) < 0.2), 1, 5)
    reason = estimated(judged(score), human, rng.choice(400, 60, replace=False))[
        "reason"
    ]
    assert "60 labels" in reason
    assert "too narrow" in reason


def test_rated_texts_that_the_judge_refused_are_counted_and_compared():
    rng = np.random.default_rng(9)
    human = rng.integers(1, 6, 400).astype(float)
    refused = human <= 2
    judgments = judged(
        np.where(refused, np.nan, human), status=np.where(refused, "refused", "ok")
    )
    chosen = rng.choice(400, 60, replace=False)
    row = estimated(judgments, human, chosen)
    lost = human[chosen][human[chosen] <= 2]
    assert (row["n_labels"], row["n_unscored"]) == (60 - len(lost), len(lost))
    assert f"{len(lost)} of 60 rated items have no score" in row["reason"]
    assert f"people rate them {lost.mean():.2f}" in row["reason"]
    assert "about scored items only" in row["reason"]
    for statistic in (rb.statistics.judge_bias, rb.agreement):
        reason = statistic(judgments, labelled(judgments, human, chosen))[
            "reason"
        ].item()
        assert "have no score" in reason


@pytest.mark.parametrize("lacking", ["dataset", "criterion"])
def test_a_label_that_fits_several_judged_items_is_an_error(lacking):
    names, human = [f"t{i}" for i in range(20)], np.arange(20.0)
    asked = {"item_id": names * 2, "dataset": "d", "criterion": "c"}
    judgments = judged([*human, *-human]).assign(
        **asked | {lacking: np.repeat(["x", "y"], 20)}
    )
    rated = judgments[[*asked]].assign(human=judgments["score"])
    assert rb.agreement(judgments, rated, by="judge")["r"].iloc[0] == pytest.approx(1)
    for function in (rb.agreement, rb.statistics.judge_bias, rb.mean_with_labels):
        with pytest.raises(ValueError, match=f"add the column '{lacking}' to the"):
            function(judgments, rated.iloc[:20].drop(columns=lacking))


def test_a_criterion_without_labels_is_named():
    rng = np.random.default_rng(3)
    score = rng.integers(1, 6, 30)
    one = judged(score, criterion="tone")
    both = pd.concat(
        [one, one.assign(criterion="facts", score=6 - score)], ignore_index=True
    )
    labels = labelled(one, score + rng.normal(0, 1, 30), np.arange(25))
    assert "the criterion 'facts'" in rb.mean_with_labels(both, labels)["reason"].item()
    assert "criterion" not in rb.mean_with_labels(one, labels)["reason"].item()


# ---- systems
# --------------------------------------------------------------------------------------


def of_systems(judgments, human, system, m):
    """Estimates from the first m labels of every system."""
    first = pd.Series(system).groupby(system).cumcount() < m
    labels = labelled(judgments, human, np.flatnonzero(first))
    return rb.statistics.systems_with_labels(judgments, labels)


def labelled_systems(rng, s=20, same=True, favour=0.0, m=4, prompts=60):
    """Prompts are hard or easy for all; the judge ranks well,
    but for the first system.
    """
    quality = 3 + 0.3 * rng.normal(size=s)
    shared, own = rng.normal(size=(1, prompts)), rng.normal(size=(s, prompts))
    text = 0.6 * shared + 0.6 * own
    human = quality[:, None] + text
    score = (
        1 + 0.8 * quality[:, None] + 0.5 * text + 0.6 * rng.normal(size=(s, prompts))
    )
    score[0] += favour
    rated = np.full((s, prompts), np.nan)
    for row in range(s):
        if row == 0 or not same:
            chosen = rng.choice(prompts, m, replace=False)
        rated[row, chosen] = human[row, chosen]
    system, prompt = np.indices((s, prompts))
    found = estimate_systems(
        system.ravel(), prompt.ravel(), score.ravel(), rated.ravel()
    )
    truth = human.mean(axis=1)
    held = (found["low"] <= truth) & (truth <= found["high"])
    alone = np.nanmean(rated, axis=1) - truth
    return found | {"held": held, "off": found["estimate"] - truth, "off_alone": alone}


@pytest.mark.parametrize(("s", "same"), [(20, True), (40, True), (20, False)])
def test_systems_gain_and_are_covered_also_where_labelled_on_the_same_prompts(s, same):
    rng = np.random.default_rng(10)
    found = [labelled_systems(rng, s, same) for _ in range(150)]
    assert np.mean([one["held"] for one in found]) >= 0.92
    alone, ours = (
        np.mean([one[of] ** 2 for one in found]) for of in ("off_alone", "off")
    )
    assert alone / ours > (1.0 if same else 1.4)


def test_a_system_that_the_judge_favours_is_no_worse_off_than_with_its_labels_alone():
    rng = np.random.default_rng(11)
    found = [labelled_systems(rng, favour=1.0) for _ in range(200)]
    ours, alone = (
        np.mean([one[of][0] ** 2 for one in found]) for of in ("off", "off_alone")
    )
    assert ours < 1.25 * alone
    assert np.mean([one["held"][0] for one in found]) > 0.82


def test_a_system_far_off_the_line_keeps_its_labels_and_is_named():
    found = labelled_systems(np.random.default_rng(12), favour=4.0, m=12)
    assert found["shrinkage"][0] == 0
    assert found["codes"][1] is None
    assert (found["codes"][0], found["codes"][0].numbers["side"]) == (
        "off_line",
        "below",
    )
    assert found["off_line_p"][0] < 0.05 / 20
    assert found["held"][0]


def test_distances_from_the_line_are_externally_studentised_residuals():
    """Oracle: statsmodels, where no system is so far off that it leaves the line."""
    rng = np.random.default_rng(13)
    judge = rng.normal(size=12)
    own = 3 + 0.5 * judge + 0.2 * rng.normal(size=12)
    found, _ = _composite(own, judge, np.full(12, 0.01))
    influence = sm.OLS(own, sm.add_constant(judge)).fit().get_influence()
    wanted = 2 * stats.t.sf(np.abs(influence.resid_studentized_external), 9)
    np.testing.assert_allclose(found["off_line_p"], wanted)
    np.testing.assert_allclose(found["off_line"], influence.resid)


@pytest.mark.parametrize("varying", [True, False])
@pytest.mark.parametrize("noisy", [(0, 4), (2,)])
def test_the_spread_about_the_line_is_prasad_and_raos(varying, noisy):
    """Oracle: its expectation with the residual maker
    of ordinary least squares, inverted.
    """
    rng, v = np.random.default_rng(1), np.full(5, 0.05)
    v[[*noisy]] = 1.0
    x = np.column_stack([np.ones(5), np.arange(5)] if varying else [np.ones(5)])
    maker = np.eye(5) - x @ np.linalg.pinv(x)
    for _ in range(20):
        own = 2 * rng.normal(size=5)
        found, _ = _composite(own, x[:, -1], v)
        square = own @ maker @ own - np.trace(maker @ np.diag(v))
        spread = max(square / np.trace(maker), 0)
        gap = maker @ own
        move = np.clip(v / (spread + v) * gap, -np.sqrt(v), np.sqrt(v))
        np.testing.assert_allclose(found["estimate"], own - move)


def test_shrinkage_is_the_share_of_the_gap_that_was_taken_off():
    """Also where a system is drawn by a standard error at most."""
    rng = np.random.default_rng(2)
    own, judge, v = 2 * rng.normal(size=8), np.arange(8.0), np.full(8, 3.0)
    found, _ = _composite(own, judge, v)
    moved = own - found["estimate"]
    assert np.isclose(np.abs(moved), np.sqrt(3)).any()
    np.testing.assert_allclose(found["shrinkage"] * found["off_line"], moved)
    assert ((found["shrinkage"] >= 0) & (found["shrinkage"] <= 1)).all()


@pytest.mark.parametrize("apart", [5, 0])
def test_a_judge_that_sets_one_system_apart_does_not_hide_another_off_the_line(apart):
    """A line through one system alone leaves nothing of its residual:
    it is not tested.
    """
    rng = np.random.default_rng(14)
    for _ in range(50):
        judge = 3 + 0.1 * (np.arange(12) == apart)
        own = 3 + 0.2 * rng.normal(size=12)
        own[7] += 8
        with np.errstate(all="raise"):
            found, mse = _composite(own, judge, np.full(12, 0.01))
        assert found["codes"][7] == "off_line"
        assert np.isnan(found["off_line_p"][apart])
        assert found["codes"][apart] is None
        assert found["estimate"][apart] == pytest.approx(own[apart])
        assert mse[apart] == pytest.approx(0.01)


def test_judge_means_that_differ_by_rounding_have_no_slope():
    rng = np.random.default_rng(15)
    own, v = rng.normal(size=9), np.full(9, 0.2)
    equal, _ = _composite(own, np.full(9, 0.3), v)
    rounded, _ = _composite(own, np.full(9, 0.3) + 1e-16 * rng.normal(size=9), v)
    np.testing.assert_allclose(rounded["estimate"], equal["estimate"])


def test_systems_labelled_on_one_prompt_have_a_reason():
    names = list("abcdef") * 3
    judgments = judged(np.arange(18) % 5, cluster=["p"] * 18, candidate=names)
    found = rb.statistics.systems_with_labels(
        judgments, people(judgments, np.arange(18) % 3)
    )
    assert found["estimate"].isna().all()
    assert set(found["codes"].explode()) == {"one_cluster"}
    assert found["labels_only"].notna().all()


def test_systems_that_lie_exactly_on_the_line_beside_one_that_does_not():
    """Most ratings are a 5: the search for systems off the line ends."""
    own = np.full(12, 5.0)
    own[0] = 4
    found, mse = _composite(own, np.arange(12.0), np.full(12, 0.01))
    assert found["shrinkage"][0] == 0
    assert (found["shrinkage"][1:] > 0).all()
    assert np.isfinite(mse).all()


def test_a_judge_that_knows_nothing_does_not_move_the_systems_much():
    judgments, human, system = systems(12, spread=1.0)
    judgments["score"] = np.random.default_rng(0).normal(size=len(judgments))
    found = of_systems(judgments, human, system, 16)
    assert found["candidate"].tolist() == [f"s{s:02d}" for s in range(12)]
    assert found["shrinkage"].max() < 0.1
    assert (found["estimate"] - found["labels_only"]).abs().max() < 0.3


def test_systems_of_a_judge_without_variance_lean_on_one_another_only():
    judgments, human, system = systems(17)
    found = of_systems(judgments.assign(score=3), human, system, 4)
    own = found["labels_only"]
    wanted = own + found["shrinkage"] * (own.mean() - own)
    np.testing.assert_allclose(found["estimate"], wanted)
    assert np.isfinite(found["low"]).all()


def test_a_text_without_a_system_counts_for_no_system():
    names, rng = ["a", "b", "c", "d", "e", "f"] * 6, np.random.default_rng(0)
    judgments = judged(rng.integers(1, 6, 36), candidate=[None, *names[1:]])
    labels = people(judgments, rng.integers(1, 6, 36))[:30]
    found = rb.statistics.systems_with_labels(judgments, labels)
    assert found.candidate.tolist() == ["b", "c", "d", "e", "f", "a"]
    assert rb.statistics.system_agreement(judgments, labels).n_systems.item() == 6
