import os
import re
import shutil
import socket
import threading
import unicodedata
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings

import rubricnb as rb

os.environ.setdefault(  # before anything draws
    "MATPLOTLIBRC",
    str(Path(__file__).parents[1] / "rubricnb" / "book" / "matplotlibrc"),
)
ROOT = Path(__file__).parents[1]
BESIDE = ROOT.parent / "shared" / "datasets"
NEEDS_DATA = "needs the datasets: set RUBRICNB_MIRROR to a folder that mirrors them"
# Where most tests start processes, endpoints or studies;
# elsewhere a long test is marked in_turn.
LONG = ("tests/faults/", "tests/studies/", "tests/rulers/")
# What every page's scripts and figures do in a browser; whole where the site changes.
IN_BROWSER = tuple(
    f"tests/site/test_{name}.py" for name in ("explorables", "pictures", "weight")
)
SITE = ("_static/", "_ext/", "_config.yml", "tests/site/conftest.py")
# These machines are slow and noisy: hypothesis must judge results, not times.
settings.register_profile(
    "rubricnb",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.load_profile("rubricnb")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of the long tests, an eighth has its turn;
    the others are left to `make test-all`.
    """
    files = {item: item.path.relative_to(ROOT).as_posix() for item in items}
    long = [
        i
        for i in items
        if files[i].startswith((*LONG, *IN_BROWSER)) or i.get_closest_marker("in_turn")
    ]
    if not long:  # as in the environments that have no Jupyter
        return
    from tools.due import due

    site_changes = any(name.startswith(SITE) for name in due().touched)
    for item in long:
        if site_changes and files[item].startswith(IN_BROWSER):
            continue
        if not due().takes(files[item], item.nodeid.partition("::")[2]):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Names of stores; a numbered folder for each would be looked
    for among thousands.
    """
    folder = tmp_path_factory.mktemp("stores")
    return (folder / f"{number}.sqlite" for number in count())


@pytest.fixture(autouse=True)
def own_store(stores, monkeypatch):
    """Every test has a store of its own: none reads or fills the user's."""
    monkeypatch.setenv("RUBRICNB_STORE", str(next(stores)))


@pytest.fixture
def warm_kernels(monkeypatch):
    """Kernels are forked from a process in which what notebooks import
    is imported already.
    """
    import warm
    from jupyter_client.provisioning import local_provisioner

    monkeypatch.setattr(local_provisioner, "launch_kernel", warm.launch)


@pytest.fixture
def mirror(monkeypatch):
    """The folder of others' datasets, as the mirror; without one, the test waits."""
    folder = Path(os.environ.get("RUBRICNB_MIRROR") or BESIDE)
    if not (folder / "github").is_dir():
        pytest.skip(NEEDS_DATA)
    monkeypatch.setenv("RUBRICNB_MIRROR", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _data(request):
    """What a test marked ``needs_data`` reads is there, or the test says what lacks."""
    if request.node.get_closest_marker("needs_data"):
        request.getfixturevalue("mirror")


@pytest.fixture(scope="session", autouse=True)
def _no_network():
    """Let no test, marked or not, reach another machine: downloads would hide in it."""
    connect, find = socket.socket.connect, socket.getaddrinfo

    def refuse(host):
        pytest.fail(f"this test reaches {host}: mark it needs_data, or serve it here")

    def connect_here(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_here(address[0]):
            refuse(address[0])
        return connect(self, address)

    def find_here(host, *rest, **options):
        if host and not is_here(host):
            refuse(host)
        return find(host, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        patch.setattr(socket, "getaddrinfo", find_here)
        yield


def is_here(host):
    """Say whether a host is this machine, or a name that is reserved for no machine."""
    name = host.decode() if isinstance(host, bytes) else str(host)
    own = ("localhost", "0.0.0.0", "::", "::1", socket.gethostname())
    return (
        name in own or name.startswith("127.") or name.endswith((".invalid", ".test"))
    )


def pytest_terminal_summary(terminalreporter):
    """Count the tests that wait for a dataset."""
    skipped = terminalreporter.stats.get("skipped", [])
    lacking = sum(NEEDS_DATA in str(report.longrepr) for report in skipped)
    if lacking:
        terminalreporter.write_line(f"{lacking} tests wait: {NEEDS_DATA}")


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


CRITERIA = {"kind": "Is the reply kind?", "useful": "Does the reply help?"}


@pytest.fixture
def thirty_rows(tmp_path):
    """Write what a team has into a folder, and return it:
    thirty replies, and how they are judged.

    The table is as a spreadsheet writes it: semicolons, a byte order mark, empty rows
    at the end. Two criteria, whose levels start at 0, and a third of the ratings is
    missing. A reply is as kind and as useful as it often says thanks.
    """

    def write(levels=(4, 4), folder=tmp_path):
        rubrics = [
            {
                "criterion": name,
                "definition": asked,
                "levels": {k: f"{name} to degree {k} of {n - 1}." for k in range(n)},
            }
            for (name, asked), n in zip(CRITERIA.items(), levels, strict=True)
        ]
        (folder / "my_rubric.yml").write_text(yaml.safe_dump(rubrics), "utf-8")
        lines = ["text_id;candidate;instruction;response;human_kind;human_useful"]
        for i in range(30):
            mail, who = divmod(i, 3)
            told = (mail + 2 * who) % 4
            text = (
                f"Mail {mail}, answered by writer {who}: {'thanks ' * told}and goodbye."
            )
            ratings = [
                min(told, n - 1) if (i + c) % 3 else "" for c, n in enumerate(levels)
            ]
            row = (f"m{i}", f"writer {who}", f"Answer mail {mail}.", text, *ratings)
            lines.append(";".join(map(str, row)))
        table = "\n".join([*lines, ";;;;;", ";;;;;", ""])
        (folder / "my_data.csv").write_text(table, "utf-8-sig")
        return folder

    return write


_TEXTS = {
    "v1": "2602.02219v1_position_bias",
    "v2": "2602.02219v2_position_bias",
    "scoring": "2506.22316_scoring_bias",
    "rulers": "rulers",
    "summary": "2602.02219v1_summary",
}


def _plain(text):
    """Without the marks of Markdown and TeX, and without spaces:
    lines break anywhere.
    """
    text = unicodedata.normalize("NFKC", text.replace("\\chi", "χ"))
    return (
        re.sub(r"[\s$*\\{}^]", "", text).replace("’", "'").replace("–", "-").casefold()
    )


@pytest.fixture(scope="session")
def paper_text():
    """The text of every paper: v1, v2, scoring, rulers."""
    beside = [Path(__file__).parents[2] / "shared"]
    if mirror := os.environ.get("RUBRICNB_MIRROR"):
        beside.append(Path(mirror).parent)
    folder = next((b / "papers" for b in beside if (b / "papers").is_dir()), None)
    if folder is None:
        pytest.skip(
            "the papers' texts are not ours to carry, and not in ../shared/papers"
        )
    return {
        paper: (folder / f"{name}.txt").read_text("utf-8")
        for paper, name in _TEXTS.items()
    }


@pytest.fixture(scope="session")
def not_in_paper(paper_text):
    """Parts of a quotation, at its ellipses, that are not in a paper:
    v1, v2, scoring, rulers.
    """
    text = {paper: _plain(whole) for paper, whole in paper_text.items()}
    return lambda paper, quote: [
        p for p in quote.split("…") if _plain(p) not in text[paper]
    ]


NOTEBOOK = """\
# Doubling

```{code-cell}
:tags: [parameters]

n_items: int = 3  # how many items
name: str = "x"  # a name
```

```{code-cell}
print(n_items * 2)
```
"""


@pytest.fixture(scope="session")
def small_book():
    """Put a book of our machinery into a folder,
    with one prose page and one notebook.
    """
    return _small_book


@pytest.fixture
def small(tmp_path):
    return _small_book(tmp_path)


def _small_book(tmp_path):
    for name in ("_static", "_ext"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_doubling.md").write_text(NOTEBOOK)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "index.md").write_text(
        "# Home\n\nOne page, $x^2$.\n\n```{execution-record}\n```\n\n"
        "```{execution-record}\n:only: 05\n```\n"
    )
    (tmp_path / "book" / "references.bib").write_text("")
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n  - file: "
        "notebooks/05_doubling\n"
    )
    return tmp_path
