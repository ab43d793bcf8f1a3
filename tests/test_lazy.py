"""``import rubricnb`` costs nothing: no data library, no plotting, no engine, no network."""

import subprocess
import sys

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
    loaded = loaded_after("import rubricnb as rb; rb.run, rb.plan, rb.open_judge")
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
