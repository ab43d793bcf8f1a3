"""`run`: nothing lost, nothing asked twice, whatever happens in between."""

import re
import signal
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.contract import JudgeError, Reply
from rubricnb.core.frames import conform
from rubricnb.core.rendering import rendered
from rubricnb.core.run import RunInterrupted
from rubricnb.core.store import Store
from rubricnb.engines.simulated import SimulatedJudge


class Counting(SimulatedJudge):
    """A simulated judge that notes what it is asked, and can fail."""

    def __init__(self, profile="first-biased", fail=(), stop_after=None):
        super().__init__(profile)
        self.asked = Counter()
        self.fail, self.stop_after = set(fail), stop_after

    def answer(self, requests):
        for request in requests:
            self.asked[request.key] += 1
            if self.stop_after is not None and self.asked.total() > self.stop_after:
                raise KeyboardInterrupt
            if request.request_id in self.fail:
                yield Reply(request.request_id, "", "error", error="503 overloaded")
            else:
                yield from super().answer([request])


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=30)


@pytest.fixture(scope="module")
def plan(items):
    return rb.plan(items, [rb.balanced(5), rb.fixed(5, 4)], readout="feedback")


@pytest.mark.in_turn
def test_judgments_conform_in_the_order_of_the_requests_and_nothing_is_asked_twice(
    plan, items
):
    judge = Counting()
    rb.run(plan, judge)
    # fixed x 4 shows balanced's first ordering: 30 items x 10 distinct prompts.
    assert set(judge.asked.values()) == {1}
    assert len(judge.asked) == 300
    again = Counting()
    judgments = rb.run(plan, again)
    rb.run(
        rb.plan(items, rb.permutation.single([2, 3, 4, 5, 1]), readout="feedback"),
        again,
    )
    assert not again.asked
    conform(judgments, "judgments")
    assert judgments["request_id"].tolist() == plan["request_id"].tolist()
    assert (judgments["source"] == "simulated").all()
    shown = judgments["ordering"].str.split("-", expand=True).astype(int).to_numpy()
    at = judgments["position"].astype(int).to_numpy() - 1
    assert (shown[range(len(shown)), at] == judgments["score"]).all()
    assert list(rb.run(plan.head(0), again).columns)[:2] == ["request_id", "item_id"]


@pytest.mark.in_turn
def test_replicates_are_asked_where_sampling_differs(items):
    judge = Counting()
    requests = rb.plan(
        items.head(3), rb.fixed(5, 4), readout="feedback", temperature=0.7
    )
    rb.run(requests, judge, store=":memory:")
    assert len(judge.asked) == 12


@pytest.mark.in_turn
def test_a_fresh_run_that_its_judge_stops_goes_on_when_it_is_given_its_beginning(plan):
    class Ending(Counting):
        def answer(self, requests):
            for request in requests:
                if self.asked.total() == 100:
                    raise RuntimeError("nobody answers")
                yield from super().answer([request])

    rb.run(plan, Counting())
    judge = Ending()
    with pytest.raises(RuntimeError) as stopped:
        rb.run(plan, judge, fresh=True)
    assert "\n".join(stopped.value.__notes__).count("run it again with fresh=") == 1
    fresh = float(re.search(r"fresh=([\d.]+)", stopped.value.__notes__[0])[1])
    rest = Counting()
    rb.run(plan, rest, fresh=fresh)
    assert (len(judge.asked), len(rest.asked)) == (100, 200)
    with pytest.raises(RuntimeError) as stopped:
        rb.run(plan, judge, store=":memory:")
    assert not hasattr(stopped.value, "__notes__")


@pytest.mark.in_turn
def test_every_part_of_a_request_that_changes_the_answer_changes_its_key(items):
    one, ascending = items.head(1), rb.permutation.single([1, 2, 3, 4, 5])
    settings = [
        {},
        {"labels": "letter"},
        {"layout": "rubric-first"},
        {"reference": 4},
        {"variant": "paraphrased"},
        {"template": "pointwise"},
        {"prompt_format": "plain"},
        {"temperature": 0.5},
        {"effort": "high"},
        {"thinking": "on"},
        {"max_tokens": 7},
        {"readout": "logprobs"},
        {"readout": "feedback"},
    ]
    keys = [
        next(
            rendered(rb.plan(one, ascending, **({"readout": "score"} | s)), Counting())
        ).key
        for s in settings
    ]
    assert len(set(keys)) == len(keys)
    other = Counting("unbiased")
    plain = rb.plan(one, ascending, readout="score")
    assert next(rendered(plain, other)).key not in keys


