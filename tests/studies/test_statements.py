"""Statements of the papers, held against a judge that was recorded at full size."""

import pandas as pd
import pytest

from rubricnb.core.results import results_folder
from rubricnb.sets.papers import claims
from studies.statements import COLUMNS, RUNS, statements_of

TABLE = pd.read_csv(results_folder() / "statements.csv")


def test_the_table_has_each_statement_once_and_only_those_about_any_judge():
    assert list(TABLE.columns) == COLUMNS
    assert TABLE["claim_id"].is_unique
    said = claims().set_index("claim_id").loc[TABLE["claim_id"]]
    assert set(said["judge"]) == {""}
    assert set(said["kind"]) == {"claim"}
    assert set(said["chapter"]) <= {stem for stem, _ in RUNS}


@pytest.mark.slow
@pytest.mark.needs_data
def test_a_chapter_gives_its_rows_of_the_table_again(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    (run,) = [run for run in RUNS if run[0].startswith("10_")]
    again = statements_of(*run).set_index("claim_id")
    assert len(again) > 0
    held = TABLE.set_index("claim_id").loc[again.index]
    numbers = ["value", "low", "high"]
    assert (held["verdict"] == again["verdict"]).all()
    pd.testing.assert_frame_equal(
        held[numbers].astype(float), again[numbers].astype(float), rtol=1e-4
    )
