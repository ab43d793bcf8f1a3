"""MT-Bench, Vicuna Bench and FLASK as Prometheus ships them: one whole judge prompt per response.

Kim et al. (2024) put instruction, response, reference and rubric into one string; the papers
take their data from there. Here it is taken apart, and every part is checked by putting the
string together again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rubricnb.data.tables import read_records

_HEADINGS = (
    "###Task Description:",
    "###The instruction to evaluate:",
    "###Response to evaluate:",
    "###Reference Answer (Score 5):",
    "###Score Rubrics:",
    "###Feedback:",
)
_PARTS = ("{task}", "{instruction}", "{response}", "{reference}", "[{definition}]")
_PROMPT = (
    "\n\n".join(f"{heading}\n{part}" for heading, part in zip(_HEADINGS, _PARTS, strict=False))
    + "".join(f"\nScore {k}: {{level_{k}}}" for k in range(1, 6))
    + f"\n\n{_HEADINGS[-1]} "
)
_PATTERN = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*)", re.escape(_PROMPT)), re.DOTALL)


def rows(files: Sequence[Path], needs: Sequence[str]) -> list[dict[str, Any]]:
    """Read records whose ``instruction`` is a whole judge prompt, and take it apart."""
    return [row | parse_prompt(row["instruction"]) for row in read_records(files[0], needs)]


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
        A heading is missing or appears twice, or the parts do not give the prompt back.

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
                f"the heading {heading!r} appears {found} times in the prompt that begins "
                f"{prompt[:60]!r}; in the Prometheus format it appears once"
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
