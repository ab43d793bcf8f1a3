"""Calls to one endpoint through the ``openai`` client: one host, bounded responses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from rubricnb.judging.connection import (
    MAX_BODY_BYTES,
    MAX_KEPT_CHARS,
    Answer,
    Refused,
    Unreachable,
    Unreadable,
    aside,
)

_HEADERS = (
    "host",
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
)


class Connection(httpx2.AsyncClient):
    """Transport of the ``openai`` client: one host,
    our headers only, bounded responses.

    By itself, that client would follow redirects with the prompt, and send headers that
    the environment names for OpenAI to any host. It is given no key: the key is among
    `headers`.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        redact: Callable[[str], str],
        timeout: float,
        proxies: bool,
    ) -> None:
        from openai import AsyncOpenAI  # here, since it takes a second

        connecting = httpx2.Timeout(None, connect=min(timeout, 30))
        super().__init__(timeout=connecting, limits=httpx2.Limits(), trust_env=proxies)
        address = httpx2.URL(base_url)
        self._host = (address.scheme, address.netloc)
        self._own_headers = {"User-Agent": "rubricnb", **headers}
        self._timeout_s, self._redact = timeout, redact
        self._openai = AsyncOpenAI(
            base_url=base_url, api_key="none", max_retries=0, http_client=self
        )

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send a request of the ``openai`` client;
        return the response, up to a size limit.
        """
        if (request.url.scheme, request.url.netloc) != self._host:
            raise ValueError(
                f"a call to {request.url.host} was blocked: the judge has a different "
                "address"
            )
        kept = {
            name: request.headers[name] for name in _HEADERS if name in request.headers
        }
        request.headers = httpx2.Headers(kept | self._own_headers)
        response = await super().send(
            request, stream=True, auth=None, follow_redirects=False
        )
        body = bytearray()
        async with aclosing(response):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    break
        headers, status = response.headers, response.status_code
        headers.pop("content-encoding", None)  # which the body has no longer
        return httpx2.Response(
            status, headers=headers, content=bytes(body), request=request
        )

    async def ask(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Send a call; return the JSON object of the response.

        The whole answer must come in time: a limit on every read would let a trickle go
        on.
        """
        import openai

        content = json.dumps(body).encode()  # any text, lone surrogates included
        post = partial(self._openai.post, content=content) if body else self._openai.get
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await post(path, cast_to=httpx2.Response)
        except TimeoutError:
            raise TimeoutError(
                f"no complete response within {self._timeout_s:g} s"
            ) from None
        except openai.APIConnectionError as problem:
            cause = problem.__cause__ or problem
            nobody = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
            raise Unreachable(cause, nobody) from None
        except openai.APIStatusError as problem:
            response = problem.response
        size = len(response.content)
        return Answer(await aside(size, self._read, response), size)

    def _read(self, response: httpx2.Response) -> dict[str, Any]:
        """Return the JSON object of a response; raise an error for anything else."""
        status, headers = response.status_code, response.headers
        if 300 <= status < 400:
            raise Refused(status, _redirect(response), headers)
        # before it is cut
        raw = self._redact(response.content.decode("utf-8-sig", "replace"))
        answer = _object(raw)
        if not response.is_success:
            raise Refused(status, answer or raw[:MAX_KEPT_CHARS], headers)
        if len(response.content) > MAX_BODY_BYTES:
            raise Unreadable(
                "the endpoint's answer has more than 16 MiB", raw[:MAX_KEPT_CHARS]
            )
        if answer is None:
            raise Unreadable("the endpoint sent no JSON object", raw)
        # an error with status 200
        if answer.get("error") and not answer.get("choices"):
            code = (
                answer["error"].get("code")
                if isinstance(answer["error"], dict)
                else None
            )
            status = (
                int(str(code)) if re.fullmatch("[45][0-9][0-9]", str(code)) else 200
            )
            raise Refused(status, answer, headers)
        return answer


def _redirect(response: httpx2.Response) -> str:
    """Describe a redirect: its target without parameters and passwords."""
    target = urlsplit(urljoin(str(response.url), response.headers.get("location", "")))
    shown = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"
    return (
        f"it redirects to {shown}, and redirects are not followed. If that is the "
        "right address, give it"
    )


def _object(raw: str) -> dict[str, Any] | None:
    """Parse a JSON object; None if the text is not one."""
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
