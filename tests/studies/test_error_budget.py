"""What to buy: the recorded tables, and the statistics that were written for them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from studies import error_budget
from studies.forms import GPT
from studies.recording import read_table as recorded


def test_items_and_forms_are_those_of_the_chapter_on_forms():
    """There the same variances are a two-way analysis:
    what items share over candidates and all.
    """
    ours = recorded("error_budget_parts").query(f"who == '{GPT}'").groupby("criterion")
    theirs = recorded("forms_components").query(f"judge == '{GPT}'")
    for criterion, part in ours:
        v = part.set_index("source")["variance"]
        old = theirs[theirs["criterion"] == criterion].set_index("source")["variance"]
        assert v["form"] == pytest.approx(old["form"], rel=0.15)
        whole = v[["form × item", "form × candidate", "form × prompt"]].sum()
        assert whole == pytest.approx(old["item × form"], rel=0.05)


# ---- what the chapter says in words
# --------------------------------------------------------------


def test_nano_is_the_noisiest_and_reads_never_beat_prompts():
    prices = recorded("error_budget_prices").query(
        "facet == 're-read' and k == 8 and quantity == 'calls'"
    )
    calls = prices.set_index("who")
    assert calls["value"].idxmin() == "gpt-5.4-nano, T = 1"
    assert (calls["low"] > 4).all()
    haiku = calls.loc["claude-haiku-4.5", "value"]
    assert calls["value"].min() < haiku < calls.loc["gpt-5.4, T = 1", "value"]


def test_a_second_form_detects_more_than_eight_times_the_articles():
    part = recorded("error_budget_prices").query(f"who == '{GPT}'")
    squared = (
        part.assign(value=part["value"] ** 2).groupby(["quantity", "k"])["value"].mean()
    )
    floor, hundred = squared["floor"][1], squared["detectable_100"][1]
    assert squared["detectable_100"][2] < floor + (hundred - floor) / 8


def test_predictions_hold_and_those_by_texts_alone_do_not():
    held = (
        recorded("error_budget_coverage")
        .query("k == 1")
        .groupby("facet")[["held", "ignoring"]]
        .mean()
    )
    assert held["held"].between(0.93, 0.97).all()
    assert (held.loc[["form", "judge"], "ignoring"] < 0.9).all()


# ---- the statistics
# ------------------------------------------------------------------------------


def planted(rng, prompts=60, candidates=4, levels=5, prefers=0.3):
    shape = (prompts, candidates, levels)
    x = rng.normal(size=(prompts, candidates, 1)) + 0.5 * rng.normal(size=shape)
    return x + prefers * rng.normal(size=(1, candidates, levels))


def test_the_variance_of_a_difference_is_that_of_the_formula():
    rng = np.random.default_rng(1)
    sources = ["item", "form", "form × item", "form × candidate"]
    budget = (sources, np.array([[1.0], [0.2], [0.25], [0.09]]))
    predicted = error_budget.variance(budget, 2, 10)[0]
    assert predicted == pytest.approx(2 * ((1 + 0.25 / 2) / 10 + 0.09 / 2))
    gaps = []
    for _ in range(3_000):
        x = planted(rng, 10, 2, 2)
        gaps.append((x[:, 0] - x[:, 1]).mean())
    ends = stats.bootstrap(
        (np.array(gaps),), np.var, n_resamples=300, rng=rng
    ).confidence_interval
    assert ends.low * 0.95 < predicted < ends.high * 1.05


def test_planted_cells_are_covered_and_texts_alone_are_not():
    rng = np.random.default_rng(2)
    of = [
        error_budget.Cell(
            "r", f"w{i}", "c", "form", planted(rng, candidates=8, levels=12)
        )
        for i in range(4)
    ]
    found = error_budget.coverage(of, draws=300, splits=5)
    assert found["held"].mean() == pytest.approx(0.95, abs=0.04)
    assert found["ignoring"].mean() < found["held"].mean() - 0.03
    assert found["n_half"].eq(30).all()


def test_prices_are_the_formula_of_reads():
    rng = np.random.default_rng(3)
    cell = error_budget.Cell(
        "r", "w", "c", "re-read", planted(rng, 200, 3, 8, prefers=0)
    )
    found = error_budget.prices([cell]).set_index(["quantity", "k"])["value"]
    v = cell.budget().set_index("source")["variance"]
    phi = v["re-read"] / v["item"]
    assert found["calls"][8] == pytest.approx((8 + phi) / (1 + phi))
    assert found["spared"][4] == pytest.approx(1 - (1 + phi / 4) / (1 + phi))
    assert found["floor"][8] == 0


def test_a_text_that_stands_twice_is_refused():
    frame = pd.DataFrame(
        {
            "cluster_id": ["a", "a"],
            "candidate": "c",
            "criterion": "x",
            "template": "f",
            "score": [1.0, 2.0],
        }
    )
    with pytest.raises(ValueError, match="appears twice"):
        list(error_budget._by_criterion("r", "w", "form", frame, "template"))
