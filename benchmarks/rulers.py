"""RULERS: splitting, verification, calibration, a simulated set, a real judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.rulers.bundle import Bundle, load_bundle
from rubricnb.rulers.calibration import Calibrator
from rubricnb.rulers.evidence import fold, split_units, verify_quotes
from rubricnb.rulers.grading import grade
from rubricnb.rulers.simulated import SimulatedGrader


def measure() -> Iterator[dict[str, Any]]:
    """Rates on our own texts, then the default judge: a minute on two free cores."""
    texts = list(rb.load("minibench")["response"].unique()) * 5
    units = [split_units(text) for text in texts]
    quotes = [
        [(1, u[0]), (len(u), u[-1][3:40]), (1, "nowhere in the text")] for u in units
    ]

    def look_up() -> None:
        for cited, own in zip(quotes, units, strict=True):
            verify_quotes(cited, own)

    rng = np.random.default_rng(0)
    labels = rng.integers(1, 7, 200)
    traits = labels[:, None] + rng.standard_normal((200, 8))
    calls = (
        lambda: [split_units(text) for text in texts],
        look_up,
        lambda: Calibrator().fit(traits, labels).predict(traits),
    )
    split, verify, calibrate = timed(*calls, repeats=5)
    words = sum(len(fold(text).split()) for text in texts)
    yield row("sentences split", words / split.cpu, "words/s", ">= 100000")
    yield row("quotes looked up", 3 * len(texts) / verify.cpu, "/s", ">= 2000")
    yield row("calibration of 200 items", 1000 * calibrate.cpu, "ms", "<= 50")
    yield from _simulated()
    yield from _embedded()


def _simulated() -> Iterator[dict[str, Any]]:
    items, bundle = rb.load("minibench"), load_bundle("minibench")
    (once,) = timed(
        lambda: grade(items, bundle, SimulatedGrader(), store=":memory:"), repeats=3
    )
    yield row(
        "texts graded, simulated", items["text_id"].nunique() / once.cpu, "/s", ">= 30"
    )


def _embedded() -> Iterator[dict[str, Any]]:
    judge = rb.open_judge("embedded", context=4096, threads=1)
    items = rb.load("minibench", n_items=6)
    (once,) = timed(
        lambda: grade(items, six_items(), judge, store=":memory:"), repeats=1
    )
    judge.close()
    yield row("two texts, six items, embedded", once.wall, "s", "<= 120")
    yield row("of the processor", once.cpu, "s")


def six_items() -> Bundle:
    """Two traits of minibench with three checklist items each."""
    bundle = load_bundle("minibench")
    traits = bundle.traits[:2]
    items = tuple(item for trait in traits for item in bundle.of_trait(trait)[:3])
    return replace(bundle, name="six", traits=traits, checklist=items)
