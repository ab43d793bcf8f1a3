import numpy as np
import pandas as pd
import pytest

from rubricnb.sets import identities
from rubricnb.sets.identities import value
from rubricnb.sets.papers import published

ITEMS = {"BiGGen Bench": 2780, "FLASK": 2001, "MT Bench": 320, "Vicuna Bench": 320}


def drawn(seed):
    """A Table 3 of counted items, printed with two and four decimals."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, n in ITEMS.items():
        for _ in range(20):
            flips = int(rng.integers(1, n // 2))
            points = flips + int(rng.integers(0, flips))
            rows.append((name, round(100 * flips / n, 2), round(points / n, 4)))
    return pd.DataFrame(rows, columns=["dataset", "flip_rate_pct", "mad"])


@pytest.mark.parametrize("seed", range(5))
def test_counted_items_are_whole_and_a_changed_digit_is_found(monkeypatch, seed):
    table = drawn(seed)
    monkeypatch.setattr(identities, "published", lambda _: table)
    assert value("values_that_count_items") == 2 * len(table)
    assert value("cells_where_mad_is_at_least_the_flip_rate") == len(table)
    # a digit is less than an item
    small = table.dataset.isin(["MT Bench", "Vicuna Bench"])
    table.loc[small.idxmax(), "mad"] += 0.001
    assert value("values_that_count_items") == 2 * len(table) - 1


def test_raised_correlations_against_a_loop():
    table = published("scoring_bias_accuracy").query("judge == 'GPT-4o'")
    keyed = {
        (r.perturbation, r.dataset): (r.spearman_rho, r.pearson_r)
        for r in table.itertuples()
    }
    human = 0
    for perturbation in (
        "Descending-Numeric",
        "Random-Numeric",
        "Letter-Grades",
        "Roman-Numerals",
    ):
        for dataset in ("BiGGen Bench", "FLASK"):
            after, before = keyed[perturbation, dataset], keyed["Baseline", dataset]
            human += sum(a > b for a, b in zip(after, before, strict=True))
    assert value("human_correlations_that_perturbations_raise", "GPT-4o") == human


def test_flips_with_a_reference_against_a_loop():
    table = published("scoring_bias_stability").query("perturbation == 'Ref-5'")
    mean = {
        judge: np.mean(
            [r.flip_rate_pct for r in table.itertuples() if r.judge == judge]
        )
        for judge in set(table.judge)
    }
    fewer = sum(value < mean["Qwen3-8B"] for value in mean.values())
    assert value("judges_that_flip_less_than_qwen3_8b_with_a_reference") == fewer
