"""One page about one judge: is it any good, what moves it, and what to do about it.

First whether its answers can be read, tell texts apart and agree with people; then whether it
matters which position an option has, what the scores are called, which reference is shown and in
which order criteria are asked. Every effect has an interval and a test, and is given beside the
effects of neutral edits and of asking again. Questions and tests are fixed before looking; the
p-values of an audit are one family. ``measures.yml`` says what is measured,
``words.jinja`` how a result is said, ``page.jinja`` is the page.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import operator
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from os.path import commonprefix
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

import rubricnb
from rubricnb import parsing
from rubricnb.data import judgments as judgments_from
from rubricnb.data.rubrics import check_items, scales_of
from rubricnb.frames import Items, Judgments, Requests
from rubricnb.hashing import hash64, mix64
from rubricnb.judging.cost import estimate_cost
from rubricnb.judging.function import _fingerprint
from rubricnb.judging.judge import OF_REQUESTS, JudgeLike, describe, judging
from rubricnb.judging.plan import labels_there_are, plan
from rubricnb.judging.prices import Budget
from rubricnb.judging.rendering import askable
from rubricnb.judging.run import run
from rubricnb.judging.store import Store, default_path, open_store
from rubricnb.outputs import check_outputs
from rubricnb.pages import check_answered, condition_names, truth_of
from rubricnb.permutation import Design, balanced, decode, fixed, placebo
from rubricnb.statistics import (
    agreement,
    criterion_order,
    judge_bias,
    position_bias,
    stability,
    system_agreement,
)
from rubricnb.statistics import intervals as inference
from rubricnb.statistics.intervals import Estimate
from rubricnb.statistics.kappa import kappa_of_sums, kappa_sums
from rubricnb.statistics.losses import (
    MOST_LOST,
    left_out,
    losses_of,
    lost_scores,
    open_sign,
    share_lost,
)
from rubricnb.statistics.reads import FloatArray, Value, item_means, matched, values_of
from rubricnb.statistics.reasons import (
    Reason,
    Reasons,
    Why,
    because_each,
    collect,
    join,
    stored,
    unstored,
    without,
)
from rubricnb.statistics.stability import BASELINE
from rubricnb.statistics.weighting import overall

ALPHA = 0.05
MARGINS = {"score points": 0.1, "points per point": 0.05, "percentage points": 2.0, "r": 0.02,
           "κ": 0.02, "share of scores": 0.25, "share of texts": 0.25}  # fmt: skip
"""The smallest effects that matter, by unit; score points: on a scale of five levels."""
TOO_FEW = 5
"""Effective clusters below which no judge is asked, and no verdict is given."""
MOSTLY = 0.9
"""Share of scores, or ratings, that are one value, from which an audit says so."""
ENOUGH_PARSED, MODERATE_LEVEL, STRONG_LEVEL = 0.95, 0.3, 0.6
FOUND, SMALL, ABSENT, UNCLEAR = "found", "negligible", "not found", "inconclusive"
STRONG, MODERATE, WEAK, REVERSED = "strong", "moderate", "weak", "reversed"
SHOWN, FAILS, NOTED = "shown", "fails", "measured"
ADVERSE = (FAILS, REVERSED, WEAK, FOUND)
"""Verdicts that speak against a judge."""
_WORST_FIRST = (*ADVERSE, UNCLEAR, MODERATE, STRONG, SHOWN, NOTED, SMALL, ABSENT)
SCHEMA = "rubricnb-audit/1"
MEASURES: dict[str, dict[str, str]]
VERDICTS: list[dict[str, str]]
MEASURES, VERDICTS = yaml.safe_load_all(
    (files("rubricnb.auditing") / "measures.yml").read_text("utf-8")
)
"""What is measured (section, kind, unit, claim, meaning, why it may be missing, advice), and what
a judge must do to get each verdict."""
_KNOWN = pd.DataFrame.from_dict(MEASURES, orient="index")
_FIRST, _DAY, _OWN = 20, 86_400, ("template", "parser")
_SIGNS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
_COLUMNS = (
    *("measure", "question", "effect", "low", "high", "se", "df", "placebo", "flips"),
    *("flips_beyond", "p", "p_equivalent", "n_clusters", "reason", "codes"),
    *("constant", "p_steady", "scrambled", "own_act"),
)
_ITEM = ["dataset", "item_id", "criterion"]
_KEYS = [*_ITEM, "cluster_id"]
_RETEST = "retest after rewording"
_PLAIN, _FULL = "baseline", "reference of full mark"
_WORDS: Any = Environment(  # plain text; the page escapes it
    loader=PackageLoader("rubricnb.auditing", "."), undefined=StrictUndefined, autoescape=False
).get_template("words.jinja", globals={"measures": MEASURES}).module  # fmt: skip


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
        What was asked: ``datasets``, ``n_items``, ``n_clusters``, ``effective_clusters``,
        ``n_judgments``, ``n_asked`` (of this judge, now), ``n_rated`` (items), ``alone`` (no
        cluster has two texts), ``span`` and
        ``step`` of the scale, ``truth`` (people, designed, gold or nothing), ``source``, ``value``
        (score or expected_score) and ``settings`` (None for judgments from elsewhere).
    status
        Number of judgments by status.
    rows
        One row per question: ``measure`` (a name in `MEASURES`), ``section``, ``question``,
        ``criterion`` (empty for all together; of several criteria each has rows of its own),
        ``effect`` with a 95 % cluster interval ``low, high`` in ``unit`` (of several positions the
        most extreme, with an interval and a p that hold for all of them); ``se, df``: what interval
        and p of an effect were computed from (of one alone, also of several positions);
        ``margin``: the smallest
        effect that matters; ``placebo``: the effect of neutral edits, already subtracted (of
        criteria: the effect of chance, not subtracted); ``flips``: the share of scores that change,
        and ``flips_beyond``: how many more than under neutral edits; ``p``, ``p_adjusted``
        (Benjamini–Hochberg over the rows), ``p_equivalent`` (TOST against the margin, and that
        fewer scores change than matter), ``n_clusters``, ``verdict`` (see `VERDICTS`),
        ``sentence``, ``advice``, ``reason`` and ``codes`` (of the reasons, as in the tables of the
        statistics: `rubricnb.statistics.reasons`).
    unseen
        Measure → why this design cannot see it.
    cells
        Mean score of each item under each condition, and its human rating: for comparisons.
    charts
        Shares of the answers by position (``places``) and by score (``scores``), the mean score
        minus the rating at each level of the ratings (``levels``), and the share of pairs of texts
        of one cluster with the same score (``ties``).
    parts
        The ``template``, ``rubric``, ``parser`` and ``model``, as texts by name: what a datasheet
        is bound to. Of judgments from elsewhere only the last is known.
    """

    judge: str
    identity: str
    asked: float
    design: dict[str, Any]
    status: dict[str, int]
    rows: pd.DataFrame
    unseen: dict[str, str]
    cells: pd.DataFrame
    charts: dict[str, Any]
    parts: dict[str, dict[str, str]]

    @cached_property
    def sentence(self) -> str:
        """The result in one sentence: the best finding, and every one against the judge."""
        first = {name: self._said(rows) for name, rows in self.rows.groupby("measure")}
        moved = self.rows["measure"].map(_KNOWN["kind"]).eq("effect")
        moved &= ~self.rows["section"].isin(["texts", "against"])
        effects = self.rows[moved].to_dict("records")
        return str(_WORDS.headline(self, first, effects, inference.FEW_CLUSTERS)).strip()

    def _said(self, rows: pd.DataFrame) -> list[dict[str, Any]]:
        """Row about all criteria or, if one does worse than these, a row for each verdict."""
        rows = rows.assign(on="", sizes=rows["effect"].map(_WORDS.number))
        each = rows[rows["criterion"] != ""]
        rank = each["verdict"].map(_WORST_FIRST.index)
        sign = np.sign(each["effect"]).where(each["verdict"] == FOUND, 0)
        whole = rows["verdict"][rows["criterion"] == ""]
        worse = whole.empty or rank.min() < _WORST_FIRST.index(whole.iloc[0])
        adverse = each["verdict"].isin(ADVERSE).any() and len({*zip(rank, sign, strict=True)}) > 1
        if not (worse or adverse):
            return rows.head(1).to_dict("records")
        return [{
            **own.iloc[0], "on": f" on {_WORDS.listed([*own['criterion']])}",
            "sizes": ", ".join(own["sizes"]),
        } for _, own in each.groupby([rank, sign])]  # fmt: skip

    @property
    def top(self) -> pd.DataFrame:
        """The three or four rows that matter most: the parse rate first, the worst finding last."""
        first = self.rows["measure"].isin(["parsed", "agreement", "discrimination"])
        first &= (self.rows["criterion"] == "") | self.rows["verdict"].isin(ADVERSE)
        others = self.rows[self.rows["margin"].notna() & (self.rows["section"] != "against")]
        others = others[~others["measure"].map(_KNOWN["kind"]).isin(["level", "fact"])]
        differ = others.groupby("measure")["verdict"].transform("nunique") > 1
        others = others[(others["criterion"] == "") | differ]
        size = others["effect"].abs() / others["margin"]
        size = size.mask(others["measure"] == "halo").fillna(0.0)
        worst = (size + 1e9 * (others["verdict"] == FOUND)).nlargest(1).index
        return pd.concat([self.rows[first], others.loc[worst]])

    def failures(self, fail_on: str | None = None, require: str | None = None) -> list[str]:
        """Say which thresholds are not met.

        Parameters
        ----------
        fail_on
            Conditions under which the audit fails: ``"order>0.2, agreement<0.5"``. The names are
            those of `MEASURES`, the numbers in their units; an effect counts without its sign, and
            of several rows the worst.
        require
            Conditions that must hold: ``"order<0.2, agreement>0.5"``.

        Returns
        -------
        list of str
            One sentence per failure. What is not known, or what the design cannot see, fails with
            the reason, and a judge that gives every text the same score always fails.

        Raises
        ------
        ValueError
            An unknown name (lists those there are), or no such condition.
        """
        constant = self.rows[self.rows["verdict"] == FAILS]
        why = (constant["criterion"] + ": " + constant["reason"]).str.removeprefix(": ")
        said = [f"{self.judge}: {reason}" for reason in why.head(1)]
        for text, must in ((fail_on, False), (require, True)):
            rules = [] if text is None else thresholds(text)
            said += [self._failure(*rule, must) for rule in rules]
        return [why for why in said if why]

    def _failure(self, name: str, sign: str, limit: float, must: bool) -> str:
        rows = self.rows[self.rows["measure"] == name]
        if rows.empty:
            return f"{name}: this design cannot see it: {self.unseen[name]}"
        level = MEASURES[name]["kind"] in ("level", "fact")
        sizes = rows["effect"] if level else rows["effect"].abs()
        if sizes.isna().any():
            return f"{name}: not known: {rows[sizes.isna()].iloc[0]['reason']}"
        few = min(self.design["effective_clusters"], rows["n_clusters"].replace(0, np.inf).min())
        if few < TOO_FEW and name != "parsed":
            return f"{name}: {few:.0f} effective clusters are too few to show it"
        worst = sizes.idxmin() if level else sizes.idxmax()
        if _SIGNS[sign](sizes[worst], limit) == must:
            return ""
        rule = f"{'must be' if must else 'fails at'} {sign} {limit:g}"
        return f"{name} ({rows['question'][worst]}) is {_WORDS.size(rows.loc[worst])}: {rule}"

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each part, and of all together (``all``)."""
        return {name: _sha256(part) for name, part in {**self.parts, "all": self.parts}.items()}

    def changes(
        self, judge: Any, items: Any, options: Mapping[str, Any] | None = None, **settings: Any
    ) -> list[str]:
        """Say which part of a judge differs from the audited one; asks it nothing.

        Parameters
        ----------
        judge, items, options, **settings
            As in `audit`. Of the items, only the rubrics count.

        Returns
        -------
        list of str
            One sentence for each of template, rubric, parser and model that has changed.

        Raises
        ------
        ValueError
            The audit does not say what was audited.
        """
        _check_bound(self)
        with _opened(judge, options, settings) as (opened, asked_with):
            now = _parts(opened, items, asked_with)
        said = "Restore it, or audit the judge again with --datasheet"
        return [f"{change}. {said}" for change in _changes(self.parts, now)]

    def to_json(self) -> str:
        """Write the audit as `read_audit` reads it."""
        made = datetime.fromtimestamp(self.asked, UTC).isoformat(timespec="seconds")
        head = {"schema": SCHEMA, "package": rubricnb.__version__, "date": made}
        rows = self.rows.assign(codes=self.rows["codes"].map(stored))
        frames = {"rows": rows, "cells": self.cells}
        exact = {"orient": "records", "double_precision": 15}  # an audit is compared with another
        tables = {k: json.loads(frame.to_json(**exact)) for k, frame in frames.items()}
        content = asdict(replace(self, rows=None, cells=None)) | {"sentence": self.sentence}
        whole = head | content | {"hashes": self.hashes} | tables
        whole["checksum"] = _sha256(whole)
        # A row of a table is a line: Python writes indented JSON ten times as slowly.
        lines = {k: ",\n  ".join(map(_compact, rows)) for k, rows in tables.items()}
        texts = {k: f"[\n  {rows}\n ]" for k, rows in lines.items()}
        for k in whole.keys() - tables.keys():
            texts[k] = json.dumps(whole[k], ensure_ascii=False, indent=1).replace("\n", "\n ")
        return "{\n " + ",\n ".join(f"{_compact(k)}: {texts[k]}" for k in whole) + "\n}\n"

    def save(self, path: str | Path, *others: Audit, datasheet: bool = False) -> None:
        """Write the page to `path`, and the numbers beside it with the suffix ``.json``.

        The page shows `others` below; a `datasheet` is the judge's alone.

        Raises
        ------
        ValueError
            `path` does not end in ``.html``, cannot be written, or has a ``.json`` beside it that
            no audit wrote.
        """
        if datasheet:
            _check_bound(self)
        check_files(path)
        Path(path).write_text(page(self, *others, datasheet=datasheet), encoding="utf-8")
        Path(path).with_suffix(".json").write_text(self.to_json(), encoding="utf-8")


def _compact(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def _sha256(content: Any) -> str:
    """SHA-256 of a JSON document, however its keys are ordered."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _parts(judge: Any, items: Items, settings: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """What the answers of a judge come from, as texts by name."""
    own = getattr(judge, "own_prompt", None)
    parser = getattr(judge, "parser", None) or parsing.last_label
    named = [getattr(parser, name, "") for name in ("__name__", "key", "pattern", "flags")]
    book = files("rubricnb") / "prompts" / "templates"
    texts = {name: (book / f"{name}.jinja").read_text("utf-8") for name in ("rubric", "criteria")}
    levels = items.rubrics[items.rubrics["rubric_id"].isin(items["rubric_id"])]
    levels = levels[levels["variant"] == settings.get("variant", "standard")].astype("str")
    asked = {name: str(value) for name, value in settings.items() if name != "seed"}
    asked["readout"] = asked["readout"].replace("auto", judge.readouts[0])
    identity = judge.identity.removesuffix(f" template {own.sha256[:16]}" if own else "")
    return {
        "template": {"text": own.source} if own else texts,
        "rubric": {
            f"{level.pop('rubric_id')}, score {level.pop('score')}": "\n".join(
                text
                for text in level.values()
                if isinstance(text, str)  # others have no weight
            )
            for level in levels.sort_values(["rubric_id", "score"]).to_dict("records")
        },
        "parser": {
            "reads": " ".join([type(parser).__name__, *map(str, filter(None, named))]),
            "code": _fingerprint(parser) + _sha256(inspect.getsource(parsing))[:16],
        },
        "model": {"identity": identity, **asked},
    }


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each part that differs, with the first difference in it."""
    said = []
    for part in (part for part in then if then[part] != now.get(part)):
        old, new = then[part], now.get(part, {})
        name = next(name for name in {**old, **new} if old.get(name) != new.get(name))
        texts = [side.get(name, "(nothing)") for side in (old, new)]
        start = max(0, len(commonprefix(texts)) - 20)  # noqa: RUF071 (these are no paths)
        was, it_is = (repr(text[start : start + 60]) for text in texts)
        said.append(f"the {part} has changed since the audit: {name} was {was} and is {it_is}")
    return said


