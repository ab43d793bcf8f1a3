from fractions import Fraction

import pytest

from rubricnb.data import claims, identities, identities_scoring, published, verdicts


@pytest.fixture(scope="module")
def checked():
    rows = claims().query("kind == 'identity' and paper == 'scoring bias'")
    return verdicts(rows, identities.recompute(rows)).set_index("claim_id")


def test_the_statements_that_do_not_hold(checked):
    assert set(checked.index[checked.verdict == "does not replicate"]) == {
        "scoring/table-3/counts",
        "scoring/table-3/points-per-flip",
        "scoring/4.2/qwen3-8b-above/gpt-4o",
        "scoring/4.2/qwen3-8b-above/qwen3-32b",
        "scoring/4.3/size",
        "scoring/4.3/random-hurts",
        "scoring/4.3/recommended-formats",
        "scoring/4.3/reference/most",
        "scoring/4.3/reference/size",
        "scoring/4.3/reference/qwen3-8b",
        "scoring/3.3/gold/gpt-4.1",
    }
    assert not (checked.verdict == "cannot say").any()


def test_rows_that_are_no_counts_are_found_by_exact_arithmetic():
    """Every FR and MAD that some whole number of items rounds to, half up, in exact fractions."""
    size = {"BiGGen Bench": 2780, "FLASK": 2001, "MT Bench": 320, "Vicuna Bench": 320}

    def counted(printed, n, scale, digits):
        nearest = round(printed * n / scale)
        unit = Fraction(1, 10**digits)
        for count in (nearest - 1, nearest, nearest + 1):
            value = Fraction(scale * count, n)
            if (value + unit / 2) // unit * unit == Fraction(str(printed)):
                return True
        return False

    table = published("scoring_bias_stability")
    fits = sum(
        counted(r.flip_rate_pct, size[r.dataset], 100, 2) and counted(r.mad, size[r.dataset], 1, 4)
        for r in table.itertuples()
    )
    assert identities_scoring.rows_that_count_items("", "") == fits


def test_the_tables_are_claimed_as_printed():
    rows = claims().query("paper == 'scoring bias' and kind == 'claim'")
    table_3, table_4 = published("scoring_bias_stability"), published("scoring_bias_accuracy")
    for table, column, end in (
        (table_3, "flip_rate_pct", "/fr"),
        (table_3, "mad", "/mad"),
        (table_4, "spearman_rho", "/rho"),
        (table_4, "pearson_r", "/r"),
    ):
        section = "Table 3" if table is table_3 else "Table 4"
        own = rows[(rows.section == section) & rows.claim_id.str.endswith(end)]
        assert sorted(own.published) == sorted(table[column])
