"""The recorded tables say what the recordings say."""

from io import StringIO

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb import rulers
from rubricnb.book.replication import COLUMNS, FINDINGS
from rubricnb.book.summary import SUMMARIES, recorded_summary
from rubricnb.core.estimates.intervals import benjamini_hochberg
from rubricnb.core.results import results_folder
from studies import replication as study
from studies.intervals import recorded_columns

EVERY = 4  # of judges and datasets: all of them take minutes


@pytest.mark.slow
def test_the_recorded_tables_are_those_of_the_recorded_judgments(
    tmp_path, monkeypatch, mirror
):
    names = ["replication.csv", *(f"{name}.csv" for name in SUMMARIES)]
    kept = {name: pd.read_csv(results_folder() / name) for name in names}
    for entry in results_folder().iterdir():
        if entry.name not in names:
            (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path))
    # asked several criteria at once
    several = ("smollm2-135m-instruct-embedded", "minibench")
    some = sorted({*list(study.real_judgments())[1::EVERY], several})
    graded = study.recorded_gradings()[::EVERY]
    monkeypatch.setattr(study, "real_judgments", lambda: some)
    monkeypatch.setattr(study, "recorded_gradings", lambda: graded)
    paths = [study.record_replication(), *study.record_summaries()]
    assert paths == [tmp_path / name for name in names]
    for path in paths:
        key = (
            ["finding", "judge", "dataset"]
            if path == paths[0]
            else ["judge", "dataset"]
        )
        # These depend on the judges that are left out here.
        found, all_of_them = (
            table.drop(columns=["p_adjusted", "verdict"] if path == paths[0] else [])
            for table in (pd.read_csv(path), kept[path.name])
        )
        wanted = all_of_them.merge(found[key].drop_duplicates())
        assert len(wanted)
        # A scale that none of them was asked on leaves no columns.
        found, wanted = (table.dropna(axis=1, how="all") for table in (found, wanted))
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-4, check_dtype=False)


@pytest.mark.parametrize(("judge", "dataset"), sorted(study.real_judgments()))
def test_a_judges_rows_are_those_of_its_recorded_judgments(judge, dataset, mirror):
    """Every pair of judge and dataset in its turn,
    so that no table stays behind its statistic.
    """
    found = study.summaries_of(judge, dataset)
    for name in SUMMARIES:
        kept = pd.read_csv(results_folder() / f"{name}.csv")
        kept = kept[(kept["judge"] == judge) & (kept["dataset"] == dataset)]
        table = recorded_columns(found.get(name, pd.DataFrame()))
        assert len(table) == len(kept), name
        if len(kept):
            # As the files are written, without columns of scales that this judge was
            # not asked on.
            table = pd.read_csv(
                StringIO(table.to_csv(index=False, float_format="%.6g"))
            )
            sides = (
                t.dropna(axis=1, how="all").reset_index(drop=True)
                for t in (table, kept)
            )
            pd.testing.assert_frame_equal(
                *sides, rtol=1e-4, check_dtype=False, obj=name
            )


def test_every_recorded_p_value_is_adjusted_over_all_judges_and_datasets():
    kept = pd.read_csv(results_folder() / "replication.csv")
    assert list(kept) == COLUMNS
    for _, rows in kept.groupby("finding"):
        assert rows["p_adjusted"].to_numpy() == pytest.approx(
            benjamini_hochberg(rows["p"]), rel=1e-4, nan_ok=True
        )


def test_every_recorded_table_is_computed():
    assert tuple(study.TABLES) == SUMMARIES


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_has_rows_of_every_judge_that_could_be_asked(name):
    table = recorded_summary(name)
    cells = set(zip(table["judge"], table["dataset"], strict=True))
    assert cells <= set(study.real_judgments())
    assert ("smollm2-135m-instruct-embedded", "minibench") in cells
    wanted = {
        "position": 1,
        "components": 2,
        "criteria": 3,
        "cost": 10,
        "temperature": 4,
    }
    rows = table.groupby(["judge", "dataset"]).size()
    assert rows.min() >= wanted.get(name, 1)


def test_a_grading_is_held_against_what_rulers_finds(capsys):
    """The simulated grader is severe and hedges:
    its calibration is worth much, its lock little.
    """
    items = rb.load("minibench")
    methods = ["rulers", "rulers-unlocked", "dhs"]
    grades = rulers.grade(
        items,
        rulers.load_bundle("minibench"),
        rb.open_judge("simulated:grader"),
        methods,
        store=":memory:",
    )
    found = study.grading_replication(grades.scores, items).set_index("finding")
    assert list(found.index) == list(FINDINGS)[6:]
    assert (found.reason == "").all()
    whole = rulers.whole_texts(grades.scores, items)
    sides = {"method": "rulers"}, {"method": "rulers", "calibration": "none"}
    by_hand = rulers.label_contrast(*whole, *sides)
    assert found.estimate["calibration"] == by_hand["difference"]
    excludes = (found.low > 0) | (found.high < 0)
    assert ((found.p < 0.05) == excludes).all()  # test and interval say the same
