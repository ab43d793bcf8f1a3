"""The page of an audit, and the datasheet of a judge: one HTML file that loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import rubricnb
from rubricnb.auditing.terms import ADVERSE, MARGINS, MEASURES, VERDICTS
from rubricnb.auditing.words import _WORDS

_NOT_ASKED_WARNING = (
    "all answers came from the store or from recorded runs, and the judge was not asked. If it has "
    "changed since, give it a different name, or set RUBRICNB_STORE to a different file"
)


def page(*audits: Any, datasheet: bool = False) -> str:
    """Write audits, or the datasheet of a judge, as one HTML page that loads nothing."""
    environment = Environment(
        loader=PackageLoader("rubricnb.auditing", "."), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(f"{'datasheet' if datasheet else 'page'}.jinja").render(
        audits=audits, version=rubricnb.__version__, margins=MARGINS, measures=MEASURES,
        adverse=ADVERSE,
        verdicts=VERDICTS, from_store=_NOT_ASKED_WARNING,
        size=_WORDS.size, number=_WORDS.number, percent=_WORDS.percent, p_value=_WORDS.p_value,
        titles=_WORDS.TITLES, made=lambda seconds: datetime.fromtimestamp(seconds, UTC).date(),
    )  # fmt: skip
