"""How many human labels: the recorded tables, and the statistics over many draws."""

from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rubricnb as rb
from studies import labels
from studies.recording import read_table as recorded


@pytest.fixture
def of(mirror):
    return _cells()


@lru_cache(1)
def _cells():
    return labels.cells(labels.loaded())


def test_the_counts_are_those_of_the_sets(of):
    shapes = {(c.judge, c.criterion): c.human.shape for c in of}
    assert len(shapes) == 5 * 4 + 2 * 6
    # two answers name no score
    assert shapes.pop(("GPT-4-0314", "consistency")) == (98, 12)
    assert shapes.pop(("ChatGPT", "empathy")) == (93, 11)  # off the scale
    by_judge = {
        judge: {s for (j, _), s in shapes.items() if j == judge} for judge, _ in shapes
    }
    assert by_judge == {
        "GPT-4-0314": {(100, 12)},
        "GPT-3.5-0301": {(100, 12)},
        "GPT-4o": {(100, 16)},
        "Gemini Flash": {(100, 16)},
        "Gemini Pro": {(100, 16)},
        "ChatGPT": {(96, 11)},
        labels.FOUR: {(96, 11)},
    }


# ---- what the chapter says in words
# -----------------------------------------------------------


def geometric(values):
    return np.exp(np.log(values).mean())


def test_fifty_draws_agree_with_the_formula_and_ten_do_not():
    drawn = (
        recorded("labels_random")
        .query("judge != @labels.FOUR")
        .groupby("n_labels")
        .gain
    )
    formula = recorded("labels_expected").query("group == 'all'").set_index("n_labels")
    for n in (50, 100, 200):
        assert formula.low[n] < geometric(drawn.get_group(n)) < formula.high[n]
    assert geometric(drawn.get_group(10)) < 1.1


def test_gpt_4o_gains_most_and_gemini_flash_least():
    formula = (
        recorded("labels_expected").query("n_labels == 50").set_index("group").gain
    )
    judges = formula[list(labels.JUDGES.values())]
    assert (judges.idxmax(), judges.idxmin()) == ("GPT-4o", "Gemini Flash")


def test_whole_articles_gain_next_to_nothing_and_ignoring_them_is_not_covered():
    plans = recorded("labels_plans").query(
        "plan == 'whole articles' and judge != @labels.FOUR"
    )
    assert plans.groupby("about").gain.agg(geometric).between(1, 1.1).all()
    assert plans.coverage_ignored.mean() < 0.87


def test_no_rule_ranks_best_on_all_sets():
    table = recorded("labels_systems").query("prompts == 'drawn for each'")
    tau = table.groupby(["judge", "per_system"])[
        ["tau", "tau_judge", "tau_labels"]
    ].mean()
    assert tau.loc[("GPT-3.5-0301", 8)].idxmax() == "tau_judge"
    assert tau.loc[("Gemini Pro", 4)].idxmax() == "tau"
    assert tau.loc[("Gemini Pro", 4)].idxmin() == "tau_judge"


def test_people_are_first_on_hanna_for_people_and_judge(of):
    human = sorted(
        rb.load_recording("hanna-llm")["candidate"].astype(str).unique()
    ).index("human")
    for cell in of:
        if cell.dataset == "HANNA":
            assert (
                cell.human.mean(axis=0).argmax()
                == human
                == cell.score.mean(axis=0).argmax()
            )


# ---- the estimators are those of the package
# --------------------------------------------------


def world(rng, clusters=30, systems=6):
    """Ratings and scores that share prompts and systems, in matrices and as frames."""
    truth = rng.normal(size=(clusters, systems)) + 0.5 * rng.normal(size=(clusters, 1))
    human = np.round(3 + truth + 0.4 * np.arange(systems), 1)
    score = np.round(
        2 + 0.7 * truth + 0.3 * np.arange(systems) + rng.normal(size=truth.shape)
    )
    names = [f"p{c:02d}/s{s}" for c in range(clusters) for s in range(systems)]
    judgments = pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": [n[:3] for n in names],
            "candidate": [n[4:] for n in names],
            "design": "fixed",
            "ordering_index": 1,
            "ordering": "1-2-3-4-5",
            "score": score.ravel(),
        }
    )
    return (
        human,
        score,
        judgments,
        pd.DataFrame({"item_id": names, "human": human.ravel()}),
    )


