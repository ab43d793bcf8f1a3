"""The address of an endpoint and the key it gets: keys go only to the named host."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

OPENAI = "api.openai.com"
TYPESAFE = "api.typesafe.ai"
KEYS = {
    OPENAI: "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    TYPESAFE: "TYPESAFE_API_KEY",
}
"""Hosts that are sent a key unasked, and the variables with these keys."""

# after the scheme
_REST = re.compile(r"(\w[\w.-]*|\[[\da-fA-F:]+\])(:\d+)?(/[\w./-]*)?")


def checked(base_url: str) -> tuple[str, str]:
    """Return an endpoint's checked address and its host (empty: this machine)."""
    address = base_url.rstrip("/")
    scheme, _, rest = address.partition("://")
    if scheme not in ("http", "https") or not _REST.fullmatch(rest):
        raise ValueError(
            "an endpoint's address is https://HOST[:PORT]/v1 or, on your own machines, "
            "http://HOST[:PORT]/v1, without a key, a password or parameters, which "
            "would be written into results: put a key into an environment variable and "
            "name that by key_variable=; Azure's /openai/v1 needs no api-version"
        )
    host = urlsplit(address).hostname or ""
    if scheme == "http" and host in KEYS:
        raise ValueError(
            "an endpoint's address sends texts unencrypted with http: write "
            f"https://{rest}"
        )
    return address, "" if is_here(host) else host


def is_here(host: str) -> bool:
    """Say whether a host is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def headers_for(host: str, key: str | None) -> dict[str, str]:
    """Return the headers with the key; for OpenAI also organization and project."""
    headers = {"Authorization": f"Bearer {key}" if key else None}
    if host == OPENAI:
        headers["OpenAI-Organization"] = os.environ.get("OPENAI_ORG_ID")
        headers["OpenAI-Project"] = os.environ.get("OPENAI_PROJECT_ID")
    return {name: value for name, value in headers.items() if value}
