"""The page "Audit here" in Chromium, with the real files and the network off.

It gives what the command gives, keeps a file on the machine, and says in one line what
is wrong with an odd one.
"""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import expect

import rubricnb as rb
from rubricnb.auditing.form import audit_form
from rubricnb.book import notebooks as book

ROOT = book.find_root()
HTML = ROOT / "_build" / "html"
PATIENCE = 240_000  # milliseconds; a busy machine is no error of the page
PAGE = "book/audit-here.html"
OWN, LOGS = ROOT / "examples" / "own-data", ROOT / "tests" / "files" / "logs"
DONE = re.compile(r"^Audited in ")
MADE_AT = ("date", "asked", "checksum")


class Form:
    """The page as a reader uses it."""

    def __init__(self, page):
        self.page = page
        self.state = self.part("state")

    def part(self, name):
        return self.page.locator(f"[data-part={name}]")

    def open(self, server):
        self.page.goto(f"{server}/{PAGE}")
        return self

    def start(self):
        expect(self.part("start")).to_be_enabled(timeout=PATIENCE)
        self.part("start").click()
        expect(self.state).to_have_text(
            re.compile("^(Ready|This stopped)"), timeout=PATIENCE
        )
        assert self.state.inner_text().startswith("Ready")
        return self

    def fill(self, files, **fields):
        self.page.locator("summary", has_text="More options").evaluate(
            "summary => { summary.parentElement.open = true; }"
        )
        for name in ("judgments", "path", "rubric"):
            self.page.set_input_files(f"[name={name}]", files.get(name, []))
        for name in ("scale", "judge", "columns", "scores", "failed", "parser"):
            self.page.fill(f"[name={name}]", fields.get(name, ""))

    def audit(self, files, **fields):
        """What the page says of files, once it is done with them."""
        self.fill(files, **fields)
        self.part("audit").click()
        expect(self.part("audit")).to_be_enabled(timeout=PATIENCE)
        expect(self.state).not_to_have_text("Auditing …", timeout=PATIENCE)
        return self.state.inner_text()

    def kept(self, name):
        """The file that a link of the page saves."""
        with self.page.expect_download() as saved:
            self.part(name).click()
        return Path(saved.value.path()).read_text("utf-8")


@pytest.fixture(scope="module")
def asked():
    """The requests of the context since it was ready."""
    return []


@pytest.fixture(scope="module")
def form(browser, server, asked):
    """The page, started, with the network off."""
    assert (HTML / "browser" / "pyodide.js").is_file(), "run 'make browser' first"
    context = browser.new_context()
    started = Form(context.new_page()).open(server).start()
    context.set_offline(True)
    context.on("request", lambda request: asked.append(request.url))
    yield started
    context.close()


@contextmanager
def stranger():
    """Another origin, which notes what reaches it."""
    reached = []

    class Notes(BaseHTTPRequestHandler):
        def do_GET(self):
            reached.append(self.path)
            self.send_response(204)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Notes) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", reached
        running.shutdown()


def in_ten_orders(folder, copies=2):
    """Scores of texts in ten orders, read twice, with ratings: 1,800 rows a copy."""
    items = rb.load("minibench")
    rated = items.set_index("item_id")["human"]
    parts = []
    for k in range(copies):
        plan = rb.plan(items, rb.balanced(5), temperature=1.0, seed=k)
        found = rb.simulate(plan, items, "first-biased")
        rows = pd.DataFrame(found[["item_id", "criterion", "ordering", "score"]])
        rows["human"] = rated.loc[rows["item_id"]].to_numpy()
        rows["read"] = 1 + k % 2
        rows["item_id"] = rows["item_id"].astype(str) + f"-{k // 2}"
        parts.append(rows)
    pd.concat(parts, ignore_index=True).to_csv(folder / "many.csv", index=False)
    return {"judgments": folder / "many.csv"}, {"scale": "1 5"}


def table_of_20000(folder):
    """More than 20,000 rows."""
    return in_ten_orders(folder, 12)


def own_data(folder):
    """The example with texts, ratings and a rubric."""
    files = {"judgments": OWN / "my_scores.csv", "path": OWN / "my_data.csv"}
    return files | {"rubric": OWN / "my_rubric.yml"}, {"judge": "plain"}


def log_of_inspect(folder):
    """A log of another tool."""
    return {"judgments": LOGS / "inspect_replies.json"}, {
        "scale": "0 3",
        "judge": "mockllm/model",
    }


def spreadsheet(folder):
    """A table in Latin-1 with semicolons, and HTML where names are."""
    rows = [
        f"Zürich <img src=x "
        f"onerror=alert(1)> {i};{1 + i % 4},5;{1 + i % 5};<b>Jürgen</b>"
        for i in range(30)
    ]
    file = folder / "<b>noten & co.csv"
    head = "fall;wert;mensch;richter"
    file.write_bytes("\n".join([head, *rows]).encode("latin-1"))
    names = "fall=item_id,wert=score,mensch=human,richter=judge"
    return {"judgments": file}, {"scale": "1 5", "columns": names}


def assert_close(mine, its, where=""):
    """Two documents of numbers are equal, up to the last digits of a float."""
    if isinstance(mine, dict):
        assert mine.keys() == its.keys(), where
        for key in mine.keys() - {*MADE_AT}:
            assert_close(mine[key], its[key], f"{where}.{key}")
    elif isinstance(mine, list):
        assert len(mine) == len(its), where
        for k, pair in enumerate(zip(mine, its, strict=True)):
            assert_close(*pair, f"{where}[{k}]")
    elif isinstance(mine, float):
        assert mine == pytest.approx(its, rel=1e-9, abs=1e-9), where
    else:
        assert mine == its, where


