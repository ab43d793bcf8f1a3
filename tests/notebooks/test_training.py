"""Chapter 28 on other scores than its own: its optimum,
own files, and what is refused.
"""

import numpy as np
import pandas as pd
import pytest
from test_chapter_statistics import defined

from rubricnb.book import notebooks as book
from studies import training

ROOT = book.find_root()
STEM = "28_train_on_scores"
(policy,) = defined(STEM, "policy")


def printed(done):
    return "".join(
        output.text
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stdout"
    )


def scores(tmp_path, **columns):
    """A file of three prompts in two orders: one of three candidates,
    one that ties, one alone.
    """
    rows = [
        {
            "item_id": f"{prompt}{name}",
            "group_id": prompt,
            "candidate": name,
            "human": human,
            "judge": "mine",
            "ordering": order,
            "score": score,
        }
        for prompt, name, human, given in (
            ("p", "a", 5, (4, 2)),
            ("p", "b", 3, (3, 4)),
            ("p", "c", 1, (1, 1)),
            ("q", "a", 4, (3, 3)),
            ("q", "b", 2, (3, 3)),
            ("r", "a", 5, (5, 5)),
        )
        for order, score in zip(("1-2-3-4-5", "5-4-3-2-1"), given, strict=True)
    ]
    path = tmp_path / "mine.csv"
    pd.DataFrame(rows).assign(**columns).to_csv(path, index=False)
    return {"judgments": str(path)}


@pytest.mark.parametrize("beta", [0.0, 0.1, 2.0])
def test_the_chapter_has_the_policy_of_the_study(beta):
    reward = np.random.default_rng(1).integers(1, 6, 12).astype(float)
    prompt = pd.Series(np.repeat(list("abcd"), [5, 1, 2, 4]))
    ours = policy(pd.Series(reward), prompt, beta)
    theirs = training.policy(reward, np.array([0, 5, 6, 8]), beta)
    assert ours.to_numpy() == pytest.approx(theirs)
    with pytest.raises(ValueError, match="the penalty must be 0 or more"):
        policy(pd.Series(reward), prompt, -beta - 1)


@pytest.mark.slow
def test_own_scores_with_ties_and_a_single_candidate(tmp_path):
    """By hand, at β = 0: orders pick a (5) and b (3),
    their mean b; q ties, r has no choice.
    """
    done = book.execute(STEM, scores(tmp_path) | {"beta": 0.0}, root=ROOT)
    said = printed(done)
    assert "2 orders, 2 prompts, 5 candidates; 1 left out" in said
    assert "one fixed order: +0.50 [" in said  # mean of (2 + 0) / 2 and 0
    assert "new order each step: +0.00" in said
    assert "− one fixed order: −0.50 [" in said
    assert "quality at random: 3.00" in said


@pytest.mark.slow
def test_another_recorded_judge_and_its_expected_scores():
    chosen = {"judge": "embedded", "readout": "expected_score"}
    said = printed(book.execute(STEM, chosen, root=ROOT))
    assert "new order each step: −0.24 [" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"group_id": list("aabbccddeeff")}, "no prompt has two rated candidates"),
        ({"human": np.nan}, "no prompt has two rated candidates"),
        ({"judge": ["a", "b"] * 6}, r"\['a', 'b'\] in one file: give one judge"),
    ],
)
def test_scores_that_cannot_be_trained_on_are_refused(tmp_path, columns, message):
    with pytest.raises(RuntimeError, match=message):
        book.execute(STEM, scores(tmp_path, **columns), root=ROOT)


@pytest.mark.slow
def test_expected_scores_that_were_not_recorded_are_refused(tmp_path):
    values = scores(tmp_path) | {"readout": "expected_score"}
    with pytest.raises(
        RuntimeError, match="no column 'expected_score': choose readout 'score'"
    ):
        book.execute(STEM, values, root=ROOT)


@pytest.mark.slow
def test_a_penalty_below_0_is_refused_in_the_chapter():
    with pytest.raises(RuntimeError, match="the penalty must be 0 or more"):
        book.execute(STEM, {"beta": -1.0}, root=ROOT)
