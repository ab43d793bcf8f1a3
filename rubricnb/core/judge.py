"""Judges by name, as functions or as engines: each becomes one description, a `Judge`.

No other module reads a spec. The description needs no network; its engine starts at the
first use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeGuard, cast

import pandas as pd

from rubricnb.core.address import OPENAI, checked
from rubricnb.core.contract import Engine, Readout
from rubricnb.core.labels_in_text import Parser, parser_of
from rubricnb.core.prompts.render import RESULT
from rubricnb.core.support.folders import results_folder
from rubricnb.core.support.spelling import nearest
from rubricnb.core.support.types import Options

if TYPE_CHECKING:
    from rubricnb.core.prompts.own import OwnPrompt

# engine → module and class, the text after the colon, and its purpose
ENGINES = {
    "embedded": (
        "engines.embedded:EmbeddedJudge",
        "[:NAME|:PATH.gguf]",
        "llama.cpp; the default",
    ),
    "openai": (
        "engines.openai:OpenAIJudge",
        ":MODEL[@BASE_URL]",
        "any OpenAI-compatible endpoint",
    ),
    "decision": (
        "engines.decision:DecisionJudge",
        ":MODEL[@BASE_URL]",
        "a decision model: typed questions, probabilities",
    ),
    "ray": (
        "engines.ray:RayJudge",
        ":SPEC",
        "one of these on every GPU of a Ray cluster",
    ),
    "vllm": (
        "engines.vllm:VLLMJudge",
        ":MODEL",
        "vLLM in this process: one GPU machine",
    ),
    "simulated": (
        "engines.simulated:SimulatedJudge",
        ":PROFILE",
        "a planted bias, known exactly",
    ),
    "simulated:grader": (
        "rulers.simulated:SimulatedGrader",
        "",
        "fills in RULERS' checklists",
    ),
}
FUNCTION = "engines.function:FunctionJudge"
OF_REQUESTS = ("thinking", "effort", "max_tokens")
"""Options of a judge that its requests carry, so `rubricnb.plan` takes them."""

Function: TypeAlias = Callable[[list[dict[str, str]]], Any]


class Price(NamedTuple):
    """US dollars per million tokens."""

    input: float
    cached: float
    output: float

    def of(self, prompt: float, cached: float, completion: float) -> float:
        """Return the dollars for tokens sent (some of them cached) and received."""
        # an endpoint that counts more would be paid less than nothing
        cached = min(cached, prompt)
        return (
            (prompt - cached) * self.input
            + cached * self.cached
            + completion * self.output
        ) / 1e6


@dataclass(frozen=True)
class Judge:
    """Description of a judge before any request is sent.

    Attributes
    ----------
    spec
        The name it was given by; of an engine or a function, its slug.
    slug
        Names the judge in frames and files. For a spec, as in ``results/judges.csv``.
    kind
        The name of its engine in `ENGINES`, or ``function``. With ``ray:`` the engine
        that answers.
    source, readouts, own_prompt, parser
        As in `rubricnb.core.contract.Engine`.
    identity
        As there. For a spec, as in ``results/judges.csv``; empty if only the engine can
        tell.
    host, model
        The host that texts are sent to (empty: none but this machine), and the model's
        name there.
    given_price
        What the user says about the price.
    is_free, repeats
        What the engine's class says: answers cost nothing, since they are computed on
        this machine; and greedy answers repeat.
    start
        Starts the engine at the first call and returns it at every call.

    Examples
    --------
    >>> judge = describe("openai:gpt-4.1")
    >>> judge.host, judge.model, judge.readouts[0], judge.price.output
    ('api.openai.com', 'gpt-4.1', 'feedback', 8.0)
    """

    spec: str
    slug: str
    kind: str
    source: Literal["live", "simulated"]
    readouts: tuple[Readout, ...]
    start: Any = field(repr=False, compare=False)
    identity: str = ""
    host: str = ""
    model: str = ""
    own_prompt: OwnPrompt | None = None
    parser: Parser | None = None
    given_price: Price | None = None
    is_free: bool = False
    repeats: bool = False

    @property
    def engine(self) -> Engine:
        """The engine that answers, started at the first use."""
        return cast(Engine, self.start())

    @property
    def is_open(self) -> bool:
        """Whether the engine has started."""
        return bool(self.start.cache_info().currsize)

    @property
    def deterministic(self) -> bool:
        """Whether greedy answers repeat; known without opening an endpoint."""
        return self.engine.deterministic if self.is_open else self.repeats

    @property
    def holds_lengths(self) -> bool:
        """Whether the engine holds strings of a ``json`` answer to `maxLength`."""
        return bool(getattr(self.engine, "holds_lengths", True))

    @cached_property
    def price(self) -> Price | None:
        """The price: given, zero on this machine, the provider's, or None."""
        if self.given_price is not None:
            return self.given_price
        if self.is_free:
            return Price(0.0, 0.0, 0.0)
        if self.kind == "decision":
            dollars = getattr(self.engine, "input_price", None)
            return None if dollars is None else Price(dollars, dollars, 0.0)
        return _list_price(self.host, self.model) if self.host else None

    @property
    def no_price(self) -> str:
        """Why the price is not known; empty if it is."""
        if self.price is not None:
            return ""
        where = f" at {self.host}" if self.host else ""
        return (
            f"not known for {self.model or self.slug!r}{where}; give `price`: (input, "
            "cached, output), $ per million tokens, or (0, 0, 0) if it is free"
        )

    def opened(self) -> Judge:
        """Start the engine, and return the description that it gives of itself."""
        return replace(_of_engine(self.engine), given_price=self.given_price)

    def close(self) -> None:
        """End the engine, if it has started."""
        if self.is_open:
            self.engine.close()


