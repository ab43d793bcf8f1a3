"""A mean, and the means of systems, from few labels and a judge."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import rubricnb as rb
from rubricnb.statistics.labels import _composite, estimate_systems, sampling_variance


def judged(score, cluster=None, candidate=None, **columns):
    """Judgments with one read an item."""
    names = [f"t{i:05d}" for i in range(len(score))]
    frame = {
        "item_id": names, "cluster_id": names if cluster is None else cluster, "judge": "j",
        "design": "fixed", "ordering_index": 1, "ordering": "1-2-3-4-5", "score": score, **columns,
    }  # fmt: skip
    if candidate is not None:
        frame["candidate"] = candidate
    return pd.DataFrame(frame)


def labelled(judgments, human, chosen):
    human = pd.Series(human)[chosen].to_numpy()
    return pd.DataFrame({"item_id": judgments["item_id"].to_numpy()[chosen], "human": human})


def world(rng, n=400, r=0.6, clusters=None):
    """Ratings and a biased judge with a correlation of about r."""
    truth = rng.normal(size=n)
    if clusters is not None:
        truth = 0.6 * truth + 0.8 * rng.normal(size=clusters.max() + 1)[clusters]
    human = np.round(3 + truth + 0.3 * rng.normal(size=n))
    judge = np.round(4 + r * truth + np.sqrt(1 - r**2) * rng.normal(size=n))
    return human, judge


def test_mean_is_the_prediction_of_a_regression_at_the_judges_mean():
    """Oracle: the predicted mean of ordinary least squares, and its standard error."""
    rng = np.random.default_rng(1)
    human, judge = world(rng, 100_000)
    judgments, chosen = judged(judge), rng.choice(100_000, 40, replace=False)
    row = rb.mean_with_labels(judgments, labelled(judgments, human, chosen)).iloc[0]
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
    judgments = judged(judge)
    row = rb.mean_with_labels(judgments, labelled(judgments, human, chosen)).iloc[0]
    tuned = row["slope"] * len(rest) / 300
    wanted = tuned * judge[rest].mean() + (human[chosen] - tuned * judge[chosen]).mean()
    assert row["mean"] == pytest.approx(wanted)


def test_all_labelled_is_the_mean_itself():
    human, judge = world(np.random.default_rng(3), 60)
    judgments = judged(judge)
    row = rb.mean_with_labels(judgments, labelled(judgments, human, np.arange(60))).iloc[0]
    assert row["mean"] == row["low"] == row["high"] == pytest.approx(human.mean())


@pytest.mark.parametrize("n", [20, 50])
def test_the_interval_covers_and_the_judge_pays(n):
    rng = np.random.default_rng(n)
    human, judge = world(rng, r=0.85)
    judgments = judged(judge)
    rows = pd.concat(
        rb.mean_with_labels(
            judgments, labelled(judgments, human, rng.choice(400, n, replace=False))
        )
        for _ in range(200)
    )
    covered = ((rows["low"] <= human.mean()) & (human.mean() <= rows["high"])).sum()
    assert 178 <= covered <= 199  # 95 % of 200, a 99.9 % band
    better = rows["labels_only"].sub(human.mean()).pow(2).mean()
    assert better / rows["mean"].sub(human.mean()).pow(2).mean() > 1.3
    assert abs(rows["mean"].mean() - human.mean()) < 0.03  # the judge is a point too high


def test_labels_of_whole_clusters_are_covered_too():
    """Summaries of an article share its quality."""
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(60), 8)
    human, judge = world(rng, 480, clusters=clusters)
    judgments = judged(judge, [f"a{c}" for c in clusters])
    rows = []
    for _ in range(150):
        chosen = np.flatnonzero(np.isin(clusters, rng.choice(60, 12, replace=False)))
        rows.append(rb.mean_with_labels(judgments, labelled(judgments, human, chosen)))
    rows = pd.concat(rows)
    assert set(rows["drawn"]) == {"clusters"}
    covered = ((rows["low"] <= human.mean()) & (human.mean() <= rows["high"])).mean()
    assert 0.9 < covered < 0.99


def test_one_text_a_prompt_with_the_systems_rotated():
    rng = np.random.default_rng(6)
    prompts, systems = 96, 6
    clusters = np.repeat(np.arange(prompts), systems)
    system = np.tile(np.arange(systems), prompts)
    human, judge = world(rng, prompts * systems, clusters=clusters)
    human = human + 0.5 * system
    judgments = judged(judge + 0.3 * system, [f"p{c}" for c in clusters], [f"s{s}" for s in system])
    rows = []
    for _ in range(150):
        prompt = rng.choice(prompts, 48, replace=False)
        chosen = prompt * systems + (np.arange(48) + rng.integers(systems)) % systems
        rows.append(rb.mean_with_labels(judgments, labelled(judgments, human, np.sort(chosen))))
    rows = pd.concat(rows)
    assert set(rows["drawn"]) == {"one per cluster"}
    covered = ((rows["low"] <= human.mean()) & (human.mean() <= rows["high"])).mean()
    assert 0.9 < covered < 0.99


def test_labels_chosen_by_score_are_noticed():
    rng = np.random.default_rng(7)
    human, judge = world(rng)
    judgments = judged(judge)
    best = np.argsort(-judge, kind="stable")[:40]
    row = rb.mean_with_labels(judgments, labelled(judgments, human, best)).iloc[0]
    assert "look chosen" in row["reason"]
    fair = rng.choice(400, 40, replace=False)
    row = rb.mean_with_labels(judgments, labelled(judgments, human, fair)).iloc[0]
    assert row["reason"] == ""


def test_a_judge_without_variance_leaves_the_labels_alone():
    human, _ = world(np.random.default_rng(8), 50)
    judgments = judged(np.full(50, 3))
    row = rb.mean_with_labels(judgments, labelled(judgments, human, np.arange(10))).iloc[0]
    assert row["mean"] == row["labels_only"] == pytest.approx(human[:10].mean())
    assert row["gain"] == pytest.approx(1.0)
    assert "one score" in row["reason"]
    assert np.isnan(row["r"])


@pytest.mark.parametrize(("chosen", "reason"), [([], "no judged item"), ([3], "1 labels: four")])
def test_too_few_labels_are_named(chosen, reason):
    human, judge = world(np.random.default_rng(9), 50)
    judgments = judged(judge)
    if not chosen:
        labels = pd.DataFrame({"item_id": judgments["item_id"], "human": np.nan})
    else:
        labels = labelled(judgments, human, np.array(chosen))
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    assert reason in row["reason"]
    assert np.isnan(row["mean"])


def test_labels_of_other_texts_are_an_error():
    judgments = judged([1, 2, 3, 4])
    with pytest.raises(ValueError, match="among the items"):
        rb.mean_with_labels(judgments, pd.DataFrame({"item_id": ["x"], "human": [1.0]}))


def test_equal_labels_have_no_interval():
    judgments = judged([1, 2, 3, 4, 5, 1, 2, 3])
    labels = pd.DataFrame({"item_id": judgments["item_id"][:5], "human": 3.0})
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    assert np.isnan(row["low"])
    assert "all labels are equal" in row["reason"]


def test_one_labelled_cluster_has_no_interval():
    judgments = judged([1, 2, 3, 4, 5, 1, 2, 3], list("aaaabbbb"))
    labels = pd.DataFrame({"item_id": judgments["item_id"][:4], "human": [1, 2, 2, 3.0]})
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    assert "1 labelled clusters: an interval needs three" in row["reason"]
    assert np.isnan(row["low"])


def test_labels_needed_gives_the_half_width_it_promises():
    rng = np.random.default_rng(10)
    human, judge = world(rng, 2_000, r=0.8)
    judgments = judged(judge)
    pilot = labelled(judgments, human, rng.choice(2_000, 400, replace=False))
    needed = rb.labels_needed(judgments, pilot, 0.15).iloc[0]
    widths = [
        rb.mean_with_labels(
            judgments,
            labelled(judgments, human, rng.choice(2_000, int(needed["needed"]), replace=False)),
        ).eval("(high - low) / 2").iloc[0]
        for _ in range(60)
    ]  # fmt: skip
    assert np.mean(widths) == pytest.approx(0.15, rel=0.05)
    assert needed["needed_low"] <= needed["needed"] <= needed["needed_high"]
    assert needed["needed"] < needed["needed_alone"]


def test_labels_needed_refuses_a_width_of_nothing():
    judgments = judged([1, 2, 3, 4])
    labels = pd.DataFrame({"item_id": judgments["item_id"], "human": [1, 2, 2, 3.0]})
    with pytest.raises(ValueError, match="positive number"):
        rb.labels_needed(judgments, labels, 0)


def systems(rng, spread, s=12, prompts=40):
    """Systems whose quality the judge ranks well, and their items."""
    quality = 3 + spread * rng.normal(size=s)
    system, prompt = np.tile(np.arange(s), prompts), np.repeat(np.arange(prompts), s)
    text = rng.normal(size=len(system))
    human = quality[system] + 0.5 * text + 0.5 * rng.normal(size=len(system))
    judge = 1 + 0.8 * quality[system] + 0.5 * text + 0.6 * rng.normal(size=len(system))
    names = [f"s{i:02d}" for i in range(s)]
    return judged(judge, [f"p{p}" for p in prompt], [names[i] for i in system]), human, system


def test_systems_gain_and_are_covered():
    rng = np.random.default_rng(11)
    errors, alone, covered = [], [], []
    judgments, human, system = systems(rng, 0.4)
    truth = np.array([human[system == s].mean() for s in range(12)])
    for _ in range(100):
        chosen = [rng.choice(np.flatnonzero(system == s), 4, replace=False) for s in range(12)]
        found = rb.systems_with_labels(
            judgments, labelled(judgments, human, np.sort(np.concatenate(chosen)))
        )
        assert found["candidate"].tolist() == [f"s{s:02d}" for s in range(12)]
        errors.append((found["estimate"] - truth) ** 2)
        alone.append((found["labels_only"] - truth) ** 2)
        covered.append((found["low"] <= truth) & (truth <= found["high"]))
    assert np.mean(alone) / np.mean(errors) > 1.4
    assert 0.93 < np.mean(covered) < 0.995


def test_a_judge_that_knows_nothing_does_not_move_the_systems_much():
    rng = np.random.default_rng(12)
    judgments, human, system = systems(rng, 1.0)
    judgments["score"] = rng.normal(size=len(judgments))
    chosen = np.concatenate([np.flatnonzero(system == s)[:16] for s in range(12)])
    found = rb.systems_with_labels(judgments, labelled(judgments, human, np.sort(chosen)))
    assert found["shrinkage"].max() < 0.1
    assert (found["estimate"] - found["labels_only"]).abs().max() < 0.3


def test_every_system_needs_two_labels():
    judgments, human, system = systems(np.random.default_rng(13), 0.4)
    chosen = np.concatenate([np.flatnonzero(system == s)[: 1 + (s > 0)] for s in range(12)])
    found = rb.systems_with_labels(judgments, labelled(judgments, human, np.sort(chosen)))
    assert found["estimate"].isna().all()
    assert found["reason"].iloc[0] == "s00 has 1 labels: every system needs two"


def test_four_systems_are_too_few():
    judgments, human, _ = systems(np.random.default_rng(14), 0.4, s=4)
    found = rb.systems_with_labels(judgments, labelled(judgments, human, np.arange(160)))
    assert "needs 5" in found["reason"].iloc[0]


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [rb.labels_needed, rb.mean_with_labels])
def test_no_label_and_one_label_say_so(function):
    judgments = judged([1, 2, 3, 4, 5, 3])
    options = {"half_width": 0.2} if function is rb.labels_needed else {}
    none = pd.DataFrame({"item_id": judgments["item_id"], "human": np.nan})
    assert function(judgments, none, **options)["reason"].iloc[0]
    one = none.assign(human=none["human"].where(none.index > 0, 4.0))
    row = function(judgments, one, **options).iloc[0]
    assert row["n_labels"] == 1
    assert "1 labels: four are needed" in row["reason"]


def test_systems_without_a_label_say_whose_are_missing():
    judgments, human, _ = systems(np.random.default_rng(15), 0.4)
    none = pd.DataFrame({"item_id": judgments["item_id"], "human": np.nan})
    found = rb.systems_with_labels(judgments, none)
    assert "s00 has 0 labels" in found["reason"].iloc[0]
    one = labelled(judgments, human, np.array([0]))
    assert rb.systems_with_labels(judgments, one)["estimate"].isna().all()


@pytest.mark.parametrize("function", [rb.labels_needed, rb.systems_with_labels])
def test_labels_outside_the_judged_items_are_an_error(function):
    judgments, *_ = systems(np.random.default_rng(16), 0.4)
    options = {"half_width": 0.2} if function is rb.labels_needed else {}
    with pytest.raises(ValueError, match="among the items"):
        function(judgments, pd.DataFrame({"item_id": ["x"], "human": [1.0]}), **options)


def test_systems_of_a_judge_without_variance_lean_on_one_another_only():
    judgments, human, system = systems(np.random.default_rng(17), 0.4)
    judgments["score"] = 3
    chosen = np.concatenate([np.flatnonzero(system == s)[:4] for s in range(12)])
    found = rb.systems_with_labels(judgments, labelled(judgments, human, np.sort(chosen)))
    weight = found["shrinkage"]
    middle = found["labels_only"].mean()
    wanted = found["labels_only"] + weight * (middle - found["labels_only"])
    np.testing.assert_allclose(found["estimate"], wanted)
    assert np.isfinite(found["low"]).all()


def test_labels_all_in_one_prompt_have_no_interval_whatever_the_judge():
    judgments, human, _ = systems(np.random.default_rng(18), 0.4)
    row = rb.mean_with_labels(judgments, labelled(judgments, human, np.arange(12))).iloc[0]
    assert row["n_clusters"] == 1
    assert "1 labelled clusters: an interval needs three" in row["reason"]
    assert np.isnan(row["low"])


def test_whole_prompts_chosen_by_score_are_noticed():
    judgments, human, _ = systems(np.random.default_rng(19), 0.4)
    shift = 2.0 * np.arange(40)[np.arange(480) // 12] / 40
    judgments["score"] += shift
    row = rb.mean_with_labels(judgments, labelled(judgments, human, np.arange(360, 480))).iloc[0]
    assert row["drawn"] == "clusters"
    assert "look chosen" in row["reason"]


def test_labels_chosen_for_what_the_judge_does_not_see_cannot_be_told():
    """Said in the chapter: only what shows in the scores can be noticed."""
    rng = np.random.default_rng(20)
    human, judge = world(rng)
    judgments = judged(rng.permutation(judge))
    row = rb.mean_with_labels(judgments, labelled(judgments, human, np.argsort(-human)[:40]))
    assert row["reason"].iloc[0] == ""
    assert row["low"].iloc[0] > human.mean()


def test_labels_of_whole_texts_under_several_criteria_are_as_many_draws_as_texts():
    """SummEval's shape: 25 articles, 4 systems, 4 criteria; 50 texts drawn, labelled under all."""
    rng = np.random.default_rng(8)
    article, system, criterion = (a.ravel() for a in np.indices((25, 4, 4)))
    text = article * 4 + system
    ids = [f"{t}/{c}" for t, c in zip(text, criterion, strict=True)]
    held = []
    for _ in range(100):
        human = 3 + rng.normal(size=100)[text] + 0.3 * rng.normal(size=400)
        score = np.clip(np.round(3 + 0.3 * human + rng.normal(size=100)[text]), 1, 5)
        judgments = judged(score, cluster=article, candidate=system).assign(
            item_id=ids, criterion=criterion
        )
        chosen = np.isin(text, rng.choice(100, 50, replace=False))
        labels = pd.DataFrame({"item_id": ids, "criterion": criterion, "human": human})[chosen]
        row = rb.mean_with_labels(judgments, labels).iloc[0]
        held.append(row.low <= human.mean() <= row.high)
    assert row.drawn == "texts"
    assert 0.89 <= np.mean(held) <= 1
    needed = rb.labels_needed(judgments, labels, half_width=(row.high - row.low) / 2)
    assert needed.needed.item() == pytest.approx(200, rel=0.04)


