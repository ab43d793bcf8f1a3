"""Chapter 30: its shares of changed levels and of positions against plain loops."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from cells import code_of

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book.notebooks import find_root
from tools.recorded import differences, names


@pytest.fixture(scope="module")
def chapter():
    """The chapter's functions."""
    names = {}
    for code in code_of("30_decision_models"):
        if "import matplotlib" in code or code.lstrip().startswith("def by_text"):
            exec(code, names)
        if code.lstrip().startswith("def named_by_position"):
            exec(code.split("numbered = (")[0], names)
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


def test_levels_named_by_position_change_where_the_name_decides(chapter, monkeypatch):
    """A model that picks a name, and one that picks a description."""
    import sparrow_decider

    items = rb.load("minibench", n_items=5)
    rubrics = items.rubrics.query("variant == 'standard' and score == 4")
    fours = set(rubrics["description"])

    class Model:
        @staticmethod
        def ask(state, questions):
            levels = questions["q"]["criteria"]
            assert [*levels] == ["0", "1", "2", "3", "4"]
            by_text = next((k for k, text in levels.items() if text in fours), None)
            return {"q": {"choice": "0" if picks_name else by_text}}

    monkeypatch.setattr(sparrow_decider.Decider, "load", lambda: Model)
    picks_name = False
    assert chapter["named_by_position"](items).tolist() == [0] * 5
    picks_name = True  # every level is first in two of the ten orders
    assert chapter["named_by_position"](items) == pytest.approx(1 - 5 / 45)


def test_the_best_level_and_the_expected_score_are_compared_in_points(chapter, reads):
    spread, _ = chapter["spread"](reads, "score")
    by_item = reads.groupby("item_id", observed=True).score.std()
    assert sorted(spread) == pytest.approx(sorted(by_item.astype(float)))


@pytest.mark.parametrize("kind", ["score", "choice"])
def test_qwen_s_share_of_changed_levels_is_what_the_page_says(kind):
    """From the files, over all pairs of orders, without the chapter's code."""
    reads = rb.recorded(
        f"qwen2.5-coder-1.5b-instruct-{kind}", "minibench", "decisions"
    ).query("design == 'balanced' and variant == 'standard'")
    shares = []
    for _, own in reads.groupby("item_id", observed=True):
        orders = [tuple(map(int, order.split("-"))) for order in own.ordering]
        assert len(set(orders)) == 10
        for place in zip(*orders, strict=True):
            assert sorted(place) == sorted([1, 2, 3, 4, 5] * 2)
        probabilities = own.filter(like="probability_").to_numpy(float)
        at = probabilities.argmax(axis=1)
        best = [order[place] for order, place in zip(orders, at, strict=True)]
        pairs = list(combinations(best, 2))
        shares.append(np.mean([one != other for one, other in pairs]))
    said = pd.read_csv(find_root() / "book" / "recorded.csv")
    said = said[said.chapter == "30_decision_models"].set_index("name").text
    assert len(shares) == int(said["n-qwen"])
    assert said[f"qwen-{kind}"].startswith(f"{100 * np.mean(shares):.0f} % ")


def test_a_repeated_request_changes_what_the_page_says():
    """From the file, without the chapter's code: two reads of each text."""
    reads = rb.recorded(
        "qwen2.5-coder-1.5b-instruct-score", "minibench", "decisions"
    ).query("design == 'fixed' and variant == 'standard'")
    by_text = reads.groupby("item_id", observed=True).score
    assert (by_text.size() == 2).all()
    said = pd.read_csv(find_root() / "book" / "recorded.csv")
    said = said[said.chapter == "30_decision_models"].set_index("name").text
    share = (by_text.nunique() > 1).mean()
    assert said["qwen-repeat"].startswith(f"{100 * share:.0f} % [")


def changed_levels(reads):
    """Of each text, the share of pairs of orders with two levels; two plain loops."""
    shares = []
    for _, own in reads.groupby("item_id", observed=True):
        pairs = list(combinations(own.score, 2))
        shares.append(np.mean([one != other for one, other in pairs]))
    return shares


@pytest.mark.slow
def test_the_whole_chapter_is_computed_from_its_recordings(warnings_of):
    """Every number that it prints, and its table of changed levels by plain loops."""
    done = book.execute("30_decision_models", root=find_root(), cell_seconds=300)
    assert warnings_of(done) == []
    assert differences("30_decision_models", done, find_root()) == []
    assert len(names("30_decision_models", find_root())) > 25
    (html,) = (
        output.data["text/html"]
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("metadata", {}).get("scrapbook", {}).get("name") == "tab-changes"
    )
    rows = [
        re.findall(r"<td[^>]*>(.*?)</td>", row)
        for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)[1:]
    ]
    shown = {(row[0], row[1]): row[2:5] for row in rows if row[1] != "prompt"}
    assert len(shown) == 6
    slugs = {
        "Sparrow": "sparrow-nano-general-v1.1",
        "microllm": "microllm-gear1-fast",
        "Qwen 1.5B": "qwen2.5-coder-1.5b-instruct",
    }
    for (who, kind), (n_items, n_orders, share) in shown.items():
        reads = rb.recorded(f"{slugs[who]}-{kind}", "minibench", "decisions").query(
            "design == 'balanced' and variant == 'standard'"
        )
        shares = changed_levels(reads)
        assert (int(n_items), int(n_orders)) == (len(shares), 10)
        assert share == f"{100 * np.mean(shares):.1f} %", (who, kind)
