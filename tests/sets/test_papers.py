from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.sets.papers import VERDICTS, claims, published, verdicts

FOLDER = Path(published.__code__.co_filename).parent / "published"


def test_the_list_names_every_table_and_each_can_be_read():
    files = {file.stem for file in FOLDER.glob("*.csv")} - {
        "index",
        "claims",
        "errata",
        "items",
    }
    assert set(published().table) == files
    for table in files:
        frame = published(table)
        assert len(frame) > 0
        assert not frame.isna().any().any(), table


def test_a_unique_beginning_is_enough():
    assert published("rank_reversal").equals(
        published("rank_reversal_2602.02219v2_table7")
    )
    with pytest.raises(ValueError, match="several tables begin with 'datasets'"):
        published("datasets")
    with pytest.raises(
        ValueError, match="there is no table 'rank_reversals'; did you mean"
    ):
        published("rank_reversals")


def test_claims_are_complete_and_unique():
    rows = claims()
    assert rows.claim_id.is_unique
    assert set(rows.kind) == {"claim", "fact", "identity", "procedure"}
    assert set(rows.relation) <= {"=", "<=", ">="}
    assert (rows.tolerance >= 0).all()
    needed = ["paper", "section", "chapter", "quantity", "recompute", "published"]
    assert not rows[needed].isna().any().any()
    assert "verdict" not in rows
    assert set(rows.source_table) - {""} <= set(published().table)


def test_a_reading_is_marked_as_one():
    """A number that the paper does not print is never shown as the paper's."""
    rows = claims()
    assert set(rows.basis) == {"printed", "reading"}
    readings = set(rows.claim_id[rows.basis == "reading"])
    ours = pd.read_csv(FOLDER / "errata.csv").query("consequence == 'reading'")
    assert set(ours.claim_id) <= readings
    words = r"\bread as|\bread:|\(read |our reading|so above 0"
    assert set(rows.claim_id[rows.quantity.str.contains(words)]) <= readings
    cells = rows[(rows.source_table != "") & (rows.kind == "claim")]
    # a sentence about the table, asked of any judge
    cells = cells[~cells.quantity.str.contains("our judge")]
    assert set(cells.basis[~cells.recompute.str.startswith("not")]) == {"printed"}


def test_a_printed_number_of_the_text_is_in_the_paper(paper_text):
    rows = claims().query("kind == 'claim' and basis == 'printed'")
    rows = rows[rows.source_table == ""]
    short = {
        "position bias v1": "v1",
        "position bias v2": "v2",
        "scoring bias": "scoring",
        "RULERS": "rulers",
    }
    words = {
        4: "four",
        0.67: "two-thirds",
        0.85: "85%",
        34.5: "30–39",
        0.5: "more than half",
        0.075: "0.07–0.08",
    }
    for row in rows.itertuples():
        said = paper_text[short[row.paper]].replace("\\", "")
        number = words.get(row.published, f"{abs(row.published):g}")
        assert number in said, row


PRINTED = [
    ("position_bias", "v2/table-2/.*/chi2", ["chi2"]),
    ("position_bias", "v2/table-2/.*/pos1", ["pos1_pct"]),
    ("position_bias", "v2/table-2/.*/pos5", ["pos5_pct"]),
    ("permutation_vs_repeat", "v1/table-2/.*/permutation", ["permutation"]),
    ("permutation_vs_repeat", "v1/table-2/.*/repeat", ["repeat"]),
    ("permutation_vs_repeat", "v1/table-2/[^/]+/[^/]+/(?:r|rho)", ["delta"]),
    ("score_position", "v1/table-5/.*", ["selected_pct"]),
    ("bias_cost", "v1/table-6/.*/cost-.*", ["cost_min_bias", "cost_default"]),
    ("bias_cost", "v1/table-6/.*/rank-.*", ["corr_rank_min_bias", "corr_rank_default"]),
    ("scales", "v2/table-4/.*", ["mean_cramers_v"]),
    ("criterion_order", "v2/table-5/.*avg-r", ["avg_r"]),
    ("criterion_order", "v2/table-5/.*mean-delta", ["mean_delta_pos"]),
    ("criterion_order", "v2/table-5/.*max-delta", ["max_delta_pos"]),
    ("criterion_order", "v2/table-5/.*significant", ["n_significant"]),
    ("criterion_abl", "v2/table-6/.*random", ["random_r"]),
    ("criterion_abl", "v2/table-6/.*fixed", ["fixed_r"]),
    ("criterion_abl", "v2/table-6/.*delta", ["delta_balanced_fixed"]),
    ("criterion_abl", "v2/table-6/.*significant", ["significant"]),
    ("scoring_bias_stability", "scoring/table-3.*/fr", ["flip_rate_pct"]),
    ("scoring_bias_stability", "scoring/table-3.*/mad", ["mad"]),
    ("scoring_bias_accuracy", "scoring/table-4/.*/rho", ["spearman_rho"]),
    ("scoring_bias_accuracy", "scoring/table-4/.*/r", ["pearson_r"]),
]