def test_everything_labelled_leaves_nothing_to_gain_and_says_so():
    judgments = judged([1, 2, 3, 4, 5, 3])
    labels = labelled(judgments, [1, 2, 3, 4, 4, 3.0], np.ones(6, bool))
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    assert np.isnan(row.gain)
    assert "every text is labelled" in row.reason


def test_a_text_without_a_system_counts_for_no_system():
    names = ["a", "b", "c", "d", "e", "f"] * 6
    rng = np.random.default_rng(0)
    judgments = judged(rng.integers(1, 6, 36), candidate=names)
    labels = labelled(judgments, rng.integers(1, 6, 36).astype(float), np.arange(36) < 30)
    gone = judgments.assign(candidate=[None, *names[1:]])
    found = rb.systems_with_labels(gone, labels)
    assert found.candidate.tolist() == ["b", "c", "d", "e", "f", "a"]
    assert rb.system_agreement(gone, labels).n_systems.item() == 6


# ---- labels that share a prompt or a text -------------------------------------------------------


def whole_prompts(rng, prompts=10, drop=0):
    """60 prompts of six texts, half of the variance shared; the labels of some whole prompts."""
    clusters = np.repeat(np.arange(60), 6)
    quality = rng.normal(size=60)[clusters] + rng.normal(size=360)
    noise = rng.normal(size=60)[clusters] + rng.normal(size=360)
    human = np.clip(np.round(3 + 0.7 * quality), 1, 5)
    score = np.clip(np.round(3.5 + 0.5 * quality + 0.6 * noise), 1, 5)
    judgments = judged(score, [f"p{c}" for c in clusters], np.tile([*"abcdef"], 60))
    chosen = np.flatnonzero(np.isin(clusters, rng.choice(60, prompts, replace=False)))
    return judgments, human, rng.permutation(chosen)[drop:]


