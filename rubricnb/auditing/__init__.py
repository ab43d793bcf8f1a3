"""One page about one judge: is it any good, what moves it, and what to do about it.

First whether its answers can be read, tell texts apart and agree with people; then
whether it matters which position an option has, what the scores are called, which
reference is shown and in which order criteria are asked.

The rooms, each of which imports only from those before it:

* `terms`: what is measured, what it is called, how large an effect must be to matter;
* `words`, `html`: how a result is said, and the page (``page.jinja``);
* `parts`: what an audit is bound to, so that a changed judge is not taken for drift;
* `rows`, `gate`, `verdicts`: from an estimate to a row, the limits of a gate on it,
  and its verdict;
* `draw`, `plan`, `looks`: which items are asked about, in how many ways, and when;
* `record`: an audit as it is kept, its files and its gate;
* `answers`, `people`, `halo`, `measures`: from answers to the rows of each question;
* `results`, `drift`: all rows of one audit, and its difference from another one;
* `run`: ask a judge, and write the page.
"""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.auditing.draw": "drawn",
    "rubricnb.auditing.drift": "beside",
    "rubricnb.auditing.halo": "correlation_of_criteria criteria_sums",
    "rubricnb.auditing.html": "page",
    "rubricnb.auditing.looks": "audit_cost",
    "rubricnb.auditing.plan": "audit_requests",
    "rubricnb.auditing.record": "Audit check_files read_audit thresholds",
    "rubricnb.auditing.results": "findings",
    "rubricnb.auditing.run": "audit part_of",
    "rubricnb.auditing.terms": "ADVERSE MARGINS MEASURES VERDICTS",
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
