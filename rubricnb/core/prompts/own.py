"""Your own prompt: a Jinja file that names what it shows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import (
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    meta,
    nodes,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rubricnb.core.support.spelling import one_of

SLOTS = (
    "instruction",
    "response",
    "criterion",
    "definition",
    "options",
    "lowest",
    "highest",
    "reference",
    "reference_label",
    "criteria",
)
# around a label while a prompt is edited; no text has them
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"


@dataclass(frozen=True)
class OwnPrompt:
    """What replaces the papers' prompts: your template, or typed questions.

    Attributes
    ----------
    name
        What messages call it.
    source
        Its text, with its slots.
    shows
        The slots that it shows, of `SLOTS`.
    fill
        Takes the slots' values and the edits; returns what the system says (nothing, in
        most templates), and the user.
    unseen
        Kinds of conditions that it shows, but that do not reach the judge.
    """

    name: str
    source: str = field(repr=False)
    shows: frozenset[str]
    fill: Callable[[Mapping[str, Any], frozenset[str]], tuple[str, str]] = field(
        repr=False, compare=False
    )
    unseen: frozenset[str] = frozenset()

    @property
    def sha256(self) -> str:
        """The SHA-256 of its text."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def read_template(path: str | Path) -> OwnPrompt:
    """Read a template, and say what it shows.

    Raises
    ------
    ValueError
        It is no Jinja, names a slot that there is not, or shows no response.
    """
    path = Path(path)
    source = path.read_text(encoding="utf-8-sig")
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    try:
        tree = environment.parse(source)
        shows = meta.find_undeclared_variables(tree)
        template = environment.from_string(source)
    except TemplateSyntaxError as error:
        raise ValueError(
            f"{path.name}, line {error.lineno}: {error.message}"
        ) from error
    for name in sorted(shows - set(SLOTS)):
        one_of(f"slot in {path.name}", name, SLOTS)
    if "response" not in shows:
        raise ValueError(
            f"{path.name} shows no text to judge: write {{{{ response }}}} into it"
        )
    _check_blocks(path.name, tree, set(template.blocks))
    return OwnPrompt(
        path.name, source, frozenset(shows), partial(_fill, path.name, template)
    )


def _fill(
    name: str, template: Template, values: Mapping[str, Any], edits: frozenset[str]
) -> tuple[str, str]:
    """Return what the system says (nothing, in most templates), and the user."""
    shown = {slot: values[slot] for slot in SLOTS}
    if edits:
        shown["options"] = [(_marked(label), text) for label, text in shown["options"]]
        named = [c | {"name": _marked(c["name"])} for c in shown["criteria"]]
        shown["criteria"] = named
    blocks = template.blocks or {"user": template.root_render_func}
    try:
        texts = {
            block: "".join(write(template.new_context(shown)))
            for block, write in blocks.items()
        }
    except (
        TemplateError,
        ArithmeticError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise ValueError(f"{name}: {error}") from error
    if edits:
        if not any(_OPEN in text for text in texts.values()):
            raise ValueError(
                f"{name} changes its options' labels, so placebo edits do not apply"
            )
        texts = {block: _edited(text, edits) for block, text in texts.items()}
    return texts.get("system", "").strip(), texts["user"].strip("\n")


def _check_blocks(name: str, tree: nodes.Template, blocks: set[str]) -> None:
    if not blocks:
        return
    if not {"user"} <= blocks <= {"system", "user"}:
        raise ValueError(
            f"{name}: its blocks are {', '.join(sorted(blocks))}, not system and user"
        )
    outside = [part for part in tree.body if isinstance(part, nodes.Output)]
    for part in (p for output in outside for p in output.nodes):
        if not isinstance(part, nodes.TemplateData) or part.data.strip():
            raise ValueError(
                f"{name}, line {part.lineno}: this is outside the blocks system and "
                "user, so nobody would read it; move it into one of them"
            )


def _marked(label: str) -> str:
    return f"{_OPEN}{label}{_CLOSE}"


def _edited(text: str, edits: frozenset[str]) -> str:
    """Make the placebo edits around a list of options or criteria: no word changes."""
    lines = text.split("\n")
    marked = [k for k, line in enumerate(lines) if _OPEN in line]
    if marked:
        first = marked[0]
        heading = max((k for k in range(first) if lines[k].strip()), default=first)
        if "header" in edits:
            line = lines[heading].rstrip()
            lines[heading] = line[:-1] if line.endswith(":") else f"{line}:"
        if "trailing space" in edits:
            lines[heading] += " "
        if "blank line" in edits:
            lines.insert(first, "")
    gap = " " if "colon" in edits else ""
    return "\n".join(lines).replace(_OPEN, "").replace(_CLOSE, gap)
