"""An audit from a form: a folder of files and the fields of a page, without a server.

The page "Audit here" of the book runs this in the reader's browser. The fields are
named as the options of ``python -m rubricnb audit``, and the audit is the command's.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

from rubricnb.auditing.command import AuditCommand
from rubricnb.auditing.options import in_options
from rubricnb.core.support.shown import one_line
from rubricnb.core.support.types import Options

FILES = ("judgments", "path", "rubric")
"""Fields that hold a file: a folder of that name has it."""
_TEXTS = ("judge", "columns", "scores", "parser")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)")


def audit_form(folder: str | Path, fields: str) -> str:
    """Audit the files of a form; delete them.

    Parameters
    ----------
    folder
        Has a folder for each of `FILES` that was given, with one file in it.
    fields
        JSON: the other options as they were typed. ``scale`` is ``1 5``, ``failed`` is
        ``-1, 99``, ``columns`` is ``value=score,traceId=item_id``; an empty one was not
        given.

    Returns
    -------
    str
        JSON with ``notes`` and ``lines`` (what the command prints while it reads, and
        of what it finds), ``failures``, ``page`` (HTML) and ``numbers`` (JSON); or with
        ``error``, one line.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> (folder / "judgments").mkdir()
    >>> _ = (folder / "judgments" / "mine.csv").write_text("item_id,score\\na,3\\n")
    >>> print(json.loads(audit_form(folder, "{}"))["error"])
    judgments need --scale lowest highest, or items with rubrics (--scale 0 3)
    """
    folder = Path(folder)
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            typed = {name: text.strip() for name, text in json.loads(fields).items()}
            options: Options = {name: typed.get(name, "") for name in _TEXTS}
            options |= {name: next(folder.glob(f"{name}/*"), None) for name in FILES}
            if options["judgments"] is None:
                raise ValueError("no file of scores: choose one for --judgments")
            for name in ("scale", "failed"):
                options[name] = _numbers(name, typed.get(name, "")) or None
            if len(options["scale"] or (0, 1)) != 2:
                raise ValueError(
                    "--scale is the lowest and the highest score, such as 1 5"
                )
            given = AuditCommand(output=folder / "audit.html", **options)
            given.refuse_contradictions()
            if given.every_judge:
                raise ValueError("here is room for one page: name one judge")
            (found,) = given.audits(lambda cost: None)
        said = [line for line in printed.getvalue().splitlines() if line.strip()]
        answer: Options = {
            "notes": said,
            "lines": [found.sentence, *found.top["sentence"]],
            "failures": found.failures(),
            "page": given.page.read_text("utf-8"),
            "numbers": given.page.with_suffix(".json").read_text("utf-8"),
        }
    except MemoryError:
        answer = {
            "error": "not enough memory: keep the columns and rows that are needed"
        }
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        answer = {"error": one_line(in_options(str(error)))}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return json.dumps(answer)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    """Read numbers that are separated by spaces, commas or semicolons."""
    parts = re.split(r"[\s,;]+", text) if text else []
    if wrong := [part for part in parts if not _NUMBER.fullmatch(part)]:
        raise ValueError(f"--{name} takes numbers, such as 1 5, not {wrong[0]!r}")
    return tuple(map(float, parts))
