"""Large tables in costly shapes: audits, orders from a file, decimals, many groups.

Every call has a process of its own, so that its peak of memory is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from benchmarks import row
from benchmarks.overhead import peak
from rubricnb.core.permutation import code
from rubricnb.statistics.criterion import criterion_order
from rubricnb.statistics.scoring_bias import stability
from rubricnb.statistics.tendency import score_tendency, tendency_shift

LABELS = {"labels": "numeric"}
Call = Callable[[], object]


def measure() -> Iterator[dict[str, Any]]:
    for name, (prepare, size, seconds, megabytes) in CASES.items():
        spent, held = alone(prepare, size)
        yield row(name, spent, "s", f"<= {seconds}")
        yield row(f"{name}, peak", held, "MB", f"<= {megabytes}")
    for name, (statistic, size) in DECIMALS.items():
        (whole, _), (decimals, held) = (
            alone(partial(statistic, is_whole=k), size, times=5) for k in (1, 0)
        )
        yield row(
            f"{name}, decimals over whole scores", decimals / whole, "times", "<= 3"
        )
        yield row(f"{name}, decimals, peak", held, "MB", "<= 900")
    yield from of_a_million()
    yield from of_many_levels()
    yield from of_an_audit()


def of_a_million() -> Iterator[dict[str, Any]]:
    """Statistics of 1,000,000 judgments, and how their time grows from 80,000."""
    spent: dict[str, list[float]] = {}
    for name, prepare in MILLION.items():
        (few, _), (many, held) = (alone(prepare, n) for n in (80_000, 1_000_000))
        spent[name] = [few, many]
        yield row(f"{name}, 1,000,000 judgments", many, "s")
        yield row(f"{name}, peak", held, "MB", "<= 1700")
        yield row(f"{name}: ×12.5", many / few, "times", "<= 20.7")  # exponent 1.2
    pairs = zip(spent["expected_score"], spent["position_bias"], strict=True)
    for size, (expected, scores) in zip(("80,000", "1,000,000"), pairs, strict=True):
        yield row(f"expected over scores, {size}", expected / scores, "times", "<= 3")


def of_many_levels() -> Iterator[dict[str, Any]]:
    """As many judgments on 5 levels and on 101."""
    for value in ("score", "expected_score"):
        (few, _), (many, held) = (
            alone(partial(positions, levels=k, value=value), 80_000) for k in (5, 101)
        )
        # exponent 1.2 of 20.2 times the levels
        yield row(f"{value}, 101 levels over 5", many / few, "times", "<= 37")
        yield row(f"{value}, 101 levels, peak", held, "MB", "<= 1700")


def of_an_audit() -> Iterator[dict[str, Any]]:
    """Audit a file of 1,000,000 scores, against pandas that reads and groups it."""
    (plain, _), (whole, held) = (alone(call, 100_000) for call in (grouped, audited))
    yield row("audit over pandas, 1,000,000", whole / plain, "times", "<= 25")
    yield row("audit, 1,000,000 rows, peak", held, "MB", "<= 1000")


def alone(
    prepare: Callable[[int], Call], size: int, times: int = 1
) -> tuple[float, float]:
    """Processor time of a call in a fresh process (seconds) and its peak memory (MB).

    The least of some `times`: one call of a tenth of a second varies by two.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_alone, prepare, size, times).result()


