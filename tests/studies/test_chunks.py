"""One call, some or one: a judge with one impression has a halo of 1,
and an order moves points.
"""

import numpy as np
import pandas as pd
import pytest

from studies import chunks


@pytest.fixture(scope="module")
def planted():
    """Twelve texts, three criteria in one call;
    reversing them adds a point to the first.
    """
    rng = np.random.default_rng(0)
    texts = [f"t{k}" for k in range(12)]
    items = pd.DataFrame(
        [(t, c, f"{t}/{c}") for t in texts for c in ("a", "b", "c")],
        columns=["text_id", "criterion", "item_id"],
    ).assign(human=lambda frame: rng.normal(3, 1, len(frame)), dataset="planted")
    impression = dict(zip(texts, rng.integers(1, 5, len(texts)), strict=True))
    rows = []
    for design, shift in (("fixed", 0), ("descending", 1)):
        for row in items.itertuples():
            score = impression[row.text_id] + (shift if row.criterion == "a" else 0)
            rows.append(
                {
                    "dataset": "planted",
                    "design": design,
                    "ordering_index": 1,
                    "ordering": "1-2-3",
                    "text_id": row.text_id,
                    "item_id": row.item_id,
                    "criterion": row.criterion,
                    "cluster_id": row.text_id,
                    "request_id": f"{design}/{row.text_id}",
                    "score": score,
                    "status": "ok",
                    "prompt_tokens": 100 if row.criterion == "a" else 0,
                    "completion_tokens": 5,
                }
            )
    return pd.DataFrame(rows), items


def test_one_impression_is_a_halo_of_one_and_has_no_interval(planted):
    found = chunks.cell(*planted, "score")
    assert found["halo"] == pytest.approx(1)
    assert np.isnan(found["halo_low"])
    assert found["alike"] == 1
    assert found["people_halo"] < 0.9


def test_moved_is_the_mean_change_under_the_reversed_order(planted):
    found = chunks.cell(*planted, "score")
    assert found["moved"] == pytest.approx(1 / 3)
    reads, items = planted
    alone = chunks.cell(reads[reads.design == "fixed"], items, "score")
    assert "moved" not in alone
    assert alone["reason"] == "not asked in reverse"


def test_a_call_and_its_tokens_are_counted_once(planted):
    found = chunks.cell(*planted, "score")
    assert found["calls_per_text"] == 1
    assert found["prompt_tokens"] == 100


def test_halo_is_numpys_mean_correlation(planted):
    scores = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 4)))
    upper = np.corrcoef(scores.T)[np.triu_indices(4, 1)]
    assert chunks.halo(scores) == pytest.approx(upper.mean())


def test_noise_lowers_the_halo_and_the_gap_is_the_difference_of_the_two():
    rng = np.random.default_rng(2)
    impression = rng.normal(size=40)
    one = pd.DataFrame({name: impression + 0.1 * rng.normal(size=40) for name in "abc"})
    noisy = one + rng.normal(size=one.shape)
    cluster = pd.Series(np.arange(40) // 2, one.index)
    found = chunks.halo_gap(noisy, one, cluster)
    assert found["delta_halo"] == pytest.approx(chunks.halo(noisy) - chunks.halo(one))
    assert found["delta_halo_low"] < found["delta_halo"] < found["delta_halo_high"] < 0
    assert chunks.halo_gap(one, one, cluster)["delta_halo"] == 0


def test_one_score_for_all_by_chance_is_what_permuted_texts_give():
    rng = np.random.default_rng(3)
    scores = pd.DataFrame(rng.integers(1, 4, (30, 3)), columns=list("abc"))
    drawn = [chunks.alike(scores.apply(rng.permutation)).mean() for _ in range(2000)]
    assert chunks.alike_by_chance(scores) == pytest.approx(np.mean(drawn), abs=0.005)


def test_profile_ignores_the_level_of_texts_and_criteria():
    rng = np.random.default_rng(4)
    human = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc"))
    level = pd.DataFrame(
        np.add.outer(rng.normal(size=20), [0, 5, 9]), columns=list("abc")
    )
    assert chunks.profile(human + level, human) == pytest.approx(1)
    assert chunks.profile(level - human, human) == pytest.approx(-1)
    assert np.isnan(chunks.profile(level, human))


def test_few_texts_with_different_scores_have_no_profile(planted):
    found = chunks.cell(*planted, "score")
    assert np.isnan(found["profile"])
    assert found["profile_reason"] == "0 texts differ"


def test_a_halo_gap_is_about_criteria_that_vary_in_both_ways():
    rng = np.random.default_rng(5)
    one = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    other = one.assign(c=5.0)
    found = chunks.halo_gap(other, one, pd.Series(np.arange(30), one.index))
    assert found["delta_halo"] == 0
