"""Own data with two criteria and other numbers of levels than the papers' five."""

from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book
from rubricnb.book.plots import display_name
from tools.onepage import one_page

pytestmark = pytest.mark.slow

ROOT = book.find_root()
ANY_NUMBER = (
    "04_judges_and_prompts",
    "05_position_bias",
    "07_when_permutation_helps",
    "08_how_many_orderings",
)
FOUR = (
    "09_rubric_scales",
    "10_criterion_order",
    "11_rank_reversal",
    "12_temperature_and_effort",
    "A_bias_cost",
)
CASES = [*product(ANY_NUMBER, (2, 4, 10)), *product(FOUR, (4,)), ("A_bias_cost", 10)]
SMALL = {
    "05_position_bias": {"n_copies": 3},
    "08_how_many_orderings": {"n_copies": 3},
    "12_temperature_and_effort": {"studies": 2, "draws": 1},
    "A_bias_cost": {"splits": 5},
}
JUDGE = {
    "judge": "simulated:first-biased",
    "judge_options": {"seed": 1, "effort": "low"},
}


def _execute(stem, **parameters):
    return book.execute(
        stem, parameters | SMALL.get(stem, {}), root=ROOT, cell_seconds=300
    )


@pytest.mark.parametrize(("stem", "n"), CASES)
def test_a_chapter_runs_on_own_data_of_any_number_of_levels(
    stem, n, own_data, warnings_of
):
    done = _execute(stem, **JUDGE, **own_data(n))
    assert warnings_of(done) == []
    said = " ".join(
        output["data"].get("text/markdown", "")
        for cell in done.cells
        for output in cell.get("outputs", [])
        if "data" in output
    )
    assert "np." not in said
    assert (
        f"{n} levels" in said if stem == "09_rubric_scales" else "first-biased" in said
    )
    if stem == "10_criterion_order":  # two criteria, two orders
        shown = book.glued(done)
        assert shown["n-orders"]["text/plain"] == "2"
        assert "both sides give" not in shown["tab-own-contrasts"]["text/html"]
    if stem == "08_how_many_orderings":  # 2 n reads: the paper speaks of ten
        assert "two thirds" not in str(book.glued(done)["its-curve"])
        table = book.glued(done)["tab-verdicts"]["text/html"]
        rows = BeautifulSoup(table, "html.parser").select("tr")
        rows = [row.text for row in rows if "K = 1 to 10 that is" in row.text]
        assert rows
        assert all("cannot say" in row for row in rows), rows


@pytest.mark.parametrize("stem", ["10_criterion_order", "11_rank_reversal"])
def test_a_chapter_names_both_of_two_datasets(stem, mirror):
    datasets = "hanna+summeval" if stem.startswith("10") else "minibench+summeval"
    done = _execute(stem, dataset=datasets, n_items=48, judge="simulated:first-biased")
    tables = {"10_criterion_order": "tab-friedman", "11_rank_reversal": "tab-ours"}
    html = book.glued(done)[tables[stem]]["text/html"]
    shown = display_name if stem.startswith("10") else str
    assert all(shown(name) in html for name in datasets.split("+"))


def test_chapter_1_runs_on_four_levels_of_one_criterion(own_data, warnings_of):
    """Chapters 02 and 06 take no data, and 27 reads what is recorded:
    they refuse by name.
    """
    values = own_data(4) | {"judge": "simulated:first-biased"}
    rubric = Path(values["rubric"])
    rubric.write_text(yaml.safe_dump(yaml.safe_load(rubric.read_text())[:1]))
    rows = pd.read_csv(values["path"], sep=";").drop(columns="human_useful")
    rows.dropna(how="all").to_csv(values["path"], index=False)
    with pytest.raises(
        RuntimeError, match="has 4 levels and cannot be shown on 5; choose n_opt"
    ):
        _execute("01_paradigms", n_options=5, **values)
    done = _execute("01_paradigms", **values)
    assert warnings_of(done) == []
    assert "fig-01_paradigms-answers" in book.glued(done)
    assert "One criterion has no order" in one_page(done)
    with pytest.raises(
        ValueError, match="02_balanced_permutation: unknown parameter 'path'"
    ):
        _execute("02_balanced_permutation", path=values["path"])
    with pytest.raises(
        RuntimeError, match="dataset 'csv' is not recorded; there are: "
    ):
        _execute("27_results", recorded_dataset="csv")
