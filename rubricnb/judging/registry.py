"""Who can judge: one line per engine."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from rubricnb.judging.contract import Judge

# engine → module and class, what stands behind the colon, and what it is for
ENGINES = {
    "embedded": ("judging.embedded:EmbeddedJudge", "[:NAME|:PATH.gguf]", "llama.cpp; the default"),
    "openai": ("judging.openai:OpenAIJudge", ":MODEL[@BASE_URL]", "any OpenAI-compatible endpoint"),
    "ray": ("judging.ray:RayJudge", ":SPEC", "one of these on every GPU of a Ray cluster"),
    "vllm": ("judging.vllm:VLLMJudge", ":MODEL", "vLLM in this process: one GPU machine"),
    "simulated": ("judging.simulated:SimulatedJudge", ":PROFILE", "a planted bias, known exactly"),
    "simulated:grader": ("rulers.simulated:SimulatedGrader", "", "fills in RULERS' checklists"),
}


def open_judge(spec: str, **options: Any) -> Judge:
    """Open a judge.

    Parameters
    ----------
    spec
        ``embedded``, ``embedded:NAME`` (weights that ``python -m rubricnb weights`` lists),
        ``embedded:PATH.gguf``, ``openai:MODEL``, ``openai:MODEL@BASE_URL``,
        ``vllm:MODEL``, ``simulated:PROFILE``, ``simulated:grader`` (for `rubricnb.rulers`), or
        ``ray:`` and one of these.
    options
        Go to the engine's class: concurrency, timeout, threads, seed, …

    Returns
    -------
    Judge
        Close it when done, or leave that to the end of the process.

    Raises
    ------
    ValueError
        An unknown engine (the message names the nearest), or a spec without its model.

    Examples
    --------
    >>> open_judge("simulated:unbiased").slug
    'simulated:unbiased'
    >>> open_judge("simulated:grader", hedging=0.3).readouts
    ('json',)
    >>> open_judge("opnai:gpt-4.1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: unknown judge 'opnai:gpt-4.1': did you mean 'openai'? engines: ...
    """
    engine, name = _engine(spec), _name(spec)
    rest = spec.removeprefix(name).removeprefix(":")
    if name == "openai":
        model, _, base_url = rest.partition("@")
        if not model or "://" in model:
            raise ValueError("the judge has no model: openai:MODEL[@BASE_URL]")
        return engine(model, base_url or None, **options)
    return engine(rest, **options) if rest else engine(**options)


def inner(spec: str) -> str:
    """Return the spec of the judge that answers: ``ray:`` only says where it runs."""
    return spec.removeprefix("ray:")


def judge_class(spec: str) -> Any:
    """Return the class of the judge that answers, without opening anything."""
    return _engine(inner(spec))


def _engine(spec: str) -> Any:
    name = _name(spec)
    if name not in ENGINES:
        near = get_close_matches(name, ENGINES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        forms = ", ".join(engine + form for engine, (_, form, _) in ENGINES.items())
        shown = spec.partition("@")[0]  # an address may hold a secret
        raise ValueError(f"unknown judge {shown!r}: {hint}engines: {forms}")
    module, _, cls = ENGINES[name][0].partition(":")
    return getattr(import_module(f"rubricnb.{module}"), cls)


def _name(spec: str) -> str:
    return spec if spec in ENGINES else spec.partition(":")[0]
