"""Chapter 29: its calculated power against drawn respondents, and where there is none."""

import numpy as np
import pytest
from cells import code_of

import rubricnb as rb
from rubricnb.summary import recorded_summary

EVEN = np.full(5, 0.2)


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
def test_the_calculated_power_is_that_of_drawn_respondents(chapter, fraction, reference):
    rng = np.random.default_rng(5)
    people, model = chapter["people"], chapter["model"]
    weights, shares = people
    score = model / (weights @ shares) - 1
    mean, variance = chapter["score_moments"](weights, shares, score, 20)
    mixed = (np.r_[(1 - fraction) * weights, fraction], np.vstack([shares, model]))
    group = drawn_scores(rng, mixed, 200, 4000, 20, score)
    if reference < np.inf:
        group -= drawn_scores(rng, people, reference, 4000, 20, score)
    else:
        group -= mean
    limit = 1.6449 * np.sqrt(variance / 200 + variance / reference)
    found = chapter["group_power"](fraction, 200, people, model, reference=reference)
    assert (group > limit).mean() == pytest.approx(found, abs=0.025)


def test_a_group_of_people_is_accused_as_often_as_calculated(chapter):
    careful, real = chapter["people_groups"](0, 0.1), chapter["people_groups"](1, 0.1)
    model = chapter["model"]
    score = 5 * model - 1
    means = drawn_scores(np.random.default_rng(6), real, 200, 4000, 20, score)
    limit = 1.6449 * np.sqrt((score**2).mean() / (20 * 200))
    found = chapter["group_power"](0, 200, careful, model, real)
    assert (means > limit).mean() == pytest.approx(found, abs=0.025)
    assert found > 0.2  # a preference of one point accuses far more than 5 %


def test_without_a_model_every_group_is_accused_at_the_rate_of_alarms(chapter):
    for respondents in (25, 1000):
        found = chapter["group_power"](0, respondents, chapter["people"], chapter["model"])
        assert found == pytest.approx(0.05)


def test_the_smallest_share_follows_from_cramers_v_where_people_have_no_preference(chapter):
    careful = chapter["people_groups"](0, 0.1)
    for row in recorded_summary("position").itertuples():
        shares = np.array([getattr(row, f"share_{p}") for p in range(1, 6)])
        respondents = 10**7  # so many that a mixture adds nothing to the variance
        found, reason = chapter["detectable"](respondents, careful, shares)
        formula = (1.6449 + 0.8416) / (2 * row.cramers_v * np.sqrt(20 * respondents))
        assert reason == ""
        assert found == pytest.approx(formula, rel=0.02)


def test_one_questionnaire_is_flagged_as_often_as_drawn_ones(chapter):
    rng = np.random.default_rng(7)
    people, model = chapter["people"], chapter["model"]
    weights, shares = people
    evidence = np.log(model / (weights @ shares))
    drawn = [(rng.multinomial(20, s, size=200_000) @ evidence).round(9) for s in (*shares, model)]
    mixed = np.r_[drawn[0][: int(weights[0] * 200_000)], drawn[1][: int(weights[1] * 200_000)]]
    limit = np.quantile(mixed, 0.95)
    found, flagged, by_group = chapter["one_questionnaire"](people, model)
    assert flagged <= 0.05
    for calculated, scores in zip((*by_group, found), drawn, strict=True):
        assert (scores > limit).mean() == pytest.approx(calculated, abs=0.01)
    assert flagged == pytest.approx(weights @ by_group)


def test_where_nothing_can_be_detected_there_is_a_reason(chapter):
    detectable, careful = chapter["detectable"], chapter["people_groups"](0, 0.1)
    people, model = chapter["people"], chapter["model"]
    for found, said in (
        (detectable(10**6, careful, EVEN), "as people do"),
        (detectable(10**6, people, people[0] @ people[1]), "as people do"),
        (detectable(200, chapter["people_groups"](2.5, 0.1, n=1), np.ones(1)), "one position"),
        (detectable(10**6, people, model, permuted=False), "not permuted"),
        (detectable(1, people, 0.2 + (model - 0.2) / 50), "models alone"),
    ):
        assert np.isnan(found[0])
        assert said in found[1]
    assert np.isnan(chapter["group_power"](0.5, 200, careful, EVEN))


def test_an_order_effect_that_no_people_can_have_is_refused(chapter):
    with pytest.raises(ValueError, match="lower it or raise `hurried`"):
        chapter["people_groups"](10, 0.1)
    with pytest.raises(ValueError, match="allowed: above 0"):
        chapter["people_groups"](2.5, 0)
    with pytest.raises(ValueError, match="is not recorded"):
        chapter["model_shares"]("GPT-5.4", "summeval")


def test_the_first_screen_says_what_the_cells_found(chapter):
    said = chapter["said"]
    assert said["least"].startswith(f"{100 * chapter['least']:.1f} %")
    assert chapter["low"] < chapter["least"] < chapter["high"]
    assert int(said["n_pairs"]) == len(chapter["table"]) == 20
    assert said["beyond"] == sum(not x <= 0.25 for x in chapter["smallest"])
    assert chapter["known"] < chapter["least"]
    assert chapter["floor"] < chapter["least"]
