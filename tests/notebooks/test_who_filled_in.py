"""Chapter 29: its calculated power against drawn respondents,
and where there is none.
"""

import numpy as np
import pandas as pd
import pytest
from cells import code_of

import rubricnb as rb
from rubricnb.book.summary import recorded_summary


@pytest.fixture(scope="module")
def chapter():
    """The names that the chapter's cells define, with its default parameters."""
    scope, said = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rb.pages, "show", lambda *_, **__: None)
        patch.setattr(rb.pages, "say", lambda *_, **values: said.update(values))
        for code in code_of("29_who_filled_in"):
            exec(code, scope)
    return scope | {"said": said}


@pytest.fixture(scope="module")
def prefers_first(chapter):
    """Position shares of a model that clearly prefers the first option."""
    return chapter["shares_of"](0.3)


def drawn_scores(rng, groups, respondents, studies, questions, score):
    """Mean score of `studies` groups whose respondents' kinds and answers are drawn."""
    weights, shares = groups
    means = np.empty(studies)
    for study in range(studies):
        kinds = rng.multinomial(respondents, weights)
        counts = sum(
            rng.multinomial(questions * kind, share)
            for kind, share in zip(kinds, shares, strict=True)
        )
        means[study] = counts @ score / (questions * respondents)
    return means


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("reference", [np.inf, 300])
def test_the_calculated_power_is_that_of_drawn_respondents(
    chapter, prefers_first, fraction, reference
):
    rng = np.random.default_rng(5)
    people, model = chapter["people"], prefers_first
    weights, shares = people
    score = model / (weights @ shares) - 1
    scores = chapter["one_preference"](people, model)
    mean, variance = chapter["of_respondents"](weights, scores[1][:-1], scores[2][:-1])
    mixed = (np.r_[(1 - fraction) * weights, fraction], np.vstack([shares, model]))
    group = drawn_scores(rng, mixed, 200, 4000, 20, score)
    if reference < np.inf:
        group -= drawn_scores(rng, people, reference, 4000, 20, score)
    else:
        group -= mean
    limit = 1.6449 * np.sqrt(variance / 200 + variance / reference)
    found = chapter["group_power"](fraction, 200, scores, reference)
    assert (group > limit).mean() == pytest.approx(found, abs=0.025)


def test_a_group_of_people_is_accused_as_often_as_calculated(chapter, prefers_first):
    """Or hides the model: the sign of its preference decides."""
    careful, real = chapter["people_groups"](0, 0.1), chapter["people_groups"](1, 0.1)
    score = 3 * prefers_first - 1
    means = drawn_scores(np.random.default_rng(6), real, 200, 4000, 20, score)
    limit = 1.6449 * np.sqrt((score**2).mean() / (20 * 200))
    one = chapter["one_preference"]
    found = chapter["group_power"](
        0, 200, one(real, prefers_first, careful), assumed=one(careful, prefers_first)
    )
    assert (means > limit).mean() == pytest.approx(found, abs=0.025)
    assert found > 0.1  # a preference of one point accuses more than 5 %
    last = prefers_first[::-1]
    hidden = chapter["group_power"](
        0, 200, one(real, last, careful), assumed=one(careful, last)
    )
    assert hidden < 0.05


def test_without_a_model_every_group_is_accused_at_the_rate_of_alarms(
    chapter, prefers_first
):
    people = chapter["people"]
    row = chapter["moments"].iloc[0]
    for scores in (
        chapter["one_preference"](people, prefers_first),
        chapter["by_question"](people, row),
    ):
        for respondents in (25, 1000):
            assert chapter["group_power"](0, respondents, scores) == pytest.approx(0.05)


def test_the_smallest_share_follows_from_cramers_v_where_people_have_no_preference(
    chapter,
):
    careful = chapter["people_groups"](0, 0.1, n=5)
    for row in recorded_summary("position").itertuples():
        shares = np.array([getattr(row, f"share_{p}") for p in range(1, 6)])
        respondents = 10**7  # so many that a mixture adds nothing to the variance
        found, reason = chapter["detectable"](
            respondents, chapter["one_preference"](careful, shares)
        )
        formula = (1.6449 + 0.8416) / (2 * row.cramers_v * np.sqrt(20 * respondents))
        assert reason == ""
        assert found == pytest.approx(formula, rel=0.02)


