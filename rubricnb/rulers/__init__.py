"""RULERS: locked rubrics, verified evidence, calibrated scores; and its three baselines."""

from rubricnb.rulers.agreement import invariance, label_agreement, label_contrast, whole_texts
from rubricnb.rulers.bundle import Bundle, load_bundle
from rubricnb.rulers.calibration import Calibrator
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.evidence import verify_quotes
from rubricnb.rulers.grades import recorded_grades, recorded_gradings
from rubricnb.rulers.grading import grade

__all__ = [
    "Bundle",
    "Calibrator",
    "compile_rubric",
    "grade",
    "invariance",
    "label_agreement",
    "label_contrast",
    "load_bundle",
    "recorded_grades",
    "recorded_gradings",
    "verify_quotes",
    "whole_texts",
]