def _check_bound(audit: Audit) -> None:
    if "template" not in audit.parts:
        raise ValueError(
            f"the audit of {audit.judge} does not record prompt, rubric and parser: its judgments "
            "were made elsewhere. Audit the judge itself (--judge)"
        )


@contextmanager
def _opened(judge: Any, options: Any, settings: Any, price: Any = None) -> Iterator[Any]:
    """Open a judge, and give the settings of its requests."""
    engine = {**(options or {}), **{k: settings[k] for k in _OWN if settings.get(k)}}
    usual = {"readout": "auto", "temperature": 0.0, "seed": 0}
    usual |= {k: engine.pop(k) for k in OF_REQUESTS if k in engine}
    with judging(judge, price, **engine) as described:
        yield described.opened(), usual | {k: v for k, v in settings.items() if k not in _OWN}


def thresholds(text: str) -> list[tuple[str, str, float]]:
    """Parse ``"order>0.2, agreement<0.5"``; refuse unknown measures."""
    found = []
    for part in map(str.strip, text.strip().removesuffix(",").split(",")):
        match = re.fullmatch(r"(\w+)\s*(<=|>=|<|>)\s*(-?\d*\.?\d+)", part)
        if match is None or match[1] not in MEASURES:
            raise ValueError(
                f"{part!r} is not a threshold{'' if part else ' (is a variable unset?)'}: write "
                "NAME<NUMBER or NAME>NUMBER (also <=, >=), with commas between them; names: "
                f"{', '.join(MEASURES)}"
            )
        found.append((match[1], match[2], float(match[3])))
    return found


