"""A rubric whose levels start at 0: scores stay as they are, positions count from 1."""

import pandas as pd
import pytest
import yaml

import rubricnb as rb
from rubricnb.judging.rendering import rendered


def rated_from(folder, low, n=4):
    """The same twelve texts under the same two criteria, rated on levels from `low` on."""
    rubrics = [
        {"criterion": name, "definition": f"Is it {name}?",
         "levels": {low + k: f"{name} to degree {k}." for k in range(n)}}
        for name in ("kind", "brief")
    ]  # fmt: skip
    rows = [
        {"instruction": f"Mail {k // 2}", "response": f"Reply {k}", "candidate": "ab"[k % 2],
         "human_kind": "" if k % 3 == 0 else low + k % n, "human_brief": low + (k * 3) % n}
        for k in range(12)
    ]  # fmt: skip
    folder.mkdir()
    (folder / "r.yml").write_text(yaml.safe_dump(rubrics), "utf-8")
    pd.DataFrame(rows).to_csv(folder / "mails.csv", index=False)
    return rb.load("csv", path=folder / "mails.csv", rubric=folder / "r.yml")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Items and judgments by one judge, on levels from 1 and from 0."""
    found = []
    for low in (1, 0):
        items = rated_from(tmp_path_factory.mktemp("scale") / "own", low)
        requests = rb.plan(items, [rb.balanced(4), rb.fixed(4, 2)], readout="feedback")
        found += [items, rb.simulate(requests, items, "first-biased")]
    return found


def test_orderings_list_scores_and_positions_count_from_1(both):
    _, from_1, items, from_0 = both
    assert from_0.ordering.iloc[1] == "1-2-3-0"
    assert from_0.position.dropna().between(1, 4).all()
    shown = from_0.ordering.str.split("-")
    at = [int(o[p - 1]) for o, p in zip(shown, from_0.position, strict=True)]
    assert from_0.score.tolist() == at
    assert set(from_0.score) <= {0, 1, 2, 3}
    assert from_1.columns.tolist() == from_0.columns.tolist()
    prompt = next(
        rendered(rb.plan(items, rb.Design("descending", 4)), rb.open_judge("simulated:unbiased"))
    )
    assert prompt.choices == ("3", "2", "1", "0")
    assert "an integer between 0 and 3" in prompt.messages[0].content
    letters = rb.plan(items, rb.fixed(4, 1), labels="letter")
    assert next(rendered(letters, rb.open_judge("simulated:unbiased"))).choices == tuple("DCBA")


def test_what_is_asked_through_the_store_is_what_is_simulated(both):
    items = both[2]
    requests = rb.plan(items, rb.balanced(4), readout="feedback")
    asked = rb.run(requests, "simulated:first-biased", store=":memory:")
    assert asked.score.tolist() == rb.simulate(requests, items, "first-biased").score.tolist()


# What depends on the places alone is the same for a scale moved by one point.
STATISTICS = {
    "position_bias": lambda j, items: rb.position_bias(j[j.design == "balanced"]),
    "order_effect": lambda j, items: rb.order_effect(j[j.design == "balanced"]),
    "variance": lambda j, items: rb.variance_components(j[j.design == "balanced"]),
    "contrast": lambda j, items: rb.strategy_contrast(j, items, "balanced", "fixed"),
    "stability": lambda j, items: rb.stability(j, {"design": "fixed"}),
}  # fmt: skip


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_of_a_moved_scale_is_the_same(both, name):
    items_1, from_1, items_0, from_0 = both
    moved = from_1.assign(
        score=from_0.score.array + 1, position=from_0.position.array, status=from_0.status.array
    )
    expected, found = STATISTICS[name](moved, items_1), STATISTICS[name](from_0, items_0)
    drawn = ["spread_null", "spread_p", "ascending", "descending"]  # by permutation; mean scores
    numbers = expected.select_dtypes("number").drop(columns=drawn, errors="ignore")
    pd.testing.assert_frame_equal(found[numbers.columns], numbers, check_dtype=False)
    assert found.reason.tolist() == expected.reason.tolist()


def test_unrated_texts_are_judged_and_left_out_of_agreement(both):
    _, _, items, judgments = both
    assert items.human.isna().sum() == 4
    assert judgments.item_id.nunique() == 24
    assert rb.agreement(judgments, items, by="judge").n_items.item() == 20


def test_criteria_of_different_scales_are_planned_one_by_one(own):
    items = own(
        "instruction,response,human_tone,human_length\na,x,0,4\nb,y,2,1\nc,z,,2\n",
        "- {criterion: tone, definition: Kind, levels: {0: a, 1: b, 2: c}}\n"
        "- {criterion: length, definition: Short, levels: {1: a, 2: b, 3: c, 4: d}}\n",
    )
    with pytest.raises(ValueError, match="rubric 'tone' has 3 levels and cannot be shown on 4"):
        rb.plan(items, rb.balanced(4))
    parts = []
    for criterion, n in (("tone", 3), ("length", 4)):
        own = items[items.criterion == criterion]
        parts.append(rb.simulate(rb.plan(own, rb.balanced(n)), own, "unbiased"))
    judgments = pd.concat(parts, ignore_index=True)
    assert judgments.groupby("criterion").score.min().ge([1, 0]).all()
    assert rb.agreement(judgments, items).n_options.tolist() == [3, 4]
    with pytest.raises(ValueError, match="scales of different scores or labels"):
        rb.plan(items, rb.balanced(2), n_options=3, template="criteria")
