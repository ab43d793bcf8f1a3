#!/usr/bin/env bash
# Tool: jupytext 1.19.6, notebooks as MyST Markdown.
# Input: a notebook whose Markdown cells show a line +++ (as in a diff), or show
#   readers how a code cell of MyST is written.
# Guess: the cells are written so that they are read back as they were.
# Seen (28 November 2026): the first becomes two cells, without the line. The second
#   becomes a code cell, which is executed with the notebook. A test that compares
#   outputs passes.
# What to do: indent the line; put the example into a fence of four backticks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  jupytext==1.19.6
venv/bin/python - <<'PY'
import jupytext
from nbformat.v4 import new_markdown_cell, new_notebook

fence = "`" * 3
example = fence + "{code-cell}\nprint(1 + 1)\n" + fence


def again(text):
    notebook = new_notebook(cells=[new_markdown_cell(text)])
    written = jupytext.writes(notebook, "md:myst")
    cells = jupytext.reads(written, "md:myst").cells
    return [(cell.cell_type, cell.source) for cell in cells]


print(again("before\n+++\nafter"))
print(again(example))
assert again("before\n+++\nafter") == [("markdown", "before"), ("markdown", "after")]
assert again(example) == [("code", "print(1 + 1)")]
longer = "`" + fence + "\n" + example + "\n" + "`" + fence
assert again(longer) == [("markdown", longer)]
PY
