"""MT-Bench and Vicuna Bench as Prometheus ships them: one whole judge prompt per response.

Kim et al. (2024) put instruction, response, reference and rubric into one string; both papers
take their data from there. Here it is taken apart, and every part is checked by putting the
string together again.
"""

from __future__ import annotations

import json
import re
from statistics import median
from typing import Any

import pandas as pd

from rubricnb.data.fetch import fetch
from rubricnb.data.rubrics import levels
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

FOLDER = (
    "github/prometheus-eval/prometheus-eval/dcfb44272d5d0414832f5dbb8c2a05ebc2614234"
    "/eval/benchmark/data"
)
FILES = {
    "mt-bench": f"{FOLDER}/mt_bench_eval.json",
    "vicuna": f"{FOLDER}/vicuna_eval.json",
}
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


def load_prometheus(name: str) -> Items:
    """Load MT-Bench or Vicuna Bench in the Prometheus format.

    Parameters
    ----------
    name
        ``mt-bench`` or ``vicuna``.

    Returns
    -------
    Items
        320 items: 80 prompts × 4 candidates, one criterion, ``overall``. Every prompt has a rubric
        of its own, whose ``definition`` is the question in its square brackets, and a full-mark
        ``reference``, which is ``reference_5`` too. There are no human ratings: ``gold_ratings``
        are the three scores by GPT-4 that come with the data and ``gold`` is their majority (their
        median if all differ). In MT-Bench the instruction holds the earlier turns, so it differs
        between the candidates of a prompt: group by ``group_id``, never by the text.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`; or a prompt is not in the Prometheus format.

    Notes
    -----
    Kim et al. 2024, *Prometheus*, ICLR; Zheng et al. 2023 (MT-Bench); Chiang et al. 2023 (Vicuna).

    Examples
    --------
    >>> load_prometheus("vicuna")  # doctest: +SKIP
    """
    rows = json.loads(fetch(FILES[name]).read_text(encoding="utf-8"))
    parsed = [(row, parse_prompt(row["instruction"])) for row in rows]
    items = pd.DataFrame([_item(name, row, parts) for row, parts in parsed])
    rubrics = pd.DataFrame(
        [r for row, parts in parsed for r in levels_of(parts, f"{name}/{row['idx']}", "overall")]
    )
    return check_items(items, rubrics.drop_duplicates())


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


def levels_of(parts: dict[str, str], rubric_id: str, criterion: str) -> list[dict[str, object]]:
    """List the levels of the rubric in a prompt."""
    descriptions = [parts[f"level_{k}"] for k in _LEVELS]
    return levels(rubric_id, criterion, parts["definition"], descriptions)


def item_of(name: str, row: dict[str, Any]) -> str:
    """Name the item of a row: set, prompt and candidate."""
    return f"{name}/{row['idx']}/{_CANDIDATES[row['response_source']]}"


def _item(name: str, row: dict[str, Any], parts: dict[str, str]) -> dict[str, object]:
    prompt = f"{name}/{row['idx']}"
    candidate = _CANDIDATES[row["response_source"]]
    scores = tuple(row["gpt4_score"])
    return {
        "item_id": item_of(name, row),
        "dataset": name,
        "text_id": f"{prompt}/{candidate}",
        "group_id": prompt,
        "cluster_id": prompt,
        "candidate": candidate,
        "category": row["category"],
        "instruction": parts["instruction"],
        "response": parts["response"],
        "reference": parts["reference"],
        "reference_5": parts["reference"],
        "criterion": "overall",
        "rubric_id": prompt,
        # Of three scores the median is the majority wherever two agree.
        "gold": float(median(scores)),
        "gold_ratings": scores,
    }
