"""The address of an endpoint and the key it gets: keys go only to the named host."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

OPENAI = "api.openai.com"
KEYS = {OPENAI: "OPENAI_API_KEY", "openrouter.ai": "OPENROUTER_API_KEY"}
"""Hosts that are sent a key unasked, and the variables with these keys."""

_BARE = re.compile(r"(?P<host>\w[\w.-]*|\[[\da-fA-F:]+\])(:\d+)?(/[\w./-]*)?")


def checked(base_url: str) -> tuple[str, str]:
    """Return an endpoint's checked address and its host (empty: this machine)."""
    address = base_url.rstrip("/")
    if bare := _BARE.fullmatch(address):
        host = bare["host"].strip("[]")
        scheme = "http" if is_here(host) or _number(host) else "https"
        raise ValueError(
            "an endpoint's address begins with http:// or https://: write "
            f"{scheme}://{address}{'' if bare[3] else '/v1'}"
        )
    scheme, _, rest = address.partition("://")
    if scheme not in ("http", "https") or not _BARE.fullmatch(rest):
        raise ValueError(
            "an endpoint's address is https://HOST[:PORT]/v1 or http://HOST[:PORT]/v1, without a "
            "key, a password or parameters, which would be written into results: put a key into "
            "an environment variable and name that by key_variable=; Azure's /openai/v1 needs no "
            "api-version"
        )
    host = urlsplit(address).hostname or ""
    if scheme == "http" and host in KEYS:
        raise ValueError(
            f"an endpoint's address sends texts unencrypted with http: write https://{rest}"
        )
    return address, "" if is_here(host) else host


def is_here(host: str) -> bool:
    """Say whether a host is this machine."""
    return host == "localhost" or (_number(host) and ip_address(host).is_loopback)


def headers_for(host: str, key: str | None) -> dict[str, str]:
    """Return the headers with the key; for OpenAI also organization and project."""
    headers: dict[str, str | None] = {}
    if key and host.endswith(".azure.com"):
        headers["api-key"] = key
    elif key:
        headers["Authorization"] = f"Bearer {key}"
    if host == OPENAI:
        headers["OpenAI-Organization"] = os.environ.get("OPENAI_ORG_ID")
        headers["OpenAI-Project"] = os.environ.get("OPENAI_PROJECT_ID")
    return {name: value for name, value in headers.items() if value}


def _number(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
