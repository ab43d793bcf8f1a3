"""RULERS: locked rubrics, verified evidence, calibrated scores;
and its three baselines.
"""

from rubricnb.rulers.agreement import (
    calibrated,
    extreme,
    invariance,
    label_agreement,
    label_contrast,
    verification,
    whole_texts,
)
from rubricnb.rulers.bundle import Bundle, LockError, load_bundle
from rubricnb.rulers.calibration import Calibrator
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.evidence import verify_quotes
from rubricnb.rulers.grades import recorded_grades, recorded_gradings
from rubricnb.rulers.grading import grade

__all__ = [
    "Bundle",
    "Calibrator",
    "LockError",
    "calibrated",
    "compile_rubric",
    "extreme",
    "grade",
    "invariance",
    "label_agreement",
    "label_contrast",
    "load_bundle",
    "recorded_grades",
    "recorded_gradings",
    "verification",
    "verify_quotes",
    "whole_texts",
]
