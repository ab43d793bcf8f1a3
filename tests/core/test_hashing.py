import subprocess
import sys

import numpy as np

from rubricnb.core.support.hashing import hash64, mix64, uniform


def test_hashes_do_not_change_between_processes():
    program = (
        "from rubricnb.core.support.hashing import hash64\n"
        "print(int(hash64(['hanna/001'])[0]))"
    )
    values = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert values == {f"{int(hash64(['hanna/001'])[0])}\n"}


def test_mixing_tells_order_and_every_part_apart():
    a, b = hash64(["a"]), hash64(["b"])
    mixes = [
        mix64(a, b),
        mix64(b, a),
        mix64(a, b, 0),
        mix64(a),
        mix64(a, a),
        mix64(a, 1),
    ]
    assert len({int(m[0]) for m in mixes}) == len(mixes)


def test_streams_are_uniform_and_uncorrelated_between_neighbouring_seeds():
    ids = hash64(range(20_000))
    first, second = uniform(mix64(ids, 1)), uniform(mix64(ids, 2))
    assert 0 < first.min() < first.max() < 1
    counts = np.histogram(first, bins=20, range=(0, 1))[0]
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(20_000)
