"""Who can judge: one line per engine."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from rubricnb.data.validate import nearest
from rubricnb.judging.contract import Judge
from rubricnb.judging.function import FunctionJudge
from rubricnb.judging.parsing import Parser, parser_of
from rubricnb.prompts.own import read_template
from rubricnb.prompts.render import RESULT

# engine → module and class, what stands behind the colon, and what it is for
ENGINES = {
    "embedded": ("judging.embedded:EmbeddedJudge", "[:NAME|:PATH.gguf]", "llama.cpp; the default"),
    "openai": ("judging.openai:OpenAIJudge", ":MODEL[@BASE_URL]", "any OpenAI-compatible endpoint"),
    "ray": ("judging.ray:RayJudge", ":SPEC", "one of these on every GPU of a Ray cluster"),
    "vllm": ("judging.vllm:VLLMJudge", ":MODEL", "vLLM in this process: one GPU machine"),
    "simulated": ("judging.simulated:SimulatedJudge", ":PROFILE", "a planted bias, known exactly"),
    "simulated:grader": ("rulers.simulated:SimulatedGrader", "", "fills in RULERS' checklists"),
}


def open_judge(
    spec: str | Callable[[list[dict[str, str]]], Any],
    *,
    template: str | Path | None = None,
    parser: str | Parser | None = None,
    **options: Any,
) -> Judge:
    r"""Open a judge.

    Parameters
    ----------
    spec
        ``embedded``, ``embedded:NAME`` (weights that ``python -m rubricnb weights`` lists),
        ``embedded:PATH.gguf``, ``openai:MODEL``, ``openai:MODEL@BASE_URL``,
        ``vllm:MODEL``, ``simulated:PROFILE``, ``simulated:grader`` (for `rubricnb.rulers`), or
        ``ray:`` and one of these. Or a function, which takes chat messages (a list of ``{"role":
        …, "content": …}``) and returns the answer's text; it may be ``async``.
    template
        A prompt of one's own instead of the papers': a Jinja file with the slots that "Your own
        prompt" in the book lists. Its text is part of the judge's identity, its name of the slug.
    parser
        How to find the score in an answer: ``json`` (the key ``score`` of the last JSON object that
        has it; ``json:KEY`` for another key), a regular expression, whose last match counts (its
        group ``score``, else its first one), or a function from the answer's text to the label, or
        to {criterion: label}. Thoughts are cut off first, and a number is read whole or not at all.
        Default: the label after the last ``[RESULT]``.
    options
        Go to the engine's class: concurrency, timeout, threads, seed, …; for a function ``name``,
        ``concurrency`` and ``deterministic``.

    Returns
    -------
    Judge
        Close it when done, or leave that to the end of the process.

    Raises
    ------
    ValueError
        An unknown engine (the message names the nearest), a spec without its model, or a template
        that cannot be filled in.

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

    >>> def three(messages):
    ...     return "Neither good nor bad. Score: 3"
    >>> open_judge(three, parser=r"Score: (\d+)").slug
    'three'
    """
    judge: Any = _opened(spec, options) if isinstance(spec, str) else FunctionJudge(spec, **options)
    if parser is not None:
        judge.parser = parser_of(parser)
        judge.readouts = tuple(r for r in judge.readouts if r in ("feedback", "json"))
    if template is not None:
        own = read_template(template)
        if parser is None and RESULT not in own.source and "criteria" not in own.shows:
            raise ValueError(
                f"{own.name} does not ask for {RESULT} before the score, so say how to find it: "
                r"parser='json', parser=r'Score: (\d+)', or a function from text to the score"
            )
        if judge.readouts == ("json",):
            raise ValueError(
                f"{judge.slug} answers the prompts of RULERS only: no template fits it"
            )
        judge.own_prompt = own
        judge.readouts = tuple(r for r in judge.readouts if r != "json")  # has a prompt of its own
        judge.slug = f"{judge.slug}-{Path(own.name).stem}"
        judge.identity = f"{judge.identity} template {own.sha256[:16]}"
    opened: Judge = judge
    return opened


def _opened(spec: str, options: dict[str, Any]) -> Judge:
    engine, name = _engine(spec), _name(spec)
    rest = spec.removeprefix(name).removeprefix(":")
    known = signature(engine).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for option in sorted(set(options) - set(known)):
            raise ValueError(f"{name} has no option {option!r}{nearest(option, known)}")
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
