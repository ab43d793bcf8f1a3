"""Judges of known kind, through the real audit: what it may say of each of them.

`STUDIES` audits of each kind. A *found* that was not planted is false. Every other
sentence is one of a measure and a verdict, and must be among those that are listed as
true of the kind; the first sentence must hold nothing of what is false of it.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import binomtest

import rubricnb as rb
from rubricnb.auditing.plan import audit_requests
from rubricnb.auditing.results import findings
from rubricnb.core.permutation import decode

STUDIES, PROMPTS, TEXTS = 20, 40, 3
CRITERIA = ("tone", "depth", "logic")
COUNTED = ("position", "order", "labels", "bias", "halo", "edits", "reask")
SCALE = np.arange(1.0, 6.0)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Items of three criteria, and reads of them in every way of an audit."""
    folder = tmp_path_factory.mktemp("items")
    prompt = np.repeat(np.arange(PROMPTS), TEXTS)
    texts = pd.DataFrame(
        {
            "instruction": [f"Question {p}?" for p in prompt],
            "response": [f"Text {i} here." for i in range(len(prompt))],
            "human": 3,
        }
    )
    parts = [texts.assign(criterion=c) for c in CRITERIA]
    pd.concat(parts).to_csv(folder / "items.csv", index=False)
    levels = {k: f"Level {k}." for k in range(1, 6)}
    rubric = [
        {"rubric_id": c, "criterion": c, "definition": "Is it good?", "levels": levels}
        for c in CRITERIA
    ]
    (folder / "rubric.yml").write_text(yaml.safe_dump(rubric))
    items = rb.load("csv", path=folder / "items.csv", rubric=folder / "rubric.yml")
    requests = audit_requests(items, 1, edits=1, readout="score")[0]
    kept = ~requests["labels"].astype("str").isin(["roman"])
    few = requests[kept].reset_index(drop=True)
    few.source = items
    reads = rb.simulate(few, items, "unbiased")
    reads["key"] = [f"k{i}" for i in range(len(reads))]
    reads["row"] = pd.Index(items["item_id"].astype(str)).get_indexer(
        reads["item_id"].astype(str)
    )
    return items, reads


@cache
def shown_in(order):
    return np.array(decode(order))


@cache
def is_rotation(order):
    """Whether an order is 1 to 5 from some score on."""
    return [*decode(order)] == [*np.roll(SCALE, 1 - decode(order)[0])]


def audited(asked, judge, rng, noise=0.7, shared=0.6, log=False):
    """One audit of a judge, of new truths and new ratings of three people.

    A `log` has the answers in the five rotations, and no word of how it was asked.
    """
    items, reads = asked
    n = PROMPTS * TEXTS
    own = np.sqrt(1 - shared) * rng.standard_normal((3, n))
    quality = 3 + 1.2 * (np.sqrt(shared) * rng.standard_normal(n) + own)
    truth = np.clip(np.round(quality), 1, 5).ravel()
    raters = np.clip(np.round(truth[:, None] + rng.normal(0, noise, (3 * n, 3))), 1, 5)
    rated = items.assign(human=raters.mean(axis=1), human_ratings=[*map(tuple, raters)])
    rated.rubrics = items.rubrics
    shown = np.stack([shown_in(order) for order in reads["ordering"]])
    cells = reads.assign(truth=truth[reads["row"]], first=shown[:, 0])
    score = np.asarray(judge(cells, rng), dtype=float)
    is_lost = np.isnan(score)
    position = 1 + (shown == score[:, None]).argmax(axis=1)
    status = reads["status"].astype("object").mask(is_lost, "unparsed")
    told = reads.drop(columns="row").assign(
        score=score, status=status, position=np.where(is_lost, np.nan, position)
    )
    if not log:
        return findings([told], rated, "judge", "", {}, {}, 1)
    kept = told[told["design"].eq("balanced") & told["ordering"].map(is_rotation)]
    human = dict(zip(rated["item_id"].astype("str"), rated["human"], strict=True))
    table = kept[["item_id", "cluster_id", "criterion", "ordering", "score"]]
    table = table.astype({"item_id": "str", "cluster_id": "str", "criterion": "str"})
    table["human"] = table["item_id"].map(human)
    return rb.audit(judgments=table, scale=(1, 5))