def half_of(row):
    return (row["high"] - row["low"]) / 2


@pytest.mark.parametrize("drop", [1, 10])
def test_a_missing_rating_does_not_shorten_the_interval_of_whole_prompts(drop):
    judgments, human, chosen = whole_prompts(np.random.default_rng(0))
    whole = rb.mean_with_labels(judgments, labelled(judgments, human, chosen)).iloc[0]
    less = rb.mean_with_labels(judgments, labelled(judgments, human, chosen[drop:])).iloc[0]
    assert half_of(less) > 0.9 * half_of(whole)
    assert less["drawn"] == "clusters"
    assert "effective clusters" in less["reason"]


@pytest.mark.parametrize("drop", [1, 20])
def test_labels_of_prompts_that_are_not_rated_whole_are_covered(drop):
    rng = np.random.default_rng(1)
    held, held_singly = [], []
    for _ in range(80):
        judgments, human, chosen = whole_prompts(rng, drop=drop)
        row = rb.mean_with_labels(judgments, labelled(judgments, human, chosen)).iloc[0]
        held.append(row["low"] <= human.mean() <= row["high"])
        apart = judgments.assign(cluster_id=judgments["item_id"])
        row = rb.mean_with_labels(apart, labelled(judgments, human, chosen)).iloc[0]
        held_singly.append(row["low"] <= human.mean() <= row["high"])
    assert 0.88 <= np.mean(held) <= 1
    assert np.mean(held_singly) < np.mean(held) - 0.05


