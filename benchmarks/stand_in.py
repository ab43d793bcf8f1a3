"""A worker for vLLM whose model takes a fixed time a step; the rest is the host's.

Everything in front of the model is vLLM's own code: front end, messages between two
processes, scheduler, prefix cache, detokenizer. The model answers with the first
allowed token, or with a token that ends nothing, until the limit of the request is
reached.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import torch
from vllm.v1.kv_cache_interface import FullAttentionSpec
from vllm.v1.outputs import EMPTY_MODEL_RUNNER_OUTPUT, LogprobsLists, ModelRunnerOutput
from vllm.v1.worker.worker_base import CompilationTimes, WorkerBase

# seconds: a small model on an H100
STEP = float(os.environ.get("STAND_IN_STEP", "0.006"))
WORD = 100  # a token that ends no answer


class Worker(WorkerBase):
    """One device without a model."""

    def init_device(self) -> None:
        self.device = torch.device("cpu")
        self._left: dict[str, int] = {}  # tokens to compute before the first answer
        self._sampling: dict[str, Any] = {}

    def load_model(self, **_: Any) -> None:
        """There are no weights."""

    def get_kv_cache_spec(self) -> dict[str, FullAttentionSpec]:
        spec = FullAttentionSpec(
            block_size=self.cache_config.block_size,
            num_kv_heads=1,
            head_size=8,
            dtype=torch.bfloat16,
        )
        return {"model.layers.0.self_attn.attn": spec}

    def get_supported_kv_cache_layouts(self) -> list[str]:
        # only some releases ask
        from vllm.v1.attention.backends.utils import KVCacheLayout

        return [next(iter(KVCacheLayout)).name]

    def determine_available_memory(self) -> int:
        return 1 << 28

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """There is no memory to lay out."""

    def compile_or_warm_up_model(self) -> CompilationTimes:
        return CompilationTimes(0.0, 0.0)

    def get_supported_tasks(self) -> tuple[str, ...]:
        return ("generate",)

    def synchronize_device(self) -> None:
        """Nothing is under way."""

    def execute_model(self, scheduled: Any) -> ModelRunnerOutput:
        time.sleep(STEP)
        for name in scheduled.finished_req_ids:
            self._left.pop(name, None)
            self._sampling.pop(name, None)
        for new in scheduled.scheduled_new_reqs:
            self._left[new.req_id] = len(new.prompt_token_ids) - new.num_computed_tokens
            self._sampling[new.req_id] = new.sampling_params
        names = list(scheduled.num_scheduled_tokens)
        for name in names:
            self._left[name] -= scheduled.num_scheduled_tokens[name]
        if not names:
            return EMPTY_MODEL_RUNNER_OUTPUT
        asked = [self._sampling[name] for name in names]
        allowed = [s.allowed_token_ids for s in asked]
        chosen = [ids[0] if ids else WORD for ids in allowed]
        # A prompt that is read in parts has a row, and no token before its last part.
        sampled = [
            [token] if self._left[name] <= 0 else []
            for name, token in zip(names, chosen, strict=True)
        ]
        return ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: n for n, name in enumerate(names)},
            sampled_token_ids=sampled,
            logprobs=_logprobs(asked, chosen),
        )


def _logprobs(asked: list[Any], chosen: list[int]) -> LogprobsLists | None:
    """Equal probabilities for all tokens that a request wants to know of."""
    wanted = [s.logprob_token_ids or [] for s in asked]
    widest = max(map(len, wanted))
    if not widest:
        return None
    ids = np.array(
        [
            [c, *w, *[c] * (widest - len(w))]
            for c, w in zip(chosen, wanted, strict=True)
        ],
        np.int32,
    )
    return LogprobsLists(
        ids,
        np.full(ids.shape, -np.log(widest), np.float32),
        np.ones(len(ids), np.int32),
    )
