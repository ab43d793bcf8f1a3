"""``import rubricnb`` costs nothing: no data library,
no plotting, no engine, no network.
"""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import rubricnb as rb

HEAVY = [
    "pandas",
    "numpy",
    "scipy",
    "matplotlib",
    "openai",
    "xllamacpp",
    "sklearn",
    "statsmodels",
]
ENGINES = {"matplotlib", "openai", "xllamacpp", "sklearn"}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("statement", "loads", "never"),
    [
        ("import rubricnb", set(), {*HEAVY}),
        ("import rubricnb as rb; rb.balanced(5)", {"numpy"}, ENGINES | {"pandas"}),
        (
            "import rubricnb as rb; rb.run, rb.plan, rb.open_judge('openai:m')",
            set(),
            ENGINES,
        ),
    ],
)
def test_a_name_loads_what_it_needs_and_nothing_else(statement, loads, never):
    program = (
        f"{statement}\nimport sys\nprint(*[m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {*done.stdout.split()}
    assert loads <= loaded
    assert never & loaded == set()


# What a browser does not have, or would load for nothing.
NOT_IN_A_BROWSER = [
    "httpx2",
    "openai",
    "pooch",
    "pyarrow",
    "pydantic",
    "ssl",
    "tqdm",
    "typer",
]
AUDIT = """
import sys
sys.modules |= dict.fromkeys({absent}) if {blocked} else {{}}
import rubricnb as rb
rows = [
    {{
        "item_id": f"t{{i}}", "read": r,
        "score": 1 + (i + r % 2) % 5, "human": 1 + i % 5,
    }}
    for i in range(20) for r in (1, 2)
]
table = rb.data.judgments(__import__("pandas").DataFrame(rows), scale=(1, 5))
print(rb.audit(judgments=table).rows.drop(columns="asked", errors="ignore").to_json())
"""


@pytest.mark.in_turn
def test_an_audit_of_scores_needs_nothing_that_a_browser_lacks():
    found = [
        subprocess.run(
            [sys.executable, "-c", AUDIT.format(absent=NOT_IN_A_BROWSER, blocked=b)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for b in (True, False)
    ]
    assert '"agreement' in found[0]
    assert found[0] == found[1]


def test_every_public_name_exists_and_an_unknown_one_is_an_attribute_error():
    assert {*rb.__all__} <= {*dir(rb)}
    assert [name for name in rb.__all__ if getattr(rb, name) is None] == []
    with pytest.raises(AttributeError, match="no_such_name"):
        rb.no_such_name  # noqa: B018


ROOMS = [
    "rubricnb",
    *(
        f"rubricnb.{r}"
        for r in ("core.prompts", "data", "judging", "rulers", "statistics")
    ),
]
MOST_NAMES = 80


def test_the_names_at_the_top_are_few():
    assert len(rb.__all__) == len({*rb.__all__}) <= MOST_NAMES


def test_every_public_function_has_an_example():
    public = {
        name: getattr(room, name)
        for room in map(import_module, ROOMS)
        for name in room.__all__
    }
    functions = {name: f for name, f in public.items() if inspect.isfunction(f)}
    assert len(functions) > 80
    assert [
        name for name, f in functions.items() if ">>>" not in (f.__doc__ or "")
    ] == []