def check(found, row, draw):
    mean, se, df = found
    half = stats.t.ppf(0.975, df) * se[draw]
    assert row["mean"] == pytest.approx(mean[draw])
    assert row["high"] - row["low"] == pytest.approx(2 * half)


def check_alone(found, row, draw):
    mean, se, df = found
    assert row["labels_only"] == pytest.approx(mean[draw])
    width = row["labels_only_high"] - row["labels_only_low"]
    assert width == pytest.approx(2 * stats.t.ppf(0.975, df) * se[draw])


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_every_plan_is_estimated_as_the_package_does(seed):
    rng = np.random.default_rng(seed)
    human, score, judgments, people = world(rng)

    def theirs(rated):
        return rb.mean_with_labels(judgments, people.iloc[np.sort(rated)]).iloc[0]

    drawn = labels.chosen(rng, human.size, 12, draws=3)  # texts drawn singly
    y, f = human.ravel()[drawn], score.ravel()[drawn]
    share = np.bincount(drawn[1] // 6, minlength=30) / 12
    # no closer together than by chance
    if ((share - 1 / 30) ** 2).sum() <= 1 / 12 - 1 / 180:
        row = theirs(drawn[1])
        check(labels.regression(y, f, score.mean(), human.size), row, 1)
        check_alone(labels.alone(y, human.size), row, 1)
    of, who = labels.rotated(rng, 30, 6, 18, draws=2)
    row = theirs((of * 6 + who)[0])
    assert row["drawn"] == "one per cluster"
    found = labels.regression(
        human[of, who], score[of, who], score.mean(), human.size, who
    )
    check(found, row, 0)
    of = labels.chosen(rng, 30, 5, draws=2)
    row = theirs((of[0][:, None] * 6 + np.arange(6)).ravel())
    assert row["drawn"] == "clusters"
    check(labels.whole_clusters(human[of], score[of], score.mean(), 30), row, 0)
    check_alone(labels.alone(human[of].mean(axis=2), 30), row, 0)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 5]))
def test_systems_are_those_of_the_package(seed, m):
    rng = np.random.default_rng(seed)
    human, score, judgments, people = world(rng)
    drawn = labels.chosen(rng, 30, m, draws=2 * 6).reshape(2, 6, m)
    estimate, half = labels.composites(human.T, score.T, drawn)
    rated = (drawn[1] * 6 + np.arange(6)[:, None]).ravel()
    table = rb.statistics.systems_with_labels(judgments, people.iloc[np.sort(rated)])
    np.testing.assert_allclose(table["estimate"], estimate[1])
    np.testing.assert_allclose(table["high"] - table["low"], 2 * half[1])


# ---- the rest
# --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_tau_is_scipys(seed):
    x, y = np.random.default_rng(seed).integers(0, 4, (2, 7))
    wanted = stats.kendalltau(x, y).statistic
    assert labels.kendall(x, y) == pytest.approx(np.nan_to_num(wanted))


