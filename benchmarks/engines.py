"""Engines behind ``ray:``: in the actor's own process, and two side by side.

    .venv-vllm/bin/python -m benchmarks engines

`benchmarks.stand_in` is the model, so this runs on a processor. An actor keeps vLLM's
engine in its own process; ``VLLM_ENABLE_V1_MULTIPROCESSING=1`` gives the engine one
beside it, as vLLM does by default. Every turn asks about other texts, so that it finds
an empty cache.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import rubricnb as rb
from benchmarks import row
from benchmarks.arms import children_seconds
from benchmarks.host_work import ENGINE, MODEL
from benchmarks.sharing import distinct
from rubricnb.core.rendering import rendered

N_ITEMS = 104  # 1,040 requests a turn
TURNS = 4  # the first opens engines that are not open yet: its time is left out


def measure() -> Iterator[dict[str, Any]]:
    if not Path(MODEL).exists():
        raise FileNotFoundError(f"no checkpoint at {MODEL}: `make bench` makes it")
    both = [_turns(beside, 1) for beside in ("1", "0", "1", "0")]
    beside, inside = (
        median(turn["cpu"] for arm in both[first::2] for turn in arm[1:])
        for first in (0, 1)
    )
    yield row("engine beside the actor, processor", 1e3 * beside, "ms each")
    yield row("engine in the actor, processor", 1e3 * inside, "ms each")
    yield row("in the actor over beside it", inside / beside, "times", "<= 0.7")
    two = _turns("0", 2)
    cpu = median(turn["cpu"] for turn in two[1:])
    yield row("two engines, processor", 1e3 * cpu, "ms each")
    for name in ("lost", "repeated"):
        yield row(f"two engines: {name}", sum(turn[name] for turn in two), "", "<= 0")
    shared = sum(turn["computed"] for turn in two) / sum(turn["least"] for turn in two)
    yield row("two engines: computed over least", shared, "times", "<= 1.1")


def _turns(beside: str, n_engines: int) -> list[dict[str, Any]]:
    """Ask about the texts of each turn, with the engines open throughout."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = beside  # Ray's processes inherit it
    texts = rb.load("summeval", n_items=TURNS * N_ITEMS)
    alone: Any = rb.open_judge(f"ray:vllm:{MODEL}", num_actors=n_engines, **ENGINE)
    found = []
    with closing(alone):
        for turn in range(TURNS):
            part = texts.iloc[turn * N_ITEMS : (turn + 1) * N_ITEMS]
            plan = rb.plan(part, rb.balanced(5), readout="logprobs")
            asked = list(rendered(plan, alone, walked=True))
            start, own = children_seconds(), time.process_time()
            replies = list(alone.answer(asked))
            cpu = children_seconds() - start + time.process_time() - own
            times = Counter(reply.request_id for reply in replies)
            found.append(
                {
                    "cpu": cpu / len(asked),
                    "lost": len(asked) - len(times),
                    "repeated": len(replies) - len(times),
                    "computed": sum(r.prompt_tokens - r.cached_tokens for r in replies),
                    "least": distinct(map(_tokens(), asked)),
                }
            )
    return found


def _tokens() -> Any:
    """Return what gives the tokens of a request's prompt."""
    from transformers import AutoTokenizer

    from rubricnb.engines.tokens import Tokens

    tokenizer: Any = AutoTokenizer.from_pretrained(MODEL)
    tokens = Tokens(tokenizer)

    def of(request: Any) -> list[int]:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return tokens.encode(text + request.slots[0])

    return of
