"""Stores as the first version of the format had them."""

import sqlite3
from contextlib import closing

SCHEMA = """
CREATE TABLE replies (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    probabilities TEXT, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, error TEXT, time REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE leases (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
PRAGMA user_version=1;
"""


def write_first(path, texts, leases=()):
    """Write a store with a reply for every key of `texts`, and (key, owner, expires) leases."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(SCHEMA)
        for key, text in texts.items():
            row = (key, "j", text, "stop", "[[0.5, 0.5]]", 9, 5, 7, 1.0, None, 1e9)
            db.execute(f"INSERT INTO replies VALUES ({','.join('?' * 11)})", row)
        db.executemany("INSERT INTO leases VALUES (?, ?, ?)", leases)
        db.commit()
