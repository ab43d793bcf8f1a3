"""Every table of ``results/recordings`` is what its study computes,
as a whole or in part.

`TABLES` says which part computes which tables; a new table must be there, or say in
`NOT_AGAIN` why it is not computed again. Parts that take minutes are slow; the others
have their turn.
"""

from functools import cache, partial
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rubricnb as rb
from rubricnb.core.results import results_folder
from studies import (
    chunks,
    error_budget,
    first_answer,
    followed,
    forms,
    full_size,
    labels,
    need_ten,
    noisy,
    one_read,
    one_routine,
    probes,
    questionnaire,
    readouts,
    replace,
    training,
    validity,
)
from studies.recording import read_table

CELL, PAIR = ["judge", "dataset"], ["judge", "dataset", "criterion"]
BUDGET = ["recording", "who", "criterion", "facet"]
TRAINED = [*CELL, "readout"]
KEYS = {
    "decision_digits": ["judge", "digit"],
    "error_budget_parts": [*BUDGET, "source"],
    "error_budget_prices": [*BUDGET, "k", "quantity"],
    "error_budget_coverage": [*BUDGET, "n", "k"],
    "first_answer_slots": ["judge", "dataset", "place"],
    "first_answer_shares": ["judge", "dataset", "quantity", "place"],
    "first_answer_gaps": ["judge", "dataset", "criterion"],
    "labels_cells": PAIR,
    "labels_share": PAIR,
    "labels_expected": ["group", "n_labels"],
    "labels_random": [*PAIR, "n_labels"],
    "labels_plans": [*PAIR, "plan", "about"],
    "labels_systems": [*PAIR, "per_system", "prompts"],
    "labels_forms": ["form"],
    "labels_lost": PAIR,
    "replace_lost": ["judge"],
    "need_ten_recorded": [*CELL, "readout", "pilot"],
    "need_ten_votes": [*CELL, "lead", "most"],
    "need_ten_directions": [*CELL, "readout"],
    "need_ten_pairs": [*CELL, "reads", "than"],
    "one_read_agreement": [*CELL, "quantity"],
    "one_read_corrections": [*CELL, "way"],
    "one_read_systems": [*CELL, "orders"],
    "one_read_shared": [*CELL, "quantity"],
    "questionnaire_groups": ["model", "fraction"],
    "questionnaire_single": ["model"],
    "replace_judges": ["judge", "criterion"],
    "replace_labels": ["judge", "criterion"],
    "replace_epsilon": ["epsilon", "judge", "criterion"],
    "replace_panels": ["panel", "criterion", "quantity"],
    "replace_subsets": [*replace.NAMES.values()],
    "training_policies": [*TRAINED, "beta", "trained_on"],
    "training_budgets": [*TRAINED, "kl", "trained_on"],
    "training_transforms": [*TRAINED, "reward"],
    "training_best_of_n": [*TRAINED, "n"],
}
"""Tables that may be computed in part, and the columns that name a row."""

QWEN = ("qwen2.5-coder-1.5b-instruct-embedded", "minibench")


def of_forms():
    """The four cells that a small file holds; the draws have a stream of their own."""
    recording = rb.load_recording("summeval-gpt")
    once = forms.first_reads(recording[recording["judge"] == forms.GPT])
    of = list(
        error_budget._by_criterion("summeval-gpt", forms.GPT, "form", once, "template")
    )
    assert [cell.x.shape for cell in of] == [(100, 12, 5)] * 4
    return {
        "error_budget_parts": error_budget.parts(of),
        "error_budget_prices": error_budget.prices(of),
    }


@cache
def labelled():
    return labels.cells(labels.loaded())


def all_cells_of_labels():
    return {
        "labels_cells": pd.DataFrame(map(labels.described, labelled())),
        "labels_expected": labels.expectations(labelled()),
        "labels_forms": labels.forms(),
        "labels_lost": labels.losses(labels.loaded()),
    }


def drawn_labels():
    found = labels.compute(
        of=[c for c in labelled() if c.criterion in ("relevance", "empathy")]
    )
    return {
        name: table for name, table in found.items() if name in TABLES["labels, drawn"]
    }


