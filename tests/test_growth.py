"""Memory grows with the judgments, not with the square of texts,
clusters or distinct scores.
"""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.statistics.tendency import score_tendency, tendency_shift


def judged(n, clusters=None, reads=1, decimals=False):
    rng = np.random.default_rng(0)
    quality = rng.normal(size=n)
    score = np.clip(3 + quality[:, None] + rng.normal(size=(n, reads)), 1, 5)
    human = np.clip(3 + quality + rng.normal(size=n), 1, 5)
    item = np.repeat(np.arange(n), reads)
    return pd.DataFrame(
        {
            "item_id": item,
            "cluster_id": item % (clusters or n),
            "read": np.tile(np.arange(1, reads + 1), n),
            "score": score.ravel() if decimals else np.round(score.ravel()),
            "human": human[item] if decimals else np.round(human[item]),
        }
    )


def audited(n, clusters=None):
    return lambda: rb.audit(judgments=judged(n, clusters, reads=2), scale=(1, 5))


def with_people(statistic, n):
    judgments = rb.judgments(judged(n, decimals=True), scale=(1, 5))
    return lambda: statistic(judgments, judgments.rated)


def moved(n):
    both = pd.concat(
        [judged(n, decimals=True).assign(labels=k) for k in ("numeric", "letter")]
    )
    both = both.rename(columns={"read": "ordering_index"})
    return lambda: tendency_shift(both, {"labels": "numeric"})


KINDS = {
    "audit, each text its own cluster": audited,
    "audit, two clusters": lambda n: audited(n, 2),
    "agreement, decimals": lambda n: with_people(rb.agreement, n),
    "score_tendency, decimals": lambda n: with_people(score_tendency, n),
    "tendency_shift, decimals": moved,
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=[pytest.mark.slow] * k.startswith("audit")) for k in KINDS],
)
def test_twice_the_texts_take_about_twice_the_memory(kind):
    KINDS[kind](100)()  # what is loaded or compiled once does not count
    peaks = []
    for n in (1500, 3000):
        call = KINDS[kind](n)
        tracemalloc.start()
        call()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.8 * peaks[0]


def test_options_of_a_read_do_not_repeat_its_texts():
    order = "-".join(str(k) for k in range(1, 102))
    table = pd.DataFrame(np.full((400, 101), 1 / 101))
    table.columns = [f"probability_{k}" for k in range(1, 102)]
    table["ordering"] = order
    table["item_id"] = [f"item {k} of a long name" for k in range(400)]
    options = rb.option_probabilities(table)
    assert len(options) == 400 * 101
    assert options.memory_usage(deep=True).sum() < 40 * len(options)