def check_files(page: str | Path, inputs: Sequence[str | Path | None] = ()) -> None:
    """Refuse a page whose files cannot be written, or would replace what is not an audit's.

    The numbers go beside the page, under a name that nobody typed, so a ``.json`` there is replaced
    only if an audit wrote it.

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
    if numbers.is_file() and numbers.stat().st_size and not _is_audit(numbers):
        raise ValueError(f"{numbers} exists and was not written by an audit: {how}")


def _is_audit(file: Path) -> bool:
    """Whether a file begins as `Audit.to_json` does; any version."""
    with file.open("rb") as content:
        return bool(re.match(rb'\{\s*"schema": "rubricnb', content.read(200)))


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
        if stored.pop("checksum") != _sha256(stored):
            raise ValueError("it was edited or damaged: its checksum does not match")
        content = {name: stored[name] for name in Audit.__dataclass_fields__}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: give the .json that an audit wrote ({error!r})") from error
    content["rows"] = [
        {"criterion": ""} | row | {"codes": unstored(row.get("codes"), row["reason"])}
        for row in content["rows"]
    ]
    tables = {name: pd.DataFrame(content[name]).fillna(np.nan) for name in ("rows", "cells")}
    return Audit(**content | tables)


def audit(
    judge: Any = None,
    items: Items | None = None,
    path: str | Path | None = None,
    *,
    judgments: pd.DataFrame | str | Path | None = None,
    scale: Any = None,
    n_items: int | None = None,
    n_prompts: int | None = None,
    options: Mapping[str, Any] | None = None,
    against: Audit | str | Path | None = None,
    force: bool = False,
    store: Store | str | Path | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float, float] | None = None,
    **settings: Any,
) -> Audit:
    """Audit a judge: ask it the same items in many ways, and say whether it is any good.

    Parameters
    ----------
    judge
        From `open_judge`, or what that takes. With `judgments` of several judges, templates or
        temperatures: which.
    items
        What it judges, from `load`. Several criteria per text allow the question about their order;
        graded answers (``reference_1`` …) or a full-mark one (``reference``) that about references.
    path
        Where to write the page, one HTML file that needs nothing else, and its numbers beside it
        as ``.json``; default: neither.
    judgments, scale
        Judgments that were made elsewhere, as in `rubricnb.judgments`; no judge is asked.
    n_items, n_prompts
        Draw so many items, and from so many clusters (prompts, or whatever texts share): whole
        texts, evenly from all of these. Default: all.
    options
        thinking, effort, max_tokens; any other goes to the engine's class, as concurrency.
    against
        An earlier audit of this judge, or its ``.json``. The judge is asked again (an audit that is
        stopped goes on with its own answers for a day, and no others count), and rows of the
        section ``against`` say what has changed.
    force
        Ask even if there are fewer than five effective clusters.
    store
        As in `run`: an audit that was stopped goes on where it was.
    max_calls, max_cost, price
        As in `run`, for all questions together.
    **settings
        ``template`` and ``parser``, as in `open_judge`; readout, temperature, seed, … of `plan`.

    Returns
    -------
    Audit
        ``sentence``, ``top``, ``rows``, ``failures("order>0.2")``, ``save(path)``.

    Raises
    ------
    ValueError
        Too few clusters, not one score in the first answers, or another judge than before.
    RunInterrupted
        At a limit or on Ctrl-C, before anything is written; says how to go on.

    Examples
    --------
    >>> import rubricnb as rb
    >>> found = audit("simulated:letter-strict", rb.load("minibench"), store=":memory:")
    ... # doctest: +ELLIPSIS
    simulated:letter-strict: ...
    >>> found.rows.set_index("question").verdict["letters"]
    'found'
    """
    if path is not None:  # before anything is asked
        read = [given for given in (judgments, against) if isinstance(given, str | Path)]
        check_files(path, read)
    before = read_audit(against) if isinstance(against, str | Path) else against
    if judgments is not None:
        limits = {"n_items": n_items, "n_prompts": n_prompts, "max_calls": max_calls,
                  "max_cost": max_cost, "options": options or None, **settings}  # fmt: skip
        if idle := [name for name, given in limits.items() if given is not None]:
            said = "with judgments=, every row is used and no judge is asked: leave out"
            raise ValueError(f"{said} {', '.join(idle)}")
        is_read = items is None and isinstance(judgments, Judgments) and hasattr(judgments, "rated")
        table = judgments_from(judgments, items, None if is_read else scale)
        chosen = part_of(table, judge)
        own = str(chosen["judge"].iloc[0])
        name = own.replace("unknown", "the judge")
        name += f", {judge}" if judge is not None and str(judge) != own else ""
        done = findings([chosen], table.rated, name, f"judgments of {name}")
        _check_same(before, done.parts)
    elif judge is None or items is None:
        raise ValueError("an audit needs a judge and items, or judgments that were made elsewhere")
    else:
        check_items(items)
        every = items
        items = drawn(items, n_items, n_prompts, settings.get("seed", 0))
        _check_enough(items, force)
        with _opened(judge, options, settings, price) as (opened, settings):
            parts = _parts(opened, every, settings)
            _check_same(before, parts)
            fresh = before is not None and _again(before, store)
            budget = Budget(max_calls, max_cost)
            planned = [askable(part, opened) for part in audit_requests(items, **settings)]
            asked = [part for part, _ in planned if len(part)]
            refused = {kind: why for _, reasons in planned for kind, why in reasons.items()}
            if not asked:
                raise ValueError("; ".join(refused.values()))
            # Stop early for a judge that never gives a score.
            first = asked[0].iloc[:: max(1, len(asked[0]) // _FIRST)]
            check_answered(run(first, opened, store, fresh, budget=budget))
            answers = [run(requests, opened, store, fresh, budget=budget) for requests in asked]
        done = findings(answers, items, opened.slug, opened.identity, settings, refused)
        done.design["n_asked"] = budget.asked
        done.parts.update(parts)
        if not budget.asked:
            print(f"{opened.slug}: {_NOT_ASKED_WARNING}", flush=True)
    done = done if before is None else beside(before, done)
    if path is not None:
        done.save(path)
    return done


def _again(before: Audit, store: Store | str | Path | None) -> int:
    """Return the run that asks again what an earlier audit asked: within a day, the same one."""
    with open_store(store) as kept:
        return kept.run_begun(f"again, after {before.judge} {before.asked!r}", _DAY)


def _check_enough(items: pd.DataFrame, force: bool) -> None:
    few = inference.effective_clusters(pd.factorize(items["cluster_id"])[0])
    if few < TOO_FEW and not force:
        raise ValueError(
            f"{few:.1f} effective clusters (texts that share a prompt count as one): below "
            f"{TOO_FEW} results do not carry over to other texts. Use texts of more prompts "
            "(n_prompts, --n-prompts), or run anyway (force=True, --force)"
        )


def _check_same(before: Audit | None, parts: Mapping[str, Any]) -> None:
    """Refuse to report a changed judge or changed questions as drift; asks the judge nothing."""
    if before and (changes := _changes(before.parts, parts)):
        way_out = "If this is intended, audit the judge and then compare the two audits (--compare)"
        raise ValueError(f"{'; '.join(changes)}. {way_out}")


def audit_requests(items: Items, **settings: Any) -> list[Requests]:
    """Plan an audit: Setting 1, and Setting 2 where every text has the same several criteria.

    Examples
    --------
    >>> import rubricnb as rb
    >>> [len(requests) for requests in audit_requests(rb.load("minibench", n_items=15))]
    [336, 55]
    """
    which, scales = scales_of(items)
    parts = []
    for number, scale in enumerate(scales):
        n, own = len(scale), _some(items, which == number)
        one = fixed(n, 1)
        orders = [fixed(n, 2), Design("descending", n), placebo(n, 5), balanced(n)]
        shown = _graded(own, scale.tolist()) or ("auto" if "reference" in own else None)
        parts.append(plan(own, orders, reference="none", **settings))
        if labels := labels_there_are(own, ["letter", "roman"], n):
            parts.append(plan(own, one, labels=labels, reference="none", **settings))
        parts += [plan(own, one, reference=shown, **settings)] if shown else []
    coded = dict.fromkeys(parts[0].select_dtypes("category"), "category")  # on each scale
    asked = [Requests(pd.concat(parts, ignore_index=True).astype(coded))]
    asked[0].source = items
    criteria = items.groupby("text_id", observed=True).size().unique()
    if len(criteria) == 1 < criteria[0] and len(scales) == 1:
        k = int(criteria[0])
        designs = [fixed(k, 2), placebo(k, 3), balanced(k)]
        asked.append(plan(items, designs, template="criteria", n_options=n, **settings))
    return asked


def _graded(items: Items, scale: Sequence[float]) -> list[int]:
    """Choose scores with references for all items: two inner ones if possible, and the last."""
    there = [int(k) for k in scale if (c := f"reference_{k:g}") in items and items[c].notna().all()]
    inner = [k for k in there if scale[0] < k < scale[-1]]
    two = inner if len(inner) > 1 else there
    return sorted({*two[:1], *two[-1:], *there[-1:]} if len(two) > 1 else there)


def audit_cost(
    judge: JudgeLike, items: Items, price: tuple[float, float, float] | None = None, **how: Any
) -> pd.DataFrame:
    """Estimate what an audit would cost, as `estimate_cost`, before anything is sent.

    Examples
    --------
    >>> import rubricnb as rb
    >>> cost = audit_cost("openai:gpt-4.1", rb.load("minibench", n_items=15))
    >>> int(cost.requests.sum())
    391
    """
    described = describe(judge, price)
    parts = (askable(part, described)[0] for part in audit_requests(items, **how))
    return pd.concat([estimate_cost(part, described) for part in parts if len(part)])


def drawn(items: Items, n_items: int | None, n_prompts: int | None = None, seed: int = 0) -> Items:
    """Draw whole texts, evenly from random clusters; a larger draw contains a smaller one.

    Examples
    --------
    >>> import rubricnb as rb
    >>> few = drawn(rb.load("minibench"), 36)
    >>> len(few), few.cluster_id.nunique()
    (36, 12)
    """
    for name, n in (("n_items", n_items), ("n_prompts", n_prompts)):
        if n is not None and n < 1:
            raise ValueError(f"{name} is {n}: give 1 or more, or None for all")
    texts = items.groupby("text_id", observed=True, sort=False).agg(
        cluster=("cluster_id", "first"), size=("item_id", "size")
    )
    names = texts["cluster"].unique()
    place = np.argsort(np.argsort(mix64(hash64(names), seed), kind="stable"))
    texts["place"] = texts["cluster"].map(dict(zip(names, place, strict=True)))
    texts["chance"] = mix64(hash64(texts.index.to_numpy()), seed)
    texts["turn"] = texts.groupby("cluster", observed=True)["chance"].rank(method="first")
    texts = texts[texts["place"] < (n_prompts or np.inf)].sort_values(["turn", "place"])
    before = texts["size"].cumsum() - texts["size"]
    return _some(items, items["text_id"].isin(texts.index[before < (n_items or np.inf)]))


def _some(items: Items, kept: Any) -> Items:
    out = Items(items[np.asarray(kept)].reset_index(drop=True))
    out.rubrics = items.rubrics[items.rubrics["rubric_id"].isin(out["rubric_id"])]
    return out


def part_of(judgments: pd.DataFrame, name: Any = None) -> pd.DataFrame:
    """Pick the judgments of one judge, template and temperature, by the name of any of these."""
    names = ("judge", "template", "temperature")
    known = judgments[[*names]].astype("object").fillna("unknown").astype("str")
    own = (known == str(name)).any(axis=1) if name is not None else known["judge"] != ""
    several = [f"{c} {v}" for c in names for v in known[c][own].unique()]
    if len(several) != len(names):
        absent = "" if several else f"nothing in the judgments is named {name!r}; "
        several = several or [f"{c} {v}" for c in names for v in known[c].unique()]
        raise ValueError(
            f"{absent}an audit is about one judge, template and temperature, and the judgments "
            f"have {', '.join(several)}: name one (--judge NAME), or two to compare (--compare A B)"
        )
    judgments = judgments[own]
    shown = judgments.groupby(["dataset", "criterion"], observed=True)["n_options"]
    if (shown.nunique() > 1).any():
        (_, criterion), lengths = next((k, own.unique()) for k, own in shown if own.nunique() > 1)
        raise ValueError(
            f"an audit is about one scale for each criterion, but the orderings of {criterion!r} "
            f"list {', '.join(map(str, sorted(lengths)))} options: keep the rows of one length"
        )
    usual = {c: judgments[c].astype("str").replace("unknown", BASELINE[c]) for c in BASELINE}
    return judgments.assign(**usual)


def findings(
    answers: Sequence[pd.DataFrame],
    items: pd.DataFrame,
    judge: str = "judge",
    identity: str = "",
    settings: Mapping[str, Any] | None = None,
    refused: Mapping[str, str] = {},
) -> Audit:
    """Answer the questions of an audit from its judgments.

    Parameters
    ----------
    answers
        Of the parts of `audit_requests`, or judgments made elsewhere.
    items
        What they are about.
    judge, identity, settings, refused
        Who was asked, and how; what your own template cannot ask, of `askable`.
    """
    check_answered(*answers)
    read = "expected_score" in answers[0] and answers[0]["expected_score"].notna().any()
    value: Value = "expected_score" if read else "score"
    asked = settings is not None
    alone, *together = (_Answers(_named(p, items, value), items, value, asked) for p in answers)
    judgments, cells = alone.judgments, alone.cells
    status = pd.concat([a["status"].astype("str") for a in answers]).value_counts()
    rows = [_parsed(status), *_each(_people, alone), *_each(_discrimination, alone)]
    rows += _noise(alone)
    why = {}
    for name, ask, parts in (
        ("halo", _halo, [alone]),
        ("systems", _systems, [alone]), ("overall", _overall, [alone]),
        ("position", _positions, [alone]),
        ("order", _moved, [alone]), ("criteria", _criteria, together),
    ):  # fmt: skip
        try:
            rows += [row for part in parts for row in ask(part)]
        except ValueError as error:  # the reason why these scores cannot answer the question
            why[name] = str(error)
    rows.sort(key=lambda row: [*MEASURES].index(row["measure"]))
    places = {row["question"]: row.pop("places") for row in rows if "places" in row}
    few = inference.effective_clusters(cells.index.get_level_values("cluster_id"))
    span, step = _scale_of(judgments)
    table = _judged(rows, few, span)
    seen = set(table["measure"])
    scores = judgments[judgments["design"] != "balanced"]
    shares = pd.crosstab(scores["condition"], _binned(scores["whole"], step), normalize="index")
    return Audit(
        judge, identity, time.time(),
        {
            "datasets": sorted(judgments["dataset"].unique()),
            "n_items": len(cells), "n_clusters": judgments["cluster_id"].nunique(),
            "effective_clusters": round(few, 2), "n_judgments": int(status.sum()),
            "alone": bool(cells.groupby(["cluster_id", "criterion"]).size().max() == 1),
            "n_rated": int(cells["human"].notna().sum()), "span": span, "step": step,
            "truth": truth_of(items) if cells["human"].notna().any() else "nothing",
            "source": ", ".join(judgments["source"].astype("str").unique()), "value": value,
            "settings": None if settings is None else dict(settings),
        },
        {str(name): int(n) for name, n in status.items()},
        table,
        {
            k: refused.get(m.get("asks", ""), why.get(k, m["lacking"]))
            for k, m in MEASURES.items() if k not in seen
        },
        _every_item(cells, alone).reset_index().rename_axis(columns=None),
        {
            "places": places,
            "scores": {k: {f"{s:g}": v for s, v in row.items()} for k, row in shares.T.items()},
            "levels": _by_rating(cells, step), "ties": _ties(cells, step),
        },
        {"model": {"identity": identity}},
    )  # fmt: skip


def _every_item(cells: pd.DataFrame, answers: _Answers) -> pd.DataFrame:
    """Cells with a row for every item that was asked about, of which some have no score."""
    every = pd.MultiIndex.from_frame(answers.judgments[_KEYS].drop_duplicates())
    cells = cells.reindex(cells.index.append(every.difference(cells.index, sort=False)))
    if "human" in answers.items:
        cells["human"] = matched(cells.index.to_frame(), answers.items, "human").to_numpy()
    return cells


def _by_rating(cells: pd.DataFrame, step: float) -> dict[str, Any]:
    """Mean score minus rating at each level of the ratings, from the lowest."""
    gap = (cells[_PLAIN] - cells["human"]).dropna()
    levels = gap.groupby(_binned(cells["human"][gap.index], step))
    return {f"{level:g}": _estimate("bias", gaps) for level, gaps in levels}


def _ties(cells: pd.DataFrame, step: float) -> dict[str, Any]:
    """Share of pairs of texts of one cluster, judged on one criterion, that get the same score.

    Pairs are counted, not listed: n texts make n (n − 1) / 2, and a cluster may have thousands.
    """
    scores = _binned(cells[_PLAIN].dropna(), step).rename("score")
    cluster = ["dataset", "criterion", "cluster_id"]
    alike = scores.groupby([*cluster, scores]).size()
    pairs = _n_pairs(alike.groupby(cluster).sum())
    shares = _n_pairs(alike).groupby(cluster).sum() / pairs
    return _estimate("edits", shares[pairs > 0], (0.0, 1.0), weight=pairs[pairs > 0])


def _n_pairs(n: pd.Series) -> pd.Series:
    return n * (n - 1) // 2


def _estimate(measure: str, values: pd.Series, *bounds: Any, **more: Any) -> dict[str, Any]:
    """Return a mean with a 95 % cluster interval; None for unknown numbers."""
    row = _mean(measure, "", values, *bounds, **more)
    found = {name: row[name] for name in ("effect", "low", "high", "n_clusters")}
    n = int(more["weight"].sum()) if more else len(values)
    return {"n": n} | {k: v if v == v else None for k, v in found.items()}


_NOT_ASKED_WARNING = (
    "all answers came from the store or from recorded runs, and the judge was not asked. If it has "
    "changed since, give it a different name, or set RUBRICNB_STORE to a different file"
)
_USUAL_SPAN = 4.0  # of a scale from 1 to 5, to which the margin in score points belongs


def _scale_of(judgments: pd.DataFrame) -> tuple[float, float]:
    """From the lowest score to the highest, and the distance of two neighbouring scores."""
    options, given = judgments["n_options"], judgments["whole"].dropna()
    span = float(options[options > 0].min() - 1) if (options > 0).any() else float(np.ptp(given))
    span = min(
        (float(np.ptp(decode(o))) for o in judgments["ordering"].dropna().unique()), default=span
    )
    for step in (1.0, 0.5):
        if (given / step % 1 == 0).all():
            return span, step
    return span, span / 10


def _binned(scores: Any, step: float) -> Any:
    return np.round(np.floor(scores / step + 0.5) * step, 6)


def _judged(rows: Sequence[Mapping[str, Any]], few: float, span: float) -> pd.DataFrame:
    """Add verdicts, limited to what this number of effective clusters can show.

    `span`: from the lowest score to the highest, of which the margin of a mean is a part.
    """
    blank = {**dict.fromkeys(_COLUMNS, np.nan), "criterion": "", "codes": ()}
    table = pd.DataFrame([{**blank, **row} for row in rows])
    table = table.join(_KNOWN[["section", "unit", "act", "calm"]], on="measure")
    points = table["unit"].eq("score points")
    table["margin"] = table["unit"].map(MARGINS) * np.where(points, span / _USUAL_SPAN, 1.0)
    table["p_adjusted"] = inference.benjamini_hochberg(table["p"])
    table["p_equivalent"] = [_equivalent(row) for row in table.to_dict("records")]
    own = np.minimum(few, table["n_clusters"].replace(0, np.inf))  # a row may have fewer rated
    table["verdict"] = [
        _verdict(row, n >= TOO_FEW) for row, n in zip(table.to_dict("records"), own, strict=True)
    ]
    tested = [*inference.PARTS, "p_adjusted", "p_equivalent"]
    table.loc[own < TOO_FEW, tested] = np.nan
    bare = table["measure"].eq("parsed") | table["verdict"].eq(FAILS)
    known = zip(table["codes"], own, bare, strict=True)
    table = table.assign(**because_each(*(_doubted(*row) for row in known)))
    table["sentence"] = [_sentence(row) for row in table.to_dict("records")]
    act, calm = table.pop("own_act").astype("object").fillna(table.pop("act")), table.pop("calm")
    table["advice"] = act.where(table["verdict"].isin(ADVERSE), calm)
    table.loc[table["verdict"] == UNCLEAR, "advice"] = str(_WORDS.more())
    table.loc[table["verdict"] == REVERSED, "advice"] = str(_WORDS.turn())
    return table.drop(columns=["constant", "p_steady", "scrambled"])


def _doubted(codes: Reasons, n: float, bare: bool) -> Reasons:
    """Say once, and last, that a row has few effective clusters, if it has an interval at all."""
    if n >= inference.FEW_CLUSTERS:
        return codes
    others = without(codes, "few_clusters", "few_clusters_alike")
    if bare:
        return others
    unit = "effective cluster" if round(n) == 1 else "effective clusters"
    return collect(others, Reason("too_few" if n < TOO_FEW else "few_clusters", n=n, unit=unit))


def _sentence(row: Mapping[str, Any]) -> str:
    """Say a row's result, and after it what it is not about."""
    lost = losses_of(row["codes"])
    known = [code for code in row["codes"] if code not in lost]
    said = str(_WORDS.sentence({**row, "reason": join(known)})).strip()
    return " ".join([said, *(f"{c.sentence[0].upper()}{c.sentence[1:]}." for c in lost)])


