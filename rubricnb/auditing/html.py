"""The page of an audit and the datasheet of a judge: one file that loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import rubricnb
from rubricnb.auditing import words
from rubricnb.auditing.gate import is_level
from rubricnb.auditing.looks import calls_in_words
from rubricnb.auditing.terms import ADVERSE, MARGINS, MEASURES, VERDICTS
from rubricnb.core.estimates.losses import share_lost

NOT_ASKED_WARNING = (
    "all answers came from the store or from recorded runs, and the judge was not "
    "asked. If it has changed since, give it a different name, or set RUBRICNB_STORE "
    "to a different file"
)


def page(*audits: Any, datasheet: bool = False) -> str:
    """Write audits, or a judge's datasheet, as one HTML page that loads nothing."""
    environment = Environment(
        loader=PackageLoader("rubricnb.auditing", "."),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(
        f"{'datasheet' if datasheet else 'page'}.jinja"
    ).render(
        audits=audits,
        version=rubricnb.__version__,
        margins=MARGINS,
        measures=MEASURES,
        adverse=ADVERSE,
        is_level=is_level,
        beyond_losses=words.beyond_losses,
        share_lost=share_lost,
        verdicts=VERDICTS,
        from_store=NOT_ASKED_WARNING,
        size=words.size,
        number=words.number,
        percent=words.percent,
        p_value=words.p_value,
        calls_in_words=calls_in_words,
        titles=words.TITLES,
        made=lambda seconds: datetime.fromtimestamp(seconds, UTC).date(),
    )
