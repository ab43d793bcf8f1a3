"""``chapter-figure``: a figure that a chapter has glued, on another page.

```{chapter-figure} 19_how_noisy fig-noise
:alt: What the picture shows, for those who do not see it.
```
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rubricnb.book.notebooks import glued


class ChapterFigure(SphinxDirective):
    required_arguments = 2
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        stem, name = self.arguments
        notebook = Path(self.env.srcdir, "notebooks", f"{stem}.ipynb")
        self.env.note_dependency(str(notebook))
        svg = glued(nbformat.read(notebook, 4))[name]["image/svg+xml"]
        folder = Path(self.env.srcdir, "chapter-figures")
        folder.mkdir(exist_ok=True)
        (folder / f"{stem}-{name}.svg").write_text("".join(svg), "utf-8")
        return [
            nodes.image(
                uri=f"/chapter-figures/{stem}-{name}.svg", alt=self.options["alt"]
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("chapter-figure", ChapterFigure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
