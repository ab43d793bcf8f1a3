"""How a result is said: ``words.jinja``, as plain text; the page escapes it."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rubricnb.auditing.terms import MEASURES

_WORDS: Any = Environment(  # plain text; the page escapes it
    loader=PackageLoader("rubricnb.auditing", "."), undefined=StrictUndefined, autoescape=False
).get_template("words.jinja", globals={"measures": MEASURES}).module  # fmt: skip
