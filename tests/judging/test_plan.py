import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.frames import REQUESTS
from rubricnb.judging.plan import request_ids


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=30)


def test_a_plan_has_the_contracts_columns_and_dtypes_and_carries_its_items(items):
    plan = rb.plan(items, [rb.balanced(5), rb.shuffled(5, 3)])
    wanted = {c.name: c.dtype for c in REQUESTS if c.name in plan}
    assert {c: str(t) for c, t in plan.dtypes.items()} == wanted
    assert plan.source is items
    assert len(plan) == len(items) * 13


def test_every_item_is_asked_in_every_ordering_of_the_design_reads_together(items):
    plan = rb.plan(items, rb.balanced(5))
    assert plan["item_id"].astype(str).tolist() == np.repeat(items["item_id"], 10).tolist()
    for _, reads in plan.groupby("item_id", observed=True):
        assert reads["ordering"].tolist() == rb.permutation.code(rb.balanced(5).orderings())
        assert reads["ordering_index"].tolist() == list(range(1, 11))


def test_shuffled_gives_each_item_its_own_orderings_whatever_stands_beside_it(items):
    whole = rb.plan(items, rb.shuffled(5, 4), seed=9)
    part = rb.plan(items[items.item_id == items.item_id.iloc[7]], rb.shuffled(5, 4), seed=9)
    same = whole[whole.item_id == items.item_id.iloc[7]]
    assert same["ordering"].tolist() == part["ordering"].tolist()
    assert same["request_id"].tolist() == part["request_id"].tolist()
    assert whole.groupby("ordering", observed=True).size().max() < len(items)


def test_replicates_count_repeats_of_an_ordering_but_every_placebo_is_a_prompt_of_its_own(items):
    one = items.head(1)
    assert rb.plan(one, rb.fixed(5, 3))["replicate"].tolist() == [1, 2, 3]
    assert rb.plan(one, rb.balanced(2))["replicate"].tolist() == [1, 1, 2, 2]
    assert rb.plan(one, rb.placebo(5, 3))["replicate"].tolist() == [1, 1, 1]


def test_ids_are_distinct_and_depend_on_every_setting_but_not_on_other_rows(items):
    settings = [
        {}, {"labels": "letter"}, {"readout": "score"}, {"layout": "rubric-first"},
        {"reference": 5}, {"reference": "none"}, {"variant": "paraphrased"},
        {"template": "pointwise"}, {"prompt_format": "plain"}, {"temperature": 0.3},
        {"temperature": 0.6}, {"effort": "low"}, {"thinking": "off"}, {"seed": 1},
        {"max_tokens": 9},
    ]  # fmt: skip
    plans = [rb.plan(items, rb.balanced(5), **s) for s in settings]
    ids = pd.concat([p["request_id"] for p in plans])
    assert ids.is_unique
    joined = pd.concat(plans)
    assert (request_ids(joined) == joined["request_id"]).all()
    assert (request_ids(joined.sample(50, random_state=0)) > 0).all()


def test_ids_never_change():
    """A plan made by an earlier version must still find its recorded judgments."""
    items = rb.load("minibench", n_items=5)
    plan = rb.plan(items, rb.balanced(5), readout="logprobs")
    recorded = rb.recorded("embedded", "minibench")
    assert plan["request_id"].isin(recorded["request_id"]).all()


def test_criteria_are_planned_by_text(items):
    plan = rb.plan_criteria(items, [rb.balanced(3), rb.williams(3)])
    assert len(plan) == items["text_id"].nunique() * 12
    assert set(plan["item_id"]) == set(items["text_id"])
    assert set(plan["ordering"]) == {"1-2-3-4-5"}
    assert plan["criterion_ordering"].nunique() == 6


def test_a_million_requests_are_planned_in_little_memory(items):
    plan = rb.plan(items, [rb.balanced(5)] * 3)
    assert plan.memory_usage(deep=True).sum() / len(plan) < 80


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: rb.plan(i, rb.balanced(4)), "5-level|4"),
        (lambda i: rb.plan(i, [rb.balanced(5), rb.fixed(3, 1)]), r"order \[3, 5\] options"),
        (lambda i: rb.plan(i, rb.balanced(5), n_options=3), r"use balanced\(3\)"),
        (lambda i: rb.plan(i, []), "no design"),
        (lambda i: rb.plan(i, rb.balanced(5), labels="emoji"), "labels = 'emoji': choose from"),
        (lambda i: rb.plan(i, rb.balanced(5), readout="guess"), "readout = 'guess'"),
        (lambda i: rb.plan(i, rb.balanced(5), temperature=3), "temperature = 3"),
        (lambda i: rb.plan(i, rb.balanced(5), reference=9), "no reference_9"),
        (lambda i: rb.plan(i, rb.balanced(5), variant="sung"), "no variant 'sung'"),
        (lambda i: rb.plan(i, rb.balanced(5), template="criteria"), "use plan_criteria"),
        (lambda i: rb.plan_criteria(i, rb.balanced(4)), r"3 criteria.*use balanced\(3\)"),
        (lambda i: rb.plan(pd.DataFrame(i), rb.balanced(5)), "carry no rubrics"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_way_out(items, call, message):
    with pytest.raises(ValueError, match=message):
        call(items)
