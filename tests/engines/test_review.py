"""The generation–review pipeline,
with simulated pairs of known acceptance and hand-made judges.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

import rubricnb as rb
from rubricnb.core.contract import Reply
from rubricnb.core.store import Store
from rubricnb.engines.profiles import Profile
from rubricnb.engines.review import with_references, write_references
from rubricnb.engines.simulated import SimulatedJudge

SIGMA = 0.5
KNOWN = Profile(
    "known",
    human_weight=1.0,
    text_error=0.0,
    item_error=SIGMA,
    order_noise=0.0,
    cluster_order_noise=0.0,
    wording_noise=0.0,
)


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


def planted(target):
    """P(the reviewer sees the target): its error is normal,
    scores are the nearest whole number.
    """
    low = -np.inf if target == 1 else -0.5
    return norm.cdf(0.5 / SIGMA) - norm.cdf(low / SIGMA)


@pytest.mark.in_turn
def test_a_simulated_pair_accepts_at_its_planted_rate(items, tmp_path, capsys):
    pair = (SimulatedJudge(KNOWN), SimulatedJudge(KNOWN, seed=1))
    attempts = write_references(items, pair, rounds=8, store=tmp_path / "s.sqlite")
    assert sorted(attempts.target.unique()) == [1, 2, 3, 4]
    for target, tried in attempts.groupby("target"):
        n, accepted, p = len(tried), tried.accepted.sum(), planted(target)
        assert binom.ppf(0.0005, n, p) <= accepted <= binom.ppf(0.9995, n, p)
        # Geometric: after eight rounds hardly any answer is missing.
        assert accepted / tried.item_id.nunique() >= 1 - 5 * (1 - p) ** 8
    accepted = attempts[attempts.accepted]
    # nothing is written after success
    assert not accepted.duplicated(["item_id", "target"]).any()
    assert (accepted.score == accepted.target).all()


@pytest.mark.in_turn
def test_the_two_judges_alternate_and_every_attempt_is_kept(items, tmp_path, capsys):
    stubborn = replace(KNOWN, center=5.0, human_weight=0.0, item_error=0.0)  # always 5
    pair = (
        SimulatedJudge(replace(stubborn, name="a")),
        SimulatedJudge(replace(stubborn, name="b")),
    )
    store = tmp_path / "s.sqlite"
    attempts = write_references(
        items.head(3), pair, targets=(2,), rounds=5, store=store
    )
    assert attempts.groupby("round").writer.first().tolist() == [
        "simulated:a",
        "simulated:b",
        "simulated:a",
        "simulated:b",
        "simulated:a",
    ]
    assert (attempts.writer != attempts.reviewer).all()
    assert len(attempts) == 3 * 5
    assert not attempts.accepted.any()
    kept = len(Store(store))
    assert kept == 2 * len(attempts)
    again = write_references(items.head(3), pair, targets=(2,), rounds=5, store=store)
    assert again.equals(attempts)
    assert len(Store(store)) == kept  # resumed: nothing was asked twice


class Scripted:
    """Writes what it is told, and reviews a text as its last character says."""

    source, identity, deterministic, concurrency = "live", "scripted 1", True, 1
    readouts = ("feedback",)

    def __init__(self, slug, texts):
        self.slug, self.texts, self.prompts = slug, iter(texts), []

    def answer(self, requests):
        for request in requests:
            prompt = request.messages[0].content
            self.prompts.append(prompt)
            if "###The instruction:\n" in prompt:
                yield Reply(request.request_id, next(self.texts))
            else:
                response = prompt.split("###Response to evaluate:\n")[1].split(
                    "\n\n###"
                )[0]
                yield Reply(request.request_id, f"Feedback: … [RESULT] {response[-1]}")


def test_the_reviewer_reads_the_text_and_not_the_target(items, tmp_path, capsys):
    one = items.head(1)
    writer, reviewer = (
        Scripted("w", ["too good 4", "right 2"]),
        Scripted("r", ["", "never"]),
    )
    attempts = write_references(
        one, (writer, reviewer), targets=(2,), rounds=4, store=tmp_path / "s.sqlite"
    )
    assert attempts.text.tolist() == ["too good 4", "", "right 2"]
    assert attempts.status.tolist() == ["ok", "empty", "ok"]
    assert attempts.accepted.tolist() == [False, False, True]
    assert attempts.score.isna().tolist() == [False, True, False]
    assert "deserves a score of 2" in writer.prompts[0]
    assert not any(
        "deserves a score" in p for p in reviewer.prompts if "to evaluate" in p
    )
    filled = with_references(one, attempts)
    assert filled.reference_2.tolist() == ["right 2"]
    assert len(rb.plan(filled, rb.fixed(5, 1), reference=2)) == 1


def test_one_answer_serves_all_candidates_of_an_instruction(items, tmp_path, capsys):
    some = items[items.criterion == "accuracy"].head(5)
    pair = (SimulatedJudge(KNOWN), SimulatedJudge(KNOWN, seed=1))
    attempts = write_references(some, pair, rounds=20, store=tmp_path / "s.sqlite")
    assert attempts.item_id.nunique() == some.cluster_id.nunique() == 1
    filled = with_references(some, attempts)
    assert filled[[f"reference_{k}" for k in range(1, 5)]].notna().all().all()
    assert filled.reference_3.nunique() == 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"rounds": 0}, "rounds = 0"),
        (
            {"targets": (2, 6)},
            "targets: the rubric 'minibench-accuracy' has no level 6",
        ),
    ],
)
def test_what_no_review_can_give_is_named(items, how, message):
    with pytest.raises(ValueError, match=message):
        write_references(items, (None, None), **how)