def read_once(*cell):
    c = one_read.cell(*cell)
    return {
        "one_read_agreement": pd.DataFrame(one_read.agreement(c)),
        "one_read_corrections": pd.DataFrame(one_read.corrected(c)),
        "one_read_systems": pd.DataFrame(one_read.systems(c, c.stream(1))),
        "one_read_shared": pd.DataFrame(one_read.shared(c)),
    }


def need_ten_of_the_judge_that_reads():
    c = one_read.cell(*QWEN)
    return {
        "need_ten_recorded": need_ten.recorded_pilots([c]),
        "need_ten_votes": need_ten.recorded_decisions([c]),
        "need_ten_directions": need_ten.directions([c]),
        "need_ten_pairs": need_ten.pairs([c]),
        "need_ten_exact": need_ten.exact(),
        "need_ten_first": need_ten.first_reads(),
    }


@cache
def answered():
    return questionnaire.models(rb.load_recording("pew-order"))


def questionnaires():
    names = ("positions", "kinds", "changes", "moments", "likeness")
    return {
        f"questionnaire_{name}": getattr(questionnaire, name)(answered())
        for name in names
    }


def simulated_questionnaires():
    one = [model for model in answered() if model.name == "GPT-3.5-turbo"]
    return {
        "questionnaire_groups": questionnaire.groups(one),
        "questionnaire_single": questionnaire.single(one),
    }


@pytest.mark.in_turn
@pytest.mark.needs_data
def test_power_falls_short_because_questionnaires_reveal_unequally():
    """Calculated for each drawn questionnaire, its mean is the simulated power."""
    found = read_table("questionnaire_groups").set_index(["model", "fraction"]).found
    for model in answered():
        rng = np.random.default_rng(5)
        drawn = [questionnaire.drawn(rng, model) for _ in range(1_000)]
        for fraction in (0.1, 0.2, 0.3):
            power = np.mean([power_of(*one, fraction) for one in drawn])
            wanted = found[model.name, fraction]
            assert power == pytest.approx(wanted, abs=0.05), (model.name, fraction)


def power_of(weight, up, down, opinion, fraction):
    """Of one questionnaire: everybody answers the same questions."""
    n, taken = len(weight), questionnaire.PRIMACY / questionnaire.HURRIED * 1.5
    lean, outer = (weight[:, 0] - weight[:, 2]) / 2, (weight[:, ::2] ** 2).mean(axis=1)
    of_model = (weight * (up - down) / 2).sum(axis=1)
    own = (weight**2 * (up + down) / 2).sum(axis=1) - of_model**2
    careful = (weight**2 * opinion).sum(axis=1)
    hurried = (1 - taken) * careful + taken * outer - (taken * lean) ** 2
    quick, share = taken * lean.mean(), questionnaire.HURRIED
    people = (1 - share) * careful.sum() / n**2 + share * hurried.sum() / n**2
    people += share * (1 - share) * quick**2
    apart = of_model.mean() - share * quick
    group = (1 - fraction) * people + fraction * own.sum() / n**2
    group += fraction * (1 - fraction) * apart**2
    error = np.sqrt((group + people) / questionnaire.RESPONDENTS)
    return stats.norm.sf(1.6449 - fraction * apart / error)


def simulated_reads():
    return {
        "one_read_shapes": one_read.planted_corrections(),
        "one_read_planted": one_read.planted(),
    }


def replaced():
    judgments, items = replace.loaded()
    everyone = replace.with_panels(judgments, items)
    some = everyone[everyone["judge"].isin(["GPT-4o", replace.PANEL, replace.CONSTANT])]
    return {
        "replace_panels": replace.effective(judgments, items),
        "replace_subsets": replace.subsets(judgments, items),
        "replace_lost": replace.losses(judgments, items),
        "replace_epsilon": replace.by_epsilon(some, items),
        "replace_draws": replace.labels_drawn(everyone, items),
        "replace_judges": replace.by_judge(some, items),
        "replace_labels": replace.labels_saved(
            some[some["judge"] != replace.CONSTANT], items
        ),
    }


def trained(*cell):
    of = training.choice(*cell)
    names = ("policies", "budgets", "transforms", "best_of_n")
    return {
        f"training_{name}": pd.DataFrame(getattr(training, name)(of)) for name in names
    }


