import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.frames import REQUESTS
from rubricnb.core.plan import request_ids
from rubricnb.core.rendering import rendered


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=30)


def test_a_plan_has_the_contracts_columns_and_dtypes_and_carries_its_items(items):
    plan = rb.plan(items, [rb.balanced(5), rb.shuffled(5, 3)])
    wanted = {c.name: c.dtype for c in REQUESTS if c.name in plan}
    assert {c: str(t) for c, t in plan.dtypes.items()} == wanted
    assert plan.source is items
    assert len(plan) == len(items) * 13


def test_shuffled_gives_each_item_its_own_orderings_whatever_stands_beside_it(items):
    whole = rb.plan(items, rb.shuffled(5, 4), seed=9)
    part = rb.plan(
        items[items.item_id == items.item_id.iloc[7]], rb.shuffled(5, 4), seed=9
    )
    same = whole[whole.item_id == items.item_id.iloc[7]]
    assert same["ordering"].tolist() == part["ordering"].tolist()
    assert same["request_id"].tolist() == part["request_id"].tolist()
    assert whole.groupby("ordering", observed=True).size().max() < len(items)


def test_replicates_count_repeats_of_an_ordering_but_each_placebo_is_a_prompt(items):
    one = items.head(1)
    assert rb.plan(one, rb.fixed(5, 3))["replicate"].tolist() == [1, 2, 3]
    assert rb.plan(one, rb.balanced(2))["replicate"].tolist() == [1, 1, 2, 2]
    assert rb.plan(one, rb.placebo(5, 3))["replicate"].tolist() == [1, 1, 1]


def test_a_placebo_of_several_criteria_asks_prompts_that_differ(items):
    whole = items[items.text_id == items.text_id.iloc[0]]
    judge = rb.open_judge("simulated:unbiased")
    plans = [
        rb.plan(whole, design(3, 4), template="criteria")
        for design in (rb.fixed, rb.placebo)
    ]
    copies, edited = (
        {r.messages[0].content for r in rendered(p, judge)} for p in plans
    )
    assert len(copies) == 1
    assert len(edited | copies) == 5


def test_ids_are_distinct_and_depend_on_every_setting_but_not_on_other_rows(items):
    settings = [
        {},
        {"labels": "letter"},
        {"readout": "score"},
        {"layout": "rubric-first"},
        {"reference": 5},
        {"reference": "none"},
        {"variant": "paraphrased"},
        {"template": "pointwise"},
        {"prompt_format": "plain"},
        {"temperature": 0.3},
        {"temperature": 0.6},
        {"effort": "low"},
        {"thinking": "off"},
        {"seed": 1},
        {"max_tokens": 9},
    ]
    plans = [rb.plan(items, rb.balanced(5), **s) for s in settings]
    ids = pd.concat([p["request_id"] for p in plans])
    assert ids.is_unique
    joined = pd.concat(plans)
    assert (request_ids(joined) == joined["request_id"]).all()
    assert (request_ids(joined.sample(50, random_state=0)) > 0).all()


def test_an_ordering_of_criteria_is_cut_into_calls_that_ask_for_each_criterion_once(
    items,
):
    whole = rb.plan(items, rb.balanced(3), template="criteria")
    assert len(whole) == items["text_id"].nunique() * 6
    assert set(whole["ordering"]) == {"1-2-3-4-5"}
    cut = rb.plan(items, rb.balanced(3), per_call=2, template="criteria")
    assert cut.request_id.is_unique
    assert cut.source is items
    joined = cut.groupby(["item_id", "ordering_index"], observed=True, sort=False)
    orders = joined.criterion_ordering.agg(lambda pieces: "-".join(pieces.astype(str)))
    assert orders.tolist() == whole.criterion_ordering.tolist()
    text = items[items.text_id == items.text_id.iloc[0]]
    wanted = text.criterion.tolist()
    judgments = rb.run(
        rb.plan(text, rb.balanced(3), per_call=2, template="criteria"),
        "simulated:unbiased",
    )
    for _, reads in judgments.groupby("ordering_index"):
        assert sorted(reads.criterion) == sorted(wanted)
        assert sorted(reads.criterion_position) == [1, 1, 2]
    judge = rb.open_judge("simulated:unbiased")
    for request in rendered(cut.head(2), judge):
        named = [
            name
            for name in wanted
            if name.capitalize() + ":" in request.messages[0].content
        ]
        assert named == sorted(request.criteria, key=wanted.index)


def test_a_million_requests_are_planned_in_little_memory(items):
    plan = rb.plan(items, [rb.balanced(5)] * 3)
    assert plan.memory_usage(deep=True).sum() / len(plan) < 80


