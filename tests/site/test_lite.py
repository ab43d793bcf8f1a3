"""The class and four chapters in JupyterLite: Chromium runs each to its last cell.

With the real Pyodide, and with every request to another site noted.
"""

import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from rubricnb.book import notebooks as book
from tools import lite

pytestmark = pytest.mark.slow
ROOT = book.find_root()
SITE = ROOT / lite.FOLDER
PATIENCE = 600_000  # milliseconds; a busy machine is no error of the site
STATUS = ".jp-Notebook-ExecutionIndicator"
# Cells whose number is still a star are running or waiting.
DONE = """() => document.querySelector(".jp-Notebook-ExecutionIndicator")
  ?.dataset.status === "idle" &&
  ![...document.querySelectorAll(".jp-CodeCell .jp-InputArea-prompt")]
    .some((prompt) => prompt.textContent.includes("*"))"""
NOTEBOOK = "() => jupyterapp.shell.currentWidget.content.model.toJSON()"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site():
    """Serve the site on a loopback port; return its address."""
    assert (SITE / "index.html").is_file(), "the site is not built: run 'make lite'"
    handler = partial(Quiet, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def noted(context):
    """The addresses that a visitor asks for, from now on; workers' as well."""
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    return asked


def foreign(asked, site):
    return [url for url in asked if not url.startswith((site, "blob:", "data:"))]


@pytest.fixture(scope="module")
def context(browser):
    """One visitor, who keeps what was loaded; and what they asked for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    yield context, noted(context)
    context.close()


@pytest.fixture
def run(context, site):
    """Run a notebook as a reader does; return it with its outputs."""
    window, asked = context
    page = window.new_page()

    def to_the_end(stem):
        page.goto(f"{site}/lab/index.html?path={stem}.ipynb")
        expect(page.locator(".jp-Notebook h1")).to_be_visible(timeout=PATIENCE)
        status = page.locator(STATUS)
        expect(status).to_have_attribute("data-status", "idle", timeout=PATIENCE)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_timeout(1000)  # until the first cell has its star
        page.wait_for_function(DONE)
        return page.evaluate(NOTEBOOK)

    yield to_the_end
    page.close()
    assert foreign(asked, site) == []
    assert any(url.endswith("pyodide.asm.wasm") for url in asked)


def outputs(notebook, *kinds):
    return [
        output
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] in kinds
    ]


@pytest.mark.parametrize("stem", lite.NOTEBOOKS)
def test_a_notebook_runs_to_its_last_cell(run, stem):
    notebook = run(stem)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in code if not cell["execution_count"]] == []
    assert outputs(notebook, "error") == []
    first = "".join(output["text"] for output in code[0]["outputs"])
    assert re.search(r"numpy \.\.\. .*rubricnb \.\.\. ready after \d+ s", first)
    shown = outputs(notebook, "display_data", "execute_result")
    pictures = [output for output in shown if "image/png" in output["data"]]
    captions = [
        cell
        for cell in notebook["cells"]
        if re.match(r"(# This text.*\s+.*)?\*\*Figure ", json.dumps(cell["source"])[1:])
    ]
    assert len(pictures) >= len(captions) >= 1
    # the numbers of the run are in the sentences
    texts = ["".join(o["data"].get("text/markdown", "")) for o in shown]
    assert [text for text in texts if "…" in text or "{glue" in text] == []
    if stem == "90_minutes":
        said = "".join(output["text"] for output in outputs(notebook, "stream"))
        assert said.count("so these are its recorded answers") == 2
        assert said.count("Not answered") == 3


STRANGER = "http://127.0.0.1:9/worker"  # where nobody answers
SEND = """async (address) => {
  const send = `fetch("${address}").catch(() => 0).then(() => postMessage(1))`;
  const worker = new Worker(URL.createObjectURL(new Blob([send])));
  await new Promise((done) => { worker.onmessage = done; });
}"""


def test_a_request_of_a_worker_to_another_site_is_noticed(browser, site):
    context = browser.new_context()
    asked = noted(context)
    page = context.new_page()
    page.goto(f"{site}/lab/index.html")
    page.evaluate(SEND, STRANGER)
    assert foreign(asked, site) == [STRANGER]
    context.close()


def test_the_settings_name_no_other_site(site):
    settings = json.loads((SITE / "jupyter-lite.json").read_text("utf-8"))
    kernel = settings["jupyter-config-data"]["litePluginSettings"][lite.SETTINGS]
    assert kernel["disablePyPIFallback"] is True
    assert kernel["pyodideUrl"] == "./static/pyodide/pyodide.js"
    assert "://" not in json.dumps(kernel)
    listed = json.loads((SITE / "api" / "contents" / "all.json").read_text("utf-8"))
    names = [entry["path"] for entry in listed["content"]]
    assert names == [f"{stem}.ipynb" for stem in lite.NOTEBOOKS]
    assert [name for name in names if not (SITE / "files" / name).is_file()] == []
