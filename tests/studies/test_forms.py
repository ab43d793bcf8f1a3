"""What a prompt's form does to recorded judgments:
each statistic against another way to it.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from studies import forms
from studies.recording import read_table as recorded

CODES = ["1-2-3-4-5", "2-3-4-5-1", "3-4-5-1-2", "4-5-1-2-3", "5-1-2-3-4"]


@pytest.fixture(scope="module")
def simulated():
    """30 prompts × 4 systems × 2 criteria in three forms, with planted variances."""
    return planted(np.random.default_rng(5), 30)


def planted(rng, n_prompts, item=0.8, form=(0.0, 0.6, -0.6), both=0.5):
    rows = []
    for g in range(n_prompts):
        for system in "abcd":
            for criterion in ("x", "y"):
                truth = rng.normal(0, np.sqrt(item))
                human = truth + rng.normal(0, 0.5)
                for f, shift in enumerate(form):
                    rows.append(
                        {
                            "item_id": f"{g}/{system}/{criterion}",
                            "criterion": criterion,
                            "cluster_id": f"p{g:02d}",
                            "group_id": f"p{g:02d}/{criterion}",
                            "candidate": system,
                            "form": f"form-{f}",
                            "human": 50 + human,
                            "judge": "j",
                            "dataset": "d",
                            "score": 50 + truth + shift + rng.normal(0, np.sqrt(both)),
                        }
                    )
    return rb.judgments(pd.DataFrame(rows), scale=(0, 100))


def as_orderings(judgments):
    """Forms in the place of orderings, for the package's own two-way analysis."""
    place = judgments["template"].astype("str").astype("category").cat.codes.to_numpy()
    return judgments.assign(
        ordering=np.array(CODES)[place], ordering_index=place + 1, design="balanced"
    )


def test_the_counts_are_those_that_are_known_of_the_sets():
    status = recorded("forms_status")
    gpt = status[status["judge"] == forms.GPT]
    assert gpt[gpt["read"] == 1].groupby("form")["n"].sum().to_dict() == dict.fromkeys(
        ["rts", "altrts", "mcq", "altmcq", "stareval"], 4800
    )
    assert gpt.loc[gpt["read"] == 2, "n"].sum() == 312
    assert set(gpt["status"]) == {"ok"}
    off = status[status["status"] == "out_of_range"].groupby("judge")["n"].sum()
    assert off.to_dict() == {
        "ChatGPT": 14,
        "Beluga-13B": 173,
        "OrcaPlatypus": 203,
        "Llama-13B": 259,
        "Mistral-7B": 402,
    }
    llama = status[
        (status["judge"] == "llama-2-70b-chat-hf") & (status["status"] != "ok")
    ]
    assert llama["n"].sum() == 55
    again = recorded("forms_reask").query("against == 'asked again'")
    assert again["n_differ"].sum() == 56
    spread = recorded("forms_spread").query("judge == @forms.GPT").set_index("quantity")
    assert (spread["n_items"] == 4800).all()
    assert spread.estimate["range ≥ 2"] == pytest.approx(0.60, abs=0.005)
    means = spread.estimate[spread.index.str.startswith("mean")]
    assert (means.min(), means.max()) == pytest.approx((2.94, 4.10), abs=0.005)
    kept = (
        recorded("forms_pairs")
        .query("criterion == 'all' and quantity == 'kept'")
        .iloc[0]
    )
    assert kept["n_items"] == 4400
    assert kept[["estimate", "low", "high"]].tolist() == pytest.approx(
        [0.648, 0.625, 0.671], abs=5e-4
    )


def test_components_are_those_of_the_package_with_forms_in_the_place_of_orderings(
    simulated,
):
    found = forms.components(simulated).set_index(["criterion", "source"])
    theirs = rb.variance_components(as_orderings(simulated), by="criterion").set_index(
        "criterion"
    )
    for criterion in ("x", "y"):
        names = ["variance_item", "variance_ordering", "variance_item_ordering"]
        assert found.variance[criterion].tolist() == pytest.approx(
            theirs.loc[criterion, names].tolist()
        )
        row = found.loc[(criterion, "form")]
        for ours, name in (
            ("share", ""),
            ("share_low", "_low"),
            ("share_high", "_high"),
        ):
            assert row[ours] == pytest.approx(
                theirs.loc[criterion, f"share_ordering{name}"]
            )
    average = found.variance.unstack()[list(forms.SOURCES)].loc[["x", "y"]].mean()
    assert found.variance["mean"].tolist() == pytest.approx(average.tolist())
    assert found.share["mean"].sum() == pytest.approx(1)


