"""A study in tokens and hours of a GPU, computed from measured prompts."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from rubricnb.core.contract import Request
from rubricnb.core.permutation import decode
from rubricnb.core.prices import typical_tokens
from rubricnb.core.rendering import rendered
from rubricnb.core.results import results_folder
from rubricnb.core.sharing import walk
from rubricnb.engines.embedded import EmbeddedJudge
from rubricnb.engines.fitting import stand_in
from studies.limit import Limit
from studies.recording import inside
from studies.study import plans_for, read_study, requests_of

_SAME = ("dataset", "setting", "designs")  # what decides about a plan's prompts


def gpu_hours(
    study: str = "paper_study",
    *,
    tflops: float = 989,
    terabytes: float = 3.35,
    utilisation: float = 0.4,
    batch: int = 128,
) -> pd.DataFrame:
    """Compute what a study needs of a GPU, with and without a prefix cache.

    A token of a prompt, or of an answer, costs two operations for each active
    parameter; a step that writes one token of every answer under way also reads the
    weights once. Attention, the KV cache and what the engine does between steps come on
    top.

    Parameters
    ----------
    study
        Name of a study over the papers' datasets; each of its judges states its
        ``size``.
    tflops, terabytes
        The GPU's peak: operations (10¹² per second) and memory (10¹² bytes per second).
        Default: an H100 SXM in bfloat16, dense.
    utilisation
        Share of both peaks that an engine reaches.
    batch
        Answers written at once.

    Returns
    -------
    DataFrame
        One row per judge and one for ``all``: ``requests`` of the plans; ``calls`` (a
        greedy prompt is asked once); ``sent`` (prompt tokens of all requests),
        ``computed`` (the least that calls with a prefix cache have to compute) and
        ``answered`` (tokens of the answers of all calls, thoughts included), in
        millions; hours to compute the prompts without and with sharing and to write the
        answers: ``hours_unshared``, ``hours_shared``, ``hours_writing``; ``hours``, the
        sum of the last two.

    Raises
    ------
    FileNotFoundError
        The study's prompts have not been measured: `record_tokens`.

    Examples
    --------
    >>> hours = gpu_hours().set_index("judge")
    >>> bool(hours.hours_shared["all"] < hours.hours_unshared["all"] / 2)
    True
    """
    content = read_study(study)
    measured = _measured(study)
    rows = []
    for judge in content["judges"]:
        row = dict.fromkeys(("requests", "calls", "sent", "computed", "answered"), 0.0)
        for part in plans_for(judge, content["plans"]):
            for name, value in _tokens(part, measured, judge["model"]).items():
                row[name] += value
        rows.append({"judge": judge["model"], **row, **judge["size"]})
    table = pd.DataFrame(rows)
    compute = 2 * table.pop("active") * 1e9 / (tflops * 1e12 * utilisation)
    read = table.pop("gigabytes") / (terabytes * 1e3 * utilisation) / batch
    table["hours_unshared"] = table["sent"] * compute / 3600
    table["hours_shared"] = table["computed"] * compute / 3600
    table["hours_writing"] = table["answered"] * compute.clip(lower=read) / 3600
    table["hours"] = table["hours_shared"] + table["hours_writing"]
    table[["sent", "computed", "answered"]] /= 1e6
    table["calls"] = table["calls"].round()
    table.loc[len(table)] = {**table.sum(numeric_only=True), "judge": "all"}
    return table.astype({"requests": "int64", "calls": "int64"})


def record_tokens(study: str = "paper_study", n_items: int = 96) -> pd.DataFrame:
    """Measure a study's prompts on a sample; record ``results/STUDY.csv``.

    The tokens are those of the default judge. Other vocabularies differ by some
    percent.

    Parameters
    ----------
    study
        Name of the study.
    n_items
        Items drawn of each dataset, whole clusters.

    Returns
    -------
    DataFrame
        One row per kind of plan: ``requests``, distinct ``prompts``, tokens of all
        requests (``sent``) and the distinct nodes of the trie of all prompts
        (``computed``).

    Examples
    --------
    >>> record_tokens()  # doctest: +SKIP
    """
    content = read_study(study)
    plans = [
        part for one in content["judges"] for part in plans_for(one, content["plans"])
    ]
    kinds = {_kind(part): part | {"n_items": n_items} for part in reversed(plans)}
    judge = EmbeddedJudge(threads=1, context=512)
    try:
        rows = [
            dict(zip(_SAME, kind, strict=True)) | _measure(part, judge)
            for kind, part in sorted(kinds.items())
        ]
    finally:
        judge.close()
    table = pd.DataFrame(rows)
    table.to_csv(inside(f"{study}.csv"), index=False)
    return table


def _measure(part: dict[str, Any], judge: Any) -> dict[str, int]:
    greedy = {
        k: v for k, v in part.items() if k not in ("temperature", "effort", "thinking")
    }
    requests = requests_of(greedy | {"readout": "feedback"})
    limit = Limit()
    lengths: dict[str, int] = {}
    sent = 0
    for request in rendered(requests.iloc[walk(requests)], judge):
        if request.key not in lengths:
            tokens = judge.tokens(request)
            lengths[request.key] = len(tokens)
            limit.add(tokens)
        sent += lengths[request.key]
    return {
        "requests": len(requests),
        "prompts": len(lengths),
        "sent": sent,
        "computed": limit.distinct,
    }


def _tokens(
    part: dict[str, Any], measured: pd.DataFrame, model: str
) -> dict[str, float]:
    """Requests, calls and tokens of one plan on all items of its dataset."""
    requests, labels = _planned(*_kind(part))
    sample = measured.loc[_kind(part)]
    scale = requests / sample["requests"]
    calls = requests if part.get("temperature") else sample["prompts"] * scale
    effort = part.get("effort", "default")
    ask = Request(0, "", (), ("",) * labels, (), part["readout"], effort=effort)
    answer = typical_tokens(ask, model=model)[1]
    return {
        "requests": requests,
        "calls": calls,
        "sent": sample["sent"] * scale,
        "computed": sample["computed"] * scale,
        "answered": calls * answer,
    }


@cache
def _planned(dataset: str, setting: int, designs: str) -> tuple[int, int]:
    """Requests of a plan on a whole dataset, and the labels in an answer."""
    part = {"dataset": dataset, "setting": setting, "designs": designs.split("; ")}
    requests = requests_of(part, stand_in(dataset))
    if setting == 1:
        return len(requests), 1
    return len(requests), len(decode(requests["criterion_ordering"].iloc[0]))


def _kind(part: dict[str, Any]) -> tuple[str, int, str]:
    return part["dataset"], part.get("setting", 1), "; ".join(part["designs"])


def _measured(study: str) -> pd.DataFrame:
    path = results_folder() / f"{study}.csv"
    if not path.exists():
        raise FileNotFoundError(
            f"the prompts of study {study!r} have not been measured ({path} is "
            f"missing): call studies.gpu.record_tokens({study!r})"
        )
    return pd.read_csv(path).set_index(list(_SAME))


if __name__ == "__main__":
    record_tokens()
