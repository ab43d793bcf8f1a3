"""RULERS: locked rubrics, verified evidence, calibrated scores; and its three baselines."""

from rubricnb.rulers.agreement import (
    calibrated,
    extreme,
    features,
    invariance,
    label_agreement,
    label_contrast,
    verification,
    whole_texts,
)
from rubricnb.rulers.bundle import Bundle, CheckItem, LockError, Trait, load_bundle
from rubricnb.rulers.calibration import Calibrator, best_monotone
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.evidence import split_units, verify_quotes
from rubricnb.rulers.grades import recorded_grades, recorded_gradings
from rubricnb.rulers.grading import grade
from rubricnb.rulers.scoring import gate_threshold, score
from rubricnb.rulers.simulated import SimulatedGrader

__all__ = [
    "Bundle",
    "Calibrator",
    "CheckItem",
    "LockError",
    "SimulatedGrader",
    "Trait",
    "best_monotone",
    "calibrated",
    "compile_rubric",
    "extreme",
    "features",
    "gate_threshold",
    "grade",
    "invariance",
    "label_agreement",
    "label_contrast",
    "load_bundle",
    "recorded_grades",
    "recorded_gradings",
    "score",
    "split_units",
    "verification",
    "verify_quotes",
    "whole_texts",
]