def near(truth, rng, sd=0.8):
    return np.clip(np.round(truth + rng.normal(0, sd, len(truth))), 1, 5)


def only_where(mask, moved, usual):
    return np.where(mask, moved, usual)


def perfect(cells, rng):
    return cells["truth"]


def noisy(cells, rng):
    return near(cells["truth"], rng)


def steady(cells, rng):
    """Has errors, and the same ones whenever it is asked."""
    of_text = np.random.default_rng(int(cells["truth"].sum())).normal(
        0, 0.8, len(cells)
    )
    return np.clip(np.round(cells["truth"] + of_text[cells["row"]]), 1, 5)


def constant(cells, rng):
    return np.full(len(cells), 3.0)


def unrelated(cells, rng):
    return rng.choice(SCALE, len(cells))


def lenient(cells, rng):
    return np.minimum(5, noisy(cells, rng) + 1)


def upside_down(cells, rng):
    return 6 - noisy(cells, rng)


def likes_the_first(cells, rng):
    return only_where(rng.random(len(cells)) < 0.3, cells["first"], noisy(cells, rng))


def higher_descending(cells, rng):
    raised = np.minimum(5, noisy(cells, rng) + 1)
    return only_where(cells["design"] == "descending", raised, noisy(cells, rng))


def higher_with_letters(cells, rng):
    raised = np.minimum(5, noisy(cells, rng) + 1)
    return only_where(cells["labels"] == "letter", raised, noisy(cells, rng))


def loses_the_first(cells, rng):
    score = noisy(cells, rng)
    is_lost = (score == cells["first"]) & (rng.random(len(cells)) < 0.3)
    return only_where(is_lost, np.nan, score)


def refuses(cells, rng):
    return only_where(rng.random(len(cells)) < 0.26, np.nan, noisy(cells, rng))


def loses_low_scores(cells, rng):
    score = noisy(cells, rng)
    turned = (cells["labels"] == "letter") | (cells["design"] == "descending")
    is_lost = turned & (score < 3) & (rng.random(len(cells)) < 0.5)
    return only_where(is_lost, np.nan, score)


def mostly_four(cells, rng):
    return only_where(rng.random(len(cells)) < 0.9, 4.0, noisy(cells, rng))