def test_moments_by_question_are_those_of_drawn_people(chapter):
    """Weights of three options and people's answers in both orders,
    drawn one by one.
    """
    rng = np.random.default_rng(8)
    weight = np.array([0.3, -0.1, -0.2])
    row = pd.Series(
        {
            "mean": 0.05,
            "square": 0.04,
            "outer": weight[0] - weight[2],
            "outer_square": (weight[0] ** 2 + weight[2] ** 2) / 2,
            "middle_square": weight[1] ** 2,
        }
    )
    people = chapter["people_groups"](2.5, 0.1)
    _, means, squares = chapter["by_question"](people, row)
    for share, mean, square in zip(people[1], means[:-1], squares[:-1], strict=True):
        place = rng.choice(3, 400_000, p=share)
        down = rng.random(len(place)) < 0.5
        score = np.where(down, -weight[2 - place], weight[place])
        assert score.mean() == pytest.approx(mean, abs=0.002)
        assert (score**2).mean() == pytest.approx(square, abs=0.002)
    assert (means[-1], squares[-1]) == (0.05, 0.04)


def test_where_nothing_can_be_detected_there_is_a_reason(chapter, prefers_first):
    detectable, careful = chapter["detectable"], chapter["people_groups"](0, 0.1)
    one, even = chapter["one_preference"], np.full(3, 1 / 3)
    people = chapter["people"]
    for found, said in (
        (detectable(10**6, one(careful, even)), "as people do"),
        (detectable(10**6, one(people, people[0] @ people[1])), "as people do"),
        (detectable(10**6, one(people, prefers_first), permuted=False), "not permuted"),
        (
            detectable(1, one(careful, even + (prefers_first - 1 / 3) / 50)),
            "models alone",
        ),
    ):
        assert np.isnan(found[0])
        assert said in found[1]


def test_an_order_effect_that_no_people_can_have_is_refused(chapter):
    with pytest.raises(ValueError, match="lower it or raise `hurried`"):
        chapter["people_groups"](10, 0.1)
    with pytest.raises(ValueError, match="allowed: above 0"):
        chapter["people_groups"](2.5, 0)


def test_words_beside_recorded_numbers_say_what_these_are(chapter):
    """Which models prefer the first option, what hides them,
    and what the figure's text says.
    """
    positions, shares = chapter["positions"], chapter["shares"]
    first, last = positions[positions.low > 0], positions[positions.high < 0]
    assert set(first.index) == {"Llama-2 13B", "Llama-2 7B", "Llama-2 70B"}
    assert set(last.index) == {"GPT-3.5-turbo-instruct", "Solar"}
    assert (positions.difference < 0).sum() == 5
    assert shares.share.between(0.115, 0.385).all()
    assert shares.one.dropna().between(0.12, 0.87).all()
    assert shares.index[shares.one.isna()].tolist() == ["Llama-2 70B"]
    row = chapter["typo"].loc["GPT-3.5-turbo"]
    assert row.low < 0 < row.high  # "for GPT-3.5-turbo this is not shown"
    pairs = chapter["pairs"].nlargest(2, "r")[["weights", "model"]]
    assert set(map(tuple, pairs.to_numpy())) == {
        ("Llama-2 7B", "Llama-2 13B"),
        ("GPT-3.5-turbo", "GPT-3.5-turbo-instruct"),
    }
    assert (chapter["pairs"].r < 0).mean() > 0.25  # "often negative"
    assert chapter["first"] == "Llama-2 13B"
    assert (
        chapter["single"].hurried["Llama-2 13B"] > 0.1 > chapter["single"].careful.max()
    )
    assert chapter["drawn"][0.0].between(0.03, 0.07).all()  # 1,000 studies: 5 % ± 2
