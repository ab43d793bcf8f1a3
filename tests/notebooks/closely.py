"""Marks for long tests: pages and chapters that are
not due are left to `make test-all`.
"""

import pytest

from tools.due import due


def slow_unless_due(names):
    """Mark as slow the pages and chapters that this commit's check does
    not read closely.
    """
    read = {
        page.removeprefix(folder)
        for page in due().pages
        for folder in ("", "notebooks/")
    }
    marks = {True: (), False: pytest.mark.slow}
    return [
        pytest.param(name, marks=marks[name.removesuffix(".html") in read])
        for name in names
    ]