@given(st.integers(0, 2**32 - 1))
def test_the_clipped_slope_is_the_best_weight_of_prediction_powered_inference(seed):
    """Minimise the variance that PPI++ estimates, over a grid of λ in [0, 1]."""
    rng = np.random.default_rng(seed)
    human, score, *_ = world(rng)
    drawn = labels.chosen(rng, human.size, 40, draws=1)
    y, f = human.ravel()[drawn[0]], score.ravel()[drawn[0]]
    rest = np.delete(score.ravel(), drawn[0])
    grid = np.linspace(0, 1, 2_001)
    every, both = score.var(ddof=1), np.cov(y, f, ddof=0)[0, 1]
    variance = grid**2 * every * (1 / 40 + 1 / len(rest)) - 2 * grid * both / 40
    best = grid[variance.argmin()]
    wanted = y.mean() + best * (rest.mean() - f.mean())
    found = labels.clipped(y[None], f[None], score.ravel())[0]
    assert found == pytest.approx(wanted, abs=1e-3)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_draws_are_without_replacement_and_rotate_evenly(seed, n):
    rng = np.random.default_rng(seed)
    drawn = labels.chosen(rng, 9, n, draws=4)
    assert all(
        len(set(row)) == n and set(row) <= set(range(9)) for row in drawn.tolist()
    )
    of, who = labels.rotated(rng, 20, 5, 10, draws=3)
    assert all(len(set(row)) == 10 for row in of.tolist())
    assert all(np.bincount(row).tolist() == [2] * 5 for row in who)
    often = labels.chosen(np.random.default_rng(0), 12, 5, draws=6_000)
    assert stats.chisquare(np.bincount(often.ravel())).pvalue > 1e-4


def test_rogan_and_gladen_find_the_share_if_all_is_known_and_say_where_nothing_is():
    rng = np.random.default_rng(1)
    high = (rng.random((3, 200)) < 0.6).astype(float)
    flagged = np.where(rng.random(high.shape) < 0.7, high, 1 - high)
    flagged[2] = 1 - high[2]  # worse than chance
    shares = flagged.mean(axis=1)
    for k in range(2):
        found, undefined = labels.rogan_gladen(high[[k]], flagged[[k]], shares[k])
        assert found[0] == pytest.approx(high[k].mean())
        assert not undefined[0]
    found, undefined = labels.rogan_gladen(high[[2]], flagged[[2]], shares[2])
    assert undefined[0]
    assert found[0] == high[2].mean()
    assert labels.rogan_gladen(np.ones((1, 9)), np.ones((1, 9)), 0.4)[1][0]


def test_likeness_is_the_intraclass_correlation_that_was_planted():
    rng = np.random.default_rng(2)
    x = np.sqrt(0.3) * rng.normal(size=(4_000, 1)) + np.sqrt(0.7) * rng.normal(
        size=(4_000, 8)
    )
    assert labels.alikeness(x) == pytest.approx(0.3, abs=0.02)


def test_the_expected_gain_is_that_of_the_correlation_with_a_jackknife_over_clusters():
    human, score, *_ = world(np.random.default_rng(3))
    names = tuple(f"p{c}" for c in range(30))
    cell = labels.Cell("j", "d", "c", human, score, names)
    # the same clusters twice: no more is known
    found = labels.expected([cell, cell], n=50)

    def log_gain(keep):
        return -np.log(
            1 - np.corrcoef(human[keep].ravel(), score[keep].ravel())[0, 1] ** 2
        )

    everyone = np.arange(30)
    without = np.array([log_gain(everyone != c) for c in everyone])
    se = np.sqrt(29 / 30 * ((without - without.mean()) ** 2).sum())
    middle = log_gain(everyone >= 0) + np.log(47 / 48)
    assert found["gain"] == pytest.approx(np.exp(middle))
    assert found["high"] == pytest.approx(np.exp(middle + stats.t.ppf(0.975, 29) * se))


# ---- bad input
# --------------------------------------------------------------------------------------


def scores(**changes):
    frame = pd.DataFrame(
        {
            "judge": "j",
            "dataset": "d",
            "criterion": "c",
            "cluster_id": np.repeat([f"p{i}" for i in range(10)], 3),
            "candidate": [*"abc"] * 10,
            "human": 3.0,
            "score": np.arange(30.0),
        }
    )
    return frame.assign(**changes)


def test_a_prompt_without_a_score_is_left_out_and_many_or_duplicates_are_refused():
    score = np.arange(30.0)
    score[4] = np.nan
    (cell,) = labels.cells(scores(score=score))
    assert cell.score.shape == (9, 3)
    assert "p1" not in cell.clusters
    score[8] = np.nan
    with pytest.raises(ValueError, match="a tenth of the clusters lack a score"):
        labels.cells(scores(score=score))
    with pytest.raises(ValueError, match="appears twice"):
        labels.cells(pd.concat([scores(), scores().head(1)]))
