"""What comes back from an endpoint: errors and what they mean, pauses, doubts.

The calls themselves are in `rubricnb.engines.client`, which needs ``httpx2``.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

from rubricnb.core.support.types import Json

# An answer of 1,024 tokens with 20 alternatives to each has 2 MB;
# this holds 8,000 of them.
MAX_BODY_BYTES = 16 * 2**20
_LARGE_BYTES = 2**17  # reading this takes some hundredths of a second
_T = TypeVar("_T")
MAX_KEPT_CHARS = 100_000  # characters kept of a longer one
_RETRIED_STATUSES = (408, 409, 429)  # as are those from 500, but for
_NOT_IMPLEMENTED = 501
_PAUSES = (0.5, 8.0)  # seconds before a retry: the first pause, and the longest
_PERMANENT = (  # error codes
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "unsupported_value",
    "unsupported_parameter",
)
# texts that fail; times as many failures once an answer was good
_TEXTS, _IN_A_ROW = 3, 4
# What a proxy such as LiteLLM writes into a message whose code is only the status.
_FILTERED_WORDS = ("contentpolicyviolation", "content management policy")
_FILTERED = (
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
)


class Refused(Exception):
    """An error status, or an error in a response with status 200."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        error = body.get("error") or body if isinstance(body, dict) else body
        error = error if isinstance(error, dict) else {"message": error}
        said = error.get("message") or error.get("detail")
        self.message = str(said or "")[:MAX_KEPT_CHARS]
        if error.keys() - {"message", "detail", "type", "param", "code"} or not said:
            said = json.dumps(error)
        self.code = str(error.get("code") or "")
        self.param = str(error.get("param") or "")
        if status == 200 and re.fullmatch("[45][0-9][0-9]", self.code):
            status = int(self.code)
        super().__init__(f"{status} {str(said)[:MAX_KEPT_CHARS]}")
        self.status, self.headers = status, headers
        self.is_filtered = is_filtered(error)

    @property
    def is_permanent(self) -> bool:
        """Whether every request would get this error."""
        return (
            self.status in (401, 402)
            or 300 <= self.status < 400
            or self.code in _PERMANENT
            or "budget has been exceeded" in self.message.lower()  # LiteLLM's words
        )

    @property
    def is_without_logprobs(self) -> bool:
        """Whether the endpoint refuses log-probabilities."""
        return self.status in (400, 403, 422) and (
            "logprobs" in f"{self.param} {self.message}".lower()
        )


def is_filtered(error: Any) -> bool:
    """Whether a content filter refused this text (the error itself, or one inside it).

    Examples
    --------
    >>> inner = {"code": "ResponsibleAIPolicyViolation"}
    >>> is_filtered({"code": "BadRequest", "innererror": inner})
    True
    """
    if not isinstance(error, dict):
        return False
    flagged = "flagged_input" in part(error, "metadata")
    codes = {str(error.get(name) or "").lower() for name in ("code", "type")}
    # OpenAI's code for a prompt that breaks its usage policy;
    # other bad prompts have it as well.
    said = str(error.get("message")).lower()
    flagged |= "invalid_prompt" in codes and "policy" in said
    flagged |= any(words in said for words in _FILTERED_WORDS)
    inner = (error.get(name) for name in ("error", "innererror", "inner_error"))
    return flagged or bool(codes & set(_FILTERED)) or any(map(is_filtered, inner))


class Unreachable(Exception):
    """No complete response: connection refused, TLS failure, or connection lost."""

    def __init__(self, problem: BaseException, nobody: bool = False) -> None:
        super().__init__(f"no complete response ({type(problem).__name__}: {problem})")
        self.nobody = nobody


class Unreadable(ValueError):
    """A response in an unknown form, perhaps paid for; `raw` is its text."""

    def __init__(self, why: str, raw: str) -> None:
        super().__init__(f"{why}: {raw[:200] or 'an empty body'}")
        self.raw = raw


class Answer(NamedTuple):
    """The JSON object that came, and its size in bytes."""

    content: Json
    size: int


