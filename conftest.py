"""Doctests and tests keep answers in a store of their own, never in the user's."""

import os
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_store():
    """Name a store in a folder that goes at the end; child processes inherit it."""
    with (
        TemporaryDirectory(prefix="rubricnb-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RUBRICNB_STORE", os.path.join(folder, "replies.sqlite"))
        yield