@pytest.mark.parametrize(("table", "pattern", "columns"), PRINTED)
def test_every_cell_of_a_table_is_claimed_as_printed(table, pattern, columns):
    rows = claims().query("kind == 'claim'")
    said = rows[rows.claim_id.str.fullmatch(pattern)].published
    assert sorted(said) == pytest.approx(
        sorted(published(table)[columns].to_numpy(float).ravel())
    )


def one(published=10.0, tolerance=1.0, relation="=", kind="claim", basis="printed"):
    return pd.DataFrame(
        {
            "claim_id": ["c"],
            "published": [published],
            "tolerance": [tolerance],
            "relation": [relation],
            "kind": [kind],
            "basis": [basis],
        }
    )


def verdict(claim, value, low=np.nan, high=np.nan):
    found = pd.DataFrame(
        {"claim_id": ["c"], "value": [value], "low": [low], "high": [high]}
    )
    return verdicts(claim, found).verdict[0]


@pytest.mark.parametrize(
    ("relation", "low", "high", "expected"),
    [
        ("=", 9.2, 10.9, "replicates"),
        ("=", 8.0, 10.5, "cannot say"),
        ("=", 8.0, 12.0, "cannot say"),
        ("=", 11.1, 14.0, "does not"),
        ("<=", -99, 10.9, "replicates"),
        ("<=", 10.5, 11.5, "cannot say"),
        ("<=", 11.5, 12.0, "does not"),
        (">=", 9.1, 99, "replicates"),
        (">=", 8.0, 8.9, "does not"),
    ],
)
def test_only_a_whole_interval_decides(relation, low, high, expected):
    assert verdict(one(relation=relation), (low + high) / 2, low, high) == expected


finite = st.floats(-1e6, 1e6)


@pytest.mark.in_turn
@given(finite, st.floats(0, 1e3), finite, st.floats(0, 1e3))
def test_a_narrower_interval_never_turns_one_verdict_into_its_opposite(
    p, tolerance, value, width
):
    claim = one(p, tolerance)
    wide = verdict(claim, value, value - width, value + width)
    narrow = verdict(claim, value, value - width / 2, value + width / 2)
    assert wide in ("cannot say", narrow)


def test_an_exact_value_at_the_printed_edge_counts():
    assert verdict(one(0.3, 0.1, kind="fact"), 0.1 + 0.1) == "the count holds"
    assert verdict(one(9.8, 0.1, kind="identity"), 9.9) == "the arithmetic holds"
    assert verdict(one(320, 0, kind="fact"), 318) == "the count fails"


@pytest.mark.parametrize("kind", ["identity", "fact", "procedure"])
@pytest.mark.parametrize("value", [10.0, 20.0])
def test_only_what_is_tested_on_a_judge_can_replicate(kind, value):
    said = verdict(one(kind=kind), value, value - 0.1, value + 0.1)
    assert said not in VERDICTS
    assert said.split()[-1] == ("holds" if value == 10 else "fails")


@pytest.mark.parametrize("kind", ["claim", "procedure"])
@pytest.mark.parametrize("ends", [(np.nan, np.nan), (9.9, np.nan), (np.nan, 10.1)])
def test_an_estimate_without_an_interval_decides_nothing(ends, kind):
    found = pd.DataFrame(
        {"claim_id": ["c"], "value": [10.0], "low": ends[:1], "high": ends[1:]}
    )
    out = verdicts(one(kind=kind), found).iloc[0]
    assert (out.verdict, out.reason) == ("cannot say", "no interval")


def test_a_reading_fails_only_as_we_read_it():
    assert verdict(one(kind="fact", basis="reading"), 20) == (
        "the count fails, as we read it"
    )


def test_what_was_not_measured_cannot_be_said():
    out = verdicts(claims("03"), pd.DataFrame({"claim_id": [], "value": []}))
    assert set(out.verdict) == {VERDICTS[2]}
    assert set(out.reason) >= {"not measured here", "needs hanna"}
    cells = verdicts(
        claims("A"), pd.DataFrame({"claim_id": [], "value": []})
    ).set_index("claim_id")
    assert cells.reason["v1/table-4/gpt-4.1/hanna/r"] == "needs GPT-4.1 on hanna"
    assert verdict(one(), np.nan) == "cannot say"


def test_found_must_be_about_the_claims():
    with pytest.raises(ValueError, match="there is no claim 'd'"):
        verdicts(one(), pd.DataFrame({"claim_id": ["d"], "value": [1.0]}))
    with pytest.raises(ValueError, match="not unique"):
        verdicts(one(), pd.DataFrame({"claim_id": ["c", "c"], "value": [1.0, 2.0]}))
