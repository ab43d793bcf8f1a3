"""`decide`: as few reads as it takes, never too many, and none of them twice."""

from collections import Counter, defaultdict

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.core.contract import Reply
from rubricnb.core.parsing import answer_text
from rubricnb.core.run import RunInterrupted
from rubricnb.core.support.hashing import hash64, mix64, uniform
from rubricnb.engines.simulated import SimulatedJudge


class Voter(SimulatedJudge):
    """Gives the top score with probability p, else the lowest,
    independently in every read.

    It notes what it is asked, in order; `invalid` is the share of answers without a
    score, and after `stop_after` answers it is killed.
    """

    def __init__(self, p, seed=0, invalid=0.0, stop_after=None):
        super().__init__("unbiased", seed)
        self.p, self.invalid, self.stop_after = p, invalid, stop_after
        self.identity = f"voter {p} {invalid} {seed}"
        self.asked, self.votes = Counter(), defaultdict(list)

    def answer(self, requests):
        for request in requests:
            if self.stop_after is not None and self.asked.total() >= self.stop_after:
                raise KeyboardInterrupt
            self.asked[request.key] += 1
            drawn = mix64(hash64([request.key]), hash64([self.seed]))
            high, lost = (
                uniform(drawn)[0] < self.p,
                uniform(mix64(drawn, 1))[0] < self.invalid,
            )
            self.votes[request.item_id].append(0 if lost else 1 if high else -1)
            text = answer_text(request, [request.ordering.index(5 if high else 1) + 1])
            yield Reply(request.request_id, "I cannot say." if lost else text)


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


@pytest.fixture(scope="module")
def plan(items):
    return rb.plan(items, rb.balanced(5), readout="feedback")


def by_hand(votes, lead, most):
    """Go through the votes one by one until one side leads or cannot be caught."""
    ahead = 0
    for calls, vote in enumerate(votes, 1):
        ahead += vote
        if abs(ahead) >= lead or abs(ahead) > most - calls:
            break
    return calls, "yes" if ahead > 0 else "no" if ahead < 0 else "undecided"


def exact(p, lead, most):
    """P(yes) and the mean number of reads, from the distribution of the votes."""
    state, yes, reads = {0: 1.0}, 0.0, 0.0
    for calls in range(1, most + 1):
        after = defaultdict(float)
        for ahead, chance in state.items():
            after[ahead + 1] += chance * p
            after[ahead - 1] += chance * (1 - p)
        reads += sum(state.values())
        over = {a for a in after if abs(a) >= lead or calls == most}
        yes += sum(after[a] for a in over if a > 0)
        state = {a: chance for a, chance in after.items() if a not in over}
    return yes, reads


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.7, 0.9])
def test_decisions_and_reads_have_the_exact_chances(plan, p):
    found = [
        rb.decide(plan, Voter(p, seed), cut=3, store=":memory:") for seed in range(4)
    ]
    yes = np.concatenate([f["decision"] == "yes" for f in found])
    calls = np.concatenate([f["calls"] for f in found])
    wanted, reads = exact(p, 2, 9)
    assert abs(yes.mean() - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / len(yes))
    assert abs(calls.mean() - reads) < 4 * calls.std() / np.sqrt(len(calls))


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("lead", "most", "invalid"), [(2, 9, 0.3), (9, 9, 0.1), (1, 4, 0.5)]
)
def test_it_stops_where_going_through_the_votes_one_by_one_stops(
    plan, lead, most, invalid
):
    judge = Voter(0.6, 1, invalid)
    found = rb.decide(plan, judge, cut=3, lead=lead, most=most, store=":memory:")
    assert len(found) == 180
    for row in found.itertuples():
        votes = judge.votes[row.item_id]
        # Those of one round arrive in any order, and no order of them ends earlier.
        assert by_hand(votes, lead, most) == (len(votes), row.decision)
        counted = (votes.count(1), votes.count(-1), votes.count(0), len(votes))
        assert (row.yes, row.no, row.invalid, row.calls) == counted
    assert found["calls"].max() <= most
    assert set(judge.asked.values()) == {1}


@pytest.mark.in_turn
def test_a_killed_run_goes_on_and_pays_nothing_twice(plan, tmp_path):
    store = tmp_path / "store.sqlite"
    whole = Voter(0.7)
    wanted = rb.decide(plan, whole, cut=3, store=":memory:")
    asked = Counter()
    for stop_after in (100, 300, None):
        judge = Voter(0.7, stop_after=stop_after)
        if stop_after:
            with pytest.raises(RunInterrupted):
                rb.decide(plan, judge, cut=3, store=store)
        else:
            found = rb.decide(plan, judge, cut=3, store=store)
        asked += judge.asked
    assert found.equals(wanted)
    assert asked == whole.asked
    assert set(asked.values()) == {1}


@pytest.mark.in_turn
def test_the_order_of_the_reads_is_the_items_own(plan, items):
    def first_two(requests):
        judge = Voter(1.0)
        rb.decide(requests, judge, cut=3, store=":memory:")
        return frozenset(judge.asked)

    # Which items stand beside it changes nothing.
    few = rb.plan(items.iloc[::3].copy(), rb.balanced(5), readout="feedback")
    assert first_two(few) < first_two(plan)
    asked = rb.run(plan, Voter(1.0), store=":memory:")
    used = asked[asked["key"].isin(first_two(plan))]
    assert used["ordering"].nunique() == 10


def test_recorded_reads_decide_without_opening_the_judge(items, monkeypatch):
    monkeypatch.setattr("rubricnb.engines.embedded.EmbeddedJudge.__init__", pytest.fail)
    requests = rb.plan(items, rb.balanced(5), readout="logprobs")
    found = rb.decide(requests, "embedded:qwen2.5-coder-1.5b-instruct", cut=4)
    assert len(found) == 180
    assert set(found["decision"]) <= {"yes", "no", "undecided"}
    assert found["calls"].between(2, 9).all()


def test_conditions_are_decided_apart(items):
    requests = rb.plan(
        items.head(4), rb.balanced(5), labels=["numeric", "letter"], readout="score"
    )
    found = rb.decide(requests, "simulated:unbiased", cut=4, store=":memory:")
    assert found.groupby("labels", observed=True).size().to_dict() == {
        "numeric": 4,
        "letter": 4,
    }


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cut": 6}, "scores run from 1 to 5"),
        ({"lead": 10}, "lead must be between 1 and most"),
        (
            {"requests": lambda items: rb.plan(items, rb.fixed(5, 1))},
            "1 reads, but lead = 2",
        ),
        (
            {
                "requests": lambda items: rb.plan(
                    items, rb.balanced(3), template="criteria"
                )
            },
            "scores several criteria",
        ),
    ],
)
def test_bad_input_says_what_to_do(plan, items, how, message):
    judge, how = Voter(0.5), {"cut": 3} | how
    requests = how.pop("requests", lambda _: plan)(items)
    with pytest.raises(ValueError, match=message):
        rb.decide(requests, judge, **how)
    assert not judge.asked


def test_nothing_to_decide_and_no_read_with_a_score_are_no_decision(plan):
    assert rb.decide(plan.head(0), Voter(0.5), cut=3).empty
    found = rb.decide(plan.head(10), Voter(0.5, 0, 1.0), cut=3, store=":memory:")
    assert found[["decision", "invalid", "calls"]].to_numpy().tolist() == [
        ["undecided", 9, 9]
    ]