def _verdict(row: Mapping[str, Any], enough: bool) -> str:
    """Follow the rules that `VERDICTS` states."""
    kind, effect = MEASURES[row["measure"]]["kind"], row["effect"]
    if row["constant"] is True:
        return FAILS
    if row["measure"] == "parsed":
        return SHOWN if effect >= ENOUGH_PARSED else WEAK
    if kind == "fact" or (kind == "noise" and np.isnan(row["margin"] + row["high"])):
        return NOTED
    if not enough:
        return UNCLEAR
    if kind == "level":
        return _level(row["measure"], effect, row["low"], row["high"])
    small = row["p_equivalent"] < ALPHA and share_lost(row["codes"]) <= MOST_LOST
    if kind == "noise":
        return ABSENT if small else FOUND if row["low"] > row["margin"] else UNCLEAR
    there = row["p_adjusted"] < ALPHA
    if row["scrambled"] is True:
        return FOUND
    if there and abs(effect) >= row["margin"]:
        return UNCLEAR if _may_turn(row) else FOUND
    if small:
        return SMALL if there else ABSENT
    return UNCLEAR


def _may_turn(row: Mapping[str, Any]) -> bool:
    """Whether items without a score on a side could turn the sign of an effect.

    Of a difference of correlations no bound is known, so a loss that is more than a detail counts.
    """
    if row["unit"] in ("r", "κ"):
        return share_lost(row["codes"]) > MOST_LOST
    return "open_sign" in row["codes"]