@pytest.mark.parametrize(
    "log",
    [
        own_data,
        log_of_inspect,
        spreadsheet,
        in_ten_orders,
        pytest.param(table_of_20000, marks=pytest.mark.slow),
    ],
)
def test_the_page_is_the_commands(form, asked, log, tmp_path):
    files, fields = log(tmp_path)
    said = form.audit(files, **fields)
    assert DONE.match(said), said
    folder = tmp_path / "given"
    for field, file in files.items():
        (folder / field).mkdir(parents=True)
        (folder / field / file.name).write_bytes(file.read_bytes())
    here = json.loads(audit_form(folder, json.dumps(fields)))
    assert form.part("frame").get_attribute("srcdoc") == here["page"]
    assert form.kept("page") == here["page"]
    assert_close(json.loads(form.kept("numbers")), json.loads(here["numbers"]))
    assert form.part("notes").locator("li").all_inner_texts() == here["notes"]
    assert [url for url in asked if not url.startswith(("about:", "blob:"))] == []


def test_the_storage_keeps_what_was_typed_and_no_file(form, tmp_path):
    files, fields = own_data(tmp_path)
    assert DONE.match(form.audit(files, **fields))
    stored = form.page.evaluate(
        """async () => ({
            tab: {...sessionStorage},
            site: {...localStorage},
            databases: await indexedDB.databases(),
            caches: await caches.keys(),
        })"""
    )
    assert stored["databases"] == stored["caches"] == []
    (typed,) = stored["tab"].values()
    assert json.loads(typed)["fields"]["judge"] == "plain"
    held = json.dumps(stored)  # the theme keeps whether the page is dark
    table = pd.read_csv(files["judgments"]).astype(str)
    for text in (*table["item_id"], *(file.name for file in files.values())):
        assert text not in held


def test_the_result_runs_no_script(form, tmp_path):
    files, fields = spreadsheet(tmp_path)
    assert DONE.match(form.audit(files, **fields))
    assert form.part("frame").get_attribute("sandbox") == ""
    frame = form.page.frames[-1]
    assert frame.locator("h1").inner_text().startswith("Audit of <b>Jürgen</b>")
    assert frame.locator("img").count() == 0


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("nothing.csv", b"", "nothing.csv is empty"),
        ("photo.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "photo.png"),
        ("photo.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "photo.csv"),
        ("table.parquet", b"PAR1" + bytes(40) + b"PAR1", "save it as CSV"),
        ("other.csv", b"item_id,points\na,3\nb,4\n", "score"),
        ("half.json", b'{"eval": ', "half.json"),
        ("huge.csv", 100_000_000, "100 MB"),
    ],
)
def test_an_odd_file_is_refused_in_one_line(form, name, content, says, tmp_path):
    file = tmp_path / name
    if isinstance(content, int):
        with file.open("wb") as empty:
            empty.truncate(content)
    else:
        file.write_bytes(content)
    said = form.audit({"judgments": file}, scale="1 5")
    assert says in said
    assert "\n" not in said
    assert form.part("found").is_hidden()


def test_a_file_that_was_refused_stops_nothing(form, tmp_path):
    (tmp_path / "none.csv").write_bytes(b"")
    assert "is empty" in form.audit({"judgments": tmp_path / "none.csv"})
    files, fields = own_data(tmp_path)
    assert DONE.match(form.audit(files, **fields))


def test_the_worker_has_nothing_left_that_sends(form):
    (worker,) = form.page.workers
    names = ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "importScripts"]
    left = worker.evaluate("names => names.filter((name) => self[name])", names)
    assert left == []


SEND = """async (address) => {
  const tell = (how) =>
    `${how}(${JSON.stringify(address + "/worker")}, {mode: "no-cors"})`;
  const source = `${tell("fetch")}.then(() => postMessage(1), () => postMessage(0))`;
  const worker = new Worker(URL.createObjectURL(new Blob([source])));
  const inWorker = new Promise((done) => { worker.onmessage = done; });
  const image = new Image();
  const shown = new Promise((done) => { image.onload = image.onerror = done; });
  image.src = `${address}/image`;
  navigator.sendBeacon(`${address}/beacon`, "text");
  await fetch(`${address}/page`, {mode: "no-cors"}).catch(() => 0);
  await Promise.all([inWorker, shown]);
}"""


def test_no_request_leaves_for_another_site(browser, server):
    context = browser.new_context()
    page = context.new_page()
    with stranger() as (address, reached):
        page.goto(f"{server}/{PAGE}")
        page.evaluate(SEND, address)
        assert reached == []
        page.goto(f"{server}/book/audit.html")  # without the policy, all four arrive
        page.evaluate(SEND, address)
        assert {*reached} == {"/worker", "/image", "/beacon", "/page"}
    context.close()


def test_nothing_loads_before_start(browser, server):
    context = browser.new_context()
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    page = Form(context.new_page()).open(server)
    expect(page.part("start")).to_be_enabled(timeout=PATIENCE)
    assert [url for url in asked if "/browser/" in url] == [
        f"{server}/browser/manifest.json"
    ]
    context.close()


def test_a_reload_in_the_middle_says_so_and_keeps_what_was_typed(form, server):
    """The last test of the page that is started: it goes online again."""
    files = {"judgments": OWN / "my_scores.csv"}
    form.page.context.set_offline(False)
    form.fill(files, scale="1 5", judge="plain")
    form.part("audit").click()
    form.page.reload()
    expect(form.state).to_contain_text("loaded again during an audit")
    assert form.page.input_value("[name=judge]") == "plain"
    assert form.page.input_value("[name=scale]") == "1 5"


def test_from_a_file_the_page_says_what_to_do(window):
    page = Form(window(HTML / PAGE))
    expect(page.state).to_contain_text("make browser")
    assert page.part("start").is_disabled()
