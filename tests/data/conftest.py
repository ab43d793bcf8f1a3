import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import rubricnb as rb

_BESIDE = Path(__file__).parents[3] / "shared" / "datasets"


@pytest.fixture
def mirror(monkeypatch):
    """The folder with the real datasets, set as the mirror."""
    named = os.environ.get("RUBRICNB_MIRROR") or str(_BESIDE)
    if not Path(named, "github").is_dir():
        pytest.skip(
            "needs the datasets: set RUBRICNB_MIRROR to a folder that mirrors them"
        )
    monkeypatch.setenv("RUBRICNB_MIRROR", named)
    return Path(named)


@pytest.fixture
def own(tmp_path):
    """Write a table of texts and a file of rubrics, and load them."""

    def own(table, rubric, name="mails.csv", encoding="utf-8", **how):
        data, levels = tmp_path / name, tmp_path / "rubric.yml"
        data.write_bytes(table if isinstance(table, bytes) else table.encode(encoding))
        levels.write_text(rubric, encoding="utf-8")
        return rb.load("csv", path=data, rubric=levels, **how)

    return own


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache, and no mirror."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RUBRICNB_CACHE", str(folder))
    monkeypatch.delenv("RUBRICNB_MIRROR", raising=False)
    return folder


@pytest.fixture
def serve():
    """Serve a folder over HTTP on loopback;
    returns the URL and the list of requested paths.
    """
    servers = []

    def start(folder, cut=0):
        """`cut`: how many answers break off halfway."""
        asked = []

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=str(folder))

            def do_GET(self):
                asked.append(self.path)
                if len(asked) > cut:
                    super().do_GET()
                    return
                body = Path(folder, self.path.lstrip("/")).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2])

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