def _level(measure: str, effect: float, low: float, high: float) -> str:
    if low >= STRONG_LEVEL:
        return STRONG
    if low >= MODERATE_LEVEL:
        return MODERATE
    if measure != "discrimination" and high < 0 and effect <= -MODERATE_LEVEL:
        return REVERSED
    return WEAK if high < MODERATE_LEVEL else UNCLEAR


def _equivalent(row: Mapping[str, Any]) -> float:
    """The p-value of "at least as large as matters", in size or in the scores that change.

    Where nothing changes, clusters without an exception bound the rate of changes.
    """
    p = row["p_equivalent"]
    if MEASURES[row["measure"]]["kind"] == "effect" and np.isnan(p):
        if row["effect"] == 0 and np.isnan(row["low"]):
            p = _p_mostly_changed(Estimate(0.0, se=0.0), row["n_clusters"])
        else:
            p = inference.equivalence(row["effect"], row["se"], row["df"] + 1, row["margin"])
    return float(np.fmax(p, row["p_steady"])) if np.isfinite(p) else p


def beside(before: Audit, now: Audit) -> Audit:
    """Add the section ``against`` to an audit: how it differs from another audit of the same texts.

    Parameters
    ----------
    before, now
        From `audit` or `read_audit`: two judges, two templates, or then and now.

    Returns
    -------
    Audit
        `now`; its new rows have ``a`` and ``b``, what each has, and ``effect``, the difference over
        the items that both judged, paired, with a 95 % cluster interval.

    Raises
    ------
    ValueError
        No item is in both.
    """
    sides = [audit.cells.set_index(_ITEM) for audit in (before, now)]
    shared = sides[0].index.intersection(sides[1].index)
    if shared.empty:
        raise ValueError(f"{before.judge} and {now.judge} judged no item in common")
    a, b = (side.loc[shared].set_index(sides[1].loc[shared, "cluster_id"], append=True)
            for side in sides)  # fmt: skip

    names = ("this audit", "the other")

    def drift(name: str, question: str, then: pd.Series, now: pd.Series) -> dict[str, Any]:
        row = _mean(f"drift_{name}", question, now - then, a=then.mean(), b=now.mean())
        row["codes"] += _lost_to_both(now, then, names, row)
        return row

    x, y, human = a[_PLAIN], b[_PLAIN], b["human"]
    rows = [drift("score", "mean score", x, y)]
    rows.append(_answers_that_differ(a, b))
    rows[-1]["codes"] += _lost_to_both(y, x, names)
    rated = _lost_to_both(y[human.notna()], x[human.notna()], names)
    three = _varied(pd.concat([human, x, y], axis=1, keys=["human", "x", "y"]))
    if len(three) > 2:
        for name, sums_of, statistic in (
            ("agreement", inference.moments, inference.correlation),
            ("kappa", kappa_sums, kappa_of_sums),
        ):
            found, ends = _by_criterion(sums_of, statistic, *(three[name] for name in three))
            n = three.index.get_level_values("cluster_id").nunique()
            rows.append(_row(f"drift_{name}", name, n, found, a=ends[0], b=ends[1]))
            rows[-1]["codes"] += rated
    for name in sorted(set(a) & set(b) - {*_NO_CONDITION}):
        row = drift("effect", name, a[name] - a["placebo"], b[name] - b["placebo"])
        rows += [row] * (row["n_clusters"] > 0)
    both = b.index[(y - x).notna()]
    few = inference.effective_clusters(both.get_level_values("cluster_id"))
    table = _judged(rows, few, now.design["span"])
    unseen = {k: v for k, v in now.unseen.items() if k not in set(table["measure"])}
    return replace(now, rows=pd.concat([now.rows, table], ignore_index=True), unseen=unseen,
                   design=now.design | {"against": before.judge})  # fmt: skip


_TWO_ANSWERS = ("first_answer", "second_answer")
_NO_CONDITION = (_PLAIN, "placebo", "balanced", "human", "cluster_id", *_TWO_ANSWERS)


def _answers_that_differ(then: pd.DataFrame, now: pd.DataFrame) -> dict[str, Any]:
    """How many more answers differ between two audits than within one.

    Of an item this is on average ½ Σ (p − q)² of its two distributions of answers: 0 for a judge
    that has not changed, however noisy it is.
    """
    old, new = (side.reindex(columns=[*_TWO_ANSWERS]).to_numpy("float64") for side in (then, now))

    def differ(one: FloatArray, other: FloatArray) -> FloatArray:
        return np.where(np.isnan(one + other), np.nan, one != other)

    pairs = [differ(old[:, i], new[:, j]) for i in range(2) for j in range(2)]
    between = item_means(np.stack(pairs, axis=1))
    within = (differ(*old.T) + differ(*new.T)) / 2
    row = _mean("drift_changed", "answers that differ", pd.Series(between - within, now.index),
                (-1.0, 1.0), flips=inference.mean_known(between))  # fmt: skip
    if np.isnan(within).all() and not np.isnan(between).all():
        row["codes"] = (Reason("not_asked_twice"),)
    return row


def _named(answers: pd.DataFrame, items: pd.DataFrame, value: Value) -> pd.DataFrame:
    """Add to judgments the value and the score of each, its condition and the top of its scale."""
    shown = answers["reference_score"].astype("str")
    order = answers["ordering"].astype("category").cat
    top = pd.Series([max(decode(o)) for o in order.categories], dtype=float).reindex(order.codes)
    top.index = answers.index
    shown = shown.replace("auto", "of full mark" if "reference" in items else "none")
    shown = shown.mask(pd.to_numeric(shown, errors="coerce") == top, "of full mark")
    if shown.nunique() == 1:  # never asked without it, or only with a different one
        shown[:] = "none"
    return answers.astype(dict.fromkeys(_KEYS, "str")).assign(
        value=values_of(answers, value),
        whole=values_of(answers),
        condition=condition_names(answers.assign(reference_score=shown)),
        reference_score=shown,
        top=top,
    )