@pytest.mark.slow
def test_components_recover_what_was_planted_and_intervals_hold_it():
    truth = {"item": 0.8, "form": np.var([0.0, 0.6, -0.6], ddof=1), "item × form": 0.5}
    held = []
    for seed in range(40):
        found = forms.components(planted(np.random.default_rng(seed), 20))
        row = found[found["criterion"] == "mean"].set_index("source")
        held.append([row.low[s] <= t <= row.high[s] for s, t in truth.items()])
    share = np.mean(held, axis=0)
    # 40 draws of a rate of .95: below .80 one in ten thousand
    assert (share >= 0.80).all()
    assert not np.mean(held) < 0.88


def test_agreement_and_contrasts_are_those_of_the_package(simulated):
    found, contrasts = forms.agreement(simulated, simulated.rated)
    theirs = rb.agreement(simulated, simulated.rated, by="template").set_index(
        "template"
    )
    mine = found[found["criterion"] == "mean"].set_index("form")
    for form in ("form-0", "form-1", "form-2"):
        names = ["r_macro", "r_macro_low", "r_macro_high"]
        assert mine.loc[form, ["r", "low", "high"]].tolist() == pytest.approx(
            theirs.loc[form, names].tolist()
        )
    # the mean of an item's reads
    over = rb.agreement(simulated, simulated.rated, by=["judge"])
    assert mine.r[forms.ALL] == pytest.approx(over.r_macro[0])
    for a, b in combinations(["form-0", "form-1", "form-2"], 2):
        row = contrasts.query("form_a == @a and form_b == @b").iloc[0]
        pair = simulated[simulated["template"].isin([a, b])]
        their = rb.strategy_contrast(pair, simulated.rated, b, a, by=[]).iloc[0]
        names = [
            "delta_r_macro",
            "delta_r_macro_low",
            "delta_r_macro_high",
            "delta_r_macro_p",
        ]
        assert row[["delta", "low", "high", "p"]].tolist() == pytest.approx(
            their[names].tolist()
        )
    assert (contrasts["p_adjusted"] >= contrasts["p"]).all()


def scores(rows, **columns):
    """A frame of judgments from (item, cluster, candidate, form, score)."""
    frame = pd.DataFrame(
        rows, columns=["item_id", "cluster_id", "candidate", "form", "score"]
    )
    frame = frame.assign(criterion="c", judge="j", dataset="d", human=1.0, **columns)
    return rb.judgments(frame, scale=(1, 5))


def test_the_spread_of_three_items_by_hand():
    values = {"a": (1, 2), "b": (3, 3), "c": (2, 5)}
    rows = [
        (i, i, "s", f, v)
        for i, two in values.items()
        for f, v in zip("xy", two, strict=True)
    ]
    found = forms.spread(scores(rows)).set_index("quantity").estimate
    assert found["range"] == pytest.approx(4 / 3)
    assert found[["range ≥ 1", "range ≥ 2", "range ≥ 3"]].tolist() == pytest.approx(
        [2 / 3, 1 / 3, 1 / 3]
    )
    assert found[["mean: x", "mean: y"]].tolist() == pytest.approx([2, 10 / 3])


def test_an_item_without_a_score_in_some_form_does_not_count():
    rows = [("a", "a", "s", "x", 1), ("a", "a", "s", "y", 2), ("b", "b", "s", "x", 5)]
    keys, x, names = forms.crossed(scores(rows))
    assert (keys["item_id"].tolist(), x.tolist(), names) == (
        ["a"],
        [[1.0, 2.0]],
        ["x", "y"],
    )


def test_ranks_count_pairs_in_the_opposite_order(simulated):
    found = forms.ranks(simulated, simulated.rated)
    pairs = found[found["form_b"] != "people"]
    assert (pairs["n_pairs"] == 6).all()  # 4 systems
    assert pairs["tau"].tolist() == pytest.approx(
        (1 - 2 * pairs["reversed"] / 6).tolist()
    )
    assert (pairs["both_sure"] <= pairs["reversed"]).all()


