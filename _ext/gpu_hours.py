"""``gpu-hours``: what a study asks of a GPU, computed while the page is built.

```{gpu-hours} paper_study
:name: gpu-hours
Caption.
```
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from plain_table import plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rubricnb.judging.results import results_folder

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is

from studies.gpu import gpu_hours

HEADER = {
    "judge": "judge",
    "requests": "requests",
    "calls": "calls",
    "sent": "sent, M",
    "computed": "computed, M",
    "answered": "answered, M",
    "hours_unshared": "hours, prompts unshared",
    "hours_shared": "hours, prompts shared",
    "hours_writing": "hours, answers",
    "hours": "hours, shared and answers",
}


class GPUHours(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec = {"name": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        study = self.arguments[0]
        for path in (f"params/{study}.yml", f"results/{study}.csv"):
            self.env.note_dependency(str(results_folder().parent / path))
        rows = [[_text(value) for value in row] for row in gpu_hours(study)[[*HEADER]].to_numpy()]
        table = plain_table(list(HEADER.values()), rows, right=range(1, len(HEADER)))
        text, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        table.insert(0, nodes.title("", "", *text, *messages))
        self.add_name(table)
        return [table]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("gpu-hours", GPUHours)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