def test_labels_drawn_singly_count_singly_though_some_share_a_prompt():
    rng = np.random.default_rng(2)
    held, wider = [], []
    for _ in range(80):
        judgments, human, _ = whole_prompts(rng)
        labels = labelled(judgments, human, rng.choice(360, 60, replace=False))
        row = rb.mean_with_labels(judgments, labels).iloc[0]
        held.append(row["low"] <= human.mean() <= row["high"])
        apart = judgments.assign(cluster_id=judgments["item_id"])
        wider.append(half_of(row) / half_of(rb.mean_with_labels(apart, labels).iloc[0]))
    assert 0.88 <= np.mean(held) <= 1
    assert np.mean(wider) < 1.1


def test_texts_under_several_criteria_are_covered_where_no_column_names_them():
    """15 texts of 100, each under four criteria, and no column that tells the texts apart."""
    rng = np.random.default_rng(3)
    article, system, criterion = (a.ravel() for a in np.indices((25, 4, 4)))
    text, held = article * 4 + system, []
    for _ in range(80):
        human = 3 + rng.normal(size=100)[text] + 0.3 * rng.normal(size=400)
        score = np.clip(np.round(3 + 0.3 * human + rng.normal(size=100)[text]), 1, 5)
        judgments = judged(score, cluster=article, criterion=criterion)
        chosen = np.flatnonzero(np.isin(text, rng.choice(100, 15, replace=False)))
        labels = labelled(judgments, human, chosen).assign(criterion=criterion[chosen])
        row = rb.mean_with_labels(judgments, labels).iloc[0]
        held.append(row["low"] <= human.mean() <= row["high"])
    assert np.mean(held) >= 0.9


