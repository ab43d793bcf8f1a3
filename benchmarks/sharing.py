"""Tokens computed in the order of a run, over the least that any engine must.

The embedded engine is asked for real, about a few items; the order alone is measured on
the whole datasets, in characters. HANNA and MT-Bench are downloaded, or read from
``$RUBRICNB_MIRROR``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import rubricnb as rb
from benchmarks import row, timed
from rubricnb.core.contract import Engine
from rubricnb.core.frames import Requests
from rubricnb.core.rendering import rendered
from rubricnb.core.sharing import walk
from studies.limit import Limit

# items asked about: HANNA has six criteria to a text
DATASETS = {"mt-bench": 4, "hanna": 6}


def distinct(prompts: Iterable[Any]) -> int:
    """Count the distinct nodes of the trie of all prompts: the least to compute."""
    limit = Limit()
    for prompt in sorted(prompts):
        limit.add(prompt)
    return limit.distinct


def measure() -> Iterator[dict[str, Any]]:
    plans = {
        name: rb.plan(rb.load(name), rb.balanced(5), readout="logprobs")
        for name in DATASETS
    }
    for name, requests in plans.items():
        yield from _order(name, requests)
    yield from _time()
    for name, items in DATASETS.items():
        ids = plans[name]["item_id"].unique()[:items]
        judge = rb.open_judge("embedded", threads=1)
        yield from _engine(name, plans[name][plans[name]["item_id"].isin(ids)], judge)
        judge.close()


def _order(name: str, requests: Requests) -> Iterator[dict[str, Any]]:
    """How close the walk over a dataset comes, for a cache that holds one prompt."""
    shuffled = requests.sample(frac=1, random_state=0)
    order = walk(shuffled)
    judge = rb.open_judge("simulated:unbiased")
    prompts = [r.messages[0].content for r in rendered(shuffled.iloc[order], judge)]
    least = distinct(prompts)
    for what, ordered in (("walk", prompts), ("any order", _again(prompts, order))):
        ratio = _computed(ordered) / least
        limit = "<= 1.01" if what == "walk" else ""
        yield row(
            f"{name}, {len(prompts):,} requests: {what} ÷ limit",
            round(ratio, 4),
            "",
            limit,
        )


def _again(prompts: list[str], order: Any) -> list[str]:
    back = sorted(range(len(order)), key=order.__getitem__)
    return [prompts[i] for i in back]


def _computed(prompts: list[str]) -> int:
    walked = Limit()
    for prompt in prompts:
        walked.add(prompt)
    return walked.distinct


def _time() -> Iterator[dict[str, Any]]:
    """What the order costs in a large plan; no prompt is rendered for it."""
    requests = rb.plan(rb.load("minibench"), rb.shuffled(5, 500), readout="logprobs")
    (seconds,) = timed(lambda: walk(requests), repeats=3)
    what = f"ordering one of {len(requests):,} requests"
    yield row(what, round(1e6 * seconds.cpu / len(requests), 2), "µs", "<= 5")


def _engine(name: str, requests: Requests, judge: Engine) -> Iterator[dict[str, Any]]:
    asked = list(rendered(requests, judge, walked=True))
    least = distinct(judge.tokens(r) for r in asked)
    replies = list(judge.answer(asked))
    sent = sum(r.prompt_tokens for r in replies)
    computed = sent - sum(r.cached_tokens for r in replies)
    what = f"{name}, {len(asked)} requests, embedded"
    yield row(f"{what}: tokens sent ÷ limit", round(sent / least, 2))
    yield row(
        f"{what}: tokens computed ÷ limit", round(computed / least, 4), "", "<= 1.04"
    )
    yield row(f"{what}: tokens computed beyond the limit", computed - least, "tokens")
