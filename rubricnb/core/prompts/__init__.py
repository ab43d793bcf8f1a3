"""How an item is put to the judge: one template file per prompt, one renderer.

The templates are in ``rubricnb/core/prompts/templates``. Texts of a dataset go into
them as values: they are never read as templates, and control tokens and ``[RESULT]``
in them are made inert.
"""

from rubricnb.core.prompts.control_tokens import inert
from rubricnb.core.prompts.labels import LABELS, labels_of, span
from rubricnb.core.prompts.render import render

__all__ = ["LABELS", "inert", "labels_of", "render", "span"]