@dataclass(frozen=True)
class _Answers:
    """Judgments of one kind of prompt, and the values that several questions share."""

    judgments: pd.DataFrame
    items: pd.DataFrame
    value: Value
    asked: bool = False  # by this audit, each criterion in a call of its own

    @cached_property
    def usual(self) -> pd.DataFrame:
        """Reads of the plain prompt; all reads if the prompt is not the book's."""
        plain = self.judgments[self.judgments["condition"] == _PLAIN]
        return plain if len(plain) else self.judgments

    @cached_property
    def criteria(self) -> dict[str, _Answers]:
        """Answers about each criterion, if there are several."""
        own = dict(iter(self.judgments.groupby("criterion", sort=False)))
        return {str(c): replace(self, judgments=own[c]) for c in own if len(own) > 1}

    @cached_property
    def rated(self) -> dict[str, Any]:
        """Input of the statistics about people; orderings differ in length if scales do."""
        usual = self.usual.assign(ordering=np.nan)
        return {"judgments": usual, "items": self.items, "by": [], "value": self.value}

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Mean of each item under each condition, and its human rating."""
        # Not a pivot table: with dropna=False it has a row for every cluster × item.
        means = self.judgments.groupby([*_KEYS, "condition"], observed=True)["value"].mean()
        cells = means.unstack("condition").dropna(how="all")
        cells = cells.reindex(columns=cells.columns.union([_PLAIN, "placebo"]))
        if cells[_PLAIN].isna().all():
            cells[_PLAIN] = self.usual.groupby(_KEYS)["value"].mean()
        cells["human"] = np.nan
        if "human" in self.items:
            cells["human"] = matched(cells.index.to_frame(), self.items, "human").to_numpy()
        return cells.join(self._two_answers())

    def _two_answers(self) -> pd.DataFrame:
        """The first two answers of each item to the same words, of which one may be a copy."""
        read = self.usual.dropna(subset=["whole"]).astype({"ordering": "str"})
        read = read.sort_values("ordering", kind="stable")[[*_KEYS, "ordering", "whole"]]
        first = read.drop_duplicates(_ITEM)
        same = read.merge(first[[*_ITEM, "ordering"]], on=[*_ITEM, "ordering"])
        second = same[same.duplicated(_ITEM)].drop_duplicates(_ITEM)
        answers = [part.set_index(_KEYS)["whole"] for part in (first, second)]
        return pd.concat(dict(zip(_TWO_ANSWERS, answers, strict=True)), axis=1)

    @cached_property
    def changes(self) -> dict[str, pd.Series]:
        """Share of each item's scores that change under neutral edits, and when asked again."""
        edited = self.judgments[self.judgments["condition"] == "placebo"]
        read = [*_ITEM, "ordering"]
        repeats = self.usual[self.usual.duplicated(read)]
        found = {
            "edits": _changed(self.usual, edited),
            "reask": _changed(self.usual, repeats, read),
        }
        return {name: rates for name, rates in found.items() if len(rates)}

    def flips(self, others: pd.DataFrame) -> dict[str, Any]:
        """Share of scores that change, and whether it exceeds that of neutral edits."""
        changed = _changed(self.usual, others)
        beyond = (changed - next(iter(self.changes.values()), np.nan)).dropna()
        row = {"flips": changed.mean()}
        if beyond.empty:
            return row
        cluster = beyond.index.get_level_values("cluster_id")
        found = inference.mean_t(beyond.to_numpy(), cluster, (-1.0, 1.0))
        return row | {
            "flips_beyond": found.value, "scrambled": bool(found.low > MARGINS["share of scores"]),
            "p_steady": _p_mostly_changed(found, cluster.nunique()),
        }  # fmt: skip


def _changed(base: pd.DataFrame, others: pd.DataFrame, on: Sequence[str] = _ITEM) -> pd.Series:
    """Share of each item's scores that differ from its first base read."""
    first = base.drop_duplicates(on)[[*on, "whole"]]
    pairs = others.merge(first, on=on, suffixes=("", "_first"))
    pairs = pairs.dropna(subset=["whole", "whole_first"])
    return (pairs["whole"] != pairs["whole_first"]).groupby([pairs[key] for key in _KEYS]).mean()


def _parsed(status: pd.Series) -> dict[str, Any]:
    errors = status.drop("ok", errors="ignore")
    why = [Reason("commonest_error", status=k, n=n) for k, n in errors.head(1).items()]
    why += [Reason("right_scale")] * ([*errors.index[:1]] == ["out_of_range"])
    return _row("parsed", "answers with a score", 0, status.get("ok", 0) / status.sum(), why=why)


def _each(ask: Callable[..., list[dict[str, Any]]], answers: _Answers) -> list[dict[str, Any]]:
    """Rows about all criteria together and, if there are several, about each."""
    rows = ask(answers)
    for name, own in answers.criteria.items():
        rows += [{**r, "criterion": name, "question": f"{r['question']}: {name}"} for r in ask(own)]
    return rows


def _people(answers: _Answers) -> list[dict[str, Any]]:
    """Agreement in rank and in level: of several criteria the mean over those that have an r."""
    cells, given = answers.cells[[_PLAIN, "human"]], answers.rated
    if cells.dropna().empty:
        return []
    sides, same = _varied(cells), _same_score(cells[_PLAIN])
    every, names = ({*part.index.get_level_values("criterion")} for part in (cells, sides))
    own = given["judgments"][given["judgments"]["criterion"].isin(names or every)]
    found = agreement(**given | {"judgments": own}).iloc[0]
    n, r, kappa = int(found["n_clusters"]), found["r_macro"], Estimate()
    why = without(found["codes"], "rho", "r_macro")
    notes: list[Why] = [same or why or Reason("constant_criteria")]
    if names:
        two = sides["human"], sides[_PLAIN]
        kappa, _ = _by_criterion(kappa_sums, kappa_of_sums, *two)
        reads = own.set_index(_KEYS)[["value"]].join(cells["human"]).dropna()
        left = ", ".join(sorted(every - names))
        lacking = Reason("criteria_left_out", criteria=left) if left else None
        shares = _mostly("scores", own["whole"]), _mostly("ratings", sides["human"])
        notes = [lacking, why, *shares, _of_one_read(reads, r)]
    known = {"constant": same is not None}
    of_r, ends = (
        (found["r_macro_low"], found["r_macro_high"]),
        np.clip(kappa.ends, -1, 1).tolist(),
    )
    gap = None if names else notes[0]
    rows = [
        _correlation("agreement", "agreement", n, r, of_r, collect(*notes)) | known,
        _correlation("kappa", "agreement in level", n, kappa.value, ends, gap) | known,
    ]
    rows.append(_bias(answers, sides, rows[0]))
    if np.isfinite(found["ceiling"]) and not answers.criteria:
        rows.append(_row("ceiling", "people among themselves", n, found["ceiling"]))
    return rows


def _bias(answers: _Answers, sides: pd.DataFrame, ranks: Mapping[str, Any]) -> dict[str, Any]:
    """Mean score minus mean rating, unless `ranks`, the row about agreement, is reversed."""
    found = judge_bias(**answers.rated).iloc[0]
    bias = Estimate(found["bias"], **found[[*inference.PARTS]])
    row = _row("bias", "mean score", int(found["n_clusters"]), bias)
    if _level("agreement", ranks["effect"], ranks["low"], ranks["high"]) == REVERSED:
        unknown = dict.fromkeys(("effect", *inference.PARTS), np.nan)
        return row | unknown | {"codes": (Reason("reversed_scale"),)}
    row = _sign_test(row)
    span, _ = _scale_of(answers.judgments)
    if ranks["effect"] >= MODERATE_LEVEL and abs(found["bias"]) > span / 4:
        ends = [f"{sides[side].min():g} to {sides[side].max():g}" for side in (_PLAIN, "human")]
        row["codes"] = (Reason("one_scale", scores=ends[0], ratings=ends[1]),)
    return row


def _varied(sides: pd.DataFrame) -> pd.DataFrame:
    """Items with all sides known, of the criteria in which every side varies."""
    known = sides.dropna()
    levels = known.round(6).groupby(level="criterion").transform("nunique")
    return known[(levels > 1).all(axis=1)]


def _same_score(scores: pd.Series) -> Reason | None:
    """Say that every text of a criterion gets the same score, if it does."""
    scores = scores.dropna()
    one_text = scores.index.get_level_values("criterion").nunique() == len(scores)
    if one_text or _within(scores).abs().max() >= 1e-6:
        return None
    which = ", ".join(f"{score:g}" for score in np.unique(scores.round(2)))
    return Reason("same_score", scores=which)


def _mostly(what: str, values: pd.Series) -> Reason | None:
    """Say that nearly all values are one, if they are."""
    shares = values.value_counts(normalize=True)
    if not MOSTLY <= shares.max() < 1:
        return None
    return Reason("mostly", percent=100 * shares.max(), what=what, value=shares.idxmax())


def _of_one_read(reads: pd.DataFrame, r: float) -> Reason | None:
    """Say that a text's score is the mean of several reads, if r differs from that of one."""
    n = len(reads) / reads.index.nunique()
    pair = reads["human"], reads["value"]
    single, _ = _by_criterion(inference.moments, inference.correlation, *pair)
    if not (n > 1 and abs(single.value - r) >= 0.005):
        return None
    return Reason("mean_of_reads", n=n, r=str(_WORDS.number(single.value)))


def _systems(answers: _Answers) -> list[dict[str, Any]]:
    """Whether the judge ranks systems as people do, where people see a difference that matters."""
    rated = answers.cells[[_PLAIN, "human"]].dropna()["human"]
    if rated.empty or "candidate" not in answers.items:
        return []
    means = rated.groupby(matched(rated.index.to_frame(), answers.items, "candidate").array).mean()
    if len(means) < 3:
        return []
    tau = system_agreement(**answers.rated).iloc[0]
    found = Estimate(tau["tau"], tau["tau_low"], tau["tau_high"])
    question = f"{tau['n_systems']} systems"
    row = _row("systems", question, int(tau["n_clusters"]), found, why=tau["codes"])
    least = MARGINS["score points"] * _scale_of(answers.judgments)[0] / _USUAL_SPAN
    if np.ptp(means) / (len(means) - 1) < least:
        row |= dict.fromkeys(("effect", "low", "high"), np.nan)
        row["codes"] = (Reason("systems_close", points=least),)
    return [row]


