"""Verdicts on the papers' findings: planted ones are found, absent ones are not."""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.book.replication import (
    FINDINGS,
    judged,
    recorded_replication,
    replication,
)
from rubricnb.statistics.criterion import criterion_order


def answers(profile, designs=None, items=None):
    items = rb.load("minibench") if items is None else items
    designs = designs or [rb.balanced(5), rb.fixed(5, 10)]
    requests = rb.plan(items, designs, readout="score")
    return rb.simulate(requests, items, profile), items


@pytest.mark.parametrize(
    ("end", "first"), [("first", "replicates"), ("last", "does not")]
)
def test_a_planted_preference_is_found_and_speaks_for_or_against_the_first(end, first):
    found = replication(*answers(f"{end}-biased")).set_index("finding")
    assert list(found.index) == list(FINDINGS)[:6]
    assert found.verdict[["position", "first"]].tolist() == ["replicates", first]
    assert (found.low["first"] > 0) == (end == "first")
    assert found.reason["criteria"]  # no reads of Setting 2


def test_without_any_preference_nothing_replicates():
    found = replication(*answers("unbiased"))
    assert (
        "replicates" not in found.loc[found.finding != "agreement", "verdict"].tolist()
    )


def test_a_run_without_fixed_reads_says_so():
    found = replication(*answers("first-biased", [rb.balanced(5)])).set_index("finding")
    for finding in ("agreement", "reversal"):
        assert found.verdict[finding] == "cannot say"
        assert np.isnan(found.estimate[finding])
        assert found.reason[finding]


def test_two_judges_at_a_time_are_refused():
    one, items = answers("first-biased", items=rb.load("minibench", n_items=15))
    two = pd.concat([one, one.assign(judge="another")])
    with pytest.raises(ValueError, match="one judge at a time"):
        replication(two, items)


def test_a_reversed_list_may_raise_or_lower_scores():
    rows = [
        {"finding": "descending", "estimate": x, "p": 0.01, "p_equivalent": 0.9}
        for x in (0.5, -0.5)
    ]
    assert judged(pd.DataFrame(rows)).verdict.tolist() == ["replicates"] * 2


def test_many_cells_are_adjusted_within_a_finding_only():
    rows = [
        {"finding": f, "estimate": 1.0, "p": 0.03, "p_equivalent": np.nan}
        for f in "aaab"
    ]
    rows[1]["p"] = rows[2]["p"] = 0.9
    assert judged(pd.DataFrame(rows)).verdict.tolist() == ["cannot say"] * 3 + [
        "replicates"
    ]


def test_the_largest_criterion_is_the_one_with_the_largest_gap():
    """A small sure gap has the smaller p; the estimate is of the larger, noisy one."""
    items = rb.load("minibench")
    requests = rb.plan(items, rb.balanced(3), readout="score", template="criteria")
    answers = rb.simulate(requests, items, "first-biased")
    last = answers["criterion_position"].eq(3)
    rng = np.random.default_rng(0)
    noise = rng.choice([-2.0, 2.0], len(answers)) * answers["criterion"].eq("accuracy")
    gap = np.where(last, -1.5, 0.0) * answers["criterion"].eq("accuracy")
    sure = np.where(last, -0.5, 0.0) * answers["criterion"].eq("helpfulness")
    answers["score"] = 3 + noise + gap + sure
    found = replication(answers, items).set_index("finding")
    rows = criterion_order(answers).set_index("criterion")
    assert rows.p_within.idxmin() == "helpfulness"
    assert found.reason["criteria"] == "the largest: accuracy"
    above = rows.delta_pos - rows.delta_pos_null
    assert found.estimate["criteria"] == above["accuracy"] == above.max()


def test_an_order_that_moves_nothing_is_not_shown_to_move_nothing():
    found = replication(*answers("unbiased", items=rb.load("minibench"))).set_index(
        "finding"
    )
    assert abs(found.estimate["descending"]) < 0.1
    assert found.p_equivalent["descending"] > 0.05  # twelve prompts cannot show it
    one, items = answers("unbiased")
    still = one.assign(score=3)
    found = replication(still, items).set_index("finding")
    # a judge that says 3 to everything shows nothing
    assert (found.verdict == "cannot say").all()


def test_recorded_verdicts_are_read_by_finding():
    assert set(recorded_replication("first", "rulers").finding) == {"first", "rulers"}
    assert recorded_replication().finding.unique().tolist() == list(FINDINGS)
    assert recorded_replication().reason.map(type).eq(str).all()
