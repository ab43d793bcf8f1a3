"""Requests about the shipped rubrics keep their ids and keys,
so that stored answers are found.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.auditing.plan import audit_requests
from rubricnb.core.judge import describe
from rubricnb.core.rendering import rendered
from rubricnb.core.validate import check_items
from rubricnb.sets.sets import bundled_rubrics

PACKAGE = Path(rb.__file__).parent
SHIPPED = sorted(path.stem for path in (PACKAGE / "sets/rubrics").glob("*.yml"))
PINNED = {
    "asap": "a9f4c6c882d4204a2566b88ded6da8759f39cb47d6f9f59c8b4bb0c36545e470",
    "dress": "65521c045ad8aa187b41cc21d75652e795e23d5c0099ae515f18543c67eefb60",
    "hanna": "68290074d451958d5f9b2882d350b62d7428dd7f4bf9ee5c7f4c7e6da07399da",
    "minibench": "b27552b03501cba6aa5416026916471ff27cdea41dcaa455d347f6d531123baa",
    "summeval": "3cd7e6c68efcf122b516a42dc51de88d8d38dfad4b9e139add44239bc7bd8e05",
    "summhf": "0d227b8a172ab546747ad6dcff3e0ac7cf748ec26e1ad41da614e2c7ac365552",
}
PINNED_JUDGE = replace(describe("embedded"), identity="pinned")
FROM_0 = "a96086a480182edac388c4f43bb48df0dac7a9cb06cf077fcbec32df23045232"
LOCKS = "e29638da54ef84ab24cd3488621cd7904ab7356e5015533d3d8c873b1d06d933"


def items_of(rubrics):
    """Two texts, under every criterion of some rubrics."""
    pairs = rubrics[["criterion", "rubric_id"]].astype("str").drop_duplicates()
    rows = [
        {
            "item_id": f"t{k}/{rubric_id}",
            "dataset": "pinned",
            "text_id": f"t{k}",
            "cluster_id": f"p{k % 2}",
            "group_id": f"p{k % 2}",
            "instruction": f"Do {k % 2}.",
            "response": f"Done {k}.",
            "criterion": criterion,
            "rubric_id": rubric_id,
            "human": 2.0 + k / 3,
            "reference": "Best.",
            "reference_2": "Fair.",
            "exemplar_instruction": "Do 9.",
            "exemplar_2": "So so.",
        }
        for k in range(2)
        for criterion, rubric_id in pairs.itertuples(index=False)
    ]
    return check_items(pd.DataFrame(rows), rubrics)


def plans(items):
    """Every kind of prompt that the plans
    of the package ask about some items of one scale.
    """
    n = int(
        items.rubrics.groupby(["rubric_id", "variant"], observed=True).size().iloc[0]
    )
    worded = items.rubrics.groupby("variant", observed=True)["rubric_id"].nunique()
    variants = [str(v) for v, size in worded.items() if size == worded.max()]
    yield rb.plan(
        items,
        rb.shuffled(n, 1),
        labels=["numeric", "letter", "roman"],
        layout=["rubric-last", "rubric-first"],
        variant=variants,
        reference=["auto", "none", 2],
        exemplar=["none", 2],
    )
    yield rb.plan(items, [rb.balanced(n), rb.placebo(n, 3)], readout="logprobs")
    yield rb.plan(items, rb.fixed(n, 1), template="pointwise")
    for size in {2, 3, 5, 9} if n == 5 else set():
        yield rb.plan(items, rb.fixed(size, 1))
    yield from audit_requests(items)


def digest(rubrics):
    """Ids and keys of all these requests, of a live judge and of a simulated one."""
    sha = hashlib.sha256()
    sizes = rubrics.groupby("rubric_id", observed=True)["score"].transform("nunique")
    for n in sorted(sizes.unique()):
        for part in plans(items_of(rubrics[sizes == n])):
            for judge in (PINNED_JUDGE, rb.open_judge("simulated:unbiased")):
                for request in rendered(part, judge):
                    sha.update(f"{request.request_id} {request.key}\n".encode())
    return sha.hexdigest()


@pytest.mark.in_turn
@pytest.mark.parametrize("name", SHIPPED)
def test_requests_about_a_shipped_rubric_have_the_keys_they_always_had(name):
    assert digest(bundled_rubrics(name)) == PINNED[name]


def test_requests_about_a_rubric_from_0_have_the_keys_they_always_had():
    texts = ["Rude.", "Cool.", "Warm.", "Kind."]
    rubric = {
        "rubric_id": "a",
        "variant": "standard",
        "score": range(4),
        "criterion": "a",
    }
    rubric |= {"definition": "Is it kind?", "description": texts}
    assert digest(pd.DataFrame(rubric)) == FROM_0


def test_bundles_have_the_locks_they_always_had():
    files = sorted((PACKAGE / "rulers/bundles").glob("*.lock.json"))
    locks = [
        [file.name, json.loads(file.read_text("utf-8"))["sha256"]] for file in files
    ]
    now = [
        [
            file.name,
            rb.rulers.load_bundle(file.with_name(file.name.replace(".lock", ""))).lock,
        ]
        for file in files
    ]
    assert now == locks
    assert hashlib.sha256(json.dumps(locks).encode()).hexdigest() == LOCKS
