"""MT-Bench, Vicuna Bench and FLASK as Prometheus ships them: one whole judge prompt per response.

Kim et al. (2024) put instruction, response, reference and rubric into one string; the papers
take their data from there. Here it is taken apart, and every part is checked by putting the
string together again.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import mean, median
from typing import Any

import pandas as pd

from rubricnb.data.fetch import fetch
from rubricnb.data.records import records
from rubricnb.data.rubrics import levels
from rubricnb.data.validate import check_items, ids
from rubricnb.frames import Items

FOLDER = (
    "github/prometheus-eval/prometheus-eval/dcfb44272d5d0414832f5dbb8c2a05ebc2614234"
    "/eval/benchmark/data"
)
FILES = {
    "mt-bench": f"{FOLDER}/mt_bench_eval.json",
    "vicuna": f"{FOLDER}/vicuna_eval.json",
}
_NEEDED = ("idx", "response_source", "instruction")
_SKILLS = ("criteria", "human_score")  # of FLASK
# The two files spell the same four models differently.
_CANDIDATES = {
    "chatgpt": "chatgpt",
    "chat_gpt": "chatgpt",
    "llama2_chat_13b": "llama2-chat-13b",
    "llama-2-chat": "llama2-chat-13b",
    "vicuna_13b": "vicuna-13b",
    "vicuna": "vicuna-13b",
    "wizardlm_13b": "wizardlm-13b",
    "wizard": "wizardlm-13b",
}
_HEADINGS = (
    "###Task Description:",
    "###The instruction to evaluate:",
    "###Response to evaluate:",
    "###Reference Answer (Score 5):",
    "###Score Rubrics:",
    "###Feedback:",
)
_LEVELS = range(1, 6)
_PARTS = ("{task}", "{instruction}", "{response}", "{reference}", "[{definition}]")
_PROMPT = (
    "\n\n".join(f"{heading}\n{part}" for heading, part in zip(_HEADINGS, _PARTS, strict=False))
    + "".join(f"\nScore {k}: {{level_{k}}}" for k in _LEVELS)
    + f"\n\n{_HEADINGS[-1]} "
)
_PATTERN = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*)", re.escape(_PROMPT)), re.DOTALL)


def load(name: str, path: str | Path | None = None) -> Items:
    """Load MT-Bench, Vicuna Bench or FLASK in the Prometheus format.

    Parameters
    ----------
    name
        ``mt-bench`` or ``vicuna``: 320 items, 80 prompts × 4 candidates, one criterion,
        ``overall``. ``flask``: from a file of one's own; not yet met real data: written from its
        description.
    path
        ``flask``: ``flask_eval.json`` of the Prometheus repository: a list of records with
        ``idx``, ``response_source``, ``criteria`` (the skill), ``instruction`` (a whole judge
        prompt, as `parse_prompt` takes it apart), ``human_score`` and ``gpt4_score`` (numbers or
        lists of them).

    Returns
    -------
    Items
        One item per response and skill; a prompt is a cluster, and its responses compete. In
        MT-Bench and Vicuna every prompt has a rubric of its own, in FLASK every skill (a skill
        that is worded in several ways has several). A rubric's ``definition`` is the question in
        its square brackets. The full-mark ``reference`` is ``reference_5`` too. ``gold_ratings``
        are the scores by GPT-4 that come with the data, and ``gold`` is their median (of three:
        the majority where two agree). In FLASK ``human`` is the mean of ``human_ratings``; the
        others have none. In MT-Bench the instruction holds the earlier turns, so it differs
        between the candidates of a prompt: group by ``group_id``, never by the text.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`; or a prompt is not in the Prometheus format, or a rating
        is out of range.

    Notes
    -----
    Kim et al. 2024, *Prometheus*, ICLR; Zheng et al. 2023 (MT-Bench); Chiang et al. 2023 (Vicuna);
    Ye et al. 2024, *FLASK*; arXiv:2506.22316, Table 1: 2,001 responses to 200 prompts, 12 rubrics.

    Examples
    --------
    >>> load("vicuna")  # doctest: +SKIP
    """
    rows = records(path or fetch(FILES[name]), *_NEEDED, *(_SKILLS if path else ()))
    wordings: dict[str, list[Any]] = {}
    items, rubrics = [], []
    for row in rows:
        parts = parse_prompt(row["instruction"])
        skill = str(row["criteria"]).strip().lower() if path else ""
        rubric_id = f"{name}/{row['idx']}"
        if skill:  # rubrics are named by skill; one that is worded in several ways has several
            known, wording = wordings.setdefault(skill, []), _wording(parts)
            if wording not in known:
                known.append(wording)
            number = known.index(wording) + 1
            rubric_id = f"{name}-{skill}" + (f"-{number}" if number > 1 else "")
        items.append(_item(name, row, parts, skill, rubric_id))
        rubrics += levels(rubric_id, skill or "overall", *_wording(parts))
    unique = pd.DataFrame(rubrics).drop_duplicates()
    return check_items(pd.DataFrame(items), unique, allow_unrated=True)


def parse_prompt(prompt: str) -> dict[str, str]:
    """Take a judge prompt in the Prometheus format apart.

    Parameters
    ----------
    prompt
        The whole prompt.

    Returns
    -------
    dict
        task, instruction, response, reference, definition, level_1 … level_5, all verbatim:
        ``render_prompt(parse_prompt(prompt)) == prompt``.

    Raises
    ------
    ValueError
        A heading is missing or stands twice, or the parts do not give the prompt back.

    Examples
    --------
    >>> parts = dict(task="T", instruction="I", response="R", reference="A", definition="D?")
    >>> levels = {f"level_{k}": f"L{k}" for k in range(1, 6)}
    >>> parse_prompt(render_prompt(parts | levels)) == parts | levels
    True
    """
    for heading in _HEADINGS:
        if (found := prompt.count(heading)) != 1:
            raise ValueError(
                f"the heading {heading!r} stands {found} times in the prompt that begins "
                f"{prompt[:60]!r}; in the Prometheus format it stands once"
            )
    match = _PATTERN.fullmatch(prompt)
    if match is None or render_prompt(match.groupdict()) != prompt:
        raise ValueError(
            f"the prompt that begins {prompt[:60]!r} is not in the Prometheus format "
            f"({', '.join(_HEADINGS)}, with [definition] and 'Score 1:' to 'Score 5:')"
        )
    return match.groupdict()


def render_prompt(parts: dict[str, str]) -> str:
    """Put a judge prompt in the Prometheus format together again.

    Parameters
    ----------
    parts
        As `parse_prompt` returns them.

    Examples
    --------
    >>> parts = dict.fromkeys(["task", "instruction", "response", "reference", "definition"], "…")
    >>> render_prompt(parts | {f"level_{k}": "…" for k in range(1, 6)}).splitlines()[-1]
    '###Feedback: '
    """
    return _PROMPT.format(**parts)


def item_of(name: str, row: dict[str, Any]) -> str:
    """Name the item of a row of MT-Bench or Vicuna: set, prompt and candidate."""
    return f"{name}/{row['idx']}/{_CANDIDATES[row['response_source']]}"


def _wording(parts: dict[str, str]) -> tuple[str, list[str]]:
    return parts["definition"], [parts[f"level_{k}"] for k in _LEVELS]


def _item(
    name: str, row: dict[str, Any], parts: dict[str, str], skill: str, rubric_id: str
) -> dict[str, object]:
    source = row["response_source"]
    candidate = str(source) if skill else _CANDIDATES[source]
    human, gold = _ratings(row.get("human_score")), _ratings(row.get("gpt4_score"))
    people = {"human": mean(human) if human else math.nan, "human_ratings": human or None}
    return {
        **ids(name, f"{name}/{row['idx']}", candidate, skill),
        "candidate": candidate,
        **({} if skill else {"category": row["category"]}),
        "instruction": parts["instruction"],
        "response": parts["response"],
        "reference": parts["reference"],
        "reference_5": parts["reference"],
        "criterion": skill or "overall",
        "rubric_id": rubric_id,
        **(people if skill else {}),
        "gold": float(median(gold)) if gold else math.nan,
        "gold_ratings": gold or None,
    }


def _ratings(scores: Any) -> tuple[float, ...]:
    listed = scores if isinstance(scores, list) else [scores]
    return tuple(s for s in listed if isinstance(s, int | float) and not pd.isna(s))
