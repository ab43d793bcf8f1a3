"""RULERS: locked rubrics, verified evidence, calibrated scores; and its three baselines."""

from rubricnb.rulers.bundle import Bundle, CheckItem, LockError, Trait, load_bundle
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.evidence import split_units, verify_quotes
from rubricnb.rulers.grading import Grades, grade
from rubricnb.rulers.scoring import gate_threshold, score
from rubricnb.rulers.simulated import SimulatedGrader

__all__ = [
    "Bundle",
    "CheckItem",
    "Grades",
    "LockError",
    "SimulatedGrader",
    "Trait",
    "compile_rubric",
    "gate_threshold",
    "grade",
    "load_bundle",
    "score",
    "split_units",
    "verify_quotes",
]
