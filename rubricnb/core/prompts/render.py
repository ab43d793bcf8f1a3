"""From one item, one rubric and one ordering to the messages a judge reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, meta

from rubricnb.core.prompts.control_tokens import inert
from rubricnb.core.prompts.labels import labels_of, span
from rubricnb.core.support.spelling import one_of

if TYPE_CHECKING:
    from rubricnb.core.prompts.own import OwnPrompt

TEMPLATES = ("rubric", "criteria", "pointwise", "pairwise")
LAYOUTS = ("rubric-last", "rubric-first")
PLACEBO_EDITS: tuple[frozenset[str], ...] = tuple(
    frozenset(
        edit
        for bit, edit in enumerate(("blank line", "colon", "header", "trailing space"))
        if j >> bit & 1
    )
    for j in range(1, 16)
)
"""The 15 meaning-free edits of the placebo design;
``ordering_index`` j takes the j-th.
"""

RESULT = "[RESULT]"
"""The text directly before the score in the papers' output format."""


_inert = lru_cache(maxsize=1024)(inert)  # the texts of an item are in all its prompts


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a judge reads, and where its answer goes.

    Attributes
    ----------
    text
        The prompt.
    slots
        The text directly before each answer.
    choices
        The label of the option at position 1, 2, …
    system
        What the system says before, in your own template.
    """

    text: str
    slots: tuple[str, ...]
    choices: tuple[str, ...]
    system: str = ""


def render(
    instruction: str,
    response: str,
    definition: str,
    descriptions: Mapping[float, str],
    ordering: Sequence[float],
    *,
    template: str = "rubric",
    labels: str = "numeric",
    own_labels: tuple[str, ...] = (),
    layout: str = "rubric-last",
    reference: str | None = None,
    reference_score: float | None = None,
    exemplar: tuple[str, str, float] | None = None,
    edits: frozenset[str] = frozenset(),
    criteria: Sequence[tuple[str, str]] = (),
    criteria_levels: Sequence[Mapping[float, str]] = (),
    criterion: str = "",
    own: OwnPrompt | None = None,
) -> Prompt:
    r"""Render one prompt.

    Parameters
    ----------
    instruction, response
        The item. Control tokens and slots in them are made inert.
    definition
        The question in square brackets above the options.
    descriptions
        Score → what a response at this level is like.
    ordering
        The score at position 1, 2, …; its length is the number of options.
    template
        ``rubric``, ``criteria``, ``pointwise`` or ``pairwise``.
    labels
        ``numeric``, ``letter`` or ``roman``.
    own_labels
        The rubric's own labels, from the worst, which ``numeric`` shows instead of the
        scores.
    layout
        ``rubric-last`` (arXiv:2602.02219) or ``rubric-first`` (arXiv:2506.22316).
    reference, reference_score
        A reference answer and the score it is said to have (default: the highest).
    exemplar
        One in-context example: its instruction, its response and the score that it
        gets.
    edits
        Placebo edits, one of `PLACEBO_EDITS`.
    criteria
        Setting 2: (name, definition) of the criterion at position 1, 2, …
    criteria_levels
        The descriptions of each; only a decision model is shown them.
    criterion
        The criterion's name, for your own template.
    own
        Such a template, or a decision model's question, instead of `template`.

    Returns
    -------
    Prompt

    Raises
    ------
    ValueError
        An unknown template, layout or kind of label.

    Examples
    --------
    >>> levels = {1: "Wrong.", 2: "Partly right.", 3: "Right."}
    >>> prompt = render("Add 2 and 2.", "4", "Is it right?", levels, [3, 1, 2])
    >>> print(prompt.text.split("\n\n")[-2])
    ###Score Rubrics:
    [Is it right?]
    Score 3: Right.
    Score 1: Wrong.
    Score 2: Partly right.
    >>> prompt.slots, prompt.choices
    (('[RESULT]',), ('3', '1', '2'))
    """
    one_of("layout", layout, LAYOUTS)
    scale = tuple(sorted(ordering))
    label = labels_of(scale, labels, own_labels)
    names = tuple(label[score] for score in ordering)
    if template == "pairwise":  # the first response shown is A, whichever it is
        names = tuple("ABCDEFGHIJ"[: len(ordering)])
    text_span, number_span = span(list(label.values()), labels)
    slots = tuple(
        ("\n" if j else "") + f"[{inert(c)}]" for j, (c, _) in enumerate(criteria)
    ) or (RESULT,)
    data = partial(_inert, slots=slots)

    def levels(described: Mapping[float, str]) -> list[tuple[str, str]]:
        texts = (data(described.get(score, "")) for score in ordering)
        return list(zip(names, texts, strict=True))

    values = {
        "instruction": data(instruction),
        "response": data(response),
        "definition": data(definition),
        "options": levels(descriptions),
        "reference": None if reference is None else data(reference),
        "reference_label": label[
            scale[-1] if reference_score is None else reference_score
        ],
        "exemplar": exemplar
        and [data(exemplar[0]), data(exemplar[1]), label[exemplar[2]]],
        "criteria": [
            {"name": inert(name), "definition": data(text), "levels": levels(described)}
            for (name, text), described in zip(
                criteria, criteria_levels or [{}] * len(criteria), strict=True
            )
        ],
        "span": text_span,
        "span_number": number_span,
        "lowest": label[scale[0]],
        "highest": label[scale[-1]],
        "criterion": data(criterion),
        "layout": layout,
        "edits": edits,
    }
    if own is not None:
        system, text = own.fill(values, edits)
        return Prompt(text, slots, names, system)
    return Prompt(_template(template).render(values), slots, names)


def render_writing(
    instruction: str, definition: str, descriptions: Mapping[str, str], target: str
) -> str:
    """Render the request to write a response that deserves a score.

    Parameters
    ----------
    instruction, definition
        As in `render`.
    descriptions
        Label → what a response at this level is like, from the worst.
    target
        The label to deserve.

    Examples
    --------
    >>> levels = {"1": "Wrong.", "2": "Right."}
    >>> text = render_writing("Add 2 and 2.", "Is it right?", levels, "1")
    >>> text.splitlines()[-1]
    '###Response (Score 1):'
    """
    return _template("write").render(
        instruction=inert(instruction),
        definition=inert(definition),
        options=[
            {"label": s, "description": inert(d)} for s, d in descriptions.items()
        ],
        target=target,
    )


def takes_edits(template: str) -> bool:
    """Whether a template shows the placebo edits.

    Examples
    --------
    >>> [name for name in TEMPLATES if takes_edits(name)]
    ['rubric', 'criteria']
    """
    source = (
        files("rubricnb.core.prompts") / "templates" / f"{template}.jinja"
    ).read_text("utf-8")
    return "edits" in meta.find_undeclared_variables(templates().parse(source))


@cache  # Jinja looks at the file each time
def _template(name: str) -> Template:
    if name != "write":
        one_of("template", name, TEMPLATES)
    return templates().get_template(f"{name}.jinja")


@cache
def templates() -> Environment:
    """Return the environment of all templates."""
    environment = Environment(
        loader=PackageLoader("rubricnb.core.prompts", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # prompts are plain text, not HTML
    )
    environment.globals.clear()  # unused here, and copied for every prompt
    return environment
