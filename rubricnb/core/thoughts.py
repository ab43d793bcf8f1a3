"""Where thoughts begin and end in an answer: marks of models, servers and prompts.

A thought without an end holds no answer. So that marks of models to come are safe as
well, a tag or a special token opens a thought if a word of its name is one for
thinking.
"""

from __future__ import annotations

import re

_WORD = (
    r"think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion|ing)?|scratch_?pad"
    r"|monolog(?:ue)?"
)
_NAME = rf"(?:\w+[:_-])*?(?:inner_prefix|analysis|rationale|cot|{_WORD})(?:[_-]\w+)*"
_TAGS = rf"(?!end|stop|close)(?:\w+:)?(?:{_NAME})"
# The first lines of answers whose thoughts have headings in place of tags.
_HEADING = (
    r"\A\s*(?:Thinking\.\.\.+|(?:Here(?:'s| is) )?(?:my|the) (?:thought|thinking) "
    r"process:"
    r"|(?:<\|assistant\|>\s*)?Thought process:)[^\S\n]*\n"
)
_ENDED = (
    r"(?:^|(?<=\n))[^\S\n]*(?:\.\.\.+done thinking\.?|(?:Here(?:'s| is) )?(?:my|the) "
    r"(?:response|answer|final answer):)"
)
_MARKS = re.compile(
    rf"(?P<opens>(?i:<{_TAGS}(?:\s[^<>]*)?>|\[THINK\]"
    rf"|<details\s[^<>]*type=.?reasoning[^<>]*>"
    rf"|<\|{_TAGS}\|>|<\|inner_prefix\|>|{_HEADING})|◁think▷"  # Solar, Apertus; Kimi
    # Cohere, Sky-T1, Gemma 4
    r"|<\|START_THINKING\|>|<\|begin_of_thought\|>|<\|channel>thought"
    r"|<unused94>(?:thought)?"  # MedGemma
    # gpt-oss, its tokens cut off
    r"|<\|channel\|>(?:analysis|commentary)|\Aanalysis(?=[A-Z]))"
    r"|(?P<answers><\|channel\|>final|assistantfinal)"
    rf"|(?P<closes>(?i:</{_TAGS}\s*>|\[/THINK\]|<\|(?:/|(?:end|stop"
    rf"|close)_)(?:of_)?{_TAGS}\|>|<\|inner_suffix\|>)"
    r"|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>|<channel\|>|<unused95>)"
    rf"|(?P<ends>(?i:</details>|{_ENDED}))"  # only where a thought is open
)
"""Marks around thoughts that reach an answer's text:
open-weight models' and prompts' own.
"""


_BEGUN = re.compile(rf"(<{_TAGS}>|\[THINK\]|◁think▷|<unused94>)\s*\Z", re.IGNORECASE)


def opened_thought(prompt: str) -> str:
    """Return the mark of a thought that a prompt has begun at its end, or nothing.

    Examples
    --------
    >>> opened_thought("<|im_start|>assistant\\n<think>\\n")
    '<think>'
    """
    found = _BEGUN.search(prompt)
    return found[1] if found else ""


def without_thoughts(text: str) -> str:
    """Replace thoughts in an answer by line breaks, character by character.

    Where only the end of a thought is marked, its beginning stood in the prompt: all
    before it is thought. Where a thought has no end, nothing is an answer yet.

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
        if mark["ends"] and not depth:
            continue
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