def test_the_variance_of_whole_clusters_is_that_of_their_means():
    """Oracle: clusters of one size labelled whole are a simple draw of cluster means."""
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
    items = pd.DataFrame({
        "cluster": cluster, "candidate": text - text[first][cluster],
        "criterion": np.tile([*"abc"], size.sum()),
    })  # fmt: skip
    off, found = [], []
    for _ in range(500):
        values = rng.normal(size=40)[cluster] + rng.normal(size=size.sum())[text]
        values = values + rng.normal(size=len(text))
        chosen = np.isin(cluster, rng.choice(40, 15, replace=False)) & (rng.random(len(text)) < 0.7)
        error = values[chosen] - values[chosen].mean()
        found.append(sampling_variance(items, chosen, error).variance)
        off.append((values[chosen].mean() - values.mean()) ** 2)
    assert 0.9 < np.mean(found) / np.mean(off) < 1.35


def test_labels_needed_are_those_that_there_are_for_the_width_that_there_is():
    """Planning and estimating have one variance: ten whole prompts are not sixty draws."""
    rng = np.random.default_rng(6)
    judgments, human, chosen = whole_prompts(rng)
    labels = labelled(judgments, human, chosen)
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    needed = rb.labels_needed(judgments, labels, half_width=half_of(row)).iloc[0]
    assert needed["needed"] == pytest.approx(60, rel=0.15)
    apart = judgments.assign(cluster_id=judgments["item_id"])
    assert rb.labels_needed(apart, labels, half_of(row))["needed"].iloc[0] < 30
    assert "effective clusters" in needed["reason"]


