"""Judges of known kind, through the real audit: what it may say of each of them.

`STUDIES` audits of each kind. A *found* that was not planted is false; none of its
sentences may be among those that are false of the kind.
"""

from __future__ import annotations

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
CHANGED = {"edits", "reask"}  # what a noisy judge is truly found to do
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


def audited(asked, judge, rng, noise=0.7, shared=0.6):
    """One audit of a judge, of new truths and new ratings of three people."""
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
    return findings([told], rated, "judge", "", {}, {}, 1)


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


RELATED = {"agreement": ("fails", "reversed", "weak"), "kappa": ("fails", "reversed")}
KEPT = RELATED | {"discrimination": ("fails", "weak")}
KINDS = {  # judge: what is planted, and verdicts that are false of it
    perfect: ((), KEPT),
    noisy: ((), KEPT),
    steady: ((), KEPT),
    constant: (("bias",), {"agreement": ("strong", "moderate", "reversed")}),
    unrelated: (
        ("bias",),
        {"agreement": ("strong", "moderate"), "discrimination": ("strong", "moderate")},
    ),
    lenient: (("bias",), RELATED),
    upside_down: (("bias",), {"agreement": ("strong", "moderate")}),
    likes_the_first: (("position", "order", "bias"), RELATED),
    higher_descending: (("order",), RELATED),
    higher_with_letters: (("labels",), RELATED),
    loses_the_first: ((), RELATED | {"position": ("found", "not found", "negligible")}),
    refuses: ((), RELATED | {"discrimination": ("strong", "moderate")}),
    loses_low_scores: (
        (),
        RELATED
        | {"order": ("not found", "negligible"), "labels": ("not found", "negligible")},
    ),
    mostly_four: (("bias",), {"agreement": ("strong",)}),
}
SURE = {  # planted effects that are large enough to be found in each audit
    lenient: "bias",
    likes_the_first: "position",
    higher_descending: "order",
    higher_with_letters: "labels",
}


@pytest.mark.slow
def test_no_verdict_is_false_and_few_effects_are_found_that_are_not_there(asked):
    tally, said = {}, []
    for number, (judge, (planted, false)) in enumerate(KINDS.items()):
        for study in range(STUDIES):
            found = audited(asked, judge, np.random.default_rng([number, study]))
            rows = found.rows[found.rows["criterion"] == ""]
            of = rows.groupby("measure")["verdict"].agg(set)
            wrong = {
                m
                for m in COUNTED
                if "found" in of.get(m, set()) and m not in {*planted, *CHANGED}
            }
            tally[judge.__name__, study] = bool(wrong)
            said += [
                (judge.__name__, m, v)
                for m, vs in false.items()
                for v in vs
                if v in of.get(m, set())
            ]
            if judge in SURE:
                assert "found" in of[SURE[judge]], (judge.__name__, study)
    total = sum(tally.values())
    low, high = binomtest(total, len(tally)).proportion_ci(method="wilson")
    kinds = sorted({name for (name, _), is_wrong in tally.items() if is_wrong})
    print(
        f"false found: {total} of {len(tally)} audits [{low:.3f}, {high:.3f}] {kinds}"
    )
    assert not said
    assert low <= 0.05
