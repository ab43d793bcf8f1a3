"""A reading: what the columns and the cells of a stranger's file mean.

It is written down while the file is understood. What may mean two things is a question;
while one is open, no number is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from rubricnb.core.frames import FRAMES
from rubricnb.core.support.shown import showing, shown
from rubricnb.core.support.types import IntArray, Json
from rubricnb.files.outputs import replace_texts

KINDS = (
    "empty",
    "missing",
    "number",
    "label",
    "share",
    "word",
    "failed",
    "not understood",
    "off the scale",
)
ROLES = {"read", "form"} | {
    column.name
    for frame in ("items", "judgments", "rubrics")
    for column in FRAMES[frame]
}
"""What a column may be: the columns of items, rubrics and judgments."""
_MOST_WORDS = 20
"""A class of values lists its words up to this number of different ones."""


@contextmanager
def written_out() -> Iterator[None]:
    """Write out control characters in what is printed and in what an error says.

    A file of a stranger is read in here, and its names are quoted by both. It is every
    door's decorator, too.
    """
    with showing():
        try:
            yield
        except Exception as problem:
            error: BaseException | None = problem
            while error is not None:  # a traceback prints them all
                error.args = tuple(
                    shown(part) if isinstance(part, str) else part
                    for part in error.args
                )
                if isinstance(error, OSError):  # shows this, and not its arguments
                    error.strerror = shown(str(error.strerror))
                error = error.__cause__ or error.__context__
            raise


@dataclass(frozen=True)
class Question:
    """What may mean two things, and the lines that say which it is."""

    column: str
    key: str
    why: str
    readings: Mapping[str, str]

    def __str__(self) -> str:
        ways = [
            f"    {self.column} {self.key}: {value}    # {meaning}"
            for value, meaning in self.readings.items()
        ]
        return shown("\n".join([f"  {self.why}", *ways]))


class Reading:
    """What a file means: its columns, the classes of its values, what is open.

    Attributes
    ----------
    document
        ``table``: name, rows, separator, scale; ``columns``: the role of each column,
        why it has it, and the classes of its values, with counts and first examples;
        ``decisions``: what was decided by hand.
    questions
        What is open. `result` raises while there is one.
    """

    def __init__(self, who: str, decide: Decisions = ()) -> None:
        self.who = who
        self.separator = ","
        self.failed: tuple[float, ...] = ()
        self.saved, self.decided = _decisions(decide)
        self.questions: list[Question] = []
        self.original: dict[str, str] = {}
        self.document: Json = {"table": {}, "columns": {}}
        self._result: Any = None

    def begin(self, frame: pd.DataFrame, what: str, roles: Iterable[str]) -> None:
        """Note the table's columns and the roles that they were given."""
        self.document["table"] |= {
            "name": what,
            "rows": len(frame),
            "separator": self.separator,
        }
        for column, role in zip(frame, roles, strict=True):
            self.original[role] = str(column)
            is_known = role in ROLES or role.startswith("human")
            why = "its name" if role == str(column).strip().lower() else "named by you"
            self.document["columns"][str(column)] = (
                {"role": role, "why": why} if is_known else {"role": "own"}
            )

    def roles(self, table: pd.DataFrame) -> dict[str, str]:
        """Return the roles of columns that were decided, by the table's names."""
        return {
            column: f"own_{column}" if role == "own" else role
            for (column, key), role in self.decided.items()
            if key == "role" and column in table
            if role != "own" or column.casefold() in ROLES
        }

    def ask(self, column: str, key: str, why: str, readings: Mapping[str, str]) -> str:
        """Return what was decided; else note a question, and go on with the first."""
        column = self.original.get(column, column)
        given = self.decided.get((column, key))
        if given is None:
            if (column, key) not in {(one.column, one.key) for one in self.questions}:
                self.questions.append(Question(column, key, why, readings))
            return next(iter(readings))
        if given not in readings:
            raise ValueError(
                f"{self.who}: {column} {key}: {given} is none of {', '.join(readings)}"
            )
        return given

    def note(self, column: str, kind: IntArray, cells: pd.Series) -> None:
        """Note the classes of a column's values, with counts and first examples."""
        column = self.original.get(column, column)
        classes: dict[str, Json] = {}
        for code, own in cells.reset_index(drop=True).groupby(kind):
            name = KINDS[code]
            classes[name] = {"count": len(own), "first": str(own.iloc[0])[:60]}
            if name not in ("empty", "number", "share", "off the scale"):
                words = own.astype("str").str.slice(0, 60).unique()
                few = sorted(words) if len(words) <= _MOST_WORDS else []
                classes[name]["words"] = few
        self.document["columns"].setdefault(column, {"role": column})["values"] = (
            classes
        )

    def read(self, how: Callable[[Reading], Any]) -> Reading:
        """Keep what is read, unless a question is open: those come first."""
        try:
            with written_out():
                self._result = how(self)
        except ValueError:
            if not self.questions:
                raise
        if self.decided:
            lines = [f"{' '.join(asked)}: {how}" for asked, how in self.decided.items()]
            self.document["decisions"] = lines
        return self

    def result(self) -> Any:
        """Return what was read.

        Raises
        ------
        ValueError
            A question is open, or the file differs from the reading that was given.
        """
        if self.questions:
            asked = "\n".join(map(str, self.questions))
            one = self.questions[0]
            line = f"{one.column} {one.key}: {next(iter(one.readings))}"
            raise ValueError(
                f"{self.who}: {len(self.questions)} questions are open, and nothing is "
                f"computed\n{asked}\nSay which: --as {line!r} (in Python: "
                f"rb.reading(…, decide=[{line!r}]), which rb.judgments and rb.load "
                "take as their table)"
            )
        if self.saved is not None and (other := self._differences(self.saved)):
            raise ValueError(
                f"{self.who}: the file no longer fits the reading that was given: "
                f"{'; '.join(other)}. Look at the file, then save its reading again "
                "(python -m rubricnb read)"
            )
        return self._result

    def _differences(self, saved: Json) -> list[str]:
        """Say what this file has, and the one of another reading had not."""
        old, new = _facts(saved), _facts(self.document)
        changed = {k: v for k, v in new.items() if old.get(k, v) != v}
        return [
            *(f"{fact} is new" for fact in new if fact not in old),
            *(f"{fact} was {old[fact]}, is {value}" for fact, value in changed.items()),
            *(f"{c} is gone" for c in old if c not in new and c.startswith("the col")),
        ]

    @property
    def lines(self) -> list[str]:
        """Three lines: the rows, the roles of the columns, the classes of values."""
        table, columns = self.document["table"], self.document["columns"]
        roles: dict[str, list[str]] = {}
        counts = []
        for name, own in columns.items():
            roles.setdefault(str(own["role"]), []).append(name)
            values = own.get("values", {}).items()
            listed = ", ".join(f"{v['count']:,} {kind}" for kind, v in values)
            counts += [f"{name}: {listed}"] if listed else []
        said = [f"{role} = {', '.join(names)}" for role, names in roles.items()]
        scale = f", scale {table['scale']}" if "scale" in table else ""
        return [
            f"{table.get('name')}: {table.get('rows', 0):,} rows{scale}",
            f"columns: {'; '.join(said)}",
            f"values: {'; '.join(counts)}",
        ]

    def __str__(self) -> str:
        text = str(yaml.safe_dump(self.document, allow_unicode=True, sort_keys=False))
        if not self.questions:
            return text
        asked = "\n".join(map(str, self.questions)).replace("\n", "\n#")
        return f"{text}# open questions:\n#{asked}\n"

    def save(self, path: str | Path) -> None:
        """Write the reading as YAML."""
        replace_texts({Path(path): str(self)})


