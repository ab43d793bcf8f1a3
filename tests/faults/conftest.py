"""What the tests of an endpoint share: a plan,
a run against it, and what the run stored.
"""

import sqlite3
from contextlib import closing

import pytest

import rubricnb as rb


@pytest.fixture(scope="session")
def plan():
    return rb.plan(rb.load("minibench", n_items=10), rb.balanced(5), readout="feedback")


@pytest.fixture
def asking(tmp_path):
    """Run requests against an endpoint, with one store for each test."""

    def run(url, requests, limits=None, **options):
        judge = rb.open_judge(
            f"openai:m@{url}", **{"retries": 0, "timeout": 60} | options
        )
        with closing(judge):
            return rb.run(
                requests, judge, store=tmp_path / "replies.sqlite", **limits or {}
            )

    return run


@pytest.fixture
def stored(tmp_path):
    """Return one column of all stored replies."""

    def read(column):
        with sqlite3.connect(tmp_path / "replies.sqlite") as db:
            return [value for (value,) in db.execute(f"SELECT {column} FROM replies")]

    return read
