"""The evidence below a chapter's story is folded; print shows it unfolded."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

OPEN = (
    '<details class="evidence"><summary>Evidence: parameters and code, definitions, '
    "tables, "
    "what the papers say, exercises</summary>"
)


class FoldedEvidence(SphinxPostTransform):
    """Put everything between the story and the section "Next"
    into one ``<details>``.
    """

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for story in list(self.document.findall(_is_story)):
            parent = story.parent
            start = parent.index(story) + 1
            end = len(parent)
            if end > start and _title(parent[-1]) == "Next":
                end -= 1
            if start < end:
                parent.insert(end, nodes.raw("", "</details>", format="html"))
                parent.insert(start, nodes.raw("", OPEN, format="html"))


def _is_story(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "story" in node["classes"]


def _title(node: nodes.Node) -> str:
    return (
        node.next_node(nodes.title).astext() if isinstance(node, nodes.section) else ""
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(FoldedEvidence)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
