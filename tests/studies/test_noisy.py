"""What others' reads say of noise: recorded tables recompute,
and each statistic has an oracle.
"""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.book import notebooks as book
from studies import noisy
from studies.intervals import ratio_row
from studies.recording import read_table as recorded

NAN = float("nan")


def drawn(n, seed, request_sd=0.0, missing=0.0):
    """Scores of one arm: a mean per response,
    noise of the request, noise of the reads.
    """
    rng = np.random.default_rng(seed)
    mean = np.random.default_rng(99).normal(5, 2, (n, 4, 1))  # of every arm
    scores = mean + rng.normal(0, request_sd, (n, 4, 1)) + rng.normal(0, 0.5, (n, 4, 8))
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores


def as_judgments(scores, judge="gpt-5.4", temperature=1.0):
    n = len(scores)
    rows = [
        (f"p{p:04}", noisy._CANDIDATES[c], r + 1, scores[p, c, r])
        for p in range(n)
        for c in range(4)
        for r in range(8)
    ]
    frame = pd.DataFrame(rows, columns=["group_id", "candidate", "replicate", "score"])
    return frame.assign(
        judge=judge,
        temperature=temperature,
        template="base",
        item_id=frame.group_id + frame.candidate,
        cluster_id=frame.group_id,
        design="fixed",
        ordering_index=frame.replicate,
        ordering="1",
        status=np.where(frame.score.isna(), "error", "ok"),
    )


@pytest.mark.slow
def test_the_chapter_computes_its_tables_anew(mirror, monkeypatch, tmp_path):
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path))  # nothing is recorded here
    executed = book.execute("19_how_noisy", {"recompute": True}, cell_seconds=300)
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    names = [
        output.get("metadata", {}).get("scrapbook", {}).get("name")
        for output in outputs
    ]
    glued = outputs[names.index("reask-count")].data
    assert "56" in str(glued)


def one(table, **where):
    rows = table
    for column, value in where.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]


def test_counts_that_others_found_in_these_files():
    reads, means = recorded("noisy_reads"), recorded("noisy_means")
    full = {"judge": "gpt-5.4"}
    moved = reads[(reads.judge == "gpt-5.4") & (reads.quantity == "moved")].set_index(
        "temperature"
    )
    assert (100 * moved.value).round().to_dict() == {0.0: 23, 0.3: 54, 0.7: 60, 1.0: 64}
    best = (
        reads[reads.quantity == "best_moved"].set_index(["judge", "temperature"]).value
    )
    assert round(100 * best["gpt-5.4", 0.0]) == 15
    assert round(100 * best["gpt-5.4", 1.0]) == 36
    assert round(100 * best["gpt-5.4-nano", 1.0]) == 79
    assert round(100 * one(reads, **full, temperature=1.0, quantity="tied").value) == 19
    single = {**full, "temperature": 1.0, "k": 1}
    assert round(100 * one(means, **single, quantity="right_split").value, 1) == 79.6
    assert 100 * one(means, **single, quantity="right_strict").value == pytest.approx(
        72.2, abs=0.06
    )
    eight = {**full, "temperature": 1.0, "k": 8}
    assert 100 * one(means, **eight, quantity="right_strict").value == pytest.approx(
        81.5, abs=0.06
    )
    again = one(recorded("noisy_reask"), form="all", quantity="differs")
    assert (again["count"], again.n_items) == (56, 312)
    three = recorded("noisy_gpt4")
    for dataset, count in {"mt-bench": 179, "vicuna": 121}.items():
        row = one(three, dataset=dataset, quantity="moved")
        assert (row["count"], row.n_items) == (count, 320)


def test_a_ratio_and_its_interval_are_those_of_a_mean_where_sizes_are_equal():
    values = np.random.default_rng(1).random(40)
    found = ratio_row(values, np.ones(40))
    mean, half = values.mean(), values.std(ddof=1) / np.sqrt(40)
    assert found["value"] == pytest.approx(mean)
    width = (found["high"] - found["low"]) / 2
    assert 1.9 * half < width < 2.2 * half


def test_pairs_of_reads_are_counted_one_by_one():
    scores = np.round(drawn(6, 2, missing=0.1))
    differ, known = noisy.read_pairs(scores)
    far, _ = noisy.read_pairs(scores, 2)
    for p in range(6):
        pairs = [
            (a, b)
            for c in range(4)
            for a, b in combinations(scores[p, c], 2)
            if not np.isnan(a + b)
        ]
        assert known[p] == len(pairs)
        assert differ[p] == sum(a != b for a, b in pairs)
        assert far[p] == sum(abs(a - b) >= 2 for a, b in pairs)


def test_moved_leaves_out_responses_with_a_missing_read():
    scores = np.full((1, 4, 8), 5.0)
    scores[0, 0, 3] = 6
    scores[0, 1, 3] = NAN
    assert [part.tolist() for part in noisy.moved(scores)] == [[1.0], [3.0]]