JudgeLike: TypeAlias = Judge | Engine | str | Function
"""What every function takes as a judge: a spec, an engine,
a function, or what `describe` gave.
"""
PriceLike: TypeAlias = tuple[float, float, float]
"""Dollars for a million tokens: of the prompt, of its cached part, of the answer."""


def describe(
    judge: JudgeLike,
    price: PriceLike | None = None,
    *,
    template: str | Path | None = None,
    parser: str | Parser | None = None,
    **options: Any,
) -> Judge:
    """Describe a judge; nothing is opened or sent.

    Parameters
    ----------
    judge, template, parser, options
        As in `open_judge`. An engine or a description has its options already.
    price
        US dollars per million tokens: input, cached input, output. Default: the
        provider's list price as far as the package ``genai-prices`` has it; on this
        machine 0.

    Raises
    ------
    ValueError
        As in `open_judge`; or options for a judge that has its own.

    Examples
    --------
    >>> describe("embedded").slug
    'smollm2-135m-instruct-embedded'
    """
    if isinstance(judge, Judge) or _is_engine(judge):
        if template is not None or parser is not None or options:
            raise ValueError(
                f"{judge.slug} is already open: pass the options to open_judge"
            )
        found = judge if isinstance(judge, Judge) else _of_engine(judge)
    elif isinstance(judge, str):
        found = _with_own(_named(judge, options), template, parser)
    else:
        function: Any = judge
        found = _with_own(
            _of_engine(_class_at(FUNCTION)(function, **options)), template, parser
        )
    return found if price is None else replace(found, given_price=_price(price))


@contextmanager
def judging(
    judge: JudgeLike, price: PriceLike | None = None, **options: Any
) -> Iterator[Judge]:
    """Describe a judge as `describe` does; at the end, close what was opened here."""
    found = describe(judge, price, **options)
    try:
        yield found
    finally:
        if not (isinstance(judge, Judge) or _is_engine(judge)):
            found.close()


def open_judge(
    spec: str | Function,
    *,
    template: str | Path | None = None,
    parser: str | Parser | None = None,
    **options: Any,
) -> Engine:
    r"""Open a judge.

    Parameters
    ----------
    spec
        ``embedded``, ``embedded:NAME`` (weights that ``python -m rubricnb weights``
        lists), ``embedded:PATH.gguf``, ``openai:MODEL``, ``openai:MODEL@BASE_URL``,
        ``decision:MODEL[@BASE_URL]`` (a decision model: with ``kind="score"`` or
        ``"choice"``), ``vllm:MODEL``, ``simulated:PROFILE``, ``simulated:grader`` (for
        `rubricnb.rulers`), or ``ray:`` and one of these. Or a function, which takes
        chat messages (a list of ``{"role": …, "content": …}``) and returns the answer's
        text; it may be ``async``.
    template
        Your own prompt instead of the papers': a Jinja file with the slots that "Your
        own prompt" in the book lists. Its text is part of the judge's identity, its
        name of the slug.
    parser
        How to find the score in an answer: ``json`` (the key ``score`` of the last JSON
        object that has it; ``json:KEY`` for another key), a regular expression, whose
        last match counts (its group ``score``, else its first one), or a function from
        the answer's text to the label, or to {criterion: label}. Thoughts are cut off
        first, and a number is read whole or not at all. Default: the label after the
        last ``[RESULT]``.
    options
        Go to the engine's class: concurrency, timeout, threads, seed, …; for a function
        ``name``, ``concurrency`` and ``deterministic``.

    Returns
    -------
    Engine
        Close it when done, or leave that to the end of the process.

    Raises
    ------
    ValueError
        An unknown engine (the message names the nearest), a spec without its model, or
        a template that cannot be filled in.

    Examples
    --------
    >>> open_judge("simulated:unbiased").slug
    'simulated:unbiased'
    >>> open_judge("simulated:grader", hedging=0.3).readouts
    ('json',)
    >>> open_judge("opnai:gpt-4.1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: unknown judge 'opnai:gpt-4.1'; did you mean 'openai'? Engines: ...

    >>> def three(messages):
    ...     return "Neither good nor bad. Score: 3"
    >>> open_judge(three, parser=r"Score: (\d+)").slug
    'three'
    """
    return describe(spec, template=template, parser=parser, **options).engine


