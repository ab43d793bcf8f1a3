"""The layout of NeuroLibre, checked against its documentation (STRUCTURE.rst, 2023);
and the data that Zenodo takes.
"""

import json
import subprocess
import tomllib

import pytest
import yaml

from rubricnb.book.notebooks import find_root
from tools.neurolibre import write_neurolibre

ROOT = find_root()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_neurolibre(tmp_path_factory.mktemp("neurolibre") / "out")


def read(path):
    return yaml.safe_load(path.read_text("utf-8"))


def chapters_of(node):
    """Every file that a table of contents names."""
    if isinstance(node, list):
        return [name for one in node for name in chapters_of(one)]
    if not isinstance(node, dict):
        return []
    own = [node[key] for key in ("root", "file") if key in node]
    return own + [name for one in node.values() for name in chapters_of(one)]


def test_content_has_the_required_files_and_every_page(written):
    content = written / "content"
    assert (content / "_toc.yml").is_file()
    pages = chapters_of(read(content / "_toc.yml"))
    assert len(pages) > 60
    gone = [
        page
        for page in pages
        if not any((content / f"{page}{end}").is_file() for end in (".md", ".ipynb"))
    ]
    assert gone == []
    config = read(content / "_config.yml")
    for name in config["bibtex_bibfiles"]:
        assert (content / name).resolve() == written / "paper.bib"
        assert (content / name).is_file()
    assert config["execute"]["execute_notebooks"] == "force"
    for folder in config["sphinx"]["local_extensions"].values():
        assert (content / folder).is_dir()


def test_the_runtime_installs_the_package_and_the_book_from_the_layout(written):
    runtime = read(written / "binder" / "environment.yml")
    (pip,) = [d["pip"] for d in runtime["dependencies"] if isinstance(d, dict)]
    asked = dict(line.split(" ", 1) for line in pip if " " in line)
    assert (written / "binder" / asked["-c"]).is_file()
    folder, extras = asked["-e"].rstrip("]").split("[")
    project = tomllib.loads(
        (written / "binder" / folder / "pyproject.toml").read_text()
    )
    known = project["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    assert any(name.startswith("jupyter-book") for name in known["book"])
    assert (written / "binder" / "postBuild").stat().st_mode & 0o111


def test_it_is_small_and_holds_tracked_files_alone(written):
    size = sum(path.stat().st_size for path in written.rglob("*") if path.is_file())
    assert size < 500e6  # of 8 GB
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    content = written / "content"
    ours = {str(p.relative_to(content)) for p in content.rglob("*") if p.is_file()}
    assert ours <= set(tracked)


def test_zenodo_reads_what_the_citation_and_the_package_say():
    zenodo = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
    citation = read(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert zenodo["version"] == str(citation["version"]) == project["version"]
    assert zenodo["title"] == citation["title"]
    assert zenodo["license"] == citation["license"] == project["license"]
    assert zenodo["keywords"] == citation["keywords"]
    names = [author["name"] for author in citation["authors"]]
    assert [one["name"] for one in zenodo["creators"]] == names
    papers = {one["url"].split("/")[-1] for one in citation["references"]}
    related = {
        one["identifier"].split(":")[-1] for one in zenodo["related_identifiers"]
    }
    assert papers <= related
    # fields of Zenodo's deposit metadata (developers.zenodo.org)
    assert zenodo["upload_type"] == "software"
    assert zenodo["access_right"] == "open"