# ---- what is not certain ------------------------------------------------------------------------


def test_labels_that_equal_the_scores_leave_no_interval_but_a_bound():
    judgments = judged(np.tile([1, 2, 3, 4, 5], 40))
    labels = labelled(judgments, judgments["score"].astype(float), np.arange(20))
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    assert row["mean"] == pytest.approx(3.0)
    assert np.isnan(row["low"])
    assert "up to 14%" in row["reason"]  # 1 - .05 ** (1 / 20)


def test_a_judge_that_is_rarely_wrong_is_covered_or_doubted():
    rng = np.random.default_rng(7)
    held, doubted = [], []
    for _ in range(200):
        score = rng.integers(1, 6, 100).astype(float)
        human = score.copy()
        wrong = rng.integers(100)
        human[wrong] = 1 if score[wrong] > 3 else 5
        judgments = judged(score)
        labels = labelled(judgments, human, rng.choice(100, 20, replace=False))
        row = rb.mean_with_labels(judgments, labels).iloc[0]
        if np.isfinite(row["low"]):
            held.append(row["low"] <= human.mean() <= row["high"])
            doubted.append("alike" in row["reason"])
    assert np.mean(held) >= 0.9
    assert np.mean(doubted) == 1


def test_few_labels_at_the_ceiling_are_doubted():
    rng = np.random.default_rng(8)
    score = np.where(rng.random(400) < 0.85, 5, rng.integers(1, 5, 400))
    human = np.clip(score - (rng.random(400) < 0.2), 1, 5).astype(float)
    judgments = judged(score)
    labels = labelled(judgments, human, rng.choice(400, 60, replace=False))
    reason = rb.mean_with_labels(judgments, labels)["reason"].iloc[0]
    assert "60 labels" in reason
    assert "too narrow" in reason