def _facts(document: Json) -> Json:
    """Return what must stay in a file that a reading was saved for."""
    table = document["table"]
    facts = {key: table[key] for key in ("separator", "scale") if key in table}
    for column, own in document["columns"].items():
        facts[f"the column {column!r}"] = own["role"]
        for kind, values in own.get("values", {}).items():
            words = values.get("words")
            if kind != "empty" and not words:
                facts[f"{kind} in {column!r}"] = words
            for word in words or []:
                facts[f"{word!r} ({kind}) in {column!r}"] = kind
    return facts


Decisions = str | Path | Sequence[str]


def _decisions(
    decide: Decisions,
) -> tuple[Json | None, dict[tuple[str, str], str]]:
    """Read lines ``COLUMN KEY: VALUE``, or a reading that was saved."""
    decided: dict[tuple[str, str], str] = {}
    saved = None
    if isinstance(decide, str | Path):
        saved = yaml.safe_load(Path(decide).read_text(encoding="utf-8"))
        if not isinstance(saved, dict) or not {"table", "columns"} <= set(saved):
            raise ValueError(
                f"{decide} is no reading: python -m rubricnb read makes one"
            )
        columns = saved["columns"].items()
        roles = [f"{name} role: {own['role']}" for name, own in columns]
        decide = [*roles, *saved.get("decisions", [])]
    for line in decide:
        left, mark, value = line.rpartition(":")
        column, space, key = left.strip().rpartition(" ")
        if not (mark and space):
            raise ValueError(f"{line!r} is no decision: write 'COLUMN KEY: VALUE'")
        decided[column.strip(), key] = value.strip()
    return saved, decided
