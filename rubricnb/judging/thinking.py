"""Which judges think before they answer, how many tokens they need, and where thoughts end."""

from __future__ import annotations

import re

from rubricnb.judging.contract import Request

_ANSWER_TOKENS = 1024
_THINKING_TOKENS = 16_384  # room to think before the answer
_REASONS = re.compile(
    r"^(o\d|gpt-5(?!.*chat)|gpt-oss|deepseek-r1|qwq|magistral|grok-(3-mini|4)"
    r"|gemini-(2\.5|3)[\d.]*-pro)|reason|think"
)
_TAGS = r"(?:\w+:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_MARKS = re.compile(
    rf"(?P<opens>(?i:<{_TAGS}(?:\s[^<>]*)?>|\[THINK\])|◁think▷|<\|START_THINKING\|>"  # Kimi, Cohere
    r"|<\|begin_of_thought\|>|<\|channel>thought"  # Sky-T1, Gemma 4
    r"|<\|channel\|>(?:analysis|commentary)|\Aanalysis(?=[A-Z]))"  # gpt-oss, its tokens cut off
    r"|(?P<answers><\|channel\|>final|assistantfinal)"
    rf"|(?P<closes>(?i:</{_TAGS}\s*>|\[/THINK\])|◁/think▷|<\|END_THINKING\|>"
    r"|<\|end_of_thought\|>|<channel\|>)"
)
"""Marks around thoughts that reach an answer's text: open-weight models' and prompts' own."""


_BEGUN = re.compile(rf"(<{_TAGS}>|\[THINK\]|◁think▷)\s*\Z", re.IGNORECASE)


def thinks(request: Request, model: str) -> bool:
    """Say whether a model thinks before it answers a request: it is asked to, or always does."""
    asked = request.effort != "default" or request.thinking == "on"
    return asked or bool(_REASONS.search(model.rsplit("/", 1)[-1].lower()))


def most_tokens(request: Request, model: str, answer: int = _ANSWER_TOKENS) -> int:
    """Return how many tokens an answer may take, thoughts included."""
    if request.max_tokens:
        return request.max_tokens
    return answer + _THINKING_TOKENS if thinks(request, model) else answer


def opened_thought(prompt: str) -> str:
    """Return the mark of a thought that a prompt has begun at its end; empty if it has not.

    Examples
    --------
    >>> opened_thought("<|im_start|>assistant\\n<think>\\n")
    '<think>'
    """
    found = _BEGUN.search(prompt)
    return found[1] if found else ""


def without_thoughts(text: str) -> str:
    """Replace thoughts in an answer by line breaks, character by character.

    Where only the end of a thought is marked, its beginning stood in the prompt: all before it is
    thought. Where a thought has no end, nothing is an answer yet.

    Returns
    -------
    str
        As long as `text`; empty if a thought is open at the end.

    Examples
    --------
    >>> without_thoughts("<think>A 2? No.</think> [RESULT] 4").strip()
    '[RESULT] 4'
    >>> without_thoughts("A 2? No.</think> [RESULT] 4").strip()
    '[RESULT] 4'
    >>> without_thoughts("[RESULT] 3 <think>Or [RESULT] 2? ")
    ''
    """
    answers: list[tuple[int, int]] = []
    depth = begin = 0
    for mark in _MARKS.finditer(text):
        if mark["opens"]:
            if not depth:
                answers.append((begin, mark.start()))
            depth += 1
            continue
        if not depth:
            answers.clear()
        depth = 0 if mark["answers"] else max(depth - 1, 0)
        begin = mark.end()
    if depth:
        return ""
    kept, at = "", 0
    for start, end in (*answers, (begin, len(text))):
        kept += "\n" * (start - at) + text[start:end]
        at = end
    return kept
