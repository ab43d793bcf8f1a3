"""What a plan would cost, before anything is sent."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from rubricnb.core.frames import Requests
from rubricnb.core.judge import Judge, JudgeLike, PriceLike, describe
from rubricnb.core.plan import with_readout
from rubricnb.core.prices import Calls
from rubricnb.core.rendering import rendered
from rubricnb.core.support.folders import results_folder
from rubricnb.core.support.types import Row

_SAMPLE = 4000  # requests rendered; a larger plan is scaled up from whole items


def estimate_cost(
    requests: Requests,
    judge: JudgeLike,
    price: PriceLike | None = None,
) -> pd.DataFrame:
    """Estimate calls, tokens, hours and price of a plan.

    Parameters
    ----------
    requests
        From `plan`.
    judge
        As in `run`; a spec is not opened.
    price
        US dollars per million tokens: input, cached input, output. Default: the
        provider's list price as far as the package ``genai-prices`` has it.

    Returns
    -------
    DataFrame
        One row: ``judge``, ``readout``, ``requests``, ``calls`` (distinct prompts;
        copies of a greedy read are not sent), ``prompt_tokens`` (four characters are
        one), ``shared_tokens`` (at most so many of these can come from a prefix cache),
        ``completion_tokens`` (a guess; a model that thinks is taken to do so with
        medium effort, unless the plan says how long), ``hours`` (from recorded runs of
        this judge), ``price`` in US dollars (shared tokens are cheaper where a hosted
        endpoint keeps them: from 1024 on), and ``reason`` for what is NaN.

    Examples
    --------
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench"), [rb.balanced(5), rb.fixed(5, 10)])
    >>> cost = rb.estimate_cost(requests, "openai:gpt-4.1").iloc[0]
    >>> int(cost.requests), int(cost.calls), bool(0.5 < cost.price < 50)
    (3600, 3420, True)
    """
    judge = describe(judge, price)
    requests = with_readout(requests, judge)
    part, scale = sample(requests)
    calls = Calls.of(rendered(part, judge), judge).scaled(scale)
    row: Row = {
        "judge": judge.spec,
        "readout": ", ".join(map(str, requests["readout"].unique())),
        "requests": len(requests),
        "calls": calls.number,
        "prompt_tokens": calls.prompt_tokens,
        "shared_tokens": calls.shared_tokens,
        "completion_tokens": calls.completion_tokens,
    }
    row["hours"], no_hours = _hours(judge, row)
    row["price"] = calls.cost(judge.price) if judge.price else np.nan
    no_price = f"price: {judge.no_price}" if judge.no_price else ""
    row["reason"] = "; ".join(filter(None, (no_hours, no_price)))
    return pd.DataFrame([row])


def sample(requests: Requests) -> tuple[Requests, float]:
    """Sample whole items from a large plan; also return how much larger the plan is."""
    if len(requests) <= _SAMPLE:
        return requests, 1.0
    ids = requests["item_id"].unique()
    step = int(np.ceil(len(requests) / _SAMPLE))
    part = requests[requests["item_id"].isin(ids[::step])]
    return part, len(requests) / len(part)


def _hours(judge: Judge, row: Row) -> tuple[float, str]:
    if judge.source == "simulated":
        return 0.0, ""
    seconds = tokens = 0.0
    # on endpoints the seconds of calls overlap
    one_at_a_time = judge.kind == "embedded"
    for path in (
        results_folder().glob(f"*/{judge.slug}/run.json") if one_at_a_time else ()
    ):
        for counts in json.loads(path.read_text())["datasets"].values():
            if "judgments" in counts:  # not gradings, which write long answers
                seconds += counts["seconds"]
                tokens += counts["prompt_tokens"] - counts["cached_tokens"]
    if not tokens:
        return (
            np.nan,
            "hours: the speed is not recorded; try rubricnb.run(…, max_calls=20)",
        )
    return seconds / tokens * (row["prompt_tokens"] - row["shared_tokens"]) / 3600, ""
