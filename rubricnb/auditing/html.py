"""The page of an audit and the datasheet of a judge: one file that loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

import rubricnb
from rubricnb.auditing import terms, words
from rubricnb.auditing.gate import is_level
from rubricnb.auditing.looks import calls_in_words
from rubricnb.core.estimates.losses import share_lost

NOT_ASKED_WARNING = (
    "all answers came from the store or from recorded runs, and the judge was not "
    "asked. If it has changed since, give it a different name, or set RUBRICNB_STORE "
    "to a different file"
)


def page(*audits: Any, datasheet: bool = False) -> str:
    """Write audits, or a judge's datasheet, as one HTML page that loads nothing."""
    return _template(f"{'datasheet' if datasheet else 'page'}.jinja").render(
        audits=audits,
        version=rubricnb.__version__,
        terms=terms,
        words=words,
        is_level=is_level,
        share_lost=share_lost,
        from_store=NOT_ASKED_WARNING,
        calls_in_words=calls_in_words,
        made=lambda seconds: datetime.fromtimestamp(seconds, UTC).date(),
    )


@lru_cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("rubricnb.auditing", "."),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