@pytest.mark.in_turn
def test_max_calls_stops_cleanly_and_the_next_run_goes_on(plan):
    judge = Counting()
    with pytest.raises(RunInterrupted, match=r"stopped after 50 calls.*run it again"):
        rb.run(plan, judge, max_calls=50)
    assert len(judge.asked) == 50
    rest = Counting()
    rb.run(plan, rest)
    assert len(rest.asked) == 250
    assert not judge.asked.keys() & rest.asked.keys()


class Abroad(Counting):
    """A judge on another machine, whose answers have tokens."""

    host, model, is_free = "judge.example.org", "m", False

    def answer(self, requests):
        for reply in super().answer(requests):
            yield replace(reply, prompt_tokens=1000, completion_tokens=100)


@pytest.mark.in_turn
def test_max_cost_stops_before_it_is_passed_and_the_next_run_goes_on(plan):
    judge = Abroad()
    with pytest.raises(
        RunInterrupted,
        match=r"stopped at \$(0\.9|1\.)\d* for [45]\d .*=\$1\.10 allows.*again",
    ) as stopped:
        rb.run(plan, judge, max_cost=1.10, price=(10, 1, 100))  # a call is two cents
    most = float(re.search(r"up to \$([\d.]+)\)", str(stopped.value))[1])
    # not less than it might have been
    assert 1.10 - most - 0.01 <= 0.02 * len(judge.asked) <= 1.10
    assert 45 <= len(judge.asked) <= 55
    with pytest.raises(RunInterrupted, match="stopped at"):
        rb.run(plan, judge, max_cost=1.10, price=(10, 1, 100))
    assert set(judge.asked.values()) == {1}
    rb.run(plan, judge, max_cost=100, price=(10, 1, 100))
    assert len(judge.asked) == 300


