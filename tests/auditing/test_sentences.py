"""Every sentence that an audit can print is printed of data that make it true.

`PLANTED` has logs and judges of known kind. From the code come the templates of all
sentences (`templates`), and each must be on the page, in the JSON or on the command's
lines of at least one of them, or among `UNPRINTED`, with the reason.
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
import yaml

import rubricnb as rb
from rubricnb.auditing import record, words
from rubricnb.auditing.drift import beside
from rubricnb.auditing.html import page
from rubricnb.auditing.plan import audit_requests
from rubricnb.auditing.results import findings
from rubricnb.auditing.terms import MEASURES
from rubricnb.core.estimates.reasons import SENTENCES
from rubricnb.engines import doubts
from rubricnb.engines.profiles import open_profile

UP = (1, 2, 3, 4, 5)
DOWN = UP[::-1]
TURNS = [tuple(np.roll(UP, -k)) for k in range(5)]
NAN = float("nan")
OWN = {
    name: name
    for name in ("design", "ordering_index", "labels", "reference_score", "template")
}


# -- data
# ------------------------------------------------------------------


def noisy(true, order, rng, sd=0.6):
    return int(np.clip(np.round(true + rng.normal(0, sd)), 1, 5))


def log(answer=noisy, orders=(UP,), n=120, per=3, seed=0, sd=0.7, true=None, **more):
    """A log of n texts, `per` of a cluster, each scored once in each of the orders.

    `answer`: of what is true, the order and a generator. `more`: columns, by the number
    of the read.
    """
    rng = np.random.default_rng(seed)
    true = rng.integers(1, 6, n) if true is None else true
    human = np.clip(np.round(true + rng.normal(0, sd, n)), 1, 5)
    table = [
        {
            "item_id": f"t{i}",
            "group_id": f"g{i // per}",
            "ordering": "-".join(map(str, order)),
            "score": answer(true[i], order, rng),
            "human": human[i],
            **{name: of[k] for name, of in more.items()},
        }
        for i in range(n)
        for k, order in enumerate(orders)
    ]
    return pd.DataFrame(table)


def simple(score, human=None, **more):
    """A log of one read of each text, each a cluster of its own."""
    names = [f"t{i}" for i in range(len(score))]
    table = pd.DataFrame({"item_id": names, "score": score, **more})
    return table if human is None else table.assign(human=human)


def audited(table, scale=(1, 5), judge=None):
    known = {name: name for name in OWN if name in table}
    return rb.audit(judge, judgments=rb.judgments(table, scale=scale, columns=known))


def lower_when_turned(true, order, rng):
    return int(np.clip(noisy(true, order, rng, 0.4) - (order[0] > order[-1]), 1, 5))


def often_first(true, order, rng):
    return order[0] if rng.random() < 0.3 else noisy(true, order, rng)


def seldom_first(true, order, rng):
    score = noisy(true, order, rng, 0.3)
    return order[1] if score == order[0] and rng.random() < 0.7 else score


def right(true, order, rng):
    return true


def lost_if(is_lost, answer=noisy):
    """Lose the answers for which `is_lost` holds of score, order and a chance."""

    def answered(true, order, rng):
        score = answer(true, order, rng)
        return NAN if is_lost(score, order, rng.random()) else score

    return answered


LOST_FIRST = lost_if(lambda score, order, u: score == order[0] and u < 0.3)
LOST_SOME = lost_if(lambda score, order, u: u < 0.2)
LOST_TURNED = lost_if(
    lambda score, order, u: order[0] > order[-1] and score < 3 and u < 0.8,
    lower_when_turned,
)
REWORDED = {"design": ["fixed", "placebo"], "ordering_index": [0, 1]}
RELABELLED = {"labels": ["numeric", "letter"]}
REFERENCES = {"reference_score": ["none", "2", "4", "5"]}


def reworded(answer=noisy, reads=1, **more):
    """A log of the plain prompt, read so often, and of a neutral edit."""
    design = ["fixed"] * reads + ["placebo"]
    table = log(answer, [UP] * (reads + 1), design=design, **more)
    table["ordering_index"] = np.where(table["design"] == "placebo", 1, 0)
    table["read"] = table.groupby(["item_id", "design"]).cumcount() + 1
    return table


def turned(answer, by=0, n=240):
    """A log of the plain prompt, a neutral edit and the descending order."""
    designs = {
        "design": ["fixed", "placebo", "descending"],
        "ordering_index": [0, 1, 0],
    }
    table = log(answer, [UP, UP, DOWN], n, **designs)
    return with_shift(table, table["design"] == "descending", by)


def with_shift(table, shifted, by=1, share=1.0):
    """Raise a share of some scores."""
    rng = np.random.default_rng(1)
    up = shifted & (rng.random(len(table)) < share)
    return table.assign(score=(table["score"] + by * up).clip(1, 5))


def probabilities(seen=True, flat=0, note=None):
    """A decision model's answers: plain and with blanks, which it may not see."""
    rng = np.random.default_rng(0)
    table = []
    for i in range(60):
        true, blur = rng.integers(1, 6), rng.normal(0, 0.4, 5)
        for k, design in enumerate(["fixed", "placebo", "placebo"]):
            logit = -0.8 * (np.array(UP) - true) ** 2 + blur
            logit = logit + 0.2 * rng.normal(size=5) * seen
            p = np.exp(logit * (i >= flat)) / np.exp(logit * (i >= flat)).sum()
            table.append(
                {
                    "item_id": f"t{i}",
                    "group_id": f"g{i // 3}",
                    "ordering": "1-2-3-4-5",
                    "design": design,
                    "ordering_index": k,
                    "score": 1 + p.argmax(),
                    "expected_score": p @ np.array(UP),
                    "human": true,
                    "server_note": note,
                    **{f"probability_{j + 1}": p[j] for j in range(5)},
                }
            )
    return pd.DataFrame(table)


