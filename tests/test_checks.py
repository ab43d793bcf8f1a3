"""The checks accept every right answer, refuse every wrong one, and never raise or tell."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import cohen_kappa_score

from rubricnb import checks
from rubricnb.permutation import balanced, fixed, shuffled, single, williams

COUNTS = [30, 22, 10, 18, 20]
TABLE = np.array([[0.5, 0.2, 0.3], [0.4, 0.4, 0.2], [0.2, 0.2, 0.6]])
PUBLIC = [
    f
    for name, f in inspect.getmembers(checks, inspect.isfunction)
    if not name.startswith("_") and f.__module__ == checks.__name__
]
# The arguments after the answer, for every check.
REST = {
    "is_ordering": (3,),
    "is_balanced": (),
    "carry_over": (),
    "position_of": ([3, 1, 2], 1),
    "shares": (COUNTS,),
    "chi_square": (COUNTS,),
    "cramers_v": (COUNTS,),
    "bias_cost": (TABLE, [3, 1, 2]),
    "effective_reads": (0.3, 0.1, 10),
    "averaged_r": (0.4, 0.6, 5),
    "detection": ([0.3, 0.2, 0.5], 12),
    "kappa": ([1, 2, 3, 3], [1, 2, 2, 3]),
    "stability": ([4, 3, 5], [3, 3, 4]),
    "close": (0.25,),
}


def _chi2(counts):
    expected = sum(counts) / len(counts)
    return sum((c - expected) ** 2 / expected for c in counts)


def _v(counts):
    return (_chi2(counts) / (sum(counts) * (len(counts) - 1))) ** 0.5


def _cost(table, ordering):
    n = len(table)
    return sum(abs(table[s - 1][p] - 1 / n) for p, s in enumerate(ordering))


@pytest.mark.parametrize("check", PUBLIC, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "answer",
    [..., None, "five", [], [[]], {}, float("nan"), [[1, 2], [1]], object(), [["a", "b"]], -1e300],
    ids=lambda answer: "object" if type(answer) is object else repr(answer),  # no address
)
def test_no_answer_makes_a_check_raise(check, answer):
    message = check(answer, *REST[check.__name__])
    assert message.startswith("Not answered" if answer is ... else "Not yet")


@given(st.integers(2, 10))
def test_the_package_s_designs_pass_the_checks_they_should(n):
    assert checks.is_balanced(balanced(n).orderings()).startswith("Right")
    assert checks.is_balanced(williams(n).orderings()).startswith("Right")
    assert checks.carry_over(williams(n).orderings()).startswith("Right")
    assert checks.is_balanced(fixed(n, 4).orderings()).startswith("Not yet")
    if n > 3:  # up to n = 3 the cyclic set holds every ordering, so it is carry-over-balanced
        assert checks.carry_over(balanced(n).orderings()).startswith("Not yet")


@given(st.integers(2, 7), st.integers(1, 12), st.integers(0, 5))
def test_verdicts_on_drawn_orderings_agree_with_counting_by_hand(n, k, seed):
    table = shuffled(n, k).orderings("item", seed=seed).tolist()
    at = {(o, p): sum(row[p] == o for row in table) for o in range(1, n + 1) for p in range(n)}
    before = {
        (a, b): sum(row[p : p + 2] == [a, b] for row in table for p in range(n - 1))
        for a in range(1, n + 1)
        for b in range(1, n + 1)
        if a != b
    }
    assert checks.is_balanced(table).startswith("Right") == (len(set(at.values())) == 1)
    assert checks.carry_over(table).startswith("Right") == (len(set(before.values())) == 1)


def test_the_hint_of_carry_over_names_a_pair_that_is_really_missing():
    orderings = balanced(5).orderings().tolist()
    first, second = map(
        int,
        re.search(r"(\d) never stands directly before (\d)", checks.carry_over(orderings)).groups(),
    )
    assert not any(row[p : p + 2] == [first, second] for row in orderings for p in range(4))


@pytest.mark.parametrize(
    ("bad", "word"),
    [([[1, 2, 2]], "more than once"), ([[0, 1, 2]], "count from 1"), ([[1, 2, 9]], "1 to 3")],
)
def test_what_is_no_permutation_is_told_apart(bad, word):
    assert word in checks.is_balanced(bad)
    assert word in checks.carry_over(bad)
    assert word in checks.is_ordering(bad[0], 3)


@given(st.permutations([1, 2, 3, 4, 5]), st.integers(1, 5), st.integers(1, 5))
def test_position_of_accepts_the_position_and_nothing_else(order, score, answer):
    right = single(order).orderings()[0].tolist()[answer - 1] == score
    assert checks.position_of(answer, order, score).startswith("Right") == right


@given(st.lists(st.integers(1, 500), min_size=2, max_size=9))
def test_statistics_are_accepted_when_computed_by_hand(counts):
    assert checks.chi_square(_chi2(counts), counts) == "Right."
    assert checks.cramers_v(_v(counts), counts) == "Right."
    assert checks.shares([c / sum(counts) for c in counts], counts) == "Right."


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (checks.cramers_v(_chi2(COUNTS), COUNTS), "χ²"),
        (checks.cramers_v(_v(COUNTS) ** 2, COUNTS), "Take the root"),
        (checks.cramers_v(_v(COUNTS) * 2, COUNTS), "n - 1 is missing"),
        (checks.cramers_v(_v(COUNTS) * 10**0.5, COUNTS), "reads, not items"),
        (checks.chi_square(_chi2(COUNTS) / 100, COUNTS), "counts"),
        (checks.chi_square(_v(COUNTS), COUNTS), "that is V"),
        (checks.shares([30, 22, 10, 18, 20], COUNTS), "percentages"),
        (checks.shares(np.array(COUNTS) * 2 / 200, [c * 2 for c in COUNTS]), "Right"),
        (checks.shares([0.2] * 4, COUNTS), "5 shares"),
        (checks.bias_cost(100 * _cost(TABLE, [3, 1, 2]), TABLE, [3, 1, 2]), "times 100"),
        (checks.bias_cost(_cost(TABLE.T, [3, 1, 2]), TABLE, [3, 1, 2]), "the other way"),
        (checks.bias_cost(_cost(TABLE, [3, 1, 2]), TABLE, [3, 1, 2]), "Right"),
        (checks.effective_reads(10, 0.3, 0.1, 10), "number of reads"),
        (checks.effective_reads(0.21, 0.3, 0.1, 10), "variance of the mean"),
        (checks.effective_reads(0.7, 0.3, 0.1, 10), "upside down"),
        (checks.effective_reads(2.08, 0.3, 0.1, 10), "standard deviations"),
        (checks.averaged_r(0.4 * 1.6**0.5, 0.4, 0.6, 5), "infinitely many"),
        (checks.averaged_r(0.4 * (1.6**0.5) / 1.12, 0.4, 0.6, 5), "root is missing"),
        (checks.averaged_r(0.4 / 1.12**0.5, 0.4, 0.6, 5), "started from r of one"),
        (checks.close(-0.25, 0.25), "sign"),
        (checks.close(0.0025, 0.25), "100 times too small"),
        (checks.close(0.005, 0), "Right"),
        (checks.close(0.5, 0), "too large"),
    ],
)
def test_common_slips_are_recognised(message, word):
    assert word in message


def test_a_wrong_answer_is_never_told_the_right_one():
    for value in (7.0, 0.123, -3.0):
        for check, expected in [
            (checks.chi_square, _chi2(COUNTS)),
            (checks.cramers_v, _v(COUNTS)),
        ]:
            told = check(value, COUNTS)
            assert told.startswith("Not yet")
            assert f"{expected:.2f}"[:4] not in told
        assert "0.25" not in checks.close(value, 0.25, "Look again.")


def test_the_notebook_s_hint_is_passed_on():
    assert checks.close(1, 2, "Count the reads.").endswith("Count the reads.")


@given(st.integers(2, 20), st.floats(0.05, 2), st.floats(0, 1), st.integers(0, 9))
def test_effective_reads_against_simulated_variances(k, single, ratio, seed):
    """Reads share the part `single - within`; their mean keeps it whole."""
    within = ratio * single
    covariance = np.full((k, k), single - within) + within * np.eye(k)
    of_the_mean = covariance.mean()
    assert checks.effective_reads(single / of_the_mean, single, within, k) == "Right."


@given(st.floats(0.05, 0.6), st.floats(0.1, 3), st.integers(2, 20))
def test_averaged_r_against_the_variances(r_1, phi, k):
    """Signal of variance 1 and noise φ: r falls with the sd of their sum."""
    signal = r_1 * np.sqrt(1 + phi)
    assert checks.averaged_r(signal / np.sqrt(1 + phi / k), r_1, phi, k) == "Right."
    assert checks.averaged_r(r_1, r_1, phi, 1) == "Right."


def test_detection_against_exact_sums_over_all_outcomes():
    """Two positions: the number of first positions is binomial, and larger ones sound the alarm."""
    questions, shares = 30, [0.7, 0.3]
    honest, model = (binom(questions, share) for share in (0.5, shares[0]))
    least = next(k for k in range(questions + 1) if honest.sf(k) <= 0.05)  # alarm above it
    lot = (0.05 - honest.sf(least)) / honest.pmf(least)
    found = model.sf(least) + lot * model.pmf(least)
    assert checks.detection(found, shares, questions) == "Right."
    assert "false alarms" in checks.detection(0.05, shares, questions)
    assert "you miss" in checks.detection(1 - found, shares, questions)
    assert "percentages" in checks.detection(100 * found, shares, questions)
    assert "too large" in checks.detection(found + 0.06, shares, questions)


def test_stability_tells_a_sign_an_impossible_pair_and_a_wrong_number_apart():
    before, after = [4, 3, 5, 2, 4], [3, 3, 4, 4, 4]
    assert checks.stability(..., before, after).startswith("Not answered")
    assert checks.stability([0.6, 0.8, 0.0], before, after) == "Right."
    assert "sign" in checks.stability([0.5, 1.0, 1.0], [3, 4], [3, 2])
    assert "cannot be below" in checks.stability([0.8, 0.6, 0.0], before, after)
    assert "look at shift" in checks.stability([0.6, 0.8, 0.4], before, after)
    assert "three numbers" in checks.stability([0.6, 0.8], before, after)


def test_kappa_tells_correlation_and_equal_labels_from_kappa():
    judge, people = [1, 2, 2, 3, 4, 4], [2, 3, 3, 4, 5, 4]
    kappa = cohen_kappa_score(judge, people, weights="quadratic", labels=range(1, 6))
    assert checks.kappa(..., judge, people).startswith("Not answered")
    assert checks.kappa(kappa, judge, people) == "Right."
    assert "Pearson" in checks.kappa(np.corrcoef(judge, people)[0, 1], judge, people)
    assert "share of equal" in checks.kappa(1 / 6, judge, people)
    assert "one number" in checks.kappa([1, 2], judge, people)
