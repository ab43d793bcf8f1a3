"""What makes the embedded judge faster, and what it does to its answers.

The same requests about minibench, by each way of running the engine: processor time,
time on the clock, and how far the probabilities are from the recorded ones. A way keeps
the answers if none differs by more than 0.02 and the argmax is another only where the
two best are within 0.05.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pooch

import rubricnb as rb
from benchmarks import row
from benchmarks.sharing import distinct
from rubricnb.core.contract import Engine, Request
from rubricnb.core.rendering import rendered
from rubricnb.engines.embedded import EmbeddedJudge, default_weights, sha256

N_ITEMS = 3  # under ten orderings each
WAYS: dict[str, dict[str, Any]] = {
    "as recorded (Q4_1, one thread)": {},
    "two threads": {"threads": 2},
    "Q8_0": {"path": "Q8_0"},
    "Q4_0": {"path": "Q4_0"},
    "two slots": {"concurrency": 2},
}


def measure() -> Iterator[dict[str, Any]]:
    recorded = rb.recorded("embedded", "minibench")
    columns = [f"probability_{k}" for k in range(1, 6)]
    known = recorded.drop_duplicates("request_id").set_index("request_id")[columns]
    requests = rb.plan(
        rb.load("minibench", n_items=N_ITEMS), rb.balanced(5), readout="logprobs"
    )
    requests = requests[
        requests["item_id"].isin(requests["item_id"].unique()[:N_ITEMS])
    ]
    for name, options in WAYS.items():
        options = {"threads": 1, **options}
        if kind := options.get("path"):
            options["path"] = requantised(kind)
        judge = EmbeddedJudge(**options)
        asked = list(rendered(requests, judge, walked=True))
        there = known.loc[[r.request_id for r in asked]].to_numpy(float)
        yield from _way(name, judge, asked, there)
        judge.close()


def _way(
    name: str, judge: Engine, asked: list[Request], there: np.ndarray[Any, Any]
) -> Iterator[dict[str, Any]]:
    least = distinct(judge.tokens(r) for r in asked)
    wall, cpu = time.perf_counter(), time.process_time()
    replies = {r.request_id: r for r in judge.answer(asked)}
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    computed = sum(r.prompt_tokens - r.cached_tokens for r in replies.values())
    found = np.array([replies[r.request_id].probabilities[0] for r in asked])
    found /= found.sum(axis=1, keepdims=True)
    best_two = np.sort(there, axis=1)[:, -2:]
    clear = best_two[:, 1] - best_two[:, 0] > 0.05
    changed = found.argmax(axis=1) != there.argmax(axis=1)
    yield row(f"{name}: processor time per token", round(1e3 * cpu / computed, 2), "ms")
    yield row(f"{name}: answers per second", round(len(asked) / wall, 2), "1/s")
    yield row(f"{name}: tokens computed ÷ limit", round(computed / least, 3))
    limit = "<= 0.02" if name.startswith("as recorded") else ""
    yield row(
        f"{name}: largest change of a probability",
        round(abs(found - there).max(), 4),
        "",
        limit,
    )
    yield row(
        f"{name}: clear argmax changed",
        int((changed & clear).sum()),
        f"of {clear.sum()}",
        "<= 0",
    )


def requantised(kind: str) -> Path:
    """The default weights, their quantised matrices in another type; made once."""
    weights = default_weights()
    folder = Path(pooch.os_cache("rubricnb")) / "weights" / sha256(weights)[:16]
    copy = folder / f"{weights.name.split('.')[0]}.{kind}.gguf"
    if not copy.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = copy.with_suffix(".part")
        _requantise(weights, part, gguf.GGMLQuantizationType[kind])
        part.replace(copy)
    return copy


def _requantise(weights: Path, copy: Path, kind: Any) -> None:
    reader = gguf.GGUFReader(weights)
    writer = gguf.GGUFWriter(
        copy, str(reader.fields["general.architecture"].contents())
    )
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in (
            "general.architecture",
            "general.file_type",
        ):
            continue
        of = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=of)
    for tensor in reader.tensors:
        data, there = tensor.data, tensor.tensor_type
        if there.name not in ("F32", "F16", "BF16", "Q8_0"):
            data = gguf.quants.quantize(gguf.quants.dequantize(data, there), kind)
            there = kind
        writer.add_tensor(tensor.name, data, raw_dtype=there)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