def test_both_forms_are_sure_where_one_turns_the_ranking_round():
    rng = np.random.default_rng(0)
    rows = [
        (f"{g}{s}", f"p{g}", s, f, 3 + sign * 0.5 * k + 0.1 * rng.normal())
        for g in range(12)
        for k, s in enumerate("ABC")
        for f, sign in (("up", 1), ("down", -1), ("up again", 1))
    ]
    judged = scores(rows)
    found = forms.ranks(judged, judged.rated).set_index(["form_a", "form_b"])
    assert found.loc[("down", "up"), ["reversed", "both_sure"]].tolist() == [3, 3]
    assert found.loc[("up", "up again"), ["reversed", "both_sure"]].tolist() == [0, 0]
    assert found.loc[("down", "up"), "tau"] == -1
    places = forms.systems(judged).pivot(index="system", columns="form", values="place")
    assert places.loc[list("ABC"), ["up", "down"]].to_numpy().tolist() == [
        [3, 1],
        [2, 2],
        [1, 3],
    ]


def test_second_reads_are_compared_with_the_first_and_with_other_forms():
    first = [(i, i, "s", f, v) for f, v in (("x", 2), ("y", 4)) for i in "abcd"]
    second = [(i, i, "s", "x", v) for i, v in zip("abcd", (2, 2, 2, 3), strict=True)]
    found = forms.reask(scores(first + second, read=[1] * 8 + [2] * 4)).set_index(
        "against"
    )
    assert found.estimate[["asked again", "y"]].tolist() == [0.25, 1.0]
    assert found.variance[["asked again", "y"]].tolist() == [0.125, 2.0]


def test_the_swap_of_five_pairs_by_hand():
    verdicts = [(1, 1, 1), (2, 2, 1), (1, 2, 1), (2, 1, 2), (1.5, 1, None)]
    rows = [
        {
            "item_id": str(k),
            "cluster_id": str(k),
            "criterion": "c",
            "ordering": order,
            "score": verdict,
            "human": human,
            "judge": "j",
            "dataset": "d",
        }
        for k, (one, two, human) in enumerate(verdicts)
        for order, verdict in (("1-2", one), ("2-1", two))
    ]
    found = forms.swapped(rb.judgments(pd.DataFrame(rows), scale=(1, 2)))
    found = found[found["criterion"] == "all"].set_index("quantity")
    parts = found.estimate[["kept", "first", "second", "tie"]]
    assert parts.tolist() == pytest.approx([0.4, 0.2, 0.2, 0.2])
    right = found.loc[found.index.str.startswith("right")]
    assert right["estimate"].tolist() == pytest.approx([0.75, 0.25, 0.5])
    assert right["n_items"].tolist() == [4, 4, 2]


def test_what_the_chapter_says_in_words_is_what_was_recorded():
    """Statements of its story that are no glued number."""
    r = recorded("forms_agreement").query("criterion == 'mean'")
    stories = r[(r["recording"] == "hanna-llm") & (r["form"] != forms.ALL)]
    worst = stories.loc[stories.groupby("judge")["r"].idxmin()]
    assert set(worst["form"]) == {"prompt-3"}
    contrasts = recorded("forms_contrasts")
    guided = contrasts.query("form_a == 'prompt-2' and form_b == 'prompt-3'")
    assert len(guided) == 5
    assert (guided["p_adjusted"] < 0.001).all()
    apart = contrasts.query(
        "judge == @forms.GPT and form_b != @forms.ALL and p_adjusted < 0.05"
    )
    assert list(zip(apart["form_a"], apart["form_b"], strict=True)) == [
        ("altmcq", "mcq"),
        ("altrts", "rts"),
    ]
    assert (contrasts.loc[contrasts["form_b"] == forms.ALL, "low"] > 0).all()
    swap = recorded("forms_pairs").pivot(
        index="criterion", columns="quantity", values=["low", "high"]
    )
    assert (
        swap.loc["relevance", ("low", "first")]
        > swap.loc["relevance", ("high", "second")]
    )
    assert (
        swap.loc["consistency", ("low", "second")]
        > swap.loc["consistency", ("high", "first")]
    )
    assert swap.loc["all", ("low", "second")] < swap.loc["all", ("high", "first")]