def _halo(answers: _Answers) -> list[dict[str, Any]]:
    """How many more texts get one score on all criteria than a single rater gives, beyond chance.

    Chance: the same shares of scores on every criterion, but independent criteria. Where 90 % of
    the scores on each of two criteria are alike, 81 % of the texts get one score by chance.
    """
    rated = answers.cells["human"].dropna()
    n_criteria = rated.index.get_level_values("criterion").nunique()
    if n_criteria < 2 or answers.judgments["n_options"].nunique() > 1:
        return []
    if truth_of(answers.items) == "designed":
        raise ValueError("the ratings are designed, and a text was designed alike on all criteria")
    step = _scale_of(answers.judgments)[1]
    first = answers.usual.dropna(subset=["whole"]).drop_duplicates(_ITEM).set_index(_KEYS)["whole"]
    raters = _single_raters(rated.index, answers.items, step)
    text = matched(rated.index.to_frame(), answers.items, "text_id").set_axis(rated.index)
    wide = [
        _binned(side, step)
        .set_axis(pd.MultiIndex.from_frame(
            side.index.to_frame(index=False)[["cluster_id", "criterion"]].assign(
                text=text[side.index].to_numpy())
        ))
        .unstack("criterion")
        for side in (first[first.index.isin(rated.index)], *raters)
    ]  # fmt: skip
    judged = wide[0].dropna() if wide[0].shape[1] == n_criteria else wide[0].head(0)
    lost = left_out(wide[0].to_numpy(), wide[0].notna().all(axis=1).to_numpy(), "texts")
    people = [side.reindex(judged.index).to_numpy() for side in wide[1:]]
    scores = np.stack([judged.to_numpy(), *people], axis=1)  # texts, judge and raters, criteria
    by_rater = ~np.isnan(scores[:, 1:]).any(axis=2)
    scores = scores[by_rater.any(axis=1)]
    if not len(scores):
        return []
    cluster = judged.index.get_level_values("cluster_id")[by_rater.any(axis=1)]
    alike, chance = alike_and_chance(alike_sums(scores).sum(axis=0), n_criteria)
    found = inference.jackknife(
        alike_sums(scores),
        pd.factorize(cluster)[0],
        lambda sums: np.subtract(*alike_and_chance(sums, n_criteria)) @ np.array([1.0, -1.0]),
    )
    names = ("judge", "rater", "judge_chance", "rater_chance")
    shares = (str(_WORDS.percent(share)) for share in (*alike, *chance))
    why = (Reason("beyond_chance", **dict(zip(names, shares, strict=True))), *lost)
    row = _row("halo", "one score on all criteria", cluster.nunique(), found, why)
    same = _p_mostly_changed(found, row["n_clusters"])
    templates = set(answers.judgments["template"].astype("str"))
    apart = "act_apart" if answers.asked or templates == {"rubric"} else "act"
    return [row | {"p_equivalent": same, "own_act": MEASURES["halo"][apart]}]


def _single_raters(index: pd.MultiIndex, items: pd.DataFrame, step: float) -> list[pd.Series]:
    """Ratings of single people: a series for each place among the ratings of an item."""
    if "human_ratings" in items:
        ratings = matched(index.to_frame(), items, "human_ratings")
        known = [one if isinstance(one, tuple | list) else () for one in ratings]
        wide = pd.DataFrame(known, index=index, dtype="float64")
        return [wide[place] for place in wide]
    human = pd.Series(matched(index.to_frame(), items, "human").to_numpy("float64"), index)
    if not np.allclose(human, _binned(human, step)):
        raise ValueError(
            "the ratings are means, which are alike less often than one person's ratings: give "
            "the single ones (a column human_ratings)"
        )
    return [human]


def alike_sums(scores: FloatArray) -> FloatArray:
    """Summands of `alike_and_chance`: shape (texts, sides, 2 + criteria × levels).

    Of each side that scored the whole text: 1, whether all criteria are alike, and which level
    each criterion has. `scores`: (texts, sides, criteria).
    """
    whole = np.asarray(~np.isnan(scores).any(axis=2))
    alike = whole & (scores == scores[:, :, :1]).all(axis=2)
    levels = np.unique(scores[~np.isnan(scores)])
    given = (scores[..., None] == levels) & whole[:, :, None, None]
    flat = given.reshape(*whole.shape, -1)
    return np.concatenate([whole[..., None], alike[..., None], flat], axis=2).astype(np.float64)


def alike_and_chance(sums: FloatArray, n_criteria: int) -> tuple[FloatArray, FloatArray]:
    """Share of texts with one score on all criteria, and that share by chance: (…, 2) each.

    First the judge's, then the raters', weighted by the texts that each rated whole.
    """
    n = sums[..., 0]
    size = np.maximum(n, 1.0)
    share = sums[..., 2:].reshape(*n.shape, n_criteria, -1) / size[..., None, None]
    both = np.stack([sums[..., 1] / size, share.prod(axis=-2).sum(axis=-1)])
    people = (both[..., 1:] * n[..., 1:]).sum(axis=-1) / np.maximum(n[..., 1:].sum(axis=-1), 1.0)
    alike, chance = np.stack([both[..., 0], people], axis=-1)
    return alike, chance


def _correlation(
    measure: str, question: str, n: int, r: float, ends: Sequence[float], why: Why = None
) -> dict[str, Any]:
    """A row about a correlation; a perfect one has the bound of n clusters without an exception."""
    low, high = ends
    if n > 1 and abs(r) > 1 - 1e-9 and np.isnan(low):
        low, high = inference.perfect_ends(r, n)
        why = collect(without(collect(why), "no_interval"), Reason("no_exception", n=n))
    return _row(measure, question, n, Estimate(r, low, high), why=why)


def _overall(answers: _Answers) -> list[dict[str, Any]]:
    """Agreement of the overall score, where a rubric has a weight and people rated the criteria."""
    items = answers.items
    if "human" not in items or "weight" not in getattr(items, "rubrics", ()):
        return []
    whole = overall(answers.usual, items)
    given = {"judgments": whole.assign(ordering=np.nan), "items": whole.rated}
    r = agreement(**answers.rated | given).iloc[0]
    why, ends = without(r["codes"], "rho"), (r["r_low"], r["r_high"])
    return [_correlation("overall", "overall score", int(r["n_clusters"]), r["r"], ends, why)]


def _by_criterion(
    sums_of: Any, statistic: Any, human: pd.Series, *sides: pd.Series
) -> tuple[Estimate, FloatArray]:
    """Mean over criteria of a statistic of one side, or the second's minus the first's.

    With its interval, and the means of the sides.
    """
    code = pd.factorize(human.index.get_level_values("criterion"))[0]
    own = code[:, None] == np.unique(code)
    pairs = [sums_of(side.to_numpy(), human.to_numpy()) for side in sides]
    sums = np.stack(pairs, axis=1)[:, :, None] * own[:, None, :, None]

    def means(sums: FloatArray) -> FloatArray:
        return np.asarray(statistic(sums).mean(axis=-1))

    def last(sums: FloatArray) -> FloatArray:
        return np.asarray(np.diff(means(sums), axis=-1, prepend=0.0)[..., -1])

    cluster = human.index.get_level_values("cluster_id")
    return inference.jackknife(sums, cluster, last), means(sums.sum(axis=0))


def _distinct(judgments: pd.DataFrame) -> pd.DataFrame:
    """Reads that have a score and are not copies of another read."""
    known = judgments[judgments["value"].notna()]
    return known.drop_duplicates([*_ITEM, "key"]) if known["key"].nunique() > 1 else known


def _discrimination(answers: _Answers) -> list[dict[str, Any]]:
    """Correlation of the first answer about a text with the answers to other prompts about it."""
    judgments, own = answers.judgments, answers.usual
    other = judgments[~judgments.index.isin(own.index) & (judgments["design"] != "fixed")]
    edited = other[other["design"] == "placebo"]
    reads = _distinct(pd.concat([own, edited if len(edited) else other]))
    edit = reads["ordering_index"].where(reads["design"] == "placebo", 0)
    order = reads["ordering"].astype("object").fillna("unknown").astype("str")
    reads = reads.assign(prompt=order + " " + edit.astype("str"))
    values = reads.groupby(_KEYS)["value"]
    first = values.first()
    if first.index.get_level_values("criterion").nunique() == len(first):
        return []
    if why := _same_score(values.mean()):
        return [_row("discrimination", _RETEST, 0, 0.0, why=why, constant=True)]
    others = reads[reads["prompt"] != reads.groupby(_KEYS)["prompt"].transform("first")]
    repeated = others.empty
    others = reads[reads.duplicated(_ITEM)] if repeated else others
    mean = others.groupby(_KEYS)["value"].mean()
    if len(mean) < 3:
        return []
    sides = [_within(side).to_numpy() for side in (first[mean.index], mean)]
    cluster = mean.index.get_level_values("cluster_id")
    r = inference.jackknife(inference.moments(*sides), cluster, inference.correlation,
                            inference.fisher_jackknife_t)  # fmt: skip
    row = _correlation("discrimination", _RETEST, cluster.nunique(), r.value, r.ends)
    asked = edited if len(edited) else other
    row["codes"] += _lost_to_both(
        _mean_values(own), _mean_values(asked), ("the plain prompt", "other prompts")
    )
    if repeated:
        row |= {"low": np.nan, "codes": (Reason("same_words"),)}
    return [row]


def _within(values: pd.Series) -> pd.Series:
    """Values minus the mean of their criterion."""
    return values - values.groupby(level="criterion").transform("mean")


def _noise(answers: _Answers) -> list[dict[str, Any]]:
    """Share of scores that change although nothing relevant changed."""
    names = {"edits": "neutral edits", "reask": "asked again"}
    rows = {m: _mean(m, names[m], rates, (0.0, 1.0)) for m, rates in answers.changes.items()}
    if "edits" in rows:
        edited = answers.judgments[answers.judgments["condition"] == "placebo"]
        sides = _mean_values(answers.usual), _mean_values(edited)
        rows["edits"]["codes"] += _lost_to_both(*sides, ("the plain prompt", "neutral edits"))
    if "reask" in rows and len(_distinct(answers.usual)) < answers.usual["value"].notna().sum():
        rows["reask"] |= {"low": np.nan, "high": np.nan, "codes": (Reason("repeats"),)}
    return list(rows.values())


