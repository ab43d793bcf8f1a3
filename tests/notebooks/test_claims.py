"""Every claim has its verdict computed by the chapter it names, and by no other."""

import ast
import re

import pytest
from cells import code_of

from rubricnb.book import notebooks as book
from rubricnb.sets.papers import claims
from tools import building

STEMS = building.notebooks(book.find_root())
# Profiles of simulated judges look alike, but begin with a placeholder or a judge.
CLAIM_ID = re.compile(r"(v1|v2|scoring|rulers)/[^{]")


def patterns(stem):
    """Claim ids in a chapter's code,
    a placeholder standing for one part of the path.
    """
    tree = ast.parse("\n".join(code_of(stem)))
    inner = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    begun = {}  # names of how an id begins: cell = f"v2/table-2/{who}"

    def spelled(node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return "".join(map(spelled, node.values))
        return begun.get(ast.unparse(node.value), "{}")

    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr):
            begun[ast.unparse(node.targets[0])] = spelled(node.value)
    for node in ast.walk(tree):
        is_text = node not in inner and isinstance(node, ast.Constant | ast.JoinedStr)
        text = spelled(node) if is_text else None
        if isinstance(text, str) and CLAIM_ID.match(text):
            found.add(re.escape(text).replace(r"\{\}", "[^/]+"))
    return found


def of_chapter(stem):
    rows = claims()
    return rows[rows.chapter == stem]


@pytest.mark.parametrize("stem", [stem for stem in STEMS if len(of_chapter(stem))])
def test_a_chapter_computes_its_own_claims(stem):
    rows = of_chapter(stem)
    by_hand = rows[
        (rows.kind != "identity") & ~rows.recompute.str.startswith("not recomputed: ")
    ]
    known = [re.compile(pattern) for pattern in patterns(stem)]
    missing = [c for c in by_hand.claim_id if not any(p.fullmatch(c) for p in known)]
    assert missing == []
    if (rows.kind == "identity").any():
        assert re.search(
            r"rb\.Chapter\(|identities\.recompute\(", "\n".join(code_of(stem))
        )


@pytest.mark.in_turn
@pytest.mark.parametrize("stem", STEMS)
def test_a_chapter_computes_no_claim_of_another(stem):
    others = claims().query("chapter != @stem").claim_id
    known = [re.compile(pattern) for pattern in patterns(stem)]
    assert [c for c in others if any(p.fullmatch(c) for p in known)] == []


def test_a_chapter_that_is_not_there_yet_has_identities_only():
    # Their verdicts stand on the errata page.
    rows = claims()
    assert set(rows.kind[~rows.chapter.isin(STEMS)]) <= {"identity"}
