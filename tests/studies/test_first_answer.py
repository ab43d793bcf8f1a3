"""What a later answer equals: planted judges that repeat the first score,
keep theirs, or count.
"""

import numpy as np
import pandas as pd
import pytest

from studies import first_answer


def recorded(answer):
    """Eight texts, three criteria in six orders;
    `answer` scores a criterion at a position.
    """
    rows = []
    for text in range(8):
        own = dict(
            zip("abc", np.random.default_rng(text).permutation([1, 3, 5]), strict=True)
        )
        for order in ("abc", "acb", "bac", "bca", "cab", "cba"):
            for place, criterion in enumerate(order, start=1):
                score = answer(own, order, place)
                rows.append(
                    {
                        "template": "criteria",
                        "design": "balanced",
                        "item_id": f"t{text}",
                        "criterion": criterion,
                        "criterion_position": place,
                        "score": score,
                        "request_id": f"t{text}/{order}",
                        "cluster_id": f"t{text}",
                        "expected_score": float(score),
                        "label_mass": 1.0,
                        **{f"probability_{k}": float(k == score) for k in range(1, 6)},
                    }
                )
    return pd.DataFrame(rows)


JUDGES = {
    "repeats": lambda own, order, place: own[order[0]],
    "keeps its own": lambda own, order, place: own[order[place - 1]],
    "counts": lambda own, order, place: place,
}


@pytest.fixture
def read(monkeypatch):
    def reads(name):
        frame = recorded(JUDGES[name])
        monkeypatch.setattr(first_answer.rb, "recorded", lambda *_: frame)
        return first_answer.reads("judge", "planted")

    return reads


def share_of(found):
    table = first_answer.shares(found)
    return table[table["place"] == 0].set_index("quantity")["share"]


def test_a_judge_that_repeats_its_first_score_is_told_from_one_that_keeps_its_own(read):
    repeating, keeping = (share_of(read(name)) for name in ("repeats", "keeps its own"))
    assert repeating["repeats"] == keeping["own"] == 1
    assert repeating["own"] == keeping["repeats"] == 0
    # These judges are certain, so nothing is nearly tied,
    # and the first score gains all or nothing.
    assert repeating["near ties"] == keeping["near ties"] == 0
    assert repeating["own, asked first"] == repeating["first, later"] == 1
    assert repeating["first, asked first"] == keeping["first, later"] == 0


def test_the_first_answer_is_told_from_the_previous_one(monkeypatch):
    """Every answer but the first and the third repeats the one before it."""

    def answer(own, order, place):
        return own[order[0]] if place == 1 else own[order[1]]

    monkeypatch.setattr(first_answer.rb, "recorded", lambda *_: recorded(answer))
    found = share_of(first_answer.reads("judge", "planted"))
    assert (found["previous, not first"], found["first, not previous"]) == (1, 0)


def test_a_judge_that_counts_meets_every_position_after_a_first_1(read):
    shares = share_of(read("counts"))
    assert shares["counts"] == shares["counts after 1"] == 1
    assert np.isnan(shares["repeats"])  # every criterion's own score is a 1


def test_a_criterion_that_begins_with_two_scores_has_none_of_its_own(read, monkeypatch):
    frame = recorded(JUDGES["repeats"])
    torn = frame["request_id"].eq("t0/abc")
    frame.loc[torn, "score"] = 2
    monkeypatch.setattr(first_answer.rb, "recorded", lambda *_: frame)
    found = first_answer.reads("judge", "planted")
    of_a = found[(found["item_id"] == "t0") & (found["criterion"] == "a")]
    assert of_a["own"].isna().all()
    begun = found[found["request_id"].isin(["t0/abc", "t0/acb"])].groupby("request_id")
    assert (
        begun["other_first"].first() == begun["first"].first().to_numpy()[::-1]
    ).all()
    shares = share_of(found)
    assert shares["repeats, twin"] == 1
    assert shares["twin's"] == 0


def test_first_minus_later_is_zero_for_own_scores_and_not_for_copies(read):
    kept = first_answer.first_minus_later(read("keeps its own"))
    assert np.allclose(kept["score"], 0)
    counted = first_answer.first_minus_later(read("counts"))
    assert np.allclose(counted["score"], 1 - 2.5)