def configured(judge: Any, options: Mapping[str, Any]) -> tuple[Any, Options]:
    """Split judge options into those of its requests and those of its engine.

    Parameters
    ----------
    judge
        As `rubricnb.open_judge` takes it.
    options
        thinking, effort, max_tokens; any other goes to the engine's class.

    Returns
    -------
    judge
        What `rubricnb.run` takes: as it was given, or with the options for its engine,
        which starts with the first call.
    settings
        For `rubricnb.plan`.

    Examples
    --------
    >>> configured("openai:m", {"effort": "low"})
    ('openai:m', {'effort': 'low'})
    >>> options = {"seed": 1, "max_tokens": 99}
    >>> judge, settings = configured("simulated:unbiased", options)
    >>> judge.slug, settings
    ('simulated:unbiased', {'max_tokens': 99})
    """
    settings = {name: options[name] for name in OF_REQUESTS if name in options}
    engine_options = {
        name: value for name, value in options.items() if name not in settings
    }
    return (describe(judge, **engine_options) if engine_options else judge), settings


def judges() -> pd.DataFrame:
    """List the judges with recorded runs.

    Returns
    -------
    DataFrame
        slug, name (a short one, for figures and tables), spec, model, licence,
        identity; from small to large.

    Examples
    --------
    >>> judges().columns.tolist()
    ['slug', 'name', 'spec', 'model', 'licence', 'identity']
    """
    path = results_folder() / "judges.csv"
    columns = ["slug", "name", "spec", "model", "licence", "identity"]
    return (
        pd.read_csv(path, dtype="str")
        if path.exists()
        else pd.DataFrame(columns=columns)
    )


def slug_of(judge: str) -> str:
    """Return the slug that ``results/judges.csv`` has for a spec; slugs stay."""
    table = judges()
    match = table.loc[table["spec"] == judge.removeprefix("ray:"), "slug"]
    return str(match.iloc[0]) if len(match) else judge


def _named(spec: str, options: Options) -> Judge:
    """Describe the judge of a spec; ``ray:`` only says where it runs."""
    inner = spec.removeprefix("ray:")
    kind = _kind(inner)
    if kind not in ENGINES or kind == "ray":
        forms = ", ".join(engine + form for engine, (_, form, _) in ENGINES.items())
        # an address may hold a secret
        raise ValueError(
            f"unknown judge {spec.partition('@')[0]!r}{nearest(kind, ENGINES)} "
            f"Engines: {forms}"
        )
    engine, rest = _engine_class(kind), inner.removeprefix(kind).removeprefix(":")
    host, model = "", rest if kind == "vllm" else ""
    arguments = [rest] if rest else []
    if kind in ("openai", "decision"):
        model, _, base_url = rest.partition("@")
        if not model or "://" in model:
            raise ValueError(f"the judge names no model: write {kind}:MODEL[@BASE_URL]")
        _, host = checked(base_url or f"https://{OPENAI}/v1")
        arguments = [model, base_url] if base_url else [model]
    start = partial(engine, *arguments, **options)
    if spec != inner:
        start = partial(_engine_class("ray"), inner, **options)
    known = signature(start.func).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for option in sorted(set(options) - set(known)):
            raise ValueError(f"{kind} has no option {option!r}{nearest(option, known)}")
    if kind == "decision":  # connects at its first request, and knows itself what it is
        if spec != inner:
            raise ValueError(
                f"ray: takes no endpoint of typed questions; write {inner}"
            )
        return replace(_of_engine(start()), spec=spec)
    begun = cache(start)
    if kind.startswith("simulated") and spec == inner:
        begun()  # costs nothing, and names an unknown profile at once
    slug = slug_of(spec)
    identity = "" if options else judges().set_index("slug")["identity"].get(slug, "")
    return Judge(
        spec,
        slug,
        kind,
        engine.source,
        engine.readouts,
        begun,
        identity,
        host,
        model,
        is_free=getattr(engine, "is_free", False),
        repeats=engine.deterministic,
    )


