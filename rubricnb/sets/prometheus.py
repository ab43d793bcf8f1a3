"""MT-Bench, Vicuna Bench and FLASK as Prometheus ships them: prompts as wholes.

Kim et al. (2024) put instruction, response, reference and rubric into one string; the
papers take their data from there. Here it is taken apart, and every part is checked by
putting the string together again.
"""

from __future__ import annotations

import re

from rubricnb.core.support.types import Records

PROMPT = (
    "###Task Description:\n{task}\n\n"
    "###The instruction to evaluate:\n{instruction}\n\n"
    "###Response to evaluate:\n{response}\n\n"
    "###Reference Answer (Score 5):\n{reference}\n\n"
    "###Score Rubrics:\n[{definition}]\n"
    "Score 1: {level_1}\n"
    "Score 2: {level_2}\n"
    "Score 3: {level_3}\n"
    "Score 4: {level_4}\n"
    "Score 5: {level_5}\n\n"
    "###Feedback: "
)
_HEADINGS = re.findall("###.+?:", PROMPT)
_PATTERN = re.compile(
    re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*)", re.escape(PROMPT)), re.DOTALL
)


def rows(records: Records) -> Records:
    """Take records apart whose ``instruction`` is a whole judge prompt."""
    return [row | parse_prompt(row["instruction"]) for row in records]


def parse_prompt(prompt: str) -> dict[str, str]:
    """Take a judge prompt in the Prometheus format apart.

    Parameters
    ----------
    prompt
        The whole prompt.

    Returns
    -------
    dict
        task, instruction, response, reference, definition, level_1 … level_5, all
        verbatim: ``PROMPT.format(**parse_prompt(prompt)) == prompt``.

    Raises
    ------
    ValueError
        A heading is missing or appears twice, or the parts are not in the format's
        order.

    Examples
    --------
    >>> parts = dict(
    ...     task="T", instruction="I", response="R", reference="A", definition="D?")
    >>> levels = {f"level_{k}": f"L{k}" for k in range(1, 6)}
    >>> parse_prompt(PROMPT.format(**parts, **levels)) == parts | levels
    True
    """
    match = _PATTERN.fullmatch(prompt)
    if match is None or any(prompt.count(heading) > 1 for heading in _HEADINGS):
        raise ValueError(
            f"the prompt that begins {prompt[:60]!r} is not in the Prometheus format "
            f"(once each {', '.join(_HEADINGS)}, with [definition] and 'Score 1:' to "
            "'Score 5:')"
        )
    return match.groupdict()