def test_rated_texts_that_the_judge_refused_are_counted_and_compared():
    rng = np.random.default_rng(9)
    human = rng.integers(1, 6, 400).astype(float)
    score = np.where(human <= 2, np.nan, human)
    judgments = judged(score).assign(status=np.where(human <= 2, "refused", "ok"))
    chosen = rng.choice(400, 60, replace=False)
    row = rb.mean_with_labels(judgments, labelled(judgments, human, chosen)).iloc[0]
    lost = human[chosen][human[chosen] <= 2]
    assert (row["n_labels"], row["n_unscored"]) == (60 - len(lost), len(lost))
    assert f"{len(lost)} of 60 rated items have no score" in row["reason"]
    assert f"people rate them {lost.mean():.2f}" in row["reason"]
    assert "about scored items only" in row["reason"]
    items = labelled(judgments, human, chosen)
    assert "have no score" in rb.judge_bias(judgments, items)["reason"].iloc[0]
    assert "have no score" in rb.agreement(judgments, items)["reason"].iloc[0]


@pytest.mark.parametrize("lacking", ["dataset", "criterion"])
def test_a_label_that_fits_several_judged_items_is_an_error(lacking):
    names = [f"t{i}" for i in range(20)]
    parts = [
        pd.DataFrame({"item_id": names, "dataset": "d", "criterion": "c", "human": way})
        .assign(**{lacking: which})
        for which, way in (("x", np.arange(20.0)), ("y", -np.arange(20.0)))
    ]  # fmt: skip
    rated = pd.concat(parts, ignore_index=True)
    judgments = judged(rated["human"]).assign(**rated[["item_id", "dataset", "criterion"]])
    assert rb.agreement(judgments, rated, by="judge")["r"].iloc[0] == pytest.approx(1)
    for function in (rb.agreement, rb.judge_bias, rb.mean_with_labels):
        with pytest.raises(ValueError, match=f"add the column '{lacking}' to the"):
            function(judgments, rated.iloc[:20].drop(columns=lacking))


# ---- systems on the same prompts, and one that the judge favours ---------------------------------


