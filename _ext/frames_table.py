"""``frame-columns``: the columns of a frame as the package defines them;
no page types them.

```{frame-columns} judgments
```
"""

from __future__ import annotations

from docutils import nodes
from plain_table import code, plain, plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rubricnb.core import frames


class FrameColumns(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in frames.FRAMES:
            raise self.error(
                f"no frame {name!r}; there are: {', '.join(frames.FRAMES)}"
            )
        self.env.note_dependency(frames.__file__.replace(".py", ".csv"))
        rows = [
            (
                column.name,
                column.dtype,
                "yes" if column.required else "no",
                column.meaning,
            )
            for column in frames.FRAMES[name]
        ]
        return [
            plain_table(
                ["column", "dtype", "required", "meaning"],
                rows,
                [code, code, plain, plain],
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("frame-columns", FrameColumns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