def simulated_training():
    return {
        "training_speed": training.speed(training.choice(*QWEN)),
        "training_planted": training.planted(),
    }


def followed_once():
    found = followed.compute(splits=1)
    return {name: found[name] for name in TABLES["followed"]}


def followed_often():
    return {"followed_splits": followed.compute()["followed_splits"]}


def simulated_pilots():
    return {
        "need_ten_pilots": need_ten.pilots(),
        "need_ten_decisions": need_ten.simulated_decisions(),
        "need_ten_sequential": need_ten.sequential(),
        "need_ten_skewed": need_ten.skewed(),
    }


def named(prefix, tables):
    return {f"{prefix}_{name}": table for name, table in tables.items()}


COMPUTED = {
    "error budget of five forms": of_forms,
    "labels, all cells": all_cells_of_labels,
    "one read of Qwen": partial(read_once, *QWEN),
    "one read of Gemma": partial(read_once, "gemma-3-270m-vllm", "mt-bench"),
    "need ten": need_ten_of_the_judge_that_reads,
    "probes": lambda: named("probes", probes.tables(rb.load_recording(probes.NAME))),
    "questionnaires": questionnaires,
    "chunks": chunks.compute,
    "first answer": first_answer.compute,
    "readouts": readouts.compute,
    "followed": followed_once,
    "one routine": lambda: {"one_routine": one_routine.routines()},
    "training on Qwen": partial(trained, *QWEN),
}
SLOW = {
    "forms": lambda: named("forms", forms.tables(forms.recordings())),
    "labels, drawn": drawn_labels,
    "questionnaires, simulated": simulated_questionnaires,
    "one read, simulated": simulated_reads,
    "noisy": noisy.compute,
    "replace": replaced,
    "training, simulated": simulated_training,
    "followed, all splits": followed_often,
    "need ten, simulated": simulated_pilots,
    "error budget": error_budget.compute,
    "full size": full_size.compute,
    **{
        f"training on {' '.join(c)}": partial(trained, *c)
        for c in training.CELLS
        if c != QWEN
    },
}

OF_ONE_READ = [
    f"one_read_{name}" for name in ("agreement", "corrections", "systems", "shared")
]
TRAINING = [
    f"training_{name}" for name in ("policies", "budgets", "transforms", "best_of_n")
]
TABLES = {
    "error budget of five forms": ["error_budget_parts", "error_budget_prices"],
    "labels, all cells": [
        f"labels_{name}" for name in ("cells", "expected", "forms", "lost")
    ],
    "one read of Qwen": OF_ONE_READ,
    "one read of Gemma": OF_ONE_READ,
    "need ten": [
        f"need_ten_{name}"
        for name in ("recorded", "votes", "directions", "pairs", "exact", "first")
    ],
    "questionnaires": [
        f"questionnaire_{name}"
        for name in ("positions", "kinds", "changes", "moments", "likeness")
    ],
    "questionnaires, simulated": ["questionnaire_groups", "questionnaire_single"],
    "probes": [
        f"probes_{name}"
        for name in (
            "changes",
            "controls",
            "deltas",
            "plausible",
            "labels",
            "open",
            "small",
        )
    ],
    "chunks": ["chunks_ways", "chunks_gaps"],
    "full size": [
        f"full_size_{name}"
        for name in ("05", "07", "08", "09", "10", "11", "A", "labels")
    ],
    "first answer": [f"first_answer_{name}" for name in ("slots", "shares", "gaps")],
    "readouts": [
        f"readouts_{name}" for name in ("status", "pairs", "position", "missing")
    ],
    "one routine": ["one_routine"],
    "followed": ["followed", "followed_ways", "followed_systems"],
    "forms": [
        f"forms_{name}"
        for name in (
            *(
                "status",
                "lost",
                "components",
                "spread",
                "agreement",
                "contrasts",
                "systems",
            ),
            *("ranks", "reask", "pairs"),
        )
    ],
    "labels, drawn": [
        f"labels_{name}" for name in ("cells", "random", "plans", "share", "systems")
    ],
    "noisy": [
        f"noisy_{name}"
        for name in (
            *(
                "reads",
                "means",
                "leads",
                "requests",
                "differences",
                "lost",
                "reask",
                "gpt4",
            ),
        )
    ],
    "replace": [
        f"replace_{name}"
        for name in (
            "panels",
            "subsets",
            "judges",
            "labels",
            "lost",
            "epsilon",
            "draws",
        )
    ],
    "training, simulated": ["training_speed", "training_planted"],
    "followed, all splits": ["followed_splits"],
    "need ten, simulated": [
        f"need_ten_{name}" for name in ("pilots", "decisions", "sequential", "skewed")
    ],
    "one read, simulated": ["one_read_planted", "one_read_shapes"],
    "error budget": [
        f"error_budget_{name}" for name in ("parts", "prices", "coverage")
    ],
    **{
        f"training on {' '.join(cell)}": TRAINING
        for cell in training.CELLS
        if cell != QWEN
    },
    "training on Qwen": TRAINING,
}
NOT_AGAIN = {
    "decision_digits": "answers of real servers (make test-decisions)",
    "one_read_null": "answers of a judge, which need its weights",
    "peers_agreement": "other packages, in their own environment (make test-peers)",
    "peers_position": "other packages, in their own environment (make test-peers)",
    "peers_rates": "other packages, in their own environment (make test-peers)",
}


