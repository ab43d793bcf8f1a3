"""The walk over shared prefixes, and the count of the limit."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubricnb as rb
from rubricnb.core.rendering import rendered
from rubricnb.core.sharing import common_prefix, walk
from studies.limit import Limit

PROMPTS = st.lists(st.text("ab", max_size=12), max_size=24)
SINGLE = rb.permutation.single([1, 2, 3, 4, 5])


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=45)


def prefixes(prompts):
    return {prompt[:end] for prompt in prompts for end in range(1, len(prompt) + 1)}


def distinct(prompts):
    limit = Limit()
    for prompt in sorted(prompts):
        limit.add(prompt)
    return limit.distinct


def walked_over(requests):
    prompts = prompts_of(requests.iloc[walk(requests)])
    limit = Limit()
    for prompt in prompts:
        limit.add(prompt)
    return limit.distinct / distinct(prompts)


def prompts_of(requests):
    judge = rb.open_judge("simulated:unbiased")
    return [r.messages[0].content for r in rendered(requests, judge)]


def shuffled(requests):
    return requests.sample(frac=1, random_state=1)


def plans(items):
    designs = [rb.balanced(5), rb.shuffled(5, 4)]
    return {
        "rubric-last": rb.plan(items, designs),
        "rubric-first": rb.plan(items, designs, layout="rubric-first"),
        "placebo": rb.plan(items, [rb.placebo(5, 15), SINGLE]),
        "labels": pd.concat(
            [rb.plan(items, designs, labels=labels) for labels in ("numeric", "letter")]
        ),
        "variants": pd.concat(
            [rb.plan(items, SINGLE, variant=v) for v in ("standard", "paraphrased")]
        ),
        "pointwise": rb.plan(items, SINGLE, template="pointwise"),
        "criteria": rb.plan(
            items, rb.balanced(items.criterion.nunique()), template="criteria"
        ),
    }


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "name",
    [
        "rubric-last",
        "rubric-first",
        "placebo",
        "labels",
        "variants",
        "pointwise",
        "criteria",
    ],
)
def test_a_walk_computes_little_more_than_the_trie_whatever_order_the_plan_has(
    items, name
):
    requests = shuffled(plans(items)[name])
    assert sorted(walk(requests)) == list(range(len(requests)))
    # Edits come in the plan's order, which shares a little less than the best one.
    assert 1 <= walked_over(requests) <= (1.15 if name == "placebo" else 1.01)


def test_items_without_a_reference_are_walked_apart(items):
    some = items.copy()
    some["reference"] = [
        None if i % 3 else f"Reference {i}." for i in range(len(items))
    ]
    some = type(items)(some)
    some.rubrics = items.rubrics
    assert walked_over(shuffled(rb.plan(some, rb.balanced(5)))) <= 1.01


@pytest.mark.in_turn
@given(PROMPTS)
def test_the_limit_counts_every_prefix_once(prompts):
    assert distinct(prompts) == len(prefixes(prompts))


@given(PROMPTS, PROMPTS)
def test_a_common_prefix_is_common_and_the_longest(left, right):
    for a, b in zip(left, right, strict=False):
        n = common_prefix(a, b)
        assert a[:n] == b[:n]
        assert n == min(len(a), len(b)) or a[n] != b[n]


@pytest.mark.in_turn
@pytest.mark.parametrize("dataset", ["mt-bench", "hanna"])
def test_the_walk_of_a_real_dataset_is_as_short_as_its_trie(dataset, mirror):
    requests = shuffled(rb.plan(rb.load(dataset, n_items=60), rb.balanced(5)))
    assert walked_over(requests) <= 1.002
