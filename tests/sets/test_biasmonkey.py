"""Questionnaires that models filled in: what the public files hold,
and what they do not say.
"""

import numpy as np
import pandas as pd
import pytest

from rubricnb.sets.others import biasmonkey
from rubricnb.sets.others.biasmonkey import FOLDER, answers

EDITS = list(biasmonkey.EDITS)


@pytest.fixture
def prompts(mirror):
    return lambda edit: pd.read_csv(
        mirror / FOLDER / f"prompts/response_order{edit and f'-{edit}'}.csv"
    ).set_index("key")


@pytest.fixture
def file(mirror):
    return lambda model, edit="": (
        mirror / FOLDER / f"results/{model}/csv/response_order{edit and f'-{edit}'}.csv"
    )


@pytest.fixture
def write(tmp_path):
    def write(**columns):
        rows = {
            "key": "Q_W1",
            "response": "a",
            "group": "orig alpha",
            "num_options": 3,
        } | columns
        path = tmp_path / "answers.csv"
        pd.DataFrame(rows).to_csv(path, index=False)
        return path

    return write


def options(prompt):
    """The options of a prompt, as they run down the page,
    and what stands before them.
    """
    stem, *lines = (
        prompt.split("\nA. ")[0],
        *("A. " + prompt.split("\nA. ")[1]).split("\n"),
    )
    return stem, [line.split(". ", 1)[1] for line in lines]


def test_the_other_order_is_the_exact_reverse_of_the_first(prompts):
    for first, other in prompts("")[["orig alpha", "reversed alpha"]].itertuples(
        index=False
    ):
        stem, shown = options(first)
        assert options(other) == (stem, shown[::-1])


def test_in_files_of_edits_the_reversed_group_is_edited_and_not_reversed(prompts):
    plain = prompts("")["orig alpha"]
    for edit in EDITS:
        table = prompts(edit).loc[plain.index]
        assert (table["orig alpha"] == plain).all()  # asked again
        for before, after in zip(plain, table["reversed alpha"], strict=True):
            assert options(after)[1] == options(before)[1]
        assert (table["reversed alpha"] == plain).sum() == (
            10 if edit == "key_typo" else 0
        )


def test_answers_in_the_other_order_have_their_letters_mapped_back(prompts, file):
    """Where nearly all answers agree in both orders,
    they agree as options and not as letters.
    """
    table = answers(file("gpt-3.5-turbo"))
    mean = table.groupby(["item_id", "group"])["score"].mean().unstack()
    n = table.groupby("item_id")["n"].first()
    sure = (mean["orig alpha"] < 1.05) | (mean["orig alpha"] > n - 0.05)
    assert sure.sum() > 30
    same, turned = mean["reversed alpha"], n + 1 - mean["reversed alpha"]
    off = (abs(same - mean["orig alpha"]), abs(turned - mean["orig alpha"]))
    assert (off[0] < off[1])[sure].mean() > 0.9


@pytest.mark.in_turn
@pytest.mark.parametrize("edit", ["", *EDITS])
def test_answers_that_slipped_are_not_scores(file, edit):
    for model in biasmonkey.MODELS:
        table = answers(file(model, edit))
        lost = model == "llama2-70b" and edit != ""
        assert set(table["status"]) == {"unparsed" if lost else "ok"}
        assert table["score"].isna().all() if lost else table["score"].notna().all()
        assert (table["reason"] != "").all() == lost
        assert len(table) == 27_100  # none is dropped


@pytest.mark.in_turn
def test_two_names_of_one_model_are_read_once(file):
    """The distance of their answers is that of two draws,
    in every arm; no other pair's is.
    """

    def counts(model, edit):
        table = answers(file(model, edit))
        return table.groupby(["item_id", "group", "score"]).size().unstack(fill_value=0)

    def distance(one, other):
        """Unbiased: two samples of 50 from the same shares have 0 on average."""
        total = 0.0
        for edit in ("", *EDITS):
            a, b = (counts(model, edit).to_numpy(float) for model in (one, other))
            noise = sum((x * (50 - x)).sum(axis=1) / 50 / 49 for x in (a, b))
            total += (((a - b) ** 2).sum(axis=1) / 50**2 - noise / 50).mean() / 4
        return total

    assert abs(distance("llama2-7b-chat", "llama2-13b-chat")) < 0.001
    assert distance("llama2-7b", "llama2-13b") > 0.03
    assert "llama2-13b-chat" not in biasmonkey.MODELS


@pytest.mark.parametrize("response", ["d", "", "z", "A"])
def test_an_answer_beyond_the_options_takes_the_whole_file_away(write, response):
    groups = ["orig alpha"] * 3 + ["reversed alpha"] * 3
    table = answers(write(response=["a", "b", response, "c", "a", "b"], group=groups))
    assert table["score"].isna().all()
    assert set(table["status"]) == {"unparsed"}
    assert table["reason"].str.contains("slipped").all()


@pytest.mark.parametrize(
    "groups", [["orig alpha"], ["reversed alpha"], ["orig alpha", "other"]]
)
def test_one_order_is_refused_with_the_reason(write, groups):
    with pytest.raises(ValueError, match="cannot be told from an opinion"):
        answers(write(group=groups, response=["a"] * len(groups)))


@pytest.mark.in_turn
def test_prompts_are_named_by_what_was_shown(mirror):
    frame = biasmonkey.load()
    assert frame["judge"].nunique() == 8
    assert frame.groupby("judge", observed=True).size().eq(4 * 27_100).all()
    kinds = frame.groupby(["design", "template"], observed=True).size()
    assert set(kinds.index) == {
        ("fixed", "plain"),
        ("reverse", "plain"),
        *(("placebo", form) for form in biasmonkey.EDITS.values()),
    }
    assert kinds["placebo", "typo"] == 8 * 50 * 261  # ten questions were not edited
    reads = frame[frame["design"] == "fixed"].groupby(
        ["judge", "item_id"], observed=True
    )
    assert reads["replicate"].max().value_counts().to_dict() == {
        200: 8 * 261,
        250: 8 * 10,
    }
    shown = frame[frame["status"] == "ok"]
    turned = shown["design"] == "reverse"
    place = np.where(turned, shown["n_options"] + 1 - shown["score"], shown["score"])
    assert (shown["position"] == place).all()
    assert (shown.loc[~turned, "ordering"].astype(str).str[0] == "1").all()
    assert frame["cluster_id"].nunique() == 15