@pytest.mark.parametrize(
    ("design", "options", "message"),
    [
        (rb.fixed(5, 1), {"n_options": 3}, r"such as balanced\(3\)"),
        ([rb.balanced(5), rb.fixed(3, 1)], {}, r"order \[3, 5\] options"),
        ([], {}, "in place of designs"),
        ("balanced", {}, r"'balanced'. in place of designs: pass .* balanced\(5\)"),
        (5, {}, "in place of designs"),
        (None, {}, "in place of designs"),
        (
            rb.fixed(5, 1),
            {"labels": ["numeric", "greek"]},
            "unknown labels 'greek'. There are: numeric",
        ),
        (
            rb.fixed(5, 1),
            {"labels": ["numeric"] * 2},
            "labels .* at least one value, each once",
        ),
        (rb.fixed(5, 1), {"temperature": 3}, "temperature = 3"),
        (rb.fixed(5, 1), {"reference": 9}, "no reference_9"),
        (rb.fixed(5, 1), {"reference": 5, "template": "pointwise"}, "no reference"),
        (rb.fixed(5, 1), {"variant": "sung"}, "no variant 'sung'"),
        (rb.placebo(2, 3), {"template": "pointwise"}, "'pointwise' has no meaning"),
        (rb.fixed(5, 1), {"per_call": 2}, "'rubric' asks for one criterion"),
        (rb.balanced(3), {"template": "criteria", "labels": "letter"}, "leave labels"),
        (rb.balanced(4), {"template": "criteria"}, r"3 criteria.*as balanced\(3\)"),
        (
            rb.balanced(3),
            {"template": "criteria", "per_call": 4},
            "per_call = 4: 1 to 3",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_way_out(
    items, design, options, message
):
    with pytest.raises(ValueError, match=message):
        rb.plan(items, design, **options)


def test_items_without_rubrics_are_not_planned(items):
    with pytest.raises(ValueError, match="have no rubrics"):
        rb.plan(pd.DataFrame(items), rb.balanced(5))


def test_settings_in_lists_are_crossed_and_each_condition_is_the_plan_of_it_alone(
    items,
):
    grid = rb.plan(
        items,
        [rb.fixed(5, 1), rb.Design("descending", 5)],
        labels=["numeric", "roman"],
        reference=["none", 2],
        layout=["rubric-last", "rubric-first"],
    )
    alone = rb.plan(
        items,
        rb.Design("descending", 5),
        labels="roman",
        reference=2,
        layout="rubric-first",
    )
    condition = grid[
        (grid.design == "descending")
        & (grid.labels == "roman")
        & (grid.reference_score == "2")
        & (grid.layout == "rubric-first")
    ]
    assert condition["request_id"].tolist() == alone["request_id"].tolist()
    assert grid["request_id"].is_unique
    names = ["design", "labels", "reference_score", "layout"]
    assert len(grid[names].drop_duplicates()) == 16
    turns = (grid["item_id"].astype(str) != grid["item_id"].astype(str).shift()).sum()
    assert turns == len(items)  # all reads of an item stand together


def test_no_item_is_shown_itself_as_the_reference(items):
    plan = rb.plan(items, rb.fixed(5, 1), reference=["none", 3])
    assert (plan["reference_score"] == "none").sum() == len(items)
    shown = plan[plan["reference_score"] == "3"].merge(items, on="item_id")
    assert len(shown) == (items["human"] != 3).sum()
    assert (shown["response"] != shown["reference_3"]).all()


def test_an_example_is_an_answer_to_another_instruction(items):
    assert (items["exemplar_instruction"] != items["instruction"]).all()
    judge = rb.open_judge("simulated:unbiased")
    prompts = list(
        rendered(rb.plan(items, rb.fixed(5, 1), readout="score", exemplar=4), judge)
    )
    text = prompts[0].messages[0].content
    assert "an example of another response that gets a score of 4, and" in text
    row = items.iloc[0]
    example = f"Instruction: {row.exemplar_instruction}\nResponse: {row.exemplar_4}\n"
    assert f"###Example (Score 4):\n{example}" in text


def test_tables_in_each_others_place_are_named(items):
    requests = rb.plan(items, rb.balanced(5), readout="score")
    scores = items[["item_id", "human"]].rename(columns={"human": "score"})
    for door, given, message in (
        (rb.simulate, (items, requests, "unbiased"), "lack the column 'readout'"),
        (rb.simulate, ("unbiased", requests, items), "not this str 'unbiased'"),
        (rb.simulate, (requests, "unbiased", items), "not this str 'unbiased'"),
        (rb.run, (items, "simulated:unbiased"), r"make them with rubricnb\.plan"),
        (rb.audit, (items, "simulated:unbiased"), "not this str 'simulated:unbiased'"),
        (rb.audit, ("simulated:unbiased", "my_data.csv"), "not this str 'my_data.csv'"),
        (rb.audit, ("simulated:unbiased", scores), "'response'; .* item_id, score"),
        (rb.audit, ("simulated:unbiased", items.drop(columns="item_id")), "'item_id'"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            door(*given)


TAKE_JUDGMENTS = (
    rb.bias_cost,
    rb.criterion_order,
    rb.error_budget,
    rb.order_effect,
    rb.position_bias,
    rb.position_prior,
    rb.rank_reversal,
    rb.score_position,
    rb.score_tendency,
    rb.stability,
    rb.variance_components,
    rb.will_permuting_help,
    rb.within_item_sd,
)


@pytest.mark.parametrize("statistic", TAKE_JUDGMENTS)
def test_what_is_no_table_of_judgments_is_named_by_every_statistic(items, statistic):
    for given in ("log.csv", None, 5, [1]):
        with pytest.raises(TypeError, match=f"table, not this {type(given).__name__}"):
            statistic(given)
    with pytest.raises(ValueError, match=r"lack the|no column|needs the col"):
        statistic(items)
