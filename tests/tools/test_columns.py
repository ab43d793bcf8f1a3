"""Code of the notebooks fits 79 columns, and breaking it leaves it what it was."""

import ast

import pytest

from tools import columns

NOTEBOOK = """# A chapter

A line of prose may be as long as it needs to be, since browsers break it where the window ends.

```{{code-cell}} ipython3
:tags: [hide-input]

{}
```
"""


@pytest.fixture
def chapter(tmp_path):
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "01_x.md"

    def written(code):
        path.write_text(NOTEBOOK.format(code), "utf-8")
        return path

    return written


def code_of(path):
    return columns.CELL.search(path.read_text("utf-8"))[2]


@pytest.mark.parametrize(
    "code",
    [
        "found = {name: [one + two for one, two in zip(firsts, seconds)] for name in the_names}",
        "rows = {'a': 1, 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbb': 2,\n"
        "        'cccccccccccccccccccccccccccccccccc': 3, 'ddddddddddddddddddd': 4}  # fmt: skip",
        "said = 'It is a long way to the end of this sentence, which goes on and on and on.'",
        "say(said=f'{len(both)} of {len(choice)} requests are recorded. At most {most[0]:.2f}.')",
        "said = (\n    'one text that stands beside another one, both of them long enough to be'\n"
        "    'broken, and this one is wider than a page or a slide can show at once, so: break')",
    ],
)
def test_wide_code_is_broken_and_means_the_same(code, chapter, tmp_path):
    path = chapter(code)
    assert columns.too_wide(root=tmp_path)
    columns.wrap(root=tmp_path)
    assert columns.too_wide(root=tmp_path) == []
    assert ast.dump(ast.parse(code_of(path))) == ast.dump(ast.parse(code))
    assert path.read_text("utf-8").startswith(NOTEBOOK.partition("```")[0])


def test_remarks_and_docstrings_keep_their_words(chapter, tmp_path):
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    path = chapter(f'# {words}\ndef f():\n    """{words}"""')
    columns.wrap(root=tmp_path)
    assert columns.too_wide(root=tmp_path) == []
    assert " ".join(code_of(path).replace("#", "").split()).count(words) == 2


def test_what_fits_is_left_alone_and_what_cannot_be_broken_is_listed(chapter, tmp_path):
    path = chapter("a = {1: 2,\n     3: 4}  # fmt: skip\nb=1")
    before = path.read_text("utf-8")
    columns.wrap(root=tmp_path)
    assert path.read_text("utf-8") == before
    chapter(f"name = '{90 * 'x'}'")
    columns.wrap(root=tmp_path)
    assert columns.too_wide(root=tmp_path) == ["01_x.md:8"]


def test_code_of_every_notebook_fits():
    assert columns.too_wide() == []
