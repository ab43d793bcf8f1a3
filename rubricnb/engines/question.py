"""The typed question of a decision model, in the place of a prompt.

A decision model reads a text and typed questions, and answers each with probabilities.
A rubric is a question of type ``score`` (an ordered list of levels) or ``choice``
(named levels).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

from rubricnb.core.prompts.own import OwnPrompt
from rubricnb.core.support.types import Json

Kind = Literal["score", "choice"]
Shape = Literal["systemone", "decisions"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SHAPES: tuple[Shape, ...] = get_args(Shape)

_SHOWN = frozenset(
    {"instruction", "response", "criterion", "definition", "options", "criteria"}
)


def typed_question(kind: Kind, shape: Shape) -> OwnPrompt:
    """Return one question about a text, or one for each criterion.

    Parameters
    ----------
    kind
        ``score``: the levels have no names, and the model numbers them by position.
        ``choice``: each level has its name, such as ``level 3``, wherever it stands.
    shape
        ``systemone``: TypeSafe's ``/v1/systemone``; ``decisions``: OpenAI's
        ``/v1/decisions``.

    Examples
    --------
    >>> values = {
    ...     "instruction": "Add 2 and 2.", "response": "4",
    ...     "definition": "Is it right?", "criteria": [],
    ...     "options": [("2", "Right."), ("1", "Wrong.")]}
    >>> print(typed_question("score", "systemone").fill(values, frozenset())[1])
    {"state": "Instruction:\\nAdd 2 and 2.\\n\\nResponse:\\n4", \
"questions": {"rating": {"type": "score", "instructions": "Is it right?", \
"criteria": ["Right.", "Wrong."]}}}
    """
    fill = partial(_fill, kind, shape)
    slots: Json = {name: f"{{{{ {name} }}}}" for name in _SHOWN}
    slots |= {"options": [("…", "…")], "criteria": []}
    source = fill(slots, frozenset())[1]
    unseen = {"sampling"}
    if kind == "score" and shape == "systemone":  # its levels have no names
        unseen.add("labels")
    return OwnPrompt(f"a {kind} question", source, _SHOWN, fill, frozenset(unseen))


def _fill(
    kind: Kind, shape: Shape, values: Mapping[str, Any], edits: frozenset[str]
) -> tuple[str, str]:
    """Return nothing for the system, and the call's body without model, as JSON.

    The neutral edits add a line break after the response ("blank line") and a blank
    after each level ("colon") and after the instructions ("trailing space"), or rename
    the question ("header").
    """
    text = f"Instruction:\n{values['instruction']}\n\nResponse:\n{values['response']}"
    if "blank line" in edits:
        text += "\n"
    name = "judgment" if "header" in edits else "rating"
    asked = values["criteria"] or [
        {"definition": values["definition"], "levels": values["options"]}
    ]
    several = len(asked) > 1
    questions = [
        _question(kind, shape, f"{name} {number}" if several else name, one, edits)
        for number, one in enumerate(asked, 1)
    ]
    if shape == "decisions":
        body: Json = {"input": text, "questions": questions}
    else:
        named = {question.pop("name"): question for question in questions}
        body = {"state": text, "questions": named}
    return "", json.dumps(body, ensure_ascii=False)


def _question(
    kind: Kind, shape: Shape, name: str, asked: Mapping[str, Any], edits: frozenset[str]
) -> Any:
    """Return one question, with its name."""
    after_level = " " if "colon" in edits else ""
    levels = [
        (level_name(label), text + after_level) for label, text in asked["levels"]
    ]
    for label, text in levels:
        if not text.strip():
            raise ValueError(
                f"{label} has no description, and a decision model compares a text "
                "with descriptions: describe every level in the rubric"
            )
    question = {
        "type": kind,
        "name": name,
        "instructions": asked["definition"]
        + (" " if "trailing space" in edits else ""),
    }
    if shape == "systemone":
        named = dict(levels)
        listed = [*named.values()] if kind == "score" else named
        return question | {"criteria": listed}
    several, name = _NAMES[kind]
    told = [{name: label, "description": text} for label, text in levels]
    return question | {several: told}


_NAMES = {"score": ("levels", "label"), "choice": ("choices", "value")}


def level_name(label: str) -> str:
    """Name a level so that no server sorts it by number.

    JavaScript and some servers sort the keys of an object that look like integers,
    which would undo a reordering without a word.

    Examples
    --------
    >>> level_name("3")
    'level 3'
    """
    return f"level {label}"
