"""``gpu-hours``: what a study asks of a GPU, computed;
``gpu-speed``: what one GPU did, measured.

```{gpu-hours} paper_study
:name: gpu-hours
Caption.
```
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from plain_table import plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rubricnb.core.results import results_folder

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


SPEED = [
    "readout",
    "prompt",
    "judgments per second",
    "floor, per second",
    "tokens sent, each",
    "computed, each",
    "least possible, each",
    "computed ÷ least",
    "answered, each",
    "commit",
]


# how the benchmark called the package's own way, then and now
OURS = ("rubricnb", "ours")


class GPUHours(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec = {"name": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        study = self.arguments[0]
        for path in (f"params/{study}.yml", f"results/{study}.csv"):
            self.env.note_dependency(str(results_folder().parent / path))
        rows = [
            [_text(value) for value in row]
            for row in gpu_hours(study)[[*HEADER]].to_numpy()
        ]
        table = plain_table(list(HEADER.values()), rows, right=range(1, len(HEADER)))
        text, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        table.insert(0, nodes.title("", "", *text, *messages))
        self.add_name(table)
        return [table]


class GPUSpeed(SphinxDirective):
    """The measured judgments per second of ``results/gpu/throughput.csv``."""

    has_content = True
    option_spec = {"name": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        path = results_folder() / "gpu" / "throughput.csv"
        self.env.note_dependency(str(path))
        table = plain_table(
            SPEED, measured_speed(pd.read_csv(path)), right=range(2, len(SPEED))
        )
        text, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        table.insert(0, nodes.title("", "", *text, *messages))
        self.add_name(table)
        return [table]


def measured_speed(arms: pd.DataFrame) -> list[list[str]]:
    """Lay out arms of the benchmark as rows of `SPEED`, each beside its floor."""
    rate = arms["judgments"] / arms["seconds"]
    condition = ["readout", "layout", "max_tokens", "commit"]
    is_floor = arms["arm"] == "floor"
    floors = rate[is_floor].set_axis(
        pd.MultiIndex.from_frame(arms.loc[is_floor, condition])
    )
    return [
        [
            f"{arm.readout}, {arm.max_tokens:,} tokens"
            if arm.max_tokens
            else arm.readout,
            arm.layout,
            f"{arm.judgments / arm.seconds:,.0f}",
            _floor(floors.get(tuple(getattr(arm, name) for name in condition))),
            f"{arm.sent / arm.judgments:,.0f}",
            f"{arm.computed / arm.judgments:,.0f}",
            f"{arm.limit / arm.judgments:,.0f}",
            f"{arm.computed / arm.limit:.2f}",
            f"{arm.answered / arm.judgments:,.0f}",
            f"{arm.commit}, replaced"
            if isinstance(arm.replaced, str)
            else str(arm.commit),
        ]
        for arm in arms[arms["arm"].isin(OURS)].itertuples()
    ]


def _floor(rate: float | None) -> str:
    return "not measured" if rate is None else f"{rate:,.0f}"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("gpu-hours", GPUHours)
    app.add_directive("gpu-speed", GPUSpeed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