def _of_engine(engine: Engine) -> Judge:
    """Describe an engine that is open."""
    start = cache(lambda: engine)
    start()
    return Judge(
        engine.slug,
        engine.slug,
        _kind(getattr(engine, "spec", "")),
        engine.source,
        tuple(engine.readouts),
        start,
        engine.identity,
        getattr(engine, "host", ""),
        getattr(engine, "model", ""),
        getattr(engine, "own_prompt", None),
        getattr(engine, "parser", None),
        is_free=getattr(engine, "is_free", False),
    )


def _with_own(
    judge: Judge, template: str | Path | None, parser: str | Parser | None
) -> Judge:
    """Give a judge its own template or parser; its engine gets them when it starts."""
    if judge.kind == "decision" and (template is not None or parser is not None):
        raise ValueError(
            f"{judge.slug} answers typed questions: leave template and parser out"
        )
    # here, so that the many runs without one load none of it
    from rubricnb.core.prompts.own import read_template

    own = None if template is None else read_template(template)
    told: Options = {}
    readouts = judge.readouts
    if parser is not None:
        told["parser"] = parser_of(parser)
        readouts = tuple(r for r in readouts if r in ("feedback", "json"))
    if own is not None:
        if parser is None and RESULT not in own.source and "criteria" not in own.shows:
            raise ValueError(
                f"{own.name} does not ask for {RESULT} before the score, so say how to "
                f"find it: "
                r"parser='json', parser=r'Score: (\d+)', or a function from text to "
                r"the score"
            )
        if readouts == ("json",):
            raise ValueError(
                f"{judge.slug} answers the prompts of RULERS only: leave the template "
                "out"
            )
        told["own_prompt"] = own
        readouts = tuple(r for r in readouts if r != "json")  # has a prompt of its own
    if not told:
        return judge

    def start() -> Engine:
        engine: Any = judge.engine
        for name, value in (told | {"readouts": readouts}).items():
            setattr(engine, name, value)
        if own is not None:
            engine.slug = f"{engine.slug}-{Path(own.name).stem}"
            engine.identity = f"{engine.identity} template {own.sha256[:16]}"
        return engine

    if own is not None:
        judge = replace(judge, slug=f"{judge.slug}-{Path(own.name).stem}", identity="")
    return replace(judge, readouts=readouts, start=cache(start), **told)


def _price(given: Any) -> Price:
    """Check a price; one that is no amount would be no limit."""
    try:
        price = Price(*map(float, given))
        is_amount = all(0 <= dollars < math.inf for dollars in price)
    except (TypeError, ValueError):
        is_amount = False
    if not is_amount:
        raise ValueError(
            f"price = {given!r}: give three numbers, finite and not negative: (input, "
            "cached, output) in US dollars per million tokens"
        )
    return price


def _kind(spec: str) -> str:
    """The name of a spec's engine."""
    return spec if spec in ENGINES else spec.partition(":")[0]


def _is_engine(judge: JudgeLike) -> TypeGuard[Engine]:
    return hasattr(judge, "answer")


def _engine_class(kind: str) -> Any:
    return _class_at(ENGINES[kind][0])


def _class_at(place: str) -> Any:
    """Import an engine's class; no other module of the core knows any engine."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"rubricnb.{module}"), name)


def _list_price(host: str, model: str) -> Price | None:
    """Look a price up in the bundled price lists; nothing is sent.

    Where it depends on the hour, the dearest one counts: a limit in dollars holds then
    whenever the calls are made.
    """
    from genai_prices import Usage, calc_price

    parts = (
        Usage(input_tokens=1000),
        Usage(input_tokens=1000, cache_read_tokens=1000),
        Usage(output_tokens=1000),
    )
    now = datetime.now(UTC)
    hours = [now.replace(hour=hour, minute=30) for hour in range(24)]
    where = f"https://{host}"
    try:
        dollars = [
            max(
                calc_price(
                    u, model, provider_api_url=where, genai_request_timestamp=h
                ).total_price
                for h in hours
            )
            for u in parts
        ]
    except LookupError:
        return None
    return Price(*(float(1000 * d) for d in dollars))
