"""The study of someone else's scoring probes: its tables,
their recomputation, its statistics.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies import probes
from studies.probes import as_read, entropy_bounds, mean, pearson
from studies.recording import read_table as recorded

OURS = {"gpt-4o": 0.677, "gpt-4o-mini": 0.545, "llama-3.1-70b-instruct": 0.197}
# results_closed_analysis.json of the same commit: delta_by_probe
PUBLISHED = {
    "gpt-4o-mini": [1.483, 0.488, 0.944, 0.493, 0.808],
    "gpt-4o": [1.792, 0.875, 0.705, 0.17, 0.56],
    "llama-3.1-70b-instruct": [2.019, 1.16, 0.585, 0.539, 0.733],
}


def fake(control, variants, entropy=0.5):
    """A judge's reads: five control runs and named variants, each a list of scores."""
    runs = [("control", k, run) for k, run in enumerate(control, 1)]
    cells = [*runs, *((name, 1, scores) for name, scores in variants.items())]
    return pd.DataFrame(
        {
            "item_id": f"i{n}",
            "template": name,
            "replicate": k,
            "raw": raw,
            "entropy": entropy,
        }
        for name, k, scores in cells
        for n, raw in enumerate(scores)
    )


ALL = [
    *(
        "rubric_order/reversed",
        "rubric_order/random",
        "score_id/letter",
        "score_id/descriptive",
    ),
    *("reference_answer/good", "authority/expert", "verbosity/terse"),
]


def test_the_delta_of_the_authors_is_recomputed_and_mapping_turns_the_judges_round():
    found = recorded("probes_deltas")
    for judge, printed in PUBLISHED.items():
        rows = found[found.judge == judge]
        assert rows.published.tolist() == pytest.approx(printed, abs=6e-4)
        assert rows.mapped.iloc[0] == pytest.approx(OURS[judge], abs=6e-4)
        assert rows.mapped.iloc[1:].tolist() == rows.published.iloc[1:].tolist()
    order = found[found.probe == "rubric_order"].set_index("judge")
    assert order.published.idxmax() == order.mapped.idxmin() == "llama-3.1-70b-instruct"


def test_numbers_that_others_found_in_the_same_files():
    turned = recorded("probes_changes").query("variant == 'rubric_order/reversed'")
    mapped, raw = (turned[turned.mapped == m].set_index("judge") for m in (True, False))
    for judge, shift in OURS.items():
        assert mapped.shift_own[judge] == pytest.approx(shift, abs=6e-4)
    assert raw.shift_own.round(2).tolist() == [-1.79, -1.22, -2.02]
    assert raw.mad.round(2).tolist() == [1.84, 1.48, 2.13]
    assert mapped.mad_reask.round(4).tolist() == [0.0895, 0.0334, 0.0003]
    models = recorded("probes_open")
    assert (models.as_recorded < models.mapped).sum() == 24
    assert models.median_of_variants.unique() == pytest.approx([3e-4])
    assert models.mass_high.max() == pytest.approx(0.0173)
    assert recorded("probes_plausible").impossible.sum() == 0
    assert recorded("probes_plausible").shuffled.min() > 0.1


def test_a_judge_that_obeys_has_no_shift_once_mapped_and_a_large_one_as_recorded():
    rng = np.random.default_rng(1)
    scores = rng.uniform(1, 5, 40)
    runs = [scores + rng.normal(0, 0.01, 40) for _ in range(5)]
    variants = dict.fromkeys(ALL, scores) | {"rubric_order/reversed": 6 - scores}
    found = probes.changes(fake(runs, variants)).set_index(["variant", "mapped"])
    mapped, raw = (found.loc[("rubric_order/reversed", m)] for m in (True, False))
    assert mapped["shift"] == pytest.approx(0, abs=0.01)
    assert mapped.r == pytest.approx(1, abs=1e-3)
    assert raw["shift"] == pytest.approx(np.mean(6 - 2 * scores), abs=0.01)
    assert raw.r == pytest.approx(-1, abs=1e-3)
    assert raw.mad == pytest.approx(np.abs(6 - 2 * scores).mean(), abs=0.01)


