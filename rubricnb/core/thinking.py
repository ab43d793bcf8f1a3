"""Which judges think before they answer, and how many tokens they need."""

from __future__ import annotations

import re

from rubricnb.core.contract import Request

_ANSWER_TOKENS = 1024
_THINKING_TOKENS = 16_384  # room to think before the answer
_REASONS = re.compile(
    r"^(o\d|gpt-5(?!.*chat)|gpt-oss|deepseek-r1|qwq|magistral|grok-(3-mini|4)"
    r"|gemini-(2\.5|3)[\d.]*-pro)|reason|think"
)


def thinks(request: Request, model: str) -> bool:
    """Say whether a model thinks before it answers: on request, or always."""
    asked = request.effort != "default" or request.thinking == "on"
    return asked or bool(_REASONS.search(model.rsplit("/", 1)[-1].lower()))


def most_tokens(request: Request, model: str, answer: int = _ANSWER_TOKENS) -> int:
    """Return how many tokens an answer may take, thoughts included."""
    if request.max_tokens:
        return request.max_tokens
    return answer + _THINKING_TOKENS if thinks(request, model) else answer
