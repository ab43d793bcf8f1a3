"""One recorded quantity has one value and one verdict, on whatever page it stands.

The pages draw and print the tables of results/; the tables that state a quantity of
the same judge and texts are held against each other at the digits that are printed.
"""

import re

import numpy as np
import pandas as pd
import pytest

from rubricnb.book import notebooks as book
from rubricnb.book.plots import display_name

ROOT = book.find_root()
NUMBER = re.compile(r"[+−-]?\d+(?:\.\d+)?")


def table(name):
    return pd.read_csv(ROOT / "results" / f"{name}.csv")


def short(slug):
    """As the pages call a judge, whatever engine ran it."""
    spelled = {
        "qwen2.5-coder-1.5b-instruct": "Qwen 1.5B",
        "qwen2.5-coder-0.5b-instruct": "Qwen 0.5B",
        "smollm2-135m-instruct": "SmolLM2",
        "gemma-3-270m": "Gemma 270M",
    }
    return spelled[slug.rsplit("-", 1)[0]]


def of_slugs(frame, column, quantity, where, factor=1.0):
    """Rows of a table that is keyed by slug and dataset; computed, so unrounded."""
    for row in frame.dropna(subset=column).to_dict("records"):
        value = factor * row[column]
        yield (quantity, short(row["judge"]), row["dataset"]), where, value, 1e-4


def of_names(frame, column, quantity, where):
    """Rows of a table that is keyed by the pages' names."""
    for row in frame.dropna(subset=column).to_dict("records"):
        dataset = row["dataset"].lower()
        yield (quantity, row["judge"], dataset), where, row[column], 1e-4


def of_full_size(name, column, quantity):
    """Printed cells of the processor beside the GPU: to half of the last digit."""
    names = {display_name(n): n for n in table("position").dataset.unique()}
    frame = table(f"recordings/full_size_{name}")
    for row in frame[frame.judge == "processor"].to_dict("records"):
        found = NUMBER.search(str(row[column]))
        if found:
            value = found[0].replace("−", "-")
            half = 0.5 * 10.0 ** -len(value.partition(".")[2])
            key = (quantity, "Qwen 1.5B", names[row["set"]])
            yield key, f"full size, {name}", float(value), half + 1e-4


def of_positions():
    """(quantity, judge, dataset), the table, the value and how exact it is."""
    position, held = table("position"), table("replication")
    position["v"] = np.sqrt(position.v2_unbiased.clip(lower=0))
    cold = table("temperature").query("temperature == 0 and design == 'balanced'")
    cold = cold.assign(v=np.sqrt(cold.v2_unbiased.clip(lower=0)))
    held["first"] = held.estimate / 100 + 0.2
    finding = dict(list(held.groupby("finding")))
    yield from of_slugs(position, "v", "V", "position")
    yield from of_slugs(cold, "v", "V", "temperature")
    yield from of_slugs(finding["position"], "estimate", "V", "replication")
    yield from of_full_size("05", "√V²_U", "V")
    yield from of_slugs(position, "share_1", "first, %", "position", 100)
    yield from of_slugs(finding["first"], "first", "first, %", "replication", 100)
    yield from of_full_size("05", "first position, %", "first, %")

    components = table("components")
    for value, words in (("score", "likeliest"), ("expected_score", "expected")):
        part = components[components.value == value]
        yield from of_slugs(part, "phi", f"φ, {words}", "components")
        yield from of_full_size("08", f"φ, {words} scores", f"φ, {words}")
        need = table("recordings/need_ten_recorded")
        need = need[need.readout == value.replace("_", " ")]
        need = need.drop_duplicates(["judge", "dataset"])
        yield from of_names(need, "phi", f"φ, {words}", "need ten")


def of_people_and_criteria():
    """As `of_positions`."""
    finding = dict(list(table("replication").groupby("finding")))
    agreement = table("agreement").set_index("design")
    yield from of_slugs(agreement.loc["balanced"], "r", "r of ten", "agreement")
    yield from of_full_size("07", "r, BALANCED", "r of ten")
    ten = table("recordings/need_ten_recorded").query("readout == 'score'")
    ten = ten.drop_duplicates(["judge", "dataset"])
    yield from of_names(ten, "r_ten", "r of ten", "need ten")
    one = table("recordings/one_read_agreement").query("quantity == 'A10'")
    yield from of_names(one, "value", "r of ten", "one read")
    yield from of_slugs(finding["agreement"], "estimate", "Δr", "replication")
    yield from of_full_size("07", "BALANCED − FIXED", "Δr")
    wide = agreement.reset_index().pivot(
        index=["judge", "dataset"], columns="design", values="r"
    )
    wide = (wide["balanced"] - wide["fixed"]).rename("gain").reset_index()
    yield from of_slugs(wide, "gain", "Δr", "agreement")

    gaps = table("criteria")
    gaps["beyond"] = gaps.delta_pos - gaps.delta_pos_null
    gaps = gaps.groupby(["judge", "dataset"]).beyond.max().reset_index()
    yield from of_slugs(gaps, "beyond", "criteria", "criteria")
    yield from of_slugs(finding["criteria"], "estimate", "criteria", "replication")
    yield from of_full_size("10", "largest gap beyond chance", "criteria")
    yield from of_slugs(table("counting"), "share", "counted, %", "counting", 100)
    yield from of_full_size("10", "score = position, %", "counted, %")
    cheapest = table("cost").groupby(["judge", "dataset"]).cost.min().reset_index()
    yield from of_slugs(cheapest, "cost", "least cost", "cost", 100)
    yield from of_full_size("A", "least Bias Cost × 100", "least cost")


QUANTITIES = (
    *("V", "first, %", "φ, likeliest", "φ, expected", "r of ten", "Δr", "criteria"),
    *("counted, %", "least cost"),
)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_tables_of_two_pages_state_one_value(quantity):
    found = [*of_positions(), *of_people_and_criteria()]
    found = pd.DataFrame(found, columns=["key", "where", "value", "exact"])
    found = found[[key[0] == quantity for key in found.key]]
    compared = 0
    for key, rows in found.groupby("key"):
        finest = rows.loc[rows.exact.idxmin()]
        apart = (rows.value - finest.value).abs() > rows.exact + finest.exact
        assert not apart.any(), f"{key}:\n{rows.to_string()}"
        compared += len(rows) > 1
    assert compared  # else nothing was held against anything