CALM, ANY = "inconclusive, not found", "inconclusive, not found, negligible, found"
GOOD = "strong, moderate, inconclusive"
SOUND = {
    "parsed": "shown",
    "agreement": GOOD,
    "kappa": GOOD,
    "ceiling": "measured",
    "calibration": "measured",
    "bias": f"{CALM}, negligible",
    "discrimination": GOOD,
    "halo": CALM,
    "edits": f"{CALM}, found",
    "reask": f"{CALM}, found",
    "position": f"{CALM}, negligible",
    "order": f"{CALM}, negligible",
    "labels": f"{CALM}, negligible",
}
"""Verdicts that may be said of a judge that reads its texts, with or without noise."""
STEADY = {"edits": CALM, "reask": CALM}
POOR = dict.fromkeys(("agreement", "kappa", "discrimination"), "weak, inconclusive")
FAILS = dict.fromkeys(("agreement", "kappa", "discrimination"), "fails")
OPEN = dict.fromkeys(("position", "order", "labels"), "inconclusive")
MOVED = "moves with nothing"
KINDS = {  # judge: what is planted, what else may be said, what its sentence never says
    perfect: ((), STEADY, "changes|hardly|weak"),
    noisy: ((), {}, "hardly|weak"),
    steady: ((), STEADY, "changes|hardly|weak"),
    constant: (("bias",), {**FAILS, **STEADY, "bias": ANY}, "ranks|agrees"),
    unrelated: (("bias",), {**POOR, "bias": ANY}, "^judge ranks|agrees (strong|moder)"),
    lenient: (("bias",), {"bias": "found", "kappa": f"{GOOD}, weak"}, "lower than"),
    upside_down: (
        ("bias",),
        {"agreement": "reversed", "kappa": "reversed, weak", "bias": "inconclusive"},
        "agrees|higher than|lower than",
    ),
    likes_the_first: (
        ("position", "order", "bias"),
        {
            "position": "found",
            "order": ANY,
            "bias": ANY,
            "discrimination": f"{GOOD}, weak",
        },
        MOVED,
    ),
    higher_descending: (("order",), {"order": "found"}, f"{MOVED}|hardly"),
    higher_with_letters: (("labels",), {"labels": "found"}, f"{MOVED}|hardly"),
    loses_the_first: (
        (),
        {"parsed": "shown, weak", "position": "inconclusive"},
        f"{MOVED}|moves with position",
    ),
    refuses: (
        (),
        {**OPEN, "parsed": "weak", "discrimination": "inconclusive"},
        f"{MOVED}|judge ranks|, ranks",
    ),
    loses_low_scores: (
        (),
        {"parsed": "shown, weak", "order": "inconclusive", "labels": "inconclusive"},
        MOVED,
    ),
    mostly_four: (
        ("bias",),
        {**POOR, "discrimination": f"{GOOD}, weak", "bias": ANY},
        "agrees (strong|moder)",
    ),
}
LOGS = {  # of the five rotations: nothing was reworded, turned or renamed
    noisy: ((), {}, "reword|neutral edits|letters|descending"),
    likes_the_first: (
        ("position", "bias"),
        {"position": "found", "bias": ANY, "discrimination": f"{GOOD}, weak"},
        f"{MOVED}|reword|neutral edits|letters|descending",
    ),
    loses_the_first: (
        (),
        {"parsed": "shown, weak", "position": "inconclusive"},
        f"{MOVED}|moves with position|reword",
    ),
}
SURE = {  # planted effects that are large enough to be found in each audit
    lenient: "bias",
    likes_the_first: "position",
    higher_descending: "order",
    higher_with_letters: "labels",
}


def false_of(found, planted, more, never):
    """Effects that are found and not there, and other words that are not true."""
    rows = found.rows
    may, wrong, said = SOUND | more, set(), []
    for row in rows.to_dict("records"):
        measure, verdict = row["measure"], row["verdict"]
        if verdict in may[measure].split(", "):
            continue
        if verdict == "found" and measure in COUNTED:
            wrong |= {measure} - {*planted}
        elif not row["criterion"] or verdict not in ("weak", "inconclusive"):
            said.append(row["sentence"])
    if re.search(never, found.sentence):
        said.append(found.sentence)
    return wrong, said


@pytest.mark.slow
def test_no_verdict_is_false_and_few_effects_are_found_that_are_not_there(asked):
    tally, said = {}, []
    kinds = [(judge, False, *own) for judge, own in KINDS.items()]
    kinds += [(judge, True, *own) for judge, own in LOGS.items()]
    for number, (judge, log, *own) in enumerate(kinds):
        name = f"{judge.__name__}{', logged' * log}"
        for study in range(STUDIES):
            rng = np.random.default_rng([number, study])
            found = audited(asked, judge, rng, log=log)
            wrong, false = false_of(found, *own)
            tally[name, study] = wrong
            said += [(name, study, sentence) for sentence in false]
            if judge in SURE:
                of = found.rows.set_index("measure")["verdict"]
                assert "found" in of[[SURE[judge]]].tolist(), (name, study)
    total = sum(map(bool, tally.values()))
    low, high = binomtest(total, len(tally)).proportion_ci(method="wilson")
    print(f"false found: {total} of {len(tally)} audits [{low:.4f}, {high:.4f}]")
    print(*((key, wrong) for key, wrong in tally.items() if wrong), sep="\n")
    assert not said, said
    assert low <= 0.05
