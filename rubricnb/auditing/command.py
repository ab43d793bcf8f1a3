"""The command ``rubricnb audit``: what was typed, and what is done about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from rubricnb.auditing.draw import drawn
from rubricnb.auditing.drift import beside
from rubricnb.auditing.looks import audit_cost
from rubricnb.auditing.options import AuditOptions, named_values
from rubricnb.auditing.record import Audit, check_files, read_audit, thresholds
from rubricnb.auditing.run import audit, audit_each
from rubricnb.core.frames import Items
from rubricnb.core.judge import configured
from rubricnb.core.support.types import Options
from rubricnb.files.elsewhere import reading
from rubricnb.files.own import read_texts
from rubricnb.files.tables import table_of
from rubricnb.sets.catalogue import load

Says = Callable[[Any], None]


class AuditCommand(AuditOptions):
    """What the options of the command ask for."""

    @cached_property
    def _renamed(self) -> dict[str, str]:
        given = self.columns.split(",") if self.columns else None
        return named_values(given, "columns")

    @cached_property
    def _judge_options(self) -> Options:
        return named_values(self.option)

    @property
    def page(self) -> Path:
        """Where the page goes."""
        return self.datasheet or self.output

    def refuse_contradictions(self) -> None:
        """Refuse options that do not go together, before anything is read or asked."""
        _ = self._renamed, self._judge_options  # refused if they are misspelt
        thresholds(self.fail_on)
        if self.rubric and not (self.path or self.data):
            raise ValueError(
                f"{self.rubric} describes the texts in --path: add --path, or --scale "
                "alone"
            )
        if not (self.judge or self.judgments or self.compare):
            raise ValueError(
                "no judge given: use --judge embedded, --judge openai:MODEL, or "
                "--judgments FILE"
            )
        others = {
            "--judgments": self.judgments,
            "--compare": self.compare,
            "--against": self.against,
            "--check": self.datasheet and self.check,
        }
        wrong = [name for name, given in others.items() if given]
        if (self.datasheet or self.check) and wrong:
            raise ValueError(
                f"a datasheet is about one --judge: leave out {', '.join(wrong)}"
            )
        inputs = [self.path, self.rubric, self.judgments, self.template, self.against]
        inputs += [self.check, *(self.compare or ())]
        check_files(self.page, [*inputs, self.judge.removeprefix("embedded:")])
        if self.every_judge and (self.compare or self.against or self.json):
            raise ValueError(
                "--judge all writes a page for each judge: leave out --compare, "
                "--against and --json"
            )
        if self.judgments and self.cost:
            raise ValueError(
                "with --judgments no judge is asked, so there is no cost: leave out "
                "--cost"
            )
        describes_log = self.scores or self.failed or (self.columns and not self.path)
        if not self.judgments and describes_log:
            raise ValueError(
                "--columns, --scores and --failed describe --judgments FILE (--columns "
                "also --path FILE): add it"
            )

    def checked(self) -> tuple[list[Audit], list[str]]:
        """Return the datasheet in --check, and what differs from it; asks no judge."""
        assert self.check is not None
        audited = read_audit(self.check)
        changes = audited.changes(
            self.judge,
            self._texts(),
            self._judge_options,
            template=self.template,
            parser=self.parser,
            **self._how,
        )
        return [audited], changes

    def audits(self, says: Says) -> list[Audit]:
        """Audit each side and save the page; `says` is given what each side would cost.

        With --cost nothing is asked, and no audit returned. With --judge all each judge
        has a page of its own.
        """
        if self.every_judge:
            return [*self._each_judge()]
        done = list(self._sides(says))
        if self.cost:
            return []
        if self.compare:
            done[-1] = beside(*done)
        done[-1].save(self.page, *done[:-1], datasheet=bool(self.datasheet))
        return done

    @property
    def every_judge(self) -> bool:
        """Whether each judge of a log is audited, from one reading of it."""
        return bool(self.judgments) and self.judge == "all"

    def of_judge(self, found: Audit, line: str) -> str:
        """Say which judge a line is about, where there are several of them."""
        named = not self.every_judge or line.startswith(f"{found.judge}: ")
        return line if named else f"{found.judge}: {line}"

    def page_of(self, judge: str) -> Path:
        """Where a judge's page goes: all of them (``*``), or one."""
        stem = re.sub(r"[^\w.*-]+", "-", judge)
        return self.page.with_name(f"{self.page.stem}-{stem}.html")

    def _each_judge(self) -> Iterator[Audit]:
        table = self._judgments(self._texts())
        for audited in audit_each(table, self._check_pages):
            audited.save(self.page_of(audited.judge))
            yield audited

    def _check_pages(self, judges: list[str]) -> None:
        """Refuse pages that cannot be written, or two of one name, before the work."""
        pages = {judge: self.page_of(judge) for judge in judges}
        twice = [j for j, page in pages.items() if [*pages.values()].count(page) > 1]
        if twice:
            raise ValueError(
                f"the pages of {' and '.join(map(repr, twice))} would have one name: "
                "rename one"
            )
        for page in pages.values():
            check_files(page, [self.judgments, self.path, self.rubric])

    def _sides(self, says: Says) -> Iterator[Audit]:
        stored = [side for side in self.compare or () if side.endswith(".json")]
        if len(stored) == 2:  # so that nothing is asked or read
            yield from map(read_audit, stored)
            return
        items = self._texts()
        table = self._judgments(items)
        for side in self.compare or (self.judge,):
            # With --judge the two sides are templates, else they are judges.
            is_template = self.compare and self.judge and not self.judgments
            judge, template = (
                (self.judge, side) if is_template else (side, self.template)
            )
            # A parser reads the judgments; with a judge, it is one of its options.
            own = {"template": template, "parser": self.parser if table is None else ""}
            options = self._judge_options | {k: v for k, v in own.items() if v}
            if self.cost:
                assert items is not None  # there are texts where a judge is asked
                described, settings = configured(judge, options)
                few = drawn(items, self.n_items, self.n_prompts)
                how = self._how | settings
                says(audit_cost(described, few, self.price, self.looks, **how))
                continue
            yield audit(
                judge or None,
                items if table is None else None,
                judgments=table,
                scale=self.scale,
                against=self.against,
                options=options,
                force=self.force,
                looks=self.looks,
                max_calls=self.max_calls,
                max_cost=self.max_cost,
                price=self.price,
                n_items=self.n_items,
                n_prompts=self.n_prompts,
                on_cost=says,
                **self._how,
            )

    @property
    def _how(self) -> Options:
        given = {"readout": self.readout, "temperature": self.temperature}
        return {name: value for name, value in given.items() if value is not None}

    def _texts(self) -> Items | None:
        """The texts: a dataset, the user's file, or none beside --judgments alone."""
        if self.judgments and not (self.data or self.path):
            return None
        if self.path and not self.judgments and self._decided:
            names = self._columns()[0]
            return read_texts(self.path, self.rubric, names, self._decided).result()
        return load(
            self.data or ("csv" if self.path else "minibench"),
            path=self.path,
            rubric=self.rubric,
            columns=self._columns()[0] or None,
        )

    def _judgments(self, items: Items | None) -> Any:
        if not self.judgments:
            return None
        return reading(
            self.judgments,
            items,
            self.scale,
            decide=self._decided,
            columns=self._columns()[1],
            scores=self.scores.split(",") if self.scores else (),
            failed=self.failed or None,
            parser=self.parser or None,
        ).result()

    @property
    def _decided(self) -> str | Path | list[str]:
        return self.reading or self.decide or []

    def _columns(self) -> tuple[dict[str, str], dict[str, str]]:
        """Tell the columns' names of the texts from those of the judgments."""
        named = self._renamed
        if not (self.path and self.judgments and named):
            return (named if self.path and not self.judgments else {}), named
        scored, known = (table_of(path) for path in (self.judgments, self.path))
        of_texts = {old: new for old, new in named.items() if old in known}
        return of_texts, {
            old: new
            for old, new in named.items()
            if old in scored or old not in of_texts
        }