async def aside(size: int, function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function on an answer; of a large one in a thread, so others go on."""
    if size < _LARGE_BYTES:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def pause_after(problem: Exception, tries: int) -> float | None:
    """Seconds until a failed call may be retried; None if a retry would fail too."""
    first, longest = _PAUSES
    growing = min(first * 2.0 ** min(tries, 10), longest) * random.uniform(0.75, 1)
    if isinstance(problem, Refused):
        told = retry_after(problem.headers)
        passing = problem.status in _RETRIED_STATUSES or problem.status >= 500
        passing &= problem.status != _NOT_IMPLEMENTED
        # A 402 of OpenRouter with Retry-After means retry, not missing credit.
        passing |= problem.status == 402 and told > 0
        return (
            max(told, growing) if passing and problem.code not in _PERMANENT else None
        )
    return growing if isinstance(problem, Unreachable | TimeoutError) else None


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds to wait by the header ``Retry-After``; 0 if it says nothing.

    A date is compared with the answer's own ``Date``, so this machine's clock does not
    matter.

    Examples
    --------
    >>> retry_after({"retry-after": "7"})
    7.0
    >>> retry_after({"retry-after": "Fri, 27 Nov 2026 12:00:30 GMT",
    ...              "date": "Fri, 27 Nov 2026 12:00:00 GMT"})
    30.0
    """
    told = headers.get("retry-after", "")
    try:
        seconds = float(told)
    except ValueError:
        until, now = _time(told), _time(headers.get("date", ""))
        seconds = (
            until - (time.time() if now is None else now) if until is not None else 0.0
        )
    return seconds if 0 < seconds < math.inf else 0.0  # not for NaN


def _time(date: str) -> float | None:
    """Return an HTTP date in seconds since 1970; None if it is none."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


class Doubt:
    """Counts failures until one may say that every further request would fail as well.

    An endpoint behind a login page, one that streams, or one that answers nothing looks
    as if each request failed by itself. Whatever is counted here is not temporary.

    Parameters
    ----------
    most
        Unreadable answers, before any good one, that are enough. With fewer calls at
        once, a single text that is never answered must not keep the run from the
        others.
    """

    def __init__(self, most: int) -> None:
        self.most = max(most, 5)
        self.forget()

    def forget(self) -> None:
        """An answer is good: begin anew."""
        self._unreadable = self._refused = 0
        self._texts: set[str] = set()

    def left(self) -> int:
        """Return how many more calls may be under way before any answer is good."""
        return self.most - self._unreadable

    def grows(self, problem: Exception, text: str, works: bool) -> bool:
        """Count a failure; say whether there were enough.

        Where answers were good before, four times as many in a row are needed, and of
        three texts. Of three texts, too, where an endpoint refuses: it may be about one
        that is too long.
        """
        if isinstance(problem, Refused):
            self._refused += pause_after(problem, 0) is None
        elif not isinstance(problem, Unreachable | TimeoutError):
            self._unreadable += 1
        self._texts.add(text)
        if self._unreadable >= self.most * (_IN_A_ROW if works else 1):
            return not works or len(self._texts) >= _TEXTS
        return self._refused >= self.most and len(self._texts) >= _TEXTS and not works


class Pace:
    """Spaces calls: so many a minute, and none while the endpoint asks for a pause."""

    def __init__(self, per_minute: float | None) -> None:
        self._space = 60 / per_minute if per_minute else 0.0
        self._free_at = 0.0

    async def take(self) -> None:
        """Wait until a call may be sent."""
        at = max(self._free_at, time.monotonic())
        self._free_at = at + self._space
        await asyncio.sleep(at - time.monotonic())

    def hold(self, seconds: float) -> None:
        """Send nothing for this many seconds."""
        self._free_at = max(self._free_at, time.monotonic() + seconds)


def way_out(problem: Exception) -> str:
    """Return what to do about answers that cannot be read."""
    raw = (problem.raw if isinstance(problem, Unreadable) else "").lstrip()
    if raw.startswith("<"):
        return (
            "this is a web page: give the address of the API itself, which mostly ends "
            "in /v1, and log in first if a proxy or a gateway asks for it"
        )
    if raw.startswith(("data:", "event:", ":")):
        return "this is a stream, which was not asked for: pass extra={'stream': False}"
    if isinstance(problem, Unreadable) and not raw:
        return (
            "the answer is empty: look into the log of the endpoint or of the proxy "
            "before it"
        )
    return "look into the log of the endpoint, and try another model or readout"


def part(holder: Any, name: str) -> Json:
    """Return an object inside a response; an empty one if it is not there."""
    part = holder.get(name) if isinstance(holder, dict) else None
    return part if isinstance(part, dict) else {}


def text_of(content: Any) -> str | None:
    """Return the text of a message's content, which may have parts; None: no text."""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        content = "".join(
            str(p.get("text", "")) for p in content if p.get("type") == "text"
        )
    return content if isinstance(content, str) else "" if content is None else None