def criteria(scores, reads=1, raters=3, n=120, shared=0.8):
    """A log of several criteria: name → scores, of what is true and a generator."""
    rng = np.random.default_rng(0)
    quality, parts = rng.normal(size=n), []
    for name, score in scores.items():
        own = shared * quality + np.sqrt(1 - shared**2) * rng.normal(size=n)
        true = np.clip(np.round(3 + 1.2 * own), 1, 5)
        noise = rng.normal(0, 0.7, (n, raters))
        rated = np.clip(np.round(true[:, None] + noise), 1, 5)
        for read in range(1, reads + 1):
            given = np.clip(np.round(score(true, quality, rng)), 1, 5)
            part = simple(given, group_id=np.arange(n) // 3, read=read)
            part = part.assign(criterion=name)
            for k in range(raters):
                part[f"human_{k + 1}"] = rated[:, k]
            parts.append(part)
    return pd.concat(parts)


def near(true, quality, rng):
    return true + rng.normal(0, 0.5, len(true))


def impression(true, quality, rng):
    return 3 + 1.2 * quality + rng.normal(0, 0.3, len(true))


def systems(true, scores=None, n=40):
    """Three systems that answer the same prompts."""
    rng = np.random.default_rng(0)
    k = len(true)
    true, score = np.tile(true, n), np.tile(scores or true, n)
    score = score + rng.integers(-1, 2, k * n)
    return pd.DataFrame(
        {
            "candidate": np.tile([*"abcdefgh"[:k]], n),
            "group_id": np.repeat(np.arange(n), k),
            "score": np.clip(score, 1, 5),
            "human": true,
        }
    )


def two(a, b):
    """The comparison of two audits."""
    return beside(audited(a), audited(b))


def again(table, seed, share=0.0, **more):
    """The log of a judge that answers alike, but for some answers that are lost."""
    rng = np.random.default_rng(seed)
    score = np.clip(table["score"] + rng.integers(-1, 2, len(table)), 1, 5)
    lost = (table["score"] < 3) & (rng.random(len(table)) < share)
    return table.assign(score=score.mask(lost), **more)


def clusters_alike():
    """Thirty clusters of the same six texts."""
    score, human = np.tile([1, 2, 3, 4, 5, 5], 30), np.tile([1, 3, 2, 4, 5, 4], 30)
    return simple(score, human, group_id=np.repeat(np.arange(30), 6))


def few_that_differ(n=600):
    """One text of 600 gets another score than a 4."""
    human = np.random.default_rng(0).integers(1, 6, n)
    return simple(np.r_[3, np.full(n - 1, 4)], human, group_id=np.arange(n) // 6)


def mostly_four(true, order, rng):
    return 4 if rng.random() < 0.9 else noisy(true, order, rng)


def texts(weight=None, prompts=20):
    """Items with texts and a rubric: two criteria, and two texts of each prompt."""
    rng = np.random.default_rng(0)
    prompt = np.repeat(np.arange(prompts), 2)
    table = {
        "instruction": [f"Question {p}?" for p in prompt],
        "response": [f"Text {i}" for i in range(len(prompt))],
    }
    rubric = []
    for name in ("tone", "depth"):
        table[f"human_{name}"] = rng.integers(1, 6, len(prompt))
        levels = {k: f"Level {k}." for k in UP}
        own = {
            "rubric_id": name,
            "criterion": name,
            "definition": "?",
            "levels": levels,
        }
        rubric.append(own | ({"weight": weight} if weight else {}))
    with TemporaryDirectory() as folder:
        path, rubrics = Path(folder) / "i.csv", Path(folder) / "r.yml"
        pd.DataFrame(table).to_csv(path, index=False)
        rubrics.write_text(yaml.safe_dump(rubric))
        return rb.load("csv", path=path, rubric=rubrics)


def asked(greedy=False, **changes):
    """A simulated judge, asked all that an audit asks; one that is greedy copies."""
    items = rb.load("minibench")
    judge = replace(open_profile("unbiased"), **changes)
    reads = [rb.simulate(part, items, judge) for part in audit_requests(items)]
    for part in reads if greedy else ():
        names = ["item_id", "ordering", "labels", "reference_score", "design"]
        of_placebo = part["ordering_index"].where(part["design"] == "placebo", 0)
        key = part.groupby([*names, of_placebo], observed=True).ngroup()
        part["key"] = key.astype(str)
        part["score"] = part.groupby(key)["score"].transform("first")
    return findings(reads, items, "judge", "", {}, {}, 1)


def scored(items, sd):
    """A log about items that have texts, with this error."""
    rng = np.random.default_rng(0)
    own = pd.DataFrame({name: items[name] for name in ("item_id", "criterion")})
    own["score"] = np.clip(np.round(items["human"] + rng.normal(0, sd, len(own))), 1, 5)
    return rb.audit(judgments=rb.judgments(own, items))


def both_lost():
    """Texts with a score under one label or the other, and under both none."""
    table = log(orders=[UP, UP], **RELABELLED)
    is_first = table["item_id"].str[1:].astype(int) < 60
    return table[is_first == (table["labels"] == "numeric")]


PLANTED = {
    # what moves the scores
    "two orders": lambda: audited(log(lower_when_turned, [UP, DOWN])),
    "two orders, few": lambda: audited(log(noisy, [UP, DOWN], 12, 2)),
    "two orders, alike": lambda: audited(log(right, [UP, DOWN])),
    "two orders, lost": lambda: audited(log(LOST_TURNED, [UP, DOWN])),
    "rotations": lambda: audited(log(noisy, TURNS)),
    "rotations, first": lambda: audited(log(often_first, TURNS)),
    "rotations, not first": lambda: audited(log(seldom_first, TURNS, 240)),
    "rotations, right": lambda: audited(log(right, TURNS)),
    "rotations, lost": lambda: audited(log(LOST_FIRST, TURNS)),
    "rotations, some lost": lambda: audited(log(LOST_SOME, TURNS)),
    "labels": lambda: audited(log(orders=[UP, UP], **RELABELLED)),
    "references": lambda: audited(log(orders=[UP] * 4, **REFERENCES)),
    # noise
    "reworded": lambda: audited(reworded()),
    "reworded, right": lambda: audited(reworded(right)),
    "reworded, refuses": lambda: audited(reworded(LOST_SOME, n=30, per=1)),
    # people
    "right": lambda: audited(
        simple(np.resize([0, 1], 40), np.resize([0, 1], 40)), (0, 1)
    ),
    "one exception": lambda: audited(
        simple(np.resize([0, 1], 40), np.r_[1, np.resize([1, 0], 39)]), (0, 1)
    ),
    "constant": lambda: audited(simple(np.full(60, 3), np.resize(UP, 60))),
    "unrated": lambda: audited(log().drop(columns="human")),
    "noise": lambda: audited(log(lambda t, o, r: r.integers(1, 6))),
    "upside down": lambda: audited(log(lambda t, o, r: 6 - t)),
    "lenient": lambda: audited(log(lambda t, o, r: min(5, t + 1))),
    "one text": lambda: audited(simple([3], [4])),
    "off scale": lambda: audited(
        simple(np.resize([2, 4, 6, 8, 10], 60), np.resize(UP, 60)), (0, 10)
    ),
    "blind": lambda: audited(probabilities(seen=False)),
    "criteria": lambda: audited(criteria({"tone": near, "depth": near}, reads=2)),
    "halo": lambda: audited(
        criteria({"tone": impression, "depth": impression}, reads=2, shared=0.3)
    ),
    "systems": lambda: audited(systems([2, 3, 4])),
    "alike": lambda: audited(clusters_alike()),
    "tied": lambda: audited(few_that_differ()),
    "rotations, text lost": lambda: audited(
        log(lambda t, o, r: NAN if t == 1 else noisy(t, o, r), TURNS, sd=0.3)
    ),
    "rotations, few lost": lambda: audited(
        log(lost_if(lambda s, o, u: s == o[0] and u < 0.1), TURNS, 300)
    ),
    "order, small": lambda: audited(
        with_shift(
            log(right, [UP, DOWN], 1500), pd.Series([False, True] * 1500), share=0.06
        )
    ),
    "order, at the margin": lambda: audited(
        with_shift(
            log(right, [UP, DOWN], 600), pd.Series([False, True] * 600), share=0.11
        )
    ),
    "order, both ways": lambda: audited(
        turned(lambda t, o, r: noisy(t, o, r, 0.3 + 0.2 * (o == DOWN)), n=300)
    ),
    "order, right and lost": lambda: audited(
        log(lost_if(lambda s, o, u: u < 0.1, right), [UP, DOWN])
    ),
    "turned at random": lambda: audited(
        log(
            lambda t, o, r: t if o == UP else r.integers(1, 6),
            [UP, UP, *TURNS[1:], UP],
            240,
            sd=0.3,
            design=["fixed", "placebo"] + ["balanced"] * 5,
            ordering_index=[0, 1, 0, 1, 2, 3, 4],
        )
    ),
    "labels, higher": lambda: audited(
        with_shift(
            log(right, [UP, UP], **RELABELLED),
            pd.Series([False, True] * 120),
            share=0.6,
        )
    ),
    "labels, right": lambda: audited(log(right, [UP, UP], **RELABELLED)),
    "labels, scrambled": lambda: audited(
        log(
            lambda t, o, r: r.permutation(UP)[t - 1] if r.random() < 0.5 else t,
            [UP, UP, UP],
            600,
            design=["fixed", "placebo", "fixed"],
            labels=["numeric", "numeric", "letter"],
            ordering_index=[0, 1, 0],
        ).pipe(lambda d: d)
    ),
    "labels, of other texts": lambda: audited(both_lost()),
    "references, right": lambda: audited(log(right, [UP] * 4, **REFERENCES)),
    "references, followed": lambda: audited(
        log(right, [UP] * 4, **REFERENCES).pipe(
            lambda d: with_shift(d, d["reference_score"].isin(["4", "5"]), share=0.6)
        )
    ),
    "reworded, noise": lambda: audited(reworded(lambda t, o, r: r.integers(1, 6))),
    "reworded, reads lost": lambda: audited(reworded(LOST_SOME, reads=2)),
    "reworded, right and lost": lambda: audited(
        reworded(lost_if(lambda s, o, u: u < 0.1, right))
    ),
    "read twice": lambda: audited(
        pd.concat([log(right).assign(read=k) for k in (1, 2)])
    ),
    "mostly four": lambda: audited(log(mostly_four, n=90)),
    "high": lambda: audited(log(lambda t, o, r: 5 if t > 2 else 4)),
    "off a scale": lambda: audited(log(lambda t, o, r: 9 if r.random() < 0.1 else t)),
    "decision model": lambda: audited(probabilities(flat=5, note="no usable read")),
    "criteria, one constant": lambda: audited(
        criteria({"tone": near, "depth": lambda t, q, r: 4 + 0 * t})
    ),
    "criteria, none varies": lambda: audited(
        criteria({"tone": near, "depth": lambda t, q, r: 4 + 0 * t})
        .assign(human_1=lambda d: d["human_1"].where(d["criterion"] == "depth", 3))
        .assign(human_2=lambda d: d["human_1"], human_3=lambda d: d["human_1"])
    ),
    "criteria, own calls": lambda: audited(
        criteria({"tone": impression, "depth": impression}, reads=2, shared=0.3).assign(
            template="rubric"
        )
    ),
    "criteria, lost": lambda: audited(
        criteria({"tone": near, "depth": near}, reads=2).pipe(
            lambda d: d.assign(
                score=d["score"].mask(
                    d["item_id"].isin(["t0", "t1"]) & (d["criterion"] == "tone")
                )
            )
        )
    ),
    "criteria, many": lambda: audited(
        criteria({"tone": near, "depth": near}, reads=3, n=900)
    ),
    "an adjusted p": lambda: audited(
        log(
            lambda t, o, r: min(5, noisy(t, o, r, 0.5) + (r.random() < 0.1)),
            [UP, DOWN],
            seed=2,
        )
    ),
    "systems, turned": lambda: audited(
        systems([1, 2, 3, 4, 5, 1.5, 2.5, 3.5], [3, 1, 4, 3.5, 2.5, 2, 5, 1.5], 12)
    ),
    "systems, close": lambda: audited(systems([3, 3, 3.01], [3, 2, 4])),
    "overall": lambda: scored(texts(weight=0.5), 0.6),
    "overall, noise": lambda: scored(texts(weight=0.5, prompts=150), 30),
    "asked": lambda: asked(),
    "asked, greedy": lambda: asked(
        greedy=True, sharpness=99, cluster_order_noise=0, order_noise=0, wording_noise=0
    ),
    "asked, criterion first": lambda: asked(criterion_position=(1.0, 0.0, -1.0)),
    "alike and alike": lambda: two(log(n=900), again(log(n=900), 1)),
    "apart": lambda: two(
        turned(right), turned(lambda t, o, r: noisy(t, o, r, 1.5), -1)
    ),
    "one higher": lambda: two(log(right), log(lambda t, o, r: min(5, t + 1))),
    "still": lambda: two(turned(right), turned(right)),
    "other answers": lambda: two(
        *(
            pd.concat([log(a).assign(read=k) for k in (1, 2)])
            for a in (right, lambda t, o, r: 6 - t)
        )
    ),
    "systems, drifted": lambda: two(systems([2, 3, 4]), systems([2, 3, 4], [3, 3, 5])),
    "compared": lambda: two(
        log(seed=1), log(seed=1).assign(score=3 + 0 * log()["score"])
    ),
}
UNPRINTED = {
    "reason: no_interval.perfect_without": "an audit bounds such a row (one_exception)",
}


# -- templates
# ------------------------------------------------------------------

_SOURCES = [*Path(record.__file__).parent.glob("*.py"), Path(doubts.__file__)]


def is_in(template: str, text: str) -> bool:
    """Whether a template of `str.format` is in a text, with something in its gaps."""
    first, *others = re.split(r"\{[^{}]*\}", " ".join(template.casefold().split(" ")))
    at = text.find(first)
    while at >= 0:
        end = at + len(first)
        for part in others:
            found = text.find(part, end, end + GAP + len(part))
            if found < 0:
                break
            end = found + len(part)
        else:
            return True
        at = text.find(first, at + 1)
    return False


GAP = 300
"""The longest text in a gap of a template."""


def _literals(code: ast.AST):
    """Texts of a module that are sentences or parts of one, without docstrings."""
    hidden = set()
    for node in ast.walk(code):
        if isinstance(node, ast.Expr | ast.Raise):
            hidden |= {id(part) for part in ast.walk(node)}
        if isinstance(node, ast.JoinedStr) and id(node) not in hidden:
            hidden |= {id(part) for part in node.values}
            yield "".join(
                part.value if isinstance(part, ast.Constant) else "{}"
                for part in node.values
            )
        elif id(node) not in hidden and isinstance(getattr(node, "value", 0), str):
            yield node.value


def templates():
    """Every sentence of an audit, or part of one: where it is from, and its text."""
    found = {}
    for text in _literals(ast.parse(inspect.getsource(words))):
        if re.search(r"[a-z]+ [a-z]+", text):
            found[f"words: {text}"] = text
    for text in ("false_alarms", "_failure"):
        code = ast.parse(dedent(inspect.getsource(getattr(record.Audit, text))))
        for part in _literals(code):
            if re.search(r"[a-z]+ [a-z]+", part):
                found[f"gate: {part}"] = part
    for name, measure in MEASURES.items():
        for kind in ("claim", "lacking", "calm", "act", "act_apart"):
            if kind in measure:
                found[f"{name}: {kind}"] = measure[kind]
    named = "\n".join(path.read_text("utf-8") for path in _SOURCES)
    for code, text in SENTENCES.items():
        if f'"{code}"' in named:
            found[f"reason: {code}"] = text
    return found


GATE = ", ".join(
    f"{name}{'<' if measure['kind'] in ('level', 'fact') else '>'}0.4"
    for name, measure in MEASURES.items()
)


@cache
def printed(name):
    """Everything that is printed of a planted audit, in one line."""
    found = PLANTED[name]()
    shown = html.unescape(re.sub(r"<[^>]+>", " ", page(found).split("<main>")[1]))
    lines = [
        *found.rows["sentence"],
        *found.rows["advice"],
        found.sentence,
        *found.failures(GATE),
        *found.failures(require=GATE),
        *found.false_alarms(GATE),
    ]
    return " ".join(" ".join([shown, *lines]).split()).casefold()


def _missing():
    every = [printed(name) for name in PLANTED]
    return {
        name
        for name, text in templates().items()
        if not any(is_in(text, one) for one in every)
    }


@pytest.mark.slow
def test_every_sentence_is_printed_of_data_that_make_it_true():
    assert _missing() == {*UNPRINTED}
