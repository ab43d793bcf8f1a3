"""Whether the model that answered is the one that was asked for."""

from __future__ import annotations

import re

_YEAR, _MONTH, _DAY = r"20\d\d", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_DATE = "|".join(
    (
        f"{_YEAR}-?{_MONTH}-?{_DAY}",  # gpt-4.1-2025-04-14, claude-3-5-haiku-20241022
        f"{_MONTH}-?{_DAY}",  # gpt-4-0613
        rf"2\d{_MONTH}(?:{_DAY})?",  # mistral-large-2411
        f"{_MONTH}-{_YEAR}",  # command-r-08-2024
    )
)
# an alias may lead to a version, too
_DATED = re.compile(rf"[-@](?:v\d[\d.]*[-@])?(?:{_DATE})")


def same_model(asked: str, answered: str) -> bool:
    """Say whether an answer is by the model that was asked for.

    A model may answer under its dated name, without the name of its provider, and with
    the tag ``latest``. Any other difference is another model: a size, a variant, a
    provider.

    Examples
    --------
    >>> same_model("gpt-4.1", "gpt-4.1-2025-04-14"), same_model("gpt-4", "gpt-4-32k")
    (True, False)
    >>> same_model("openai/gpt-4.1", "gpt-4.1"), same_model("gpt-4.1", "evil/gpt-4.1")
    (True, False)
    """
    asked, answered = asked.strip().lower(), answered.strip().lower()
    if "/" not in answered:
        asked = asked.rsplit("/", 1)[-1]
    if asked == answered:
        return True
    (name, tag), (given, given_tag) = _parts(asked), _parts(answered)
    if given_tag != tag or not given.startswith(name):
        return False
    return given == name or bool(_DATED.fullmatch(given, len(name)))


def _parts(name: str) -> tuple[str, str]:
    """Split a name from its tag, as qwen2.5:7b.

    Tags that say how, not what, count for none.
    """
    name, _, tag = name.partition(":")
    return name, "" if tag in (
        "free",
        "nitro",
        "floor",
        "online",
        "extended",
        "exacto",
        "latest",
    ) else tag
