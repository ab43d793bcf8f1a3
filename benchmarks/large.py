"""Large tables in costly shapes: audits, orders from a file, decimals, many groups.

Every call has a process of its own, so that its peak of memory is known.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import rubricnb as rb
from benchmarks import row
from benchmarks.overhead import peak
from rubricnb.auditing.command import AuditCommand
from rubricnb.core.permutation import code
from rubricnb.corrections.raters import judge_bias, system_agreement
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
    yield from of_many_groups()
    yield from of_bad_input()
    yield from of_memory()
    yield from of_a_start()


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
    for name, levels in product(OF_LEVELS, (21, 101)):
        prepare = STATISTICS[name]
        (few, _), (many, held) = (
            alone(partial(prepare, levels=k), 80_000, times=3) for k in (5, levels)
        )
        # score_position has a row for each score and position
        most = (levels / 5) ** (2 if name == "score_position" else 1.2)
        yield row(
            f"{name}, {levels} levels over 5", many / few, "times", f"<= {most:.1f}"
        )
        yield row(f"{name}, {levels} levels, peak", held, "MB", "<= 900")


def of_an_audit() -> Iterator[dict[str, Any]]:
    """Audit a file of 1,000,000 scores, against pandas that reads and groups it."""
    (plain, _), (whole, held) = (alone(call, 100_000) for call in (grouped, audited))
    yield row("audit over pandas, 1,000,000", whole / plain, "times", "<= 25")
    yield row("audit, 1,000,000 rows, peak", held, "MB", "<= 700")


def of_many_groups() -> Iterator[dict[str, Any]]:
    """As many scores of few systems or criteria and of many; a page for each judge."""
    for name, prepare, few, many, limit in (
        # all pairs of systems are compared
        ("system_agreement, 400 systems over 100", systems, 100, 400, "<= 16"),
        ("audit, 64 criteria over 4", criteria_of_a_log, 4, 64, "<= 4"),
    ):
        (one, _), (other, held) = (alone(prepare, n, warm=False) for n in (few, many))
        yield row(name, other / one, "times", limit)
        yield row(f"{name.split(' over')[0]}, peak", held, "MB", "<= 900")
    spent, held = alone(every_judge, 400)
    yield row("audit --judge all, 400 judges × 2,500", spent, "s", "<= 300")
    yield row("audit --judge all, peak", held, "MB", "<= 900")


def of_bad_input() -> Iterator[dict[str, Any]]:
    """Audit a million of one text, one prompt, one score or 101 levels, or refuse."""
    plain, _ = alone(audited, 100_000)
    for name in BAD:
        spent, held = alone(partial(audited, bad=name), 100_000)
        yield row(f"audit, {name}, over good ones", spent / plain, "times", "<= 2")
        yield row(f"audit, {name}, peak", held, "MB", "<= 700")


def of_memory() -> Iterator[dict[str, Any]]:
    """What every public statistic holds, of 400,000 judgments."""
    for name, prepare in STATISTICS.items():
        _, held = alone(prepare, 400_000)
        yield row(f"{name}, 400,000 judgments, peak", held, "MB", "<= 900")


def of_a_start() -> Iterator[dict[str, Any]]:
    """Start the command for 50 rows against what it cannot do without."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "judgments.csv"
        ordered(5).to_csv(path, index=False)
        page = str(path.with_suffix(".html"))
        words = f"-m rubricnb audit --judgments {path} --scale 1 5 --output {page}"
        ways = [["-c", "import pandas, scipy.stats"], words.split()]
        compiled = os.environ | {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": folder,
        }
        loaded, whole = (min(spent_by(w, compiled) for _ in range(5)) for w in ways)
    yield row("audit of 50 rows", whole, "s")
    yield row("audit of 50 rows over its libraries", whole / loaded, "times", "<= 1.25")


def spent_by(words: list[str], environment: dict[str, str]) -> float:
    """Processor time of Python with some arguments."""
    before, command = os.times(), [sys.executable, *words]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def alone(
    prepare: Callable[[int], Call], size: int, times: int = 1, warm: bool = True
) -> tuple[float, float]:
    """Processor time of a call in a fresh process (seconds) and its peak memory (MB).

    The least of some `times`: one call of a tenth of a second varies by two.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_alone, prepare, size, times, warm).result()


def _alone(
    prepare: Callable[[int], Call], size: int, times: int, warm: bool
) -> tuple[float, float]:
    prepare(max(3, size // 200) if warm else size)()  # loads and compiles once
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


def audited(prompts: int, clusters: int | None = None, bad: str = "") -> Call:
    """Audit a file of judgments of ten balanced orders, and write its page."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "judgments.csv"
    table = ordered(prompts, clusters)
    scale, change = BAD.get(bad, ((1, 5), {}))
    if bad:
        table = table.drop(columns="ordering").assign(**change)
        table["read"] = np.arange(len(table))
    table.to_csv(path, index=False)

    def call() -> None:
        with suppress(ValueError) if bad else nullcontext():
            rb.audit(judgments=path, scale=scale, path=path.with_suffix(".html"))
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


