"""Questionnaires: what is counted, what is refused, and simulated people."""

import numpy as np
import pandas as pd
import pytest

from studies import questionnaire as q


def asked(names, n_questions=30, seed=0, shares=None, drop=()):
    """Answers in both orders and in every arm, drawn from each model's shares."""
    rng, frames = np.random.default_rng(seed), []
    arms = [("plain", "fixed", 200), ("plain", "reverse", 50)]
    arms += [(edit, "placebo", 50) for edit in q.EDITS]
    for number, name in enumerate(names):
        own = shares or rng.dirichlet([1, 1, 1], (2, n_questions))
        for form, design, n in arms:
            p = own[int(design == "reverse")]
            score = np.stack([rng.choice(3, n, p=one) + 1 for one in p])
            frames.append(
                pd.DataFrame(
                    {
                        "judge": name,
                        "item_id": np.repeat(
                            [f"Q{k}_W{k % 6}" for k in range(len(p))], n
                        ),
                        "cluster_id": np.repeat(
                            [f"W{k % 6}" for k in range(len(p))], n
                        ),
                        "template": form,
                        "design": design,
                        "n_options": 3,
                        "number": number,
                        "replicate": np.tile(np.arange(1, n + 1), len(p)),
                        "score": pd.array(score.ravel(), dtype="Int8"),
                    }
                )
            )
    table = pd.concat(frames, ignore_index=True)
    return table[~table["design"].isin(drop)]


def same(n=30):
    rng = np.random.default_rng(9)
    return rng.dirichlet([1, 1, 1], (2, n))


def test_one_model_under_two_names_is_refused():
    table = asked(["a", "b"], shares=list(same()))
    with pytest.raises(
        ValueError, match=r"'a' and 'b' are those of one model.*leave one out"
    ):
        q.models(table)
    assert len(q.models(asked(["a", "b"]))) == 2


def test_one_order_is_refused():
    with pytest.raises(ValueError, match="one order only"):
        q.models(asked(["a"], drop=["reverse"]))


def test_answers_that_slipped_leave_a_reason_and_no_number():
    table = asked(["a"])
    table.loc[table["template"] == "typo", "score"] = pd.NA
    changes = q.changes(q.models(table)).set_index("change")
    assert np.isnan(
        changes.loc["typo", ["moved", "beyond", "low", "high"]].astype(float)
    ).all()
    assert "slipped" in changes.reason["typo"]
    assert changes.moved["order"] > 2 * changes.moved["asked again"]
    assert changes.reason["order"] == ""


def test_a_position_is_where_an_option_was_shown():
    """A model that always takes the first option on the page,
    and one that keeps to an opinion.
    """
    first = [np.tile([1.0, 0, 0], (30, 1)), np.tile([0.0, 0, 1], (30, 1))]
    opinion = [np.tile([1.0, 0, 0], (30, 1))] * 2
    for shares, difference, sd in ((first, 1, 0), (opinion, 0, 0)):
        row = q.positions(q.models(asked(["a"], shares=shares))).iloc[0]
        assert (row.difference, row.sd) == (difference, sd)
    # shown first in one order and last in the other
    assert row["first"] == row["last"] == 0.5


def test_kinds_of_models_are_compared_by_their_difference():
    """Base models that prefer the first option, tuned ones that prefer the last."""
    up = np.tile([0.6, 0.2, 0.2], (60, 1))
    down = np.tile([0.2, 0.2, 0.6], (60, 1))  # the first shown keeps its 0.6
    frames = [
        asked(q.BASE[:2], 60, shares=[up, down]),
        asked(["x", "y"], 60, seed=1, shares=[up[:, ::-1], down[:, ::-1]]),
    ]
    each = [[*table.groupby("judge", sort=False)] for table in frames]
    of = [q.models(own)[0] for group in each for _, own in group]
    found = q.kinds(of).set_index("models")
    assert found.difference["base"] == pytest.approx(0.4, abs=0.03)
    assert found.difference["tuned"] == pytest.approx(-0.4, abs=0.03)
    assert found.low["base − tuned"] < 0.8 < found.high["base − tuned"] + 0.05
    total = found.difference["base"] - found.difference["tuned"]
    assert found.difference["base − tuned"] == pytest.approx(total)


def test_weights_of_one_half_and_answers_of_the_other_have_no_mean_by_chance():
    """Without an effect of order the mean score is 0 on average;
    with one half alone it is not.
    """
    rng = np.random.default_rng(2)
    even = list(np.tile(rng.dirichlet([1, 1, 1], 150), (2, 1, 1)))
    model = q.models(asked(["a"], 150, shares=even))[0]
    cross = q.moments([model]).iloc[0]
    alone = (model.weights[0] ** 2).sum(axis=1).mean()
    assert abs(cross["mean"]) < alone / 3


def test_hurried_people_gain_the_first_option_what_they_should():
    rng = np.random.default_rng(3)
    opinion = rng.dirichlet([1, 1, 1], 20)
    # first minus last, where the order is the original
    weight = np.tile([1.0, 0, -1], (20, 1))
    mean = q.people(rng, opinion, weight, 40_000, q.PRIMACY).mean()
    assert mean == pytest.approx(1.5 * q.PRIMACY, abs=0.005)  # on average over opinions
    assert q.people(rng, opinion, weight, 40_000, 0).mean() == pytest.approx(
        0, abs=0.005
    )
