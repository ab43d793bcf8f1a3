"""The prompts of RULERS and its baselines: ``prompts/templates/rulers_*``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from rubricnb.core.prompts import inert
from rubricnb.core.prompts.render import templates


@cache
def source(name: str) -> str:
    """Return a template's text: part of what a lock covers.

    Examples
    --------
    >>> "LOCKED BUNDLE HASH" in source("rulers_score")
    True
    """
    return (files("rubricnb.core.prompts") / "templates" / f"{name}.jinja").read_text(
        encoding="utf-8"
    )


def fill(name: str, /, **values: Any) -> str:
    """Render a template; control tokens in texts are made inert.

    Examples
    --------
    >>> prompt = fill(
    ...     "rulers_trait", input_type="essays", instruction="Why?", text="Because.",
    ...     rubric="…", trait="ideas", definition="Are there any?", scale=(1, 6))
    >>> prompt.splitlines()[0]
    'You are a judge scoring one trait of essays.'
    """
    safe = {k: inert(v) if isinstance(v, str) else v for k, v in values.items()}
    return templates().get_template(f"{name}.jinja").render(**safe)


def as_json(content: Any) -> str:
    """Return a document as a judge reads it: indented, keys in their order."""
    return json.dumps(content, ensure_ascii=False, indent=1)
