"""A command alone: no dataset beside it, an empty home, no other machine."""

import sys
from pathlib import Path

from tools.alone import run_alone

ROOT = Path(__file__).parents[2]
# Addresses that are reserved for documentation, by name and by number.
PLANTED = """
import socket, urllib.request
def by_name():
    urllib.request.urlopen("https://example.org/data.csv", timeout=5)
def by_number():
    socket.create_connection(("192.0.2.1", 443), timeout=5)
for reach in (by_name, by_number):
    try:
        reach()
    except OSError:
        continue
    raise SystemExit("the planted download arrived")
raise SystemExit(3)
"""


def alone(code):
    return run_alone([sys.executable, "-c", code], ROOT)


def test_a_planted_download_fails():
    assert alone(PLANTED) == 3


def test_nothing_is_beside_the_clone_and_loopback_works():
    code = """
import http.server, os, threading, urllib.request
from pathlib import Path
assert not list(Path.home().iterdir()) and "RUBRICNB_MIRROR" not in os.environ
assert not Path("../shared").exists()
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.handle_request).start()
urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/README.md", timeout=9)
"""
    assert alone(code) == 0
