"""An audit as it is kept: its rows and charts, its files, and its gate."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rubricnb
from rubricnb.auditing import words
from rubricnb.auditing.gate import false_alarms, is_level
from rubricnb.auditing.html import page
from rubricnb.auditing.parts import changes_between, opened_with, parts_of, sha256_of
from rubricnb.auditing.terms import (
    ADVERSE,
    FAILS,
    FOUND,
    MEASURE_TABLE,
    MEASURES,
    TOO_FEW,
    WORST_FIRST,
)
from rubricnb.core.estimates.reasons import stored, unstored
from rubricnb.core.store import default_path
from rubricnb.core.support.types import Json, Records, Row
from rubricnb.files.outputs import check_outputs, replace_texts
from rubricnb.files.reading import written_out

SCHEMA = "rubricnb-audit/1"
_SIGNS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Audit:
    """What an audit found; holds neither texts nor answers.

    Attributes
    ----------
    judge, identity
        Who judged: slug, and everything about it that changes an answer.
    asked
        When, in seconds since 1970.
    design
        What was asked: ``datasets``, ``n_items``, ``n_clusters``,
        ``effective_clusters``, ``n_judgments``, ``n_asked`` (of this judge, now),
        ``n_rated`` (items), ``alone`` (no cluster has two texts), ``span`` and ``step``
        of the scale, ``truth`` (people, designed, gold or nothing), ``source``,
        ``value`` (score or expected_score), ``settings`` (None for judgments from
        elsewhere), ``looks`` (at what moves the scores) and ``calls`` (prompts by what
        they were for, in the ``first`` and the ``second`` look).
    status
        Number of judgments by status.
    rows
        One row per question: ``measure`` (a name in `MEASURES`), ``section``,
        ``question``, ``criterion`` (empty for all together; of several criteria each
        has rows of its own), ``effect`` with a 95 % cluster interval ``low, high`` in
        ``unit`` (of several positions the most extreme, with an interval and a p that
        hold for all of them); ``se, df``: what interval and p of an effect were
        computed from (of one alone, also of several positions); ``margin``: the
        smallest effect that matters; ``placebo``: the effect of neutral edits, already
        subtracted (of criteria: the effect of chance, not subtracted); ``flips``: the
        share of scores that change, and ``flips_beyond``: how many more than under
        neutral edits; ``p``, ``p_adjusted`` (Benjamini–Hochberg over the rows),
        ``p_equivalent`` (TOST against the margin, and that fewer scores change than
        matter), ``n_clusters``, ``looks`` (that interval and p allow for),
        ``steady_limit`` (of a gate, which an unchanged judge crosses in at most 5 % of
        the audits of as many other texts; of all rows of the measure together),
        ``verdict`` (see `VERDICTS`), ``sentence``, ``advice``,
        ``reason`` and ``codes`` (of the reasons, as in the tables of the statistics:
        `rubricnb.core.estimates.reasons`).
    unseen
        Measure → why this design cannot see it.
    cells
        Mean score of each item under each condition, its human rating and its
        system (``candidate``): for comparisons.
    charts
        Shares of the answers by position (``places``) and by score (``scores``), the
        mean score minus the rating at each level of the ratings (``levels``), the mean
        rating of each tenth of the items, by their scores (``calibration``), and the
        share of pairs of texts of one cluster with the same score (``ties``).
    parts
        The ``template``, ``rubric``, ``parser`` and ``model``, as texts by name: what a
        datasheet is bound to. Of judgments from elsewhere only the last is known.
    """

    judge: str
    identity: str
    asked: float
    design: Row
    status: dict[str, int]
    rows: pd.DataFrame
    unseen: dict[str, str]
    cells: pd.DataFrame
    charts: Row
    parts: dict[str, dict[str, str]]

    @cached_property
    def sentence(self) -> str:
        """The result in one sentence: the best finding, and each against the judge."""
        first = {name: self._said(rows) for name, rows in self.rows.groupby("measure")}
        moved = self.rows["measure"].map(MEASURE_TABLE["kind"]).eq("effect")
        moved &= ~self.rows["section"].isin(["texts", "against"])
        return words.headline(self, first, self.rows[moved].to_dict("records"))

    def _said(self, rows: pd.DataFrame) -> Records:
        """Row about all criteria or, if one does worse, a row for each verdict."""
        rows = rows.assign(on="", sizes=rows["effect"].map(words.number))
        each = rows[rows["criterion"] != ""]
        rank = each["verdict"].map(WORST_FIRST.index)
        sign = np.sign(each["effect"]).where(each["verdict"] == FOUND, 0)
        whole = rows["verdict"][rows["criterion"] == ""]
        worse = whole.empty or rank.min() < WORST_FIRST.index(whole.iloc[0])
        differ = len({*zip(rank, sign, strict=True)}) > 1
        if not (worse or (differ and rank.min() < len(ADVERSE))):
            return rows.head(1).to_dict("records")
        return [
            {
                **own.iloc[0],
                "on": f" on {words.listed([*own['criterion']])}",
                "sizes": ", ".join(own["sizes"]),
            }
            for _, own in each.groupby([rank, sign])
        ]

    @property
    def top(self) -> pd.DataFrame:
        """The rows that matter most: the parse rate first, the worst finding last."""
        first = self.rows["measure"].isin(["parsed", "agreement", "discrimination"])
        first &= (self.rows["criterion"] == "") | self.rows["verdict"].isin(ADVERSE)
        is_moved = self.rows["margin"].notna() & (self.rows["section"] != "against")
        others = self.rows[is_moved & ~self.rows["measure"].map(is_level)]
        differ = others.groupby("measure")["verdict"].transform("nunique") > 1
        others = others[(others["criterion"] == "") | differ]
        size = others["effect"].abs() / others["margin"]
        size = size.mask(others["measure"] == "halo").astype(float).fillna(0.0)
        worst = (size + 1e9 * (others["verdict"] == FOUND)).nlargest(1).index
        return pd.concat([self.rows[first], others.loc[worst]])

    def failures(
        self, fail_on: str | None = None, require: str | None = None
    ) -> list[str]:
        """Say which thresholds are not met.

        Parameters
        ----------
        fail_on
            Conditions under which the audit fails: ``"order>0.2, agreement<0.5"``. The
            names are those of `MEASURES`, the numbers in their units; an effect counts
            without its sign, and of several rows the worst.
        require
            Conditions that must hold: ``"order<0.2, agreement>0.5"``.

        Returns
        -------
        list of str
            One sentence per failure. What is not known, or what the design cannot see,
            fails with the reason, and a judge that gives every text the same score
            always fails.

        Raises
        ------
        ValueError
            An unknown name (lists those there are), or no such condition.
        """
        constant = self.rows[self.rows["verdict"] == FAILS]
        why = (constant["criterion"] + ": " + constant["reason"]).str.removeprefix(": ")
        said = [f"{self.judge}: {reason}" for reason in why.head(1)]
        for text, must in ((fail_on, False), (require, True)):
            said += [self._failure(*rule, must) for rule in thresholds(text)]
        return [why for why in said if why]

    def _failure(self, name: str, sign: str, limit: float, must: bool) -> str:
        rows = self.rows[self.rows["measure"] == name]
        if rows.empty:
            return f"{name}: this design cannot see it: {self.unseen[name]}"
        level = is_level(name)
        sizes = rows["effect"] if level else rows["effect"].abs()
        if sizes.isna().any():
            return f"{name}: not known: {rows[sizes.isna()].iloc[0]['reason']}"
        few = min(
            self.design["effective_clusters"],
            rows["n_clusters"].replace(0, np.inf).min(),
        )
        if few < TOO_FEW and name != "parsed":
            return f"{name}: {few:.0f} {words.effective(few)}: too few to show it"
        worst = sizes.idxmin() if level else sizes.idxmax()
        if _SIGNS[sign](sizes[worst], limit) == must:
            return ""
        rule = f"{'must be' if must else 'fails at'} {sign} {limit:g}"
        return (
            f"{name} ({rows['question'][worst]}) is {words.size(rows.loc[worst])}: "
            f"{rule}"
        )

    @property
    def steady_limits(self) -> dict[str, float]:
        """Measure → limit that an unchanged judge crosses in at most 5 % of audits."""
        limits = self.rows.groupby("measure", sort=False)["steady_limit"]
        of = {name: own.min() if is_level(name) else own.max() for name, own in limits}
        return {name: float(limit) for name, limit in of.items() if limit == limit}

    def false_alarms(self, fail_on: str | None) -> list[str]:
        """Say how often each condition of a gate goes red although nothing changed.

        Parameters
        ----------
        fail_on
            As in `failures`.
        """
        said, limits = [], self.steady_limits
        for name, sign, limit in thresholds(fail_on):
            often = "not known how often an unchanged judge crosses it"
            if name in limits and (sign[0] == "<") == is_level(name):
                rows = self.rows[self.rows["measure"] == name]
                often = (
                    "an unchanged judge crosses it in about "
                    f"{words.percent(round(false_alarms(rows, limit), 2))} of the "
                    f"audits of other texts, and {limits[name]:.3g} in at most 5 %"
                )
            said.append(f"{name}{sign}{limit:g}: {often}")
        return said

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each part, and of all together (``all``)."""
        return {
            name: sha256_of(part)
            for name, part in {**self.parts, "all": self.parts}.items()
        }

    def changes(
        self,
        judge: Any,
        items: Any,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> list[str]:
        """Say which part of a judge differs from the audited one; asks it nothing.

        Parameters
        ----------
        judge, items, options, **settings
            As in `audit`. Of the items, only the rubrics count.

        Returns
        -------
        list of str
            One sentence for each of template, rubric, parser and model that has
            changed.

        Raises
        ------
        ValueError
            The audit does not say what was audited.
        """
        _check_bound(self)
        with opened_with(judge, options, settings) as (opened, asked_with):
            now = parts_of(opened, items, asked_with)
        said = "Restore it, or audit the judge again with --datasheet"
        return [f"{change}. {said}" for change in changes_between(self.parts, now)]

    def to_json(self) -> str:
        """Write the audit as `read_audit` reads it."""
        made = datetime.fromtimestamp(self.asked, UTC).isoformat(timespec="seconds")
        head = {"schema": SCHEMA, "package": rubricnb.__version__, "date": made}
        rows = self.rows.assign(codes=self.rows["codes"].map(stored))
        tables = {  # exact, as an audit is compared with another
            k: json.loads(frame.to_json(orient="records", double_precision=15))
            for k, frame in {"rows": rows, "cells": self.cells}.items()
        }
        content = asdict(replace(self, rows=None, cells=None))
        content |= {"sentence": self.sentence, "hashes": self.hashes}
        whole = head | content | tables
        whole["checksum"] = sha256_of(whole)
        # A row of a table is a line: Python writes indented JSON ten times as slowly.
        texts = {
            k: "[\n  " + ",\n  ".join(map(_compact, part)) + "\n ]"
            if k in tables
            else _compact(part)
            for k, part in whole.items()
        }
        parts = ",\n ".join(f"{_compact(k)}: {text}" for k, text in texts.items())
        return f"{{\n {parts}\n}}\n"

    def save(self, path: str | Path, *others: Audit, datasheet: bool = False) -> None:
        """Write the page to `path`, and the numbers beside it as ``.json``.

        The page shows `others` below; a `datasheet` is the judge's alone.

        Raises
        ------
        ValueError
            `path` does not end in ``.html``, cannot be written, or has a ``.json``
            beside it that no audit wrote.
        """
        if datasheet:
            _check_bound(self)
        check_files(path)
        html = page(self, *others, datasheet=datasheet)
        numbers = Path(path).with_suffix(".json")
        replace_texts({Path(path): html, numbers: self.to_json()})


_compact = json.JSONEncoder(ensure_ascii=False).encode


def _check_bound(audit: Audit) -> None:
    if "template" not in audit.parts:
        raise ValueError(
            f"the audit of {audit.judge} does not record prompt, rubric and parser: "
            "its judgments were made elsewhere. Audit the judge itself (--judge)"
        )


def thresholds(text: str | None) -> list[tuple[str, str, float]]:
    """Parse ``"order>0.2, agreement<0.5"``; refuse unknown measures."""
    found = []
    parts = [] if text is None else text.strip().removesuffix(",").split(",")
    for part in map(str.strip, parts):
        match = re.fullmatch(r"(\w+)\s*(<=|>=|<|>)\s*(-?\d*\.?\d+)", part)
        if match is None or match[1] not in MEASURES:
            raise ValueError(
                f"{part!r} is not a "
                f"threshold{'' if part else ' (is a variable unset?)'}: write "
                "NAME<NUMBER or NAME>NUMBER (also <=, >=), with commas between them; "
                f"names: {', '.join(MEASURES)}"
            )
        found.append((match[1], match[2], float(match[3])))
    return found


def check_files(page: str | Path, inputs: Sequence[str | Path | None] = ()) -> None:
    """Refuse a page that cannot be written, or would replace what is not an audit's.

    The numbers go beside the page, under a name that nobody typed, so a ``.json`` there
    is replaced only if an audit wrote it.

    Parameters
    ----------
    page
        Where the page goes; ends in ``.html``.
    inputs
        What is read for it, the store aside.

    Raises
    ------
    ValueError
        The message names the file.
    """
    page = Path(page)
    if page.suffix != ".html":
        raise ValueError(
            f"{page}: name a page that ends in .html; the numbers go beside it as .json"
        )
    numbers = page.with_suffix(".json")
    how = "choose a different page with --output NAME.html (in Python: path)"
    check_outputs([page, numbers], [*inputs, default_path()], how)
    # Any version of `Audit.to_json` begins so.
    begins = numbers.read_bytes()[:200] if numbers.is_file() else b""
    if begins and not re.match(rb'\{\s*"schema": "rubricnb', begins):
        raise ValueError(f"{numbers} exists and was not written by an audit: {how}")


def _numbers(content: Json) -> Iterator[tuple[str, Any]]:
    """Everything in a stored audit that its page and its gate compute with, by name."""
    for table in ("rows", "cells"):
        for row in content[table]:
            yield from ((f"{table}: {k}", row[k]) for k in row.keys() - _TEXTS)
    yield from (("status", n) for n in content["status"].values())
    yield from ((f"design: {k}", content["design"].get(k)) for k in _COUNTS)
    yield from (("charts: ties", n) for n in content["charts"]["ties"].values())
    yield "asked", content["asked"]


_TEXTS = {
    *("measure", "section", "question", "criterion", "unit", "verdict", "sentence"),
    "advice",
    "reason",
    "varied",
    "codes",
    "dataset",
    "item_id",
    "cluster_id",
    "candidate",
}
_COUNTS = ("n_items", "n_rated", "n_clusters", "effective_clusters", "span", "step")


@written_out()
def read_audit(path: str | Path) -> Audit:
    """Read an audit that was written as JSON.

    Raises
    ------
    ValueError
        The file is not such an audit.
    """
    if not Path(path).is_file():
        raise ValueError(f"there is no {path}: give the .json that an audit wrote")
    try:
        stored = json.loads(Path(path).read_text("utf-8"))
        if stored["schema"] != SCHEMA:
            raise ValueError(f"its schema is {stored['schema']!r}, and not {SCHEMA!r}")
        if stored.pop("checksum") != sha256_of(stored):
            raise ValueError("it was edited or damaged: its checksum does not match")
        content = {name: stored[name] for name in Audit.__dataclass_fields__}
        for name, value in _numbers(content):
            if value is not None and not isinstance(value, int | float):
                raise ValueError(f"{name} is {value!r}, and not a number")
        parts = content["parts"].values()
        if not all(isinstance(text, str) for p in parts for text in p.values()):
            raise ValueError("a part of the judge is not a text")
        if strange := {row["measure"] for row in content["rows"]} - MEASURES.keys():
            raise ValueError(f"it has rows of an unknown measure: {strange}")
        content["rows"] = [
            {"criterion": "", "varied": "", "looks": 1, "steady_limit": np.nan}
            | row
            | {"codes": unstored(row.get("codes"), row["reason"])}
            for row in content["rows"]
        ]
        tables = {
            name: pd.DataFrame(content[name]).fillna(np.nan)
            for name in ("rows", "cells")
        }
        audit = Audit(**content | tables)
        for datasheet in (False, True):  # what cannot be shown was not written here
            page(audit, datasheet=datasheet)
    except Exception as error:
        raise ValueError(
            f"{path}: give the .json that an audit wrote ({error!r})"
        ) from error
    return audit
