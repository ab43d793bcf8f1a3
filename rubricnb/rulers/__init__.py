"""RULERS: locked rubrics, verified evidence, calibrated scores; and its baselines."""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.rulers.agreement": """calibrated extreme invariance
        label_agreement label_contrast verification whole_texts""",
    "rubricnb.rulers.bundle": "Bundle LockError load_bundle",
    "rubricnb.rulers.calibration": "Calibrator",
    "rubricnb.rulers.compile": "compile_rubric",
    "rubricnb.rulers.evidence": "verify_quotes",
    "rubricnb.rulers.grades": "recorded_grades recorded_gradings",
    "rubricnb.rulers.grading": "grade",
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
