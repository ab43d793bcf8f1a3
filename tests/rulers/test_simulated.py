"""The simulated grader: every weakness it is given is there, and nothing else."""

import numpy as np

import rubricnb as rb
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.grading import grade
from rubricnb.rulers.simulated import SimulatedGrader

ITEMS = rb.load("minibench")
BUNDLE = load_bundle("minibench")
EXACT = {
    "human_weight": 1,
    "severity": 0,
    "text_error": 0,
    "trait_error": 0,
    "item_error": 0,
    "holistic_error": 0,
    "difficulty": 0,
    "hedging": 1,
    "order_pull": 0,
    "invented": 0,
    "misplaced": 0,
    "short": 0,
}


def graded(methods, n_items=60, **parameters):
    items = rb.load("minibench", n_items=n_items)
    judge = SimulatedGrader(**EXACT | parameters)
    return grade(items, BUNDLE, judge, methods, store=":memory:"), items


def test_without_weaknesses_bare_scores_are_peoples():
    found, items = graded(["dhs", "mts", "autoscore"])
    human = items.set_index("item_id").human
    assert (
        found.scores.score.to_numpy() == human[found.scores.item_id].to_numpy()
    ).all()


def test_without_weaknesses_decisions_round_the_quality_and_quotes_hold():
    found, items = graded("rulers")
    human = items.set_index(["text_id", "criterion"]).human
    for row in found.decisions.itertuples():
        quality = (human[(row.text_id, row.trait)] - 1) / 4
        assert row.decision == min(2, np.floor(2 * quality + 0.5))
    assert (found.evidence.status == "verified").all()


def test_hedging_shrinks_bare_scores_and_spares_the_checklist():
    plain, _ = graded(["dhs", "rulers"])
    hedged, _ = graded(["dhs", "rulers"], hedging=0.5)
    sd = [
        f.scores.groupby("method", observed=True).score.std() for f in (plain, hedged)
    ]
    assert sd[1]["dhs"] < 0.65 * sd[0]["dhs"]
    assert sd[1]["rulers"] == sd[0]["rulers"]


def test_a_checklist_of_ones_own_adds_noise_only_if_wordings_differ_in_difficulty():
    for difficulty, same in ((0.0, True), (0.8, False)):
        found, _ = graded(["rulers", "rulers-unlocked"], difficulty=difficulty)
        by_method = found.scores.pivot(
            index="item_id", columns="method", values="score_ungated"
        )
        assert (by_method["rulers"] == by_method["rulers-unlocked"]).all() == same


def test_an_answer_hangs_on_the_seed_and_on_nothing_else_that_is_asked():
    few, more = rb.load("minibench", n_items=15), rb.load("minibench", n_items=30)
    alone, among, other = (
        grade(items, BUNDLE, SimulatedGrader(seed=seed), store=":memory:").scores
        for items, seed in ((few, 0), (more, 0), (more, 1))
    )
    merged = alone.merge(among, on="item_id", suffixes=("", "_among"))
    assert len(merged) == 15
    assert (merged.score == merged.score_among).all()
    assert (among.score != other.score).any()
    assert SimulatedGrader().identity != SimulatedGrader(seed=1).identity


def test_a_hot_compiler_words_a_checklist_anew_for_every_seed():
    for temperature, n_locks in ((1.0, 4), (0.0, 1)):
        options = {
            "name": "mine",
            "n_items": 6,
            "temperature": temperature,
            "store": ":memory:",
        }
        bundles = [
            compile_rubric(ITEMS.rubrics, SimulatedGrader(), seed=seed, **options)
            for seed in range(4)
        ]
        assert len({bundle.lock for bundle in bundles}) == n_locks


def test_a_checklist_follows_the_level_shown_first_only_if_it_is_told_to():
    means = {}
    for pull in (0.0, 0.5):
        items = rb.load("minibench", n_items=60)
        judge = SimulatedGrader(checklist_pull=pull)
        found = grade(
            items, BUNDLE, judge, design=rb.balanced(5), store=":memory:"
        ).scores
        ordering = found.ordering.astype(str)
        by_first = found.score_ungated.groupby(ordering.str[0]).mean()
        means[pull] = by_first["5"] - by_first["1"]
    assert means[0.0] == 0
    assert means[0.5] > 0.3