def labelled_systems(rng, s, same, favour=0.0, m=4, prompts=60):
    """Prompts are hard or easy for all; the judge ranks well, but for the first system."""
    quality = 3 + 0.3 * rng.normal(size=s)
    shared, own = rng.normal(size=(1, prompts)), rng.normal(size=(s, prompts))
    text = 0.6 * shared + 0.6 * own
    human = quality[:, None] + text
    score = 1 + 0.8 * quality[:, None] + 0.5 * text + 0.6 * rng.normal(size=(s, prompts))
    score[0] += favour
    rated = np.full((s, prompts), np.nan)
    for row in range(s):
        if row == 0 or not same:
            chosen = rng.choice(prompts, m, replace=False)
        rated[row, chosen] = human[row, chosen]
    system, prompt = np.indices((s, prompts))
    found = estimate_systems(system.ravel(), prompt.ravel(), score.ravel(), rated.ravel())
    return found, human.mean(axis=1), np.nanmean(rated, axis=1)


def covers(found, truth):
    return (found["low"] <= truth) & (truth <= found["high"])


@pytest.mark.parametrize(("s", "same"), [(20, True), (40, True), (20, False)])
def test_systems_labelled_on_the_same_prompts_are_covered(s, same):
    rng = np.random.default_rng(10)
    held = [covers(found, truth).mean() for found, truth, _ in
            (labelled_systems(rng, s, same) for _ in range(150))]  # fmt: skip
    assert np.mean(held) >= 0.92


def test_a_system_that_the_judge_favours_is_no_worse_off_than_with_its_labels_alone():
    rng = np.random.default_rng(11)
    ours, alone, held = [], [], []
    for _ in range(200):
        found, truth, labels = labelled_systems(rng, 20, same=True, favour=1.0)
        ours.append((found["estimate"][0] - truth[0]) ** 2)
        alone.append((labels[0] - truth[0]) ** 2)
        held.append(covers(found, truth)[0])
    assert np.mean(ours) < 1.25 * np.mean(alone)
    assert np.mean(held) > 0.82


def test_a_system_far_off_the_line_keeps_its_labels_and_is_named():
    rng = np.random.default_rng(12)
    found, truth, _ = labelled_systems(rng, 20, same=True, favour=4.0, m=12)
    assert found["shrinkage"][0] == 0
    assert "off" not in found["reason"][1]
    assert "below the line" in found["reason"][0]
    assert found["off_line_p"][0] < 0.05 / 20
    assert covers(found, truth)[0]


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


def test_systems_that_never_differ_from_the_line_have_no_interval():
    judgments, _, system = systems(np.random.default_rng(14), 0.4)
    rated = labelled(judgments, system.astype(float), np.arange(60))
    found = rb.systems_with_labels(judgments, rated)
    assert found["low"].isna().all()
    assert "never differ" in found["reason"].iloc[0]


def test_systems_that_lie_exactly_on_the_line_beside_one_that_does_not():
    """Most ratings are a 5: the search for systems off the line ends."""
    judge = np.arange(12.0)
    own = np.full(12, 5.0)
    own[0] = 4
    found, mse = _composite(own, judge, np.full(12, 0.01))
    assert found["shrinkage"][0] == 0
    assert (found["shrinkage"][1:] > 0).all()
    assert np.isfinite(mse).all()


def test_a_criterion_without_labels_is_named():
    rng = np.random.default_rng(3)
    names = [f"t{i}" for i in range(30)]
    score = rng.integers(1, 6, 30)
    one = pd.DataFrame({
        "item_id": names, "cluster_id": names, "criterion": "tone", "design": "fixed",
        "ordering_index": 1, "ordering": "1-2-3-4-5", "score": score,
    })  # fmt: skip
    both = pd.concat([one, one.assign(criterion="facts", score=6 - score)], ignore_index=True)
    labels = one[["item_id", "criterion"]].assign(human=score + rng.normal(0, 1, 30))[:25]
    assert "the criterion 'facts'" in rb.mean_with_labels(both, labels)["reason"].item()
    of_tone = rb.mean_with_labels(one, labels)["reason"].item()
    assert "criterion" not in of_tone