def _alone(
    prepare: Callable[[int], Call], size: int, times: int
) -> tuple[float, float]:
    prepare(size // 200)()  # what is loaded or compiled once is not counted
    call = prepare(size)
    spent = []
    for _ in range(times):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return min(spent), peak()


def read(prompts: int) -> Call:
    """Read judgments of ten balanced orders from a file."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "judgments.csv"
    ordered(prompts).to_csv(path, index=False)
    return lambda: (rb.judgments(path, scale=(1, 5)), folder.cleanup())


def audited(prompts: int, clusters: int | None = None) -> Call:
    """Audit a file of judgments of ten balanced orders, and write its page."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "judgments.csv"
    ordered(prompts, clusters).to_csv(path, index=False)

    def call() -> None:
        rb.audit(judgments=path, scale=(1, 5), path=path.with_suffix(".html"))
        folder.cleanup()

    return call


def grouped(prompts: int) -> Call:
    """Read the same file and group it by text, three times."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "judgments.csv"
    ordered(prompts).to_csv(path, index=False)

    def call() -> None:
        for _ in range(3):
            pd.read_csv(path).groupby(["item_id", "cluster_id"])["score"].mean()
        folder.cleanup()

    return call


def positions(
    size: int,
    statistic: Callable[..., object] = rb.position_bias,
    levels: int = 5,
    **how: Any,
) -> Call:
    """Judge texts in balanced orders, with the probability of every level."""
    rng = np.random.default_rng(0)
    shown = rb.balanced(levels).orderings()
    texts = size // len(shown)
    item, order = (a.ravel() for a in np.indices((texts, len(shown))))
    middle = (levels + 1) / 2 + levels / 5 * rng.normal(size=texts)
    logit = -((shown[order] - middle[item, None]) ** 2) / (levels / 2)
    logit += rng.normal(size=logit.shape) / 3
    p = np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True)
    best = p.argmax(axis=1)
    table = pd.DataFrame(
        {
            "item_id": item,
            "cluster_id": item,
            "design": "balanced",
            "ordering_index": order + 1,
            "ordering": np.array(code(shown))[order],
            "score": shown[order, best],
            "position": best + 1,
            "expected_score": (p * shown[order]).sum(axis=1),
        }
    )
    shares = pd.DataFrame(p, columns=[f"probability_{k + 1}" for k in range(levels)])
    table = pd.concat([table, shares], axis=1)
    return lambda: statistic(table, **how)


def shifted(texts: int) -> Call:
    judgments, _ = scored(texts, conditions=("numeric", "letter", "roman"))
    return lambda: stability(judgments, LABELS)


def criteria(size: int, reads: int = 1) -> Call:
    """Judge two criteria in both orders: so many texts, or as many reads of them."""
    texts = size // reads
    one = np.arange(texts).repeat(4)
    turn, place = np.tile([0, 0, 1, 1], texts), np.tile([1, 2, 1, 2], texts)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "item_id": one,
            "cluster_id": one,
            "design": "balanced",
            "ordering_index": turn + 1,
            "criterion": np.where((turn == 0) == (place == 1), "tone", "truth"),
            "criterion_position": place,
            "score": rng.integers(1, 6, len(one)),
        }
    )
    return lambda: criterion_order(table)


def groups(number: int, statistic: Callable[[pd.DataFrame], object]) -> Call:
    """Judge 50 texts in ten orders, for each of many judges."""
    parts = ordered(50).drop(columns="human").assign(design="balanced")
    parts["ordering_index"] = np.tile(np.arange(1, 11), 50)
    table = pd.concat([parts] * number, ignore_index=True)
    table["judge"] = np.arange(number).repeat(len(parts))
    rng = np.random.default_rng(0)
    table["score"] = np.clip(table["score"] + rng.integers(-1, 2, len(table)), 1, 5)
    return lambda: statistic(table)


def ordered(prompts: int, clusters: int | None = None) -> pd.DataFrame:
    """Scores of prompts in ten balanced orders, and ratings."""
    rng = np.random.default_rng(0)
    orders = np.array(code(rb.balanced(5).orderings()))
    quality = rng.normal(size=prompts)
    scores = 3 + quality[:, None] + rng.normal(size=(prompts, len(orders))) / 2
    human = np.clip(np.round(3 + quality + rng.normal(size=prompts)), 1, 5).astype(int)
    item, order = (a.ravel() for a in np.indices(scores.shape))
    names = np.array([f"prompt-{i:05d}" for i in range(prompts)])
    return pd.DataFrame(
        {
            "item_id": names[item],
            "cluster_id": names[item % (clusters or prompts)],
            "ordering": orders[order],
            "human": human[item],
            "score": np.clip(np.round(scores.ravel()), 1, 5).astype(int),
        }
    )


def scored(
    texts: int, conditions: tuple[str, ...] = ("numeric",), is_whole: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two reads of texts under some conditions, whole (1 to 5) or any number to 100."""
    rng = np.random.default_rng(0)
    quality, top = rng.normal(size=texts), 5 if is_whole else 100
    parts = []
    for labels in conditions:
        score = np.clip(
            top / 2 + top / 5 * (quality[:, None] + rng.normal(size=(texts, 2))), 1, top
        )
        item = np.arange(texts).repeat(2)
        parts.append(
            pd.DataFrame(
                {
                    "item_id": item,
                    "cluster_id": item,
                    "ordering_index": np.tile([1, 2], texts),
                    "labels": labels,
                    "score": np.round(score.ravel()) if is_whole else score.ravel(),
                }
            )
        )
    human = np.clip(top / 2 + top / 5 * (quality + rng.normal(size=texts)), 1, top)
    items = pd.DataFrame({"item_id": np.arange(texts), "human": human})
    items["human"] = np.round(human) if is_whole else human
    return pd.concat(parts, ignore_index=True), items


def agreeing(texts: int, is_whole: int) -> Call:
    judgments, items = scored(texts, is_whole=is_whole)
    return lambda: rb.agreement(judgments, items)


def tending(texts: int, is_whole: int) -> Call:
    judgments, items = scored(texts, is_whole=is_whole)
    return lambda: score_tendency(judgments, items)


def moving(texts: int, is_whole: int) -> Call:
    judgments, _ = scored(texts, ("numeric", "letter"), is_whole)
    return lambda: tendency_shift(judgments, LABELS)


def tendency(texts: int) -> Call:
    return tending(texts, 1)


CASES: dict[str, tuple[Callable[[int], Call], int, float, float]] = {
    "audit, 200,000 rows": (audited, 20_000, 6, 600),
    "audit, 200,000 rows, 8 clusters": (partial(audited, clusters=8), 20_000, 6, 600),
    "judgments, 200,000 rows with orders": (read, 20_000, 3, 600),
    "score_tendency, 40,000 texts": (tendency, 40_000, 3, 600),
    "stability, 40,000 texts, 3 conditions": (shifted, 40_000, 5, 900),
    "criterion_order, 40,000 texts": (criteria, 40_000, 5, 900),
    "position_bias, 400 judges × 500": (
        partial(groups, statistic=rb.position_bias),
        400,
        4,
        900,
    ),
    "advise, 400 judges × 500": (partial(groups, statistic=rb.advise), 400, 8, 900),
}
MILLION: dict[str, Callable[[int], Call]] = {
    "position_bias": positions,
    "expected_score": partial(positions, value="expected_score"),
    "advise": partial(positions, statistic=rb.advise),
    "error_budget": partial(positions, statistic=rb.error_budget),
    "criterion_order": partial(criteria, reads=4),
    "order_effect": partial(positions, statistic=rb.order_effect),
    "variance_components": partial(positions, statistic=rb.variance_components),
}
DECIMALS = {
    "agreement": (agreeing, 40_000),
    "score_tendency": (tending, 40_000),
    "tendency_shift": (moving, 5_000),
}