def compare(found, name):
    """Find every row of a table, or of a part of it,
    in the file, with the same values.
    """
    kept = read_table(name)
    if name in KEYS:
        assert not found.duplicated(KEYS[name]).any()
        found, kept = (
            table.set_index(KEYS[name]).sort_index() for table in (found, kept)
        )
        kept = kept.loc[found.index]
    assert len(found) == len(kept) > 0
    for column in found:
        ours, theirs = found[column], kept[column]
        if pd.api.types.is_numeric_dtype(theirs):
            ours, theirs = (
                x.to_numpy(np.float64, na_value=np.nan) for x in (ours, theirs)
            )
            rounded = 2e-5 if name.startswith("noisy") else 1e-6
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-4, atol=rounded, err_msg=column
            )
        else:
            assert theirs.fillna("").tolist() == ours.fillna("").astype(str).tolist(), (
                column
            )


@pytest.mark.parametrize(
    "part", [*COMPUTED, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_recorded_tables_recompute(part, mirror):
    found = (COMPUTED | SLOW)[part]()
    assert {*found} == {*TABLES[part]}
    for name, table in found.items():
        compare(table, name)


def test_every_stored_table_is_computed_again_or_says_why_not():
    stored = {path.stem for path in (results_folder() / "recordings").glob("*.csv")}
    assert {*TABLES} == {*COMPUTED, *SLOW}
    assert stored == {*chain(*TABLES.values()), *NOT_AGAIN}


@pytest.mark.parametrize("name", KEYS)
def test_every_row_is_recorded_once(name):
    assert not read_table(name).duplicated(KEYS[name]).any()


def test_no_recorded_table_is_about_single_items():
    names = {path.stem for path in (results_folder() / "recordings").glob("*.csv")}
    for name in names:
        table = read_table(name)
        # all panels of eleven judges
        assert len(table) < 1_000 or name == "replace_subsets"
        assert not {"item_id", "cluster_id", "group_id", "text_id"} & set(table)


def test_the_recorded_frame_of_validity_is_what_its_tallies_say():
    folder = results_folder() / "validity"
    kept = pd.read_csv(folder / "validity.csv").query("cell == 'size/duplicated'")
    again = validity.validity(["size/duplicated"], folder=folder)
    pd.testing.assert_frame_equal(again, kept.reset_index(drop=True), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("cell", validity.cell_names())
def test_the_first_hundred_studies_of_a_cell_are_those_recorded(cell, tmp_path):
    kept = pd.read_csv(results_folder() / "validity" / f"{cell.replace('/', '-')}.csv")
    validity.validity([cell], replications=validity.PIECE, folder=tmp_path)
    [path] = tmp_path.glob("*.csv")
    first = kept[kept["piece"] == f"0-{validity.PIECE}"].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        pd.read_csv(path), first, rtol=1e-6, check_dtype=False
    )
