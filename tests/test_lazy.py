"""``import rubricnb`` costs nothing: no data library, no plotting, no engine, no network."""

import inspect
import subprocess
import sys
from importlib import import_module

HEAVY = ["pandas", "numpy", "scipy", "matplotlib", "openai", "xllamacpp", "sklearn", "statsmodels"]


def loaded_after(statement):
    program = f"{statement}\nimport sys\nprint(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import rubricnb") == []


def test_a_name_loads_its_own_module_only():
    loaded = loaded_after("import rubricnb as rb; rb.balanced(5)")
    assert "numpy" in loaded
    assert not {"pandas", "matplotlib", "openai", "xllamacpp"} & set(loaded)


def test_judging_loads_neither_an_engine_nor_plots():
    loaded = loaded_after("import rubricnb as rb; rb.run, rb.plan, rb.open_judge('openai:m')")
    assert not {"matplotlib", "openai", "xllamacpp", "sklearn"} & set(loaded)


def test_every_public_name_exists_and_an_unknown_one_is_an_attribute_error():
    program = (
        "import rubricnb as rb\n"
        "assert all(getattr(rb, n) is not None for n in rb.__all__)\n"
        "assert set(rb.__all__) <= set(dir(rb))\n"
        "try: rb.no_such_name\nexcept AttributeError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "no_such_name" in done.stdout


ROOMS = [
    "rubricnb",
    *(f"rubricnb.{r}" for r in ("data", "judging", "prompts", "rulers", "statistics")),
]
MOST_NAMES = 94


def test_the_public_names_are_few_and_every_function_has_an_example():
    public = {
        name: getattr(room, name) for room in map(import_module, ROOMS) for name in room.__all__
    }
    assert len(public) <= MOST_NAMES
    functions = {name: f for name, f in public.items() if inspect.isfunction(f)}
    assert len(functions) > 60
    assert [name for name, f in functions.items() if ">>>" not in (f.__doc__ or "")] == []


def test_the_statistics_are_the_same_by_both_names():
    import rubricnb as rb

    assert set(rb.statistics.__all__) <= set(rb.__all__)
    assert all(getattr(rb, n) is getattr(rb.statistics, n) for n in rb.statistics.__all__)