def systems(number: int) -> Call:
    """Score and rate so many systems on a hundred prompts."""
    rng = np.random.default_rng(0)
    item = np.arange(100 * number)
    quality = rng.normal(size=number)[item % number] / 3
    score, human = (
        np.clip(np.round(3 + quality + rng.normal(size=len(item))), 1, 5)
        for _ in range(2)
    )
    judgments = pd.DataFrame(
        {
            "item_id": item,
            "cluster_id": item // number,
            "candidate": item % number,
            "ordering_index": 1,
            "score": score,
        }
    )
    items = pd.DataFrame({"item_id": item, "human": human})
    return lambda: system_agreement(judgments, items)


def criteria_of_a_log(number: int) -> Call:
    """Audit 120,000 scores of so many criteria."""
    texts = 60_000 // number
    judgments, items = scored(texts * number)
    table = judgments.merge(items, on="item_id").assign(
        criterion=[f"c{k:02d}" for k in judgments["item_id"] % number],
        text_id=judgments["item_id"] // number,
        cluster_id=judgments["item_id"] // number,
    )
    table["item_id"] = table["text_id"].astype(str) + table["criterion"]
    table = table.rename(columns={"ordering_index": "read"})
    table = table.drop(columns=["labels", "text_id"])
    return lambda: rb.audit(judgments=rb.judgments(table, scale=(1, 5)))


def every_judge(number: int) -> Call:
    """Audit each of many judges in one file by the command, and write its page."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "judgments.csv"
    table = pd.concat([ordered(250)] * number, ignore_index=True)
    table["judge"] = np.arange(number).repeat(2_500)
    rng = np.random.default_rng(0)
    table["score"] = np.clip(table["score"] + rng.integers(-1, 2, len(table)), 1, 5)
    table.to_csv(path, index=False)
    output = path.with_suffix(".html")
    words = {"judgments": path, "scale": (1, 5), "judge": "all", "output": output}

    def call() -> None:
        AuditCommand(**words).audits(print)
        folder.cleanup()

    return call


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
BAD: dict[str, tuple[tuple[float, float], dict[str, Any]]] = {
    "rows of one text": ((1, 5), {"item_id": "one", "cluster_id": "one", "human": 3}),
    "rows of one prompt": ((1, 5), {"cluster_id": "one"}),
    "scores all alike": ((1, 5), {"score": 3}),
    "scores on 101 levels": ((0, 100), {"score": lambda t: np.arange(len(t)) % 101}),
}


def both(size: int, statistic: Callable[..., object], **how: Any) -> Call:
    """A statistic of two reads of every text, and their ratings."""
    judgments, items = scored(size // 2)
    return lambda: statistic(judgments, items, **how)


def contrasted(size: int) -> Call:
    judgments, items = scored(size // 4, conditions=("numeric", "letter"))
    return lambda: rb.strategy_contrast(judgments, items, "numeric", "letter")


def ranked(size: int) -> Call:
    """Rank the four candidates of each prompt under two conditions."""
    judgments, _ = scored(size // 4, conditions=("numeric", "letter"))
    text = judgments["item_id"]
    named = judgments.assign(
        cluster_id=text // 4, group_id=text // 4, candidate=text % 4
    )
    return lambda: rb.rank_reversal(named, "numeric", "letter")


def rated_twice(size: int) -> Call:
    a, b = np.random.default_rng(0).integers(1, 6, (2, size))
    return lambda: rb.quadratic_weighted_kappa(a, b)


def changed(size: int) -> Call:
    return shifted(size // 6)


def following(
    size: int,
    first: Callable[..., object],
    then: Callable[..., object],
    levels: int = 5,
    **how: Any,
) -> Call:
    """A statistic of what another one returns."""
    found = positions(size, first, levels)()
    return lambda: then(found, **how)


def without_prior(judgments: pd.DataFrame) -> pd.DataFrame:
    return rb.remove_prior(judgments, rb.position_prior(judgments))


STATISTICS: dict[str, Callable[[int], Call]] = {
    **{
        statistic.__name__: partial(positions, statistic=statistic)
        for statistic in (
            rb.position_bias,
            rb.score_position,
            rb.order_effect,
            rb.within_item_sd,
            rb.variance_components,
            rb.error_budget,
            rb.advise,
            rb.option_probabilities,
            rb.position_prior,
            rb.will_permuting_help,
        )
    },
    "remove_prior": partial(positions, statistic=without_prior),
    "bias_cost": partial(following, first=rb.score_position, then=rb.bias_cost),
    "design_for": partial(
        following, first=rb.error_budget, then=rb.design_for, difference=0.5
    ),
    **{
        statistic.__name__: partial(both, statistic=statistic)
        for statistic in (
            rb.agreement,
            rb.score_tendency,
            rb.mean_with_labels,
            rb.budget_curve,
            judge_bias,
        )
    },
    "strategy_contrast": contrasted,
    "rank_reversal": ranked,
    "quadratic_weighted_kappa": rated_twice,
    "labels_needed": partial(both, statistic=rb.labels_needed, half_width=0.1),
    "criterion_order": criteria,
    "stability": changed,
}
OF_LEVELS = (
    "position_bias",
    "score_position",
    "bias_cost",
    "order_effect",
    "option_probabilities",
    "position_prior",
    "remove_prior",
    "error_budget",
    "advise",
)
"""Statistics of which some arrays have the size of the levels."""
DECIMALS = {
    "agreement": (agreeing, 40_000),
    "score_tendency": (tending, 40_000),
    "tendency_shift": (moving, 20_000),
}
