"""Options as they are typed, on a command line or in a form."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rubricnb.core.support.settings import yaml_value
from rubricnb.core.support.types import Options


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of ``rubricnb audit``, by the names that they have there.

    The command line is made from these fields: each has its type, what ``--help`` says
    of it, and its default. ``decide`` is ``--as``; of ``option`` the command knows it.
    """

    judge: Annotated[
        str,
        "Judge to audit: embedded, openai:MODEL, …; of --judgments one name, or all.",
    ] = ""
    data: Annotated[str, "Dataset; default: minibench, or the file in --path."] = ""
    path: Annotated[Path | None, "Your file of texts."] = None
    rubric: Annotated[Path | None, "Your file of rubrics."] = None
    judgments: Annotated[
        Path | None, "File of scores made elsewhere; no judge is asked."
    ] = None
    scale: Annotated[tuple[float, float] | None, "Scale of --judgments."] = None
    columns: Annotated[
        str,
        "Rename columns of --judgments or --path: value=score,traceId=item_id.",
    ] = ""
    scores: Annotated[
        str, "Score columns of --judgments, one per criterion: kind,useful."
    ] = ""
    failed: Annotated[
        list[float] | None,
        "Number for a missing score or rating in --judgments; may be repeated.",
    ] = None
    reading: Annotated[
        Path | None, "What the file means (python -m rubricnb read)."
    ] = None
    decide: Annotated[
        list[str] | None, "Answer a question about it: 'COLUMN KEY: VALUE'."
    ] = None
    n_prompts: Annotated[int | None, "Draw this many prompts (clusters)."] = None
    n_items: Annotated[
        int | None, "Draw this many items: whole texts, one of each prompt first."
    ] = None
    template: Annotated[str, "File of your own prompt (Jinja)."] = ""
    parser: Annotated[
        str, "How to find the score: json, json:KEY or a regular expression."
    ] = ""
    option: list[str] | None = None
    readout: Annotated[
        str | None, "How to read scores: auto, feedback, score or logprobs."
    ] = None
    temperature: Annotated[float | None, "Sampling temperature."] = None
    compare: Annotated[tuple[str, str] | None, "Two sides to compare; see above."] = (
        None
    )
    against: Annotated[Path | None, "An earlier audit.json, to test for drift."] = None
    fail_on: Annotated[
        str | None, "Exit 3 on 'order>0.2,agreement<0.5' (--compare: of the second)."
    ] = None
    datasheet: Annotated[Path | None, "Page to write a datasheet to."] = None
    check: Annotated[Path | None, "Datasheet (.json) to check; no judge is asked."] = (
        None
    )
    json: Annotated[bool, "Print the numbers as JSON."] = False
    output: Annotated[Path, "Page to write; the numbers go beside it as .json."] = Path(
        "audit.html"
    )
    force: Annotated[bool, "Run even with too few prompts."] = False
    looks: Annotated[
        int, "1: ask everything about every text. 2: only what is open then."
    ] = 2
    cost: Annotated[bool, "Only say what it would cost."] = False
    max_cost: Annotated[float | None, "Stop at this cost, in US dollars."] = None
    max_calls: Annotated[int | None, "Stop after this many requests."] = None
    price: Annotated[
        tuple[float, float, float] | None,
        "US dollars per million tokens: input, cached, output.",
    ] = None


def named_values(given: list[str] | None, what: str = "options of a judge") -> Options:
    """Read ``NAME=VALUE``; values are YAML, but on and off are words.

    >>> named_values(["thinking=off", "max_tokens=512", "check_model=false"])
    {'thinking': 'off', 'max_tokens': 512, 'check_model': False}
    """
    pairs = [text.partition("=") for text in given or ()]
    if wrong := [name for name, sign, _ in pairs if not (name and sign)]:
        raise ValueError(f"{wrong[0]!r}: {what} are given as NAME=VALUE")
    return {
        name: value.lower()
        if value.lower() in ("on", "off")
        else yaml_value(name, value)
        for name, _, value in pairs
    }


def in_options(message: str) -> str:
    """Write an error's advice, which is in Python's terms, as options of the command.

    Examples
    --------
    >>> in_options("name columns={'value': 'score'}, or give scale=(0, 1), failed=99")
    'name --columns value=score, or give --scale 0 1, --failed 99'
    """
    for pattern, option in _OPTIONS_FOR.items():
        message = re.sub(pattern, option, message)
    return message


def _pairs(found: re.Match[str]) -> str:
    pairs = re.findall(r"(['\"])(.*?)\1: (['\"])(.*?)\3", found[1])
    return "--columns " + ",".join(f"{old}={new}" for _, old, _, new in pairs)


_OPTIONS_FOR: Options = {
    r"columns=\{([^{}]*)\}": _pairs,
    r"scores=\[([^\]]*)\]": lambda found: (
        "--scores " + found[1].replace("'", "").replace(" ", "")
    ),
    r"scale=\(([^(),]*), ([^(),]*)\)": r"--scale \1 \2",
    r"failed=(-?[\d.]+)": r"--failed \1",
    r"parser=('[^']*')": r"--parser \1",
    r"(?:rb\.)?load\('csv', path=…, rubric=…\)": "--path FILE --rubric FILE",
    r"check_model=False": "--option check_model=false",
    r"(thinking|effort|server)=['\"](\w+)['\"]": r"--option \1=\2",
    r"\b(max_tokens|key_variable|concurrency|retries|timeout|patience|extra)"
    r"=(?=[\s,;.)]|\Z)": r"--option \1=…",
    r"\b(columns|scores|scale|failed|parser|path|rubric|judgments)"
    r"=(?=[\s,;.)]|\Z)": r"--\1",
}