def test_a_planted_shift_is_found_beside_what_asking_again_does():
    rng = np.random.default_rng(2)
    scores = rng.uniform(2, 4, 50)
    noisy = [scores + rng.normal(0, 0.1, 50) for _ in range(6)]
    variants = dict.fromkeys(ALL, noisy[5]) | {"reference_answer/good": noisy[5] - 0.5}
    part = fake(noisy[:5], variants)
    found = probes.changes(part).set_index("variant")
    good, none = found.loc["reference_answer/good"], found.loc["authority/expert"]
    assert good.shift_low < -0.5 < good.shift_high < 0
    assert none.excess_low < 0 < none.excess_high
    again = np.mean(
        [np.abs(a - b).mean() for i, a in enumerate(noisy[:5]) for b in noisy[:i]]
    )
    assert good.mad_reask == pytest.approx(again)
    runs = probes.controls(part)
    assert runs["shift"].sum() == pytest.approx(0, abs=1e-12)
    assert (runs["mean"].round(6) == [round(x.mean(), 6) for x in noisy[:5]]).all()


@given(
    p=st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda p: sum(p) > 1e-3)
)
def test_no_distribution_lies_outside_the_bounds_of_its_entropy(p):
    p = np.array(p) / np.sum(p)
    low, high = entropy_bounds(np.array([p @ np.arange(1, 6)]))
    entropy = stats.entropy(p, base=2)
    assert low[0] - 1e-6 <= entropy <= high[0] + 1e-4


@pytest.mark.parametrize(
    ("expected", "low", "high"),
    [(1, 0, 0), (3, 0, np.log2(5)), (1.5, stats.entropy([0.875, 0.125], base=2), None)],
)
def test_the_bounds_of_entropy_where_they_are_known(expected, low, high):
    found = entropy_bounds(np.array([float(expected)]))
    assert found[0][0] == pytest.approx(low, abs=1e-9)
    if high is not None:
        assert found[1][0] == pytest.approx(high, abs=1e-4)


def test_impossible_pairs_are_counted():
    even = dict.fromkeys(ALL, (3.0, 3.5))
    # 3.5 takes two scores, 3.0 does not
    part = fake([(3.0, 3.5)] * 5, even, entropy=0.0)
    assert probes.plausible(part)["impossible"] == len(part) / 2
    assert probes.plausible(part.assign(entropy=1.0))["impossible"] == 0
    assert probes.plausible(part.assign(entropy=2.32))["impossible"] == len(part) / 2


def test_a_twin_of_the_likeliest_label_turns_the_score_the_code_returns():
    likely = {"B": 0.97, "C": 0.02, "D": 0.01}
    assert as_read(likely) == pytest.approx(0.97 * 4 + 0.02 * 3 + 0.01 * 2)
    assert as_read(likely | {" B": 1e-6}) == pytest.approx(8 / 3, abs=1e-3)
    assert as_read({" B": 1e-6} | likely) == as_read(likely)  # were it listed first


def test_interval_and_correlation_are_those_of_scipy():
    rng = np.random.default_rng(3)
    x = rng.normal(0.3, 1, 50)
    y = x + rng.normal(0, 1, 50)
    middle, low, high = mean("x", x).values()
    expected = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    # the package counts the degrees of freedom somewhat lower
    assert middle == x.mean()
    assert (low, high) == pytest.approx(expected, abs=0.02 * np.diff(expected)[0])
    r, low, high = pearson("r", x, y).values()
    assert r == pytest.approx(stats.pearsonr(x, y).statistic)
    left = [
        np.arctanh(stats.pearsonr(np.delete(x, k), np.delete(y, k))[0])
        for k in range(50)
    ]
    half = stats.t.isf(0.025, 49) * np.sqrt(49 * np.var(left))
    assert np.arctanh([low, high]) == pytest.approx(
        [np.arctanh(r) - half, np.arctanh(r) + half], abs=0.1 * half
    )