def test_a_run_counts_the_answers_that_were_cut(plan, capsys):
    class Short(Counting):
        def answer(self, requests):
            for reply in super().answer(requests):
                yield replace(reply, text="Well", finish="length", prompt_tokens=9)

    judgments = rb.run(plan.head(20), Short())
    calls = judgments["key"].nunique()
    assert judgments["status"].eq("truncated").all()
    assert (
        f", {calls} cut at their token limit"
        in capsys.readouterr().out.splitlines()[-1]
    )


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (pd.DataFrame, {}, r"make them with rubricnb\.plan"),
        (
            lambda plan: pd.concat([plan.head(20), plan.head(3)], ignore_index=True),
            {},
            r"3 requests appear twice in the plan.*drop_duplicates",
        ),
        (
            lambda plan: plan,
            {"max_cost": 5},
            r"needs a price.*'m' at judge.*give `price`",
        ),
        (
            lambda plan: plan.assign(readout="json"),
            {},
            "cannot fill in documents",
        ),
        (
            lambda plan: plan.assign(readout="guess"),
            {},
            "no readout 'guess': choose from logprobs, score, feedback",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(
    plan, change, options, message
):
    judge = Abroad()
    with pytest.raises(ValueError, match=message):
        rb.run(change(plan), judge, **options)
    assert not judge.asked


@pytest.mark.slow
def test_before_texts_leave_the_machine_one_is_told_to_whom_and_how_many(plan, capsys):
    judge = Abroad()
    told = []
    answer = judge.answer

    def listening(requests):
        told.append(capsys.readouterr().out)
        yield from answer(requests)

    judge.answer = listening
    with pytest.raises(RunInterrupted):
        rb.run(plan, judge, max_calls=100, price=(1, 1, 1))
    assert told[0].startswith(
        "judge.example.org is sent the texts of 300 requests for "
    )
    assert "$0." in told[0]
    rb.run(plan, judge)
    assert "texts of 200 requests" in told[1]
    assert "at a price not known here" in told[1]
    capsys.readouterr()
    rb.run(plan, judge)  # everything is stored
    rb.run(plan, Counting(), store=":memory:")  # and this judge is here
    assert "is sent" not in capsys.readouterr().out


def test_copies_of_a_failed_read_do_not_keep_it_from_being_asked_again(items):
    plan = rb.plan(items.head(2), rb.fixed(5, 4), readout="feedback")
    first = set(plan["request_id"][plan["item_id"] == plan["item_id"].iloc[0]])
    judge = Counting(fail=first)
    judgments = rb.run(plan, judge)
    assert judgments["status"].value_counts().to_dict() == {"ok": 4, "error": 4}
    assert sorted(judge.asked.values()) == [1, 2]


@pytest.mark.in_turn
def test_ctrl_c_leaves_a_store_that_can_be_resumed_and_says_so(plan):
    judge = Counting(stop_after=40)
    with pytest.raises(RunInterrupted, match=r"Ctrl-C.*\.sqlite.*run it again"):
        rb.run(plan, judge)
    rest = Counting()
    rb.run(plan, rest)
    assert len(rest.asked) == 300 - 40


@pytest.mark.in_turn
def test_answers_in_memory_cannot_be_continued_and_a_notebook_shows_one_line(plan):
    with pytest.raises(RunInterrupted, match=r"answers in memory are lost") as stopped:
        rb.run(plan, Counting(stop_after=40), store=":memory:")
    assert "run it again" not in str(stopped.value)
    assert stopped.value._render_traceback_() == [f"RunInterrupted: {stopped.value}"]


def test_a_signal_ends_the_wait_for_another_run(plan, tmp_path, monkeypatch):
    judge = Counting()
    waits = lambda *_: signal.raise_signal(signal.SIGTERM)  # noqa: E731
    with Store(tmp_path / "s.sqlite") as store, store.alone_with(judge):
        monkeypatch.setattr(Store, "_say_who_asks", waits)
        with pytest.raises(
            RunInterrupted, match=r"SIGTERM: every answer so far is kept"
        ):
            rb.run(plan, judge, store=tmp_path / "s.sqlite")
    assert not judge.asked


@pytest.mark.in_turn
def test_what_is_answered_is_read_while_another_run_asks(plan, tmp_path, capsys):
    rb.run(plan, Counting(), tmp_path / "s.sqlite")
    with Store(tmp_path / "s.sqlite") as store, store.alone_with(Counting()):
        assert len(rb.run(plan, Counting(), tmp_path / "s.sqlite")) == len(plan)
    assert "this run waits" not in capsys.readouterr().out


class Silent(Counting):
    """A judge that gives no reply to some requests, so many times."""

    def __init__(self, ids, times):
        super().__init__()
        self.ids, self.left = set(ids), times

    def answer(self, requests):
        for reply in super().answer(requests):
            if reply.request_id in self.ids and self.left:
                self.left -= 1
            else:
                yield reply


@pytest.mark.in_turn
def test_a_request_without_a_reply_is_asked_again_and_never_lost(plan):
    judge = Silent([plan.request_id.iloc[3]], 1)
    found = rb.run(plan, judge)
    assert len(found) == len(plan)
    assert found.status.eq("ok").all()
    assert sorted(judge.asked.values())[-1] == 2
    with pytest.raises(JudgeError, match=r"no reply \(requests: 1\)"):
        rb.run(plan, Silent([plan.request_id.iloc[3]], 9), store=":memory:")


@pytest.mark.parametrize("fresh", [None, "7", 1, 0.5, -3, 10**30, float("nan")])
def test_a_number_that_is_no_run_is_refused(plan, fresh):
    with pytest.raises(ValueError, match="give True, or the number"):
        rb.run(plan, Counting(), fresh=fresh)


def test_a_truth_of_numpy_is_one(plan):
    judge = Counting()
    few = plan.iloc[:3]
    rb.run(few, judge)
    rb.run(few, judge, fresh=np.True_)
    rb.run(few, judge, fresh=np.False_)
    assert set(judge.asked.values()) == {2}
