"""One Chromium for all tests, with the network off;
the built book from disk and from a server.

Tests of every page, chapter or chapter with a story take ``page_name``, ``chapter`` or
``told``. Those that take long use ``close_page``, ``close_chapter`` or ``close_told``
instead: they read the pages that are due (`tools.due`), and the other pages with the
mark ``slow``.
"""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from closely import slow_unless_due
from playwright.sync_api import sync_playwright

from rubricnb.book import notebooks as book
from tools import building

ROOT = book.find_root()
HTML = ROOT / "_build" / "html"
STAGE = ROOT / "_build" / "stage"
WIDTHS = {"desktop": 1280, "phone": 390}
THEMES = ("light", "dark")
PATIENCE = 120_000  # milliseconds; a busy machine is no error of the book
# As root in a container, and silent: no update checks, no first-run pages.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]


def built_pages():
    """Every page of the table of contents, and those the builder adds."""
    added = [
        path.name for path in sorted(HTML.glob("*.html")) if path.name != "index.html"
    ]
    return [f"{page}.html" for page in building.pages(ROOT)] + added


def pytest_generate_tests(metafunc):
    chapters = building.notebooks(ROOT)
    # a class has no answer, no story
    told = [stem for stem in chapters if stem != "90_minutes"]
    of_each = {"page": built_pages(), "chapter": chapters, "told": told}
    for name, values in of_each.items():
        # All that a module asks of one page comes together,
        # so that a page is parsed once.
        wanted, closely = "page_name" if name == "page" else name, f"close_{name}"
        if wanted in metafunc.fixturenames:
            metafunc.parametrize(wanted, values, scope="module")
        if closely in metafunc.fixturenames:
            metafunc.parametrize(closely, slow_unless_due(values), scope="module")


@pytest.fixture(autouse=True, scope="session")
def _built():
    if not (HTML / "index.html").is_file():
        pytest.exit("the book is not built: run 'make book' first", returncode=2)


@pytest.fixture(scope="session")
def browser():
    names = ["chromium", "chromium-browser", "google-chrome"]
    path = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, names)), None
    )
    assert path, (
        "no Chromium: 'make test-book' installs it or says how; or set CHROMIUM=PATH"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server():
    """Serve the built book on a loopback port; return its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=HTML)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture
def window(browser):
    """Open a file in a window of its own, which is closed at the end."""
    contexts = []

    def at(path, **settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.goto(path.as_uri())
        return page

    yield at
    for context in contexts:
        context.close()


@pytest.fixture
def touch(window):
    """Open a file on a phone with a touch screen."""
    return functools.partial(
        window, viewport={"width": 390, "height": 844}, has_touch=True
    )


@pytest.fixture
def without_scripts(window):
    """Open a file in a browser that runs no scripts."""
    return functools.partial(window, java_script_enabled=False)


class Reader:
    """A browser window that notes what went wrong on the page it shows."""

    def __init__(self, browser, width, theme):
        size = {"width": WIDTHS[width], "height": 900}
        self.context = browser.new_context(viewport=size, color_scheme=theme)
        self.context.route("**/*", self._local_only)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on(
            "pageerror", lambda error: self.trouble.append(f"exception: {error}")
        )
        self.page.on("requestfailed", lambda request: self._failed(request))
        self.page.on("response", self._answered)
        self.trouble = []

    def open(self, address, unfold=True):
        """Show a page; its evidence is unfolded,
        so that all of it is there to be read.
        """
        self.trouble.clear()
        self.page.goto(address)
        if unfold:
            self.page.evaluate(
                "() => document.querySelectorAll('details.evidence').forEach(d => "
                "d.open = true)"
            )
        self.page.evaluate(
            "async () => { if (window.MathJax?.startup?.promise) await "
            "MathJax.startup.promise; }"
        )
        return self.page

    def _local_only(self, route):
        if route.request.url.startswith(
            ("file:", "data:", "blob:", "http://127.0.0.1:")
        ):
            route.continue_()
        else:
            self.trouble.append(f"remote load: {route.request.url}")
            route.abort()

    def _console(self, message):
        if message.type == "error":
            self.trouble.append(f"console: {message.text}")

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # a page left while it still loads
            self.trouble.append(f"failed: {request.url} {request.failure}")

    def _answered(self, response):
        if response.status >= 400:
            self.trouble.append(f"{response.status}: {response.url}")


@pytest.fixture(scope="session")
def readers(browser):
    """One window for each width and theme: ``readers["phone", "dark"]``."""
    windows = {
        (width, theme): Reader(browser, width, theme)
        for width in WIDTHS
        for theme in THEMES
    }
    yield windows
    for window in windows.values():
        window.context.close()