def _p_mostly_changed(rate: Estimate, n_clusters: int) -> float:
    """The p-value of "more than a quarter of the scores change".

    It is never below that of as many clusters without a change.
    """
    margin = MARGINS["share of scores"]
    if not rate.value < margin:
        return 1.0
    unchanged = inference.equivalence(0.0, 0.0, n_clusters, margin, largest=1)
    measured = inference.equivalence(max(rate.value, 0.0), rate.se, rate.df + 1, margin)
    return float(np.fmax(unchanged, measured))


def _moved(answers: _Answers) -> list[dict[str, Any]]:
    """How far an order, a label or a reference moves scores, beyond neutral edits."""
    judgments, cells = answers.judgments, answers.cells
    moves = {"descending": "order", "letters": "labels", "Roman numerals": "labels",
             _FULL: "full_mark"}  # fmt: skip
    own = {name: judgments[judgments["condition"] == name] for name in moves if name in cells}
    rows = []
    if own:
        table = stability(judgments.assign(ordering=np.nan), by=[], value=answers.value)
        found = dict(zip(condition_names(table), table.to_dict("records"), strict=True))
        name = "shift_excess" if table["shift_excess"].notna().any() else "shift"
    for condition, reads in own.items():
        moved = found[condition]
        shift = Estimate(moved[name], **{k: moved[f"{name}_{k}"] for k in inference.PARTS})
        question = "full-mark reference" if condition == _FULL else condition
        row = _row(moves[condition], question, moved["n_clusters"], shift)
        row["codes"] += losses_of(moved["codes"], name)
        rows.append(_sign_test(row) | {"placebo": moved["shift_placebo"]} | answers.flips(reads))
    for _, reads in judgments.groupby("top"):  # each scale by itself
        rows += _pulled(reads)
    return rows


def _pulled(judgments: pd.DataFrame) -> list[dict[str, Any]]:
    """How far scores follow the reference's score: the lowest reference against the highest."""
    top = judgments["top"].iloc[0]
    names = {top if c == _FULL else float(c.split()[1]): c for c in judgments["condition"].unique()
             if re.fullmatch(r"reference (\d+|of full mark)", c)}  # fmt: skip
    if len(names) > 2:
        names.pop(top, None)
    if len(names) < 2:
        return []
    low, high = min(names), max(names)
    one, two = (judgments[judgments["condition"] == names[k]] for k in (low, high))
    means = [reads.groupby(_KEYS)["value"].mean() for reads in (one, two)]
    pulled = (means[1] - means[0]) / (high - low)
    row = _mean("reference", f"reference {high:g} against {low:g}", pulled)
    shown = (f"a reference of {high:g}", f"a reference of {low:g}")
    row["codes"] += _lost_to_both(means[1], means[0], shown, row, high - low)
    return [row | {"flips": _changed(one, two).mean()}]


def _lost_to_both(
    one: pd.Series,
    other: pd.Series,
    names: tuple[str, str],
    row: Mapping[str, Any] | None = None,
    per: float = 1.0,
) -> Reasons:
    """Items with a score on one of two sides only, and whether they could turn the sign of `row`.

    `row`: about the mean difference of the two, divided by `per`.
    """
    a, b = (side.to_numpy("float64") for side in one.align(other, join="inner"))
    found = lost_scores(a, b, names)
    if row is None or not found:
        return found
    given = np.concatenate([a, b])
    ends = float(np.nanmin(given)), float(np.nanmax(given))
    return found + open_sign(a, b, ends, (per * row["low"], per * row["high"]), row["question"])


def _mean_values(reads: pd.DataFrame) -> pd.Series:
    """Mean value of each item that was asked about; NaN where no answer has one."""
    return reads.groupby(_KEYS)["value"].mean()


def _positions(answers: _Answers) -> list[dict[str, Any]]:
    """The position whose share is farthest from even, with the shares of all `places`."""
    judgments = answers.judgments
    rotated = judgments[judgments["design"].isin(["balanced", "williams"])]
    if rotated.empty:
        return []
    rows = []
    table = position_bias(rotated, by=["n_options"], value=answers.value)
    for found in table.to_dict("records"):
        n, clusters = int(found["n_options"]), int(found["n_clusters"])
        shares = np.array([found.get(f"share_{p}", np.nan) for p in range(1, n + 1)])
        most = int(np.nanargmax(np.abs(shares - 1 / n))) + 1 if np.isfinite(shares).any() else 1
        share, se, df = (found.get(f"share_{most}{e}", np.nan) for e in ("", "_se", "_df"))
        points = Estimate(100 * (share - 1 / n), se=100 * se, df=df)
        ends = (-100 / n, 100 - 100 / n)
        rows.append(_row(
            "position", f"position {most}{f' of {n}' if len(table) > 1 else ''}", clusters,
            _of_largest(points, clusters, n, ends),
            why=without(found["codes"], "chi2", "log_preference"),
            p_equivalent=found.get("p_equivalent", np.nan), places=shares.tolist(),
            **answers.flips(rotated[rotated["n_options"] == n]),
        ))  # fmt: skip
    return rows


def _of_largest(
    found: Estimate, n_clusters: int, m: int, ends: tuple[float, float] = (-np.inf, np.inf)
) -> Estimate:
    """The largest of m estimates; by a sign test, where all clusters moved alike."""
    whole = inference.largest(found, m, ends)
    if np.isnan(whole.low):
        return replace(whole, p=_sign_test_p(found.value, n_clusters))
    return whole


def _criteria(answers: _Answers) -> list[dict[str, Any]]:
    """How far the position of a criterion moves its scores: its best minus its worst.

    Scores, not expected scores: at later positions the probabilities are read after the first
    label is written, and are sharper for that alone (chapter 10).
    """
    check_answered(answers.judgments)
    rotated = answers.judgments[answers.judgments["design"] == "balanced"]
    rows = []
    for found in criterion_order(rotated).to_dict("records"):
        own = rotated[rotated["criterion"] == found["criterion"]]
        cells = own.pivot_table("score", _KEYS, "criterion_position", observed=True).dropna()
        means = cells.mean()
        gap = cells[means.idxmax()] - cells[means.idxmin()]
        row = _mean("criteria", str(found["criterion"]), gap)
        pairs = len(means) * (len(means) - 1) // 2
        one = Estimate(row["effect"], se=row["se"], df=row["df"])
        whole = _of_largest(one, row["n_clusters"], pairs)
        rows.append(row | whole.columns("low", "high", "p") | {
            "p_equivalent": found["p_equivalent"], "placebo": found["delta_pos_null"],
            "codes": found["codes"],
        } | answers.flips(own))  # fmt: skip
    return rows


def _mean(
    measure: str,
    question: str,
    values: pd.Series,
    bounds: tuple[float, float] | None = None,
    weight: pd.Series | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A row about the mean of items, with its interval and both tests."""
    values = values.dropna()
    cluster = values.index.get_level_values("cluster_id")
    n, size = cluster.nunique(), None if weight is None else weight[values.index].to_numpy(float)
    found = inference.mean_t(values.to_numpy(), cluster, bounds, size) if n else Estimate()
    row = _row(measure, question, n, found, **more)
    if n and bounds is not None:
        row["p_equivalent"] = _p_mostly_changed(found, n)
    return _sign_test(row)


def _sign_test(row: dict[str, Any]) -> dict[str, Any]:
    """A sign test, where all texts moved alike."""
    if row["n_clusters"] == 0:
        return row | {"codes": (Reason("no_common_text"),)}
    if "p" not in row or not np.isnan(row["low"]):
        return row
    row["p"] = _sign_test_p(row["effect"], row["n_clusters"])
    if row["n_clusters"] > 1 and row["effect"]:
        row["codes"] = (Reason("moved_alike"),)
    return row


def _sign_test_p(effect: float, n_clusters: int) -> float:
    """A sign test, where all clusters moved alike."""
    if n_clusters < 2 or np.isnan(effect):
        return float("nan")
    return 1.0 if effect == 0 else 0.5 ** (n_clusters - 1)


def _row(
    measure: str,
    question: str,
    n_clusters: int,
    found: Estimate | float,
    why: Why = None,
    **more: Any,
) -> dict[str, Any]:
    found = found if isinstance(found, Estimate) else Estimate(found)
    one = Reason("one_cluster") if n_clusters == 1 else None
    row = {
        "measure": measure, "question": question, "effect": float(found.value),
        **found.columns("low", "high", "se", "df"),
        "n_clusters": n_clusters, "codes": collect(why) or collect(one),
    }  # fmt: skip
    if MEASURES[measure]["kind"] == "effect":
        row["p"] = found.p
    return row | more


def page(*audits: Audit, datasheet: bool = False) -> str:
    """Write audits, or the datasheet of a judge, as one HTML page that loads nothing."""
    environment = Environment(
        loader=PackageLoader("rubricnb.auditing", "."), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(f"{'datasheet' if datasheet else 'page'}.jinja").render(
        audits=audits, version=rubricnb.__version__, margins=MARGINS, measures=MEASURES,
        adverse=ADVERSE,
        verdicts=VERDICTS, from_store=_NOT_ASKED_WARNING,
        size=_WORDS.size, number=_WORDS.number, percent=_WORDS.percent, p_value=_WORDS.p_value,
        titles=_WORDS.TITLES, made=lambda seconds: datetime.fromtimestamp(seconds, UTC).date(),
    )  # fmt: skip
