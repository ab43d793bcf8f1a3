"""What a plan would cost, before anything is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import pandas as pd

from rubricnb.frames import Requests
from rubricnb.judging.contract import Judge
from rubricnb.judging.results import results_folder, slug_of
from rubricnb.judging.run import rendered, with_readout

_CHARACTERS_PER_TOKEN = 4.0  # English prose with every tokeniser in use, within about 15 %
_FEEDBACK_TOKENS = 200  # a typical feedback
_SAMPLE = 4000  # requests rendered; a larger plan is scaled up from whole items


def estimate(
    requests: Requests,
    judge: Judge | str,
    price: tuple[float, float, float] | None = None,
) -> pd.DataFrame:
    """Estimate calls, tokens, hours and price of a plan.

    Parameters
    ----------
    requests
        From `plan` or `plan_criteria`.
    judge
        A judge or its spec; it is not opened.
    price
        US dollars per million tokens: input, cached input, output. Default: the provider's list
        price as far as ``rubricnb/judging/prices.csv`` has it (see its ``as_of``).

    Returns
    -------
    DataFrame
        One row: ``judge``, ``readout``, ``requests``, ``calls`` (distinct prompts; copies of a
        greedy read are not sent), ``prompt_tokens`` (four characters are one), ``shared_tokens``
        (at most so many of these can come from a prefix cache), ``completion_tokens``, ``hours``
        (from recorded runs of this judge), ``price`` in US dollars, and ``reason`` for what is NaN.

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench"), [rb.balanced(5), rb.fixed(5, 10)])
    >>> cost = rb.estimate(requests, "openai:gpt-4.1").iloc[0]
    >>> int(cost.requests), int(cost.calls), bool(0.5 < cost.price < 50)
    (3600, 3420, True)
    """
    spec = judge if isinstance(judge, str) else judge.slug
    requests = with_readout(requests, judge)
    sample, scale = _sample(requests)
    unopened = _Unopened(spec, deterministic=not spec.startswith("openai:"))
    calls, prompt, shared = _count(sample, judge if not isinstance(judge, str) else unopened)
    completion = calls * _completion_tokens(requests)
    row: dict[str, Any] = {
        "judge": spec,
        "readout": ", ".join(map(str, requests["readout"].unique())),
        "requests": len(requests),
        "calls": round(calls * scale),
        "prompt_tokens": round(prompt * scale),
        "shared_tokens": round(shared * scale),
        "completion_tokens": round(completion * scale),
    }
    row["hours"], no_hours = _hours(spec, row)
    row["price"], no_price = _price(spec, row, price)
    row["reason"] = "; ".join(filter(None, (no_hours, no_price)))
    return pd.DataFrame([row])


@dataclass(frozen=True)
class _Unopened:
    """As much of a judge as a key needs."""

    identity: str
    deterministic: bool
    source: Literal["live"] = "live"


def _sample(requests: Requests) -> tuple[Requests, float]:
    if len(requests) <= _SAMPLE:
        return requests, 1.0
    ids = requests["item_id"].unique()
    step = int(np.ceil(len(requests) / _SAMPLE))
    part = requests[requests["item_id"].isin(ids[::step])]
    return part, len(requests) / len(part)


def _count(requests: Requests, judge: Any) -> tuple[int, float, float]:
    """Distinct prompts, their tokens, and the tokens each shares with the prompt before it."""
    seen: set[str] = set()
    characters = shared = 0
    before = ""
    for request in rendered(requests, judge):
        if request.key in seen:
            continue
        seen.add(request.key)
        text = request.messages[0].content
        characters += len(text)
        shared += _common_prefix(before, text)
        before = text
    return len(seen), characters / _CHARACTERS_PER_TOKEN, shared / _CHARACTERS_PER_TOKEN


def _common_prefix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:  # slices compare in C: a binary search beats a loop over characters
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low


def _completion_tokens(requests: Requests) -> float:
    """Tokens of a typical answer, averaged over the plan."""
    feedback = (requests["readout"] == "feedback").mean()
    return float(feedback * _FEEDBACK_TOKENS + (1 - feedback) * 3)


def _hours(spec: str, row: dict[str, Any]) -> tuple[float, str]:
    if spec.startswith("simulated:"):
        return 0.0, ""
    seconds = tokens = 0.0
    for path in results_folder().glob(f"*/{slug_of(spec)}/run.json"):
        for counts in json.loads(path.read_text())["datasets"].values():
            seconds += counts["seconds"]
            tokens += counts["prompt_tokens"] - counts["cached_tokens"]
    if not tokens:
        return np.nan, "hours: no recorded run of this judge; try rubricnb.run(…, max_calls=20)"
    return seconds / tokens * (row["prompt_tokens"] - row["shared_tokens"]) / 3600, ""


def _price(
    spec: str, row: dict[str, Any], price: tuple[float, float, float] | None
) -> tuple[float, str]:
    engine, _, model = spec.partition(":")
    if engine != "openai" or "@" in model:
        if price is None:
            return 0.0, ""
    elif price is None:
        table = pd.read_csv(str(files("rubricnb.judging") / "prices.csv")).set_index("model")
        if model not in table.index:
            return np.nan, f"price: not known for {model!r}; pass price=(input, cached, output)"
        price = tuple(table.loc[model, ["input", "cached", "output"]])
    assert price is not None
    fresh = row["prompt_tokens"] - row["shared_tokens"]
    tokens = np.array([fresh, row["shared_tokens"], row["completion_tokens"]])
    return float(tokens @ np.array(price) / 1e6), ""
