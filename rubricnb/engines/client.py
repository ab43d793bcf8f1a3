"""Calls to one endpoint, with or without ``openai``: one host, bounded responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from rubricnb.core.support.types import Json
from rubricnb.engines.connection import (
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
    """Calls to one endpoint: our headers only, bounded responses.

    No client library is in between, which is a sixth less work for a call.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        redact: Callable[[str], str],
        timeout: float,
        proxies: bool,
    ) -> None:
        connecting = httpx2.Timeout(None, connect=min(timeout, 30))
        super().__init__(timeout=connecting, limits=httpx2.Limits(), trust_env=proxies)
        self._address = httpx2.URL(base_url)
        self._own_headers = {"User-Agent": "rubricnb", **headers}
        self._timeout_s, self._redact = timeout, redact

    async def ask(self, path: str, body: Json | None = None) -> Answer:
        """Send a call; return the JSON object of the response.

        The whole answer must come in time: a limit on every read would let a trickle go
        on.
        """
        # any text, lone surrogates included
        content = json.dumps(body).encode() if body else None
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._call(path, content)
        except TimeoutError:
            raise TimeoutError(
                f"no complete response within {self._timeout_s:g} s"
            ) from None
        size = len(response.content)
        return Answer(await aside(size, self._read, response), size)

    async def _call(self, path: str, content: bytes | None) -> httpx2.Response:
        """Post a body (None: get); return the response, whatever its status."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = httpx2.Request(
            "POST" if content else "GET",
            self._address.copy_with(raw_path=self._address.raw_path + path.encode()),
            headers=headers | self._own_headers,
            content=content,
        )
        try:
            return await self._whole(request)
        except httpx2.RequestError as problem:
            raise _unreachable(problem) from None

    async def _whole(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return the response, up to a size limit."""
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

    def _read(self, response: httpx2.Response) -> Json:
        """Return the JSON object of a response; raise an error for anything else."""
        status, headers = response.status_code, response.headers
        if 300 <= status < 400:
            # the target without parameters and passwords
            target = urlsplit(urljoin(str(response.url), headers.get("location", "")))
            host = target.netloc.rpartition("@")[2]
            said = (
                f"it redirects to {target.scheme}://{host}{target.path}, and redirects "
                "are not followed. If that is the right address, give it"
            )
            raise Refused(status, said, headers)
        # before it is cut
        raw = self._redact(response.content.decode("utf-8-sig", "replace"))
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            answer = None
        answer = answer if isinstance(answer, dict) else None
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
            raise Refused(status, answer, headers)
        return answer


class OpenAIPosts(Connection):
    """Calls of the ``openai`` client, whose transport this is.

    By itself, that client would follow redirects with the prompt, and send headers that
    the environment names for OpenAI to any host. It is given no key: the key is among
    our headers.
    """

    def __init__(self, base_url: str, *args: Any, **named: Any) -> None:
        from openai import AsyncOpenAI  # here, since it takes a second

        super().__init__(base_url, *args, **named)
        self._openai = AsyncOpenAI(
            base_url=base_url, api_key="none", max_retries=0, http_client=self
        )

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send a request of the ``openai`` client; return the response."""
        at, ours = request.url, self._address
        if (at.scheme, at.netloc) != (ours.scheme, ours.netloc):
            raise ValueError(
                f"a call to {at.host} was blocked: the judge has a different address"
            )
        kept = {
            name: request.headers[name] for name in _HEADERS if name in request.headers
        }
        request.headers = httpx2.Headers(kept | self._own_headers)
        return await self._whole(request)

    async def _call(self, path: str, content: bytes | None) -> httpx2.Response:
        """Send a call; return the response, whatever its status."""
        import openai

        post = partial(self._openai.post, content=content)
        try:
            return await (post if content else self._openai.get)(
                path, cast_to=httpx2.Response
            )
        except openai.APIConnectionError as problem:
            raise _unreachable(problem.__cause__ or problem) from None
        except openai.APIStatusError as problem:
            return problem.response


def _unreachable(cause: BaseException) -> Unreachable:
    nobody = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
    return Unreachable(cause, nobody)
