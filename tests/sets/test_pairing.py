from math import comb

import pytest

from rubricnb.core.prompts import render
from rubricnb.sets.catalogue import load
from rubricnb.sets.pairing import pairs


@pytest.mark.parametrize(("name", "groups", "candidates"), [("minibench", 36, 5)])
def test_every_two_candidates_of_a_group_meet_once(name, groups, candidates):
    both = pairs(load(name))
    assert len(both) == groups * comb(candidates, 2)
    names = both[["candidate_1", "candidate_2"]].itertuples(index=False)
    met = both.assign(who=[frozenset(couple) for couple in names])
    assert not met.duplicated(["group_id", "who"]).any()
    assert (both.candidate_1.astype("str") != both.candidate_2.astype("str")).all()


def test_a_pair_says_who_is_better_and_what_both_wrote():
    items = load("minibench")
    texts = items.set_index(["group_id", "candidate"])
    both = pairs(items)
    options = both.rubrics[both.rubrics.variant == "standard"].set_index(
        ["rubric_id", "score"]
    )
    for pair in both.itertuples():
        sides = [
            texts.loc[(pair.group_id, c)] for c in (pair.candidate_1, pair.candidate_2)
        ]
        assert [options.description[pair.rubric_id, k] for k in (1, 2)] == [
            side.response for side in sides
        ]
        assert sides[int(pair.human) - 1].human == max(side.human for side in sides)
        assert pair.instruction == sides[0].instruction
        assert pair.cluster_id == sides[0].cluster_id
    assert set(both.human) == {1.0, 2.0}


def test_ties_and_missing_ratings_have_no_better_one():
    items = load("minibench", n_items=15)
    tied = pairs(items.assign(human=3.0))
    assert tied.human.isna().all()
    unrated = pairs(items.drop(columns="human"))
    assert "human" not in unrated
    gap = items.assign(human=[float("nan"), *items.human[1:]])
    unknown = pairs(gap)[pairs(gap)["human"].isna()]
    assert len(unknown) == 4  # with each of the others of its group
    assert set(unknown["candidate_1"]) == {gap["candidate"][0]}


def test_the_template_shows_both_in_the_order_asked():
    both = pairs(load("minibench", n_items=15))
    pair = both.iloc[0]
    rubric = both.rubrics[both.rubrics.rubric_id == pair.rubric_id]
    options = (
        rubric[rubric.variant == "standard"].set_index("score").description.to_dict()
    )
    for order in ([1, 2], [2, 1]):
        prompt = render(
            pair.instruction,
            pair.response,
            rubric.definition.iloc[0],
            options,
            order,
            template="pairwise",
        ).text
        places = [prompt.index(options[k]) for k in order]
        assert places == sorted(places)
        assert pair.instruction in prompt


@pytest.mark.parametrize("column", ["group_id", "candidate"])
def test_without_candidates_there_are_no_pairs(column):
    with pytest.raises(ValueError, match="no competing candidates"):
        pairs(load("minibench", n_items=15).drop(columns=column))
