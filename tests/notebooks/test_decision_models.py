"""Chapter 30: its shares of changed levels and of positions against plain loops."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from cells import code_of

import rubricnb as rb


@pytest.fixture(scope="module")
def chapter():
    """The chapter's functions."""
    names = {}
    for code in code_of("30_decision_models"):
        if "import matplotlib" in code or code.lstrip().startswith("def by_text"):
            exec(code, names)
    return names


@pytest.fixture(scope="module")
def reads():
    requests = rb.plan(
        rb.load("minibench", n_items=30), rb.balanced(5), readout="logprobs"
    )
    return rb.run(requests, "simulated:first-biased", store=":memory:")


def test_changed_levels_are_counted_over_all_pairs_of_orders(chapter, reads):
    shares, prompts = chapter["changes"](reads)
    expected = {}
    for (prompt, item), own in reads.groupby(["cluster_id", "item_id"], observed=True):
        pairs = list(combinations(own.score, 2))
        expected[prompt, item] = np.mean([a != b for a, b in pairs])
    assert sorted(shares) == pytest.approx(sorted(expected.values()))
    assert set(prompts) == {prompt for prompt, _ in expected}
    assert chapter["changes"](reads.assign(score=3))[0].max() == 0


def test_the_spread_is_that_of_the_expected_score_over_orders(chapter, reads):
    spread, _ = chapter["spread"](reads)
    by_item = reads.groupby("item_id", observed=True).expected_score.std()
    assert sorted(spread) == pytest.approx(sorted(by_item), abs=1e-6)


def test_the_shares_of_positions_are_those_of_the_reads(chapter, reads):
    shares = chapter["shares"](reads)
    counted = pd.Series(reads.position).value_counts(normalize=True).sort_index()
    assert shares[:, 0] == pytest.approx(counted.to_numpy(float))
    assert shares[0, 0] == max(shares[:, 0])  # this judge prefers the first position
