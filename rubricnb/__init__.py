"""rubricnb: how far can one trust a language model that scores text against a rubric?

``import rubricnb as rb`` is lazy (PEP 562): a name is loaded when it is first used, so
that the import itself costs milliseconds and needs no engine.

Examples
--------
>>> import rubricnb as rb
>>> rb.balanced(3).orderings().tolist()
[[1, 2, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1], [2, 1, 3], [1, 3, 2]]
"""

import sys
import warnings
from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# pooch imports tqdm's notebook bar, which warns where ipywidgets is not installed;
# nothing here shows that bar, and a warning on a page fails the build of the book.
warnings.filterwarnings("ignore", message="IProgress not found")

# Module -> its names at the top, in the order of the paper's method section. What else
# a module offers is in its own ``__all__``, as ``rb.statistics.at_reads``. The pages of
# the reference and the linter read this table too; readers have ``__all__``.
PUBLIC = {
    "data": [
        "load",
        "datasets",
        "published",
        "reading",
        "judgments",
        "recordings",
        "load_recording",
    ],
    "core.permutation": [
        "balanced",
        "williams",
        "shuffled",
        "fixed",
        "placebo",
        "Design",
        "position_counts",
        "neighbour_counts",
    ],
    "judging": [
        "plan",
        "estimate_cost",
        "open_judge",
        "rendered",
        "run",
        "export_batch",
        "import_batch",
        "recorded",
        "simulate",
        "Profile",
        "open_profile",
        "stand_in",
    ],
    "engines.deciding": ["decide"],
    "engines.review": ["write_references", "with_references"],
    "auditing": ["audit"],
    "book.chapter": ["Chapter", "recorded_tables", "jackknifed"],
    "book.summary": ["recorded_summary"],
    "statistics": [
        "position_bias",
        "score_position",
        "bias_cost",
        "order_effect",
        "within_item_sd",
        "variance_components",
        "error_budget",
        "design_for",
        "advise",
        "budget_curve",
        "will_permuting_help",
        "agreement",
        "strategy_contrast",
        "quadratic_weighted_kappa",
        "criterion_order",
        "rank_reversal",
        "stability",
        "score_tendency",
        "mean_with_labels",
        "labels_needed",
        "option_probabilities",
        "position_prior",
        "remove_prior",
    ],
    "book.tables": [
        "say",
        "tell",
        "show",
        "check_drawn",
        "estimate",
        "interval",
        "p_value",
        "percent",
        "signed",
        "numbers_of",
        "short_names",
    ],
}
# Name -> the module that readers call by it, as ``rb.plots``; ``rb.data`` and
# ``rb.judging`` are façades, since the code of each is in two rooms.
MODULES = {
    "book": "book",
    "checks": "book.checks",
    "data": "data",
    "judging": "judging",
    "pages": "book.tables",
    "permutation": "core.permutation",
    "plots": "book.plots",
    "prompts": "core.prompts",
    "replication": "book.replication",
    "rulers": "rulers",
    "statistics": "statistics",
}
_HOME = {name: module for module, names in PUBLIC.items() for name in names}

__all__ = [*sorted(_HOME), *MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rubricnb.{_HOME[name]}"), name)
    if name in MODULES:
        return import_module(f"rubricnb.{MODULES[name]}")
    raise AttributeError(f"module 'rubricnb' has no attribute {name!r}")


# What a text under judgment says is shown as text, in every notebook.
if _shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
    _formatter = _shell.display_formatter.formatters["text/html"]
    _formatter.for_type_by_name(
        "pandas.io.formats.style",
        "Styler",
        lambda styler: import_module("rubricnb.book.tables").styled(styler),
    )


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