def test_leads_are_counted_one_by_one():
    scores = np.round(drawn(5, 3, missing=0.1))
    counts = noisy.lead_counts(scores, scores, most=3)
    expected = np.zeros_like(counts)
    for p in range(5):
        for a, b in combinations(range(4), 2):
            gaps = scores[p, a] - scores[p, b]
            for first, other in permutations(gaps[~np.isnan(gaps)], 2):
                lead = min(abs(first), 3)
                kind = 0 if first * other > 0 else 2 if first * other < 0 else 1
                expected[p, int(lead), kind if lead else int(other == 0)] += 1
    assert (counts == expected).all()
    copy = noisy.lead_counts(scores, scores.copy(), most=3)
    assert copy.sum() > counts.sum()  # another request: a read has its counterpart


def test_right_answers_and_ties():
    split, strict = noisy.right(
        np.array([[7.0, 7, 7, 1], [7, NAN, 1, 1], [2, 1, 1, 1]])
    )
    assert split.tolist() == pytest.approx([1 / 3, NAN, 1], nan_ok=True)
    assert strict.tolist() == pytest.approx([0, NAN, 1], nan_ok=True)
    # A judge that knows nothing is right in a quarter of the prompts, ties or not.
    blind = np.random.default_rng(5).integers(1, 4, (40_000, 4)).astype(float)
    assert noisy.right(blind)[0].mean() == pytest.approx(0.25, abs=0.01)


def test_means_of_reads_that_follow_one_another():
    scores = drawn(3, 7)
    means = noisy.means_of(scores, 3)
    assert np.allclose(means[:, :, 6], scores[:, :, [6, 7, 0]].mean(axis=2))
    assert np.allclose(noisy.means_of(scores, 8)[:, :, 2], scores.mean(axis=2))


def test_the_spread_is_that_of_the_package():
    judgments = as_judgments(np.round(drawn(20, 8)))
    found = one(noisy.noise(judgments), quantity="sd")
    assert found.value == pytest.approx(rb.within_item_sd(judgments).sd.iloc[0])


def test_what_lies_between_requests_is_found_and_nothing_where_there_is_nothing():
    planted = {0.0: 0.4, 0.3: 0.3, 0.7: 0.2, 1.0: 0.0}
    frames = [
        as_judgments(drawn(900, 10 + k, sd), temperature=t)
        for k, (t, sd) in enumerate(planted.items())
    ]
    table = noisy.requests(pd.concat(frames))
    for t, sd in planted.items():
        own = table[(table.temperature == t) & (table.other == t)].set_index("quantity")
        assert own.value["request"] == pytest.approx(sd**2, abs=0.02)
        assert own.value["reads"] == pytest.approx(0.25, abs=0.01)
        worth = (0.25 + sd**2) / (0.25 / 8 + sd**2)
        assert own.value["worth"] == pytest.approx(worth, rel=0.25)
    assert abs(one(table, quantity="neighbours").value) < 0.03


def test_temperature_zero_alone_lies_away_from_the_mean_of_warm_reads():
    """Of rounded draws around one value, the likeliest score lies off their mean."""
    rng = np.random.default_rng(51)
    quality = rng.normal(5, 1.5, (900, 4, 1))
    arms = {
        t: np.round(quality + rng.normal(0, 0.6, (900, 4, 8))) for t in (0.3, 0.7, 1.0)
    }
    cold = np.repeat(noisy.commonest(arms[0.3])[..., None], 8, axis=2)
    frames = [as_judgments(s, temperature=t) for t, s in ({0.0: cold} | arms).items()]
    table = (
        noisy.requests(pd.concat(frames))
        .set_index(["temperature", "other", "quantity"])
        .value
    )
    assert table[0.7, 1.0, "beyond"] == pytest.approx(0, abs=0.02)
    assert table[0.7, 1.0, "sharpened"] == pytest.approx(
        table[0.0, 1.0, "beyond"], abs=0.03
    )
    assert table[0.0, 1.0, "beyond"] > 0.05
    ties = np.array([[[1.0, 1, 2, 2, 3], [4, 4, 4, 5, 5]]])
    assert noisy.commonest(ties).tolist() == [[1.5, 4.0]]


def test_requests_that_share_their_noise_are_seen_as_neighbours():
    low, high = drawn(900, 20, 0.4), drawn(900, 21, 0.4)
    rng = np.random.default_rng(22)
    arms = {0.0: low, 0.3: low, 0.7: high, 1.0: high}
    frames = [
        as_judgments(s + rng.normal(0, 0.1, s.shape), temperature=t)
        for t, s in arms.items()
    ]
    neighbours = one(noisy.requests(pd.concat(frames)), quantity="neighbours")
    assert neighbours.value == pytest.approx(-4 * (0.4**2 + 0.5**2 / 8), rel=0.1)  # all


def test_a_difference_is_split_into_prompts_and_reads():
    rng = np.random.default_rng(30)
    gap = rng.normal(0, 1.5, (4000, 1))
    one_, other = gap + rng.normal(0, 0.6, (4000, 8)), rng.normal(0, 0.8, (4000, 8))
    between, within = (part.mean() for part in noisy.split(one_, other))
    assert between == pytest.approx(2.25, rel=0.06)
    assert within == pytest.approx(0.36 + 0.64, rel=0.03)


def test_a_lost_read_is_refused():
    judgments = as_judgments(drawn(3, 40))
    with pytest.raises(ValueError, match="prompt p0001 does not have 8 reads"):
        noisy.noise(judgments.drop(index=40))
