"""Attacks on the default judge: what is recorded,
and that the defence keeps the structure.
"""

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.prompts import inert
from rubricnb.core.rendering import rendered
from rubricnb.core.results import results_folder
from studies.injection import ATTACKS, attacked, undefended


@pytest.fixture(scope="module")
def found():
    return pd.read_csv(results_folder() / "injection.csv")


def test_every_attack_is_recorded_on_the_same_texts_with_and_without_the_defence(found):
    cells = found.groupby(["attack", "defended"]).item_id.agg(tuple)
    assert set(found.attack) == set(ATTACKS)
    assert len(cells) == 2 * len(ATTACKS)
    assert cells.nunique() == 1
    assert set(cells.iloc[0]) <= set(rb.load("minibench").item_id)


def test_made_inert_a_text_begins_no_message_of_its_own(found):
    turns = found.pivot_table(index="attack", columns="defended", values="turns")
    assert turns[True].nunique() == 1
    assert turns.loc["control tokens", False] > turns.loc["none", False]


def test_where_there_is_nothing_to_defend_against_the_defence_changes_nothing(found):
    for attack in ("none", "plea"):
        reads = found[found.attack == attack].pivot(index="item_id", columns="defended")
        same = reads["expected_score"]
        assert same[True].to_numpy() == pytest.approx(same[False].to_numpy(), abs=0.05)


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_undefended_is_the_same_prompt_with_the_text_as_it_is(attack):
    items = attacked(rb.load("minibench", n_items=5), attack)
    judge = rb.open_judge("simulated:unbiased")
    requests = rb.plan(items, rb.fixed(5, 1), readout="score")
    for request, response in zip(
        rendered(requests, judge), items.response, strict=True
    ):
        bare = undefended(request, response).messages[0].content
        assert response in bare
        assert bare.replace(response, "") == request.messages[0].content.replace(
            inert(response, request.slots), ""
        )
