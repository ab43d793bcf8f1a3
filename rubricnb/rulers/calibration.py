"""Phase III: from a judge's traits to people's labels, without leakage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rubricnb.core.support.extras import not_installed
from rubricnb.core.support.hashing import UInt64Array, hash64
from rubricnb.core.support.types import FloatArray

try:
    from sklearn.base import BaseEstimator
    from sklearn.isotonic import IsotonicRegression
except ModuleNotFoundError as error:
    raise not_installed(error, "rulers", "rubricnb.rulers") from None

Features: TypeAlias = ArrayLike | pd.DataFrame
"""Shape (items, features); a frame names its items by its index."""

MIN_ITEMS = 10
_ALPHAS = tuple(map(float, np.logspace(-2, 4, 25)))


class _LabelMap(BaseEstimator):
    """Common part of both calibrators: checks, and the calibration items' names."""

    def fit(self, X: Features, y: ArrayLike) -> Self:
        """Fit on calibration items.

        Parameters
        ----------
        X
            Shape (items, features). The index of a frame names the items; rows with a
            missing feature (the judge gave no score) are left out.
        y
            Their labels by people.

        Raises
        ------
        ValueError
            Fewer than ten items, a missing label, or all labels equal.
        """
        features, labels = _matrix(X), np.asarray(y, float)
        if np.isnan(labels).any():
            raise ValueError(
                "a calibration label is missing (NaN): rate the item or leave it out"
            )
        is_scored = ~np.isnan(features).any(axis=1) & (features.shape[1] > 0)
        features, labels = features[is_scored], labels[is_scored]
        if len(labels) < MIN_ITEMS:
            raise ValueError(
                f"{len(labels)} calibration items with a score: the map needs "
                f"{MIN_ITEMS}, and the paper takes 200"
            )
        if np.ptp(labels) == 0:
            raise ValueError(
                f"all {len(labels)} calibration labels are {labels[0]:g}: the map "
                "cannot learn from one label; draw calibration items with several "
                "labels"
            )
        self.n_features_in_ = features.shape[1]
        self.items_ = _ids(X)
        self.labels_, self.counts_ = np.unique(labels, return_counts=True)
        self._fit(features, labels)
        return self

    def predict(self, X: Features) -> FloatArray:
        """Return a label per item; NaN where a feature is missing.

        Raises
        ------
        ValueError
            An item was used for calibration, or the number of features differs.
        """
        features = _matrix(X)
        if features.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{features.shape[1]} features, but the calibration had "
                f"{self.n_features_in_}: grade both sets with bundles that have the "
                "same number of traits"
            )
        is_used = np.isin(_ids(X), self.items_)
        if is_used.any():
            assert isinstance(X, pd.DataFrame)  # only a frame names its items
            raise ValueError(
                f"{is_used.sum()} test items were used for calibration, the first is "
                f"{X.index[int(is_used.argmax())]!r}: agreement on them would prove "
                "nothing; calibrate on other items"
            )
        is_scored = ~np.isnan(features).any(axis=1)
        labels = np.full(len(features), np.nan)
        labels[is_scored] = self._predict(features[is_scored])
        return labels

    def _fit(self, x: FloatArray, y: FloatArray) -> None:
        raise NotImplementedError

    def _predict(self, x: FloatArray) -> FloatArray:
        raise NotImplementedError


class Calibrator(_LabelMap):
    """RULERS' calibration: ridge regression, then a map of quantiles onto labels.

    The latent score z is a ridge regression of the labels on the standardised features,
    with α chosen once, by leave-one-out error on all calibration items. F_model is the
    distribution of the leave-one-out z (closed form), so that it is that of new items.
    A new z at mid-rank u becomes the smallest label with F_human ≥ u: always a label
    that was seen.

    Parameters
    ----------
    alphas
        Penalties to choose from.

    Attributes
    ----------
    alpha_, coef_, intercept_, mean_, scale_
        The ridge regression and the standardisation.
    latents_
        Sorted leave-one-out z of the calibration items.
    labels_, counts_
        Labels seen in calibration, and how often; others are never predicted.

    Raises
    ------
    ValueError
        On `fit`: fewer than ten items, equal labels. On `predict`: items of the
        calibration.

    Notes
    -----
    arXiv RULERS, §3.3 and Eq. 5. The paper gives neither α nor how ties and leakage are
    treated.

    Examples
    --------
    >>> traits = np.array([[1, 1], [1, 2], [2, 2], [2, 3], [3, 3], [3, 4], [4, 4]] * 4)
    >>> people = np.array([1, 1, 2, 3, 3, 4, 4] * 4)
    >>> Calibrator().fit(traits, people).predict([[1, 1], [4, 4]]).tolist()
    [1.0, 4.0]
    """

    def __init__(self, alphas: Sequence[float] = _ALPHAS) -> None:
        self.alphas = alphas

    def latent(self, X: Features) -> FloatArray:
        """Return z, the continuous score before the map; also of calibration items."""
        standard = (_matrix(X) - self.mean_) / self.scale_
        return standard @ self.coef_ + self.intercept_

    def _fit(self, x: FloatArray, y: FloatArray) -> None:
        self.mean_, sd = x.mean(axis=0), x.std(axis=0)
        self.scale_ = np.where(sd > 1e-12, sd, 1.0)
        standard, centered = (x - self.mean_) / self.scale_, y - y.mean()
        u, s, vt = np.linalg.svd(standard, full_matrices=False)
        alphas = np.asarray(self.alphas, float)
        latents = _leave_one_out(u, s, y, alphas)
        best = int(np.argmin(((y - latents) ** 2).mean(axis=1)))
        self.alpha_ = float(alphas[best])
        # ridge: coef = V diag(s / (s² + α)) Uᵀ (y − ȳ), where standard = U diag(s) Vᵀ
        self.coef_ = vt.T @ (s / (s**2 + self.alpha_) * (u.T @ centered))
        self.intercept_ = float(y.mean())
        self.latents_ = np.sort(latents[best])

    def _predict(self, x: FloatArray) -> FloatArray:
        z = self.latent(x)
        n_below = np.searchsorted(self.latents_, z, side="left")
        n_up_to = np.searchsorted(self.latents_, z, side="right")
        # u = (n_below + n_up_to) / 2n and F_human = cumulative count / n,
        # compared as integers.
        label_index = np.searchsorted(
            2 * np.cumsum(self.counts_), n_below + n_up_to, side="left"
        )
        return self.labels_[label_index]


class IsotonicCalibrator(_LabelMap):
    """The baselines' calibration: isotonic regression of labels on the mean score.

    Notes
    -----
    arXiv RULERS, §4.2 (MTS). The prediction is the nearest label seen in calibration,
    the upper one of two equally near.

    Examples
    --------
    >>> scores = np.array([[1], [2], [3], [4]] * 5)
    >>> fitted = IsotonicCalibrator().fit(scores, [1, 1, 2, 3] * 5)
    >>> fitted.predict([[1], [4], [9]]).tolist()
    [1.0, 3.0, 3.0]
    """

    def _fit(self, x: FloatArray, y: FloatArray) -> None:
        fitted = IsotonicRegression(out_of_bounds="clip").fit(x.mean(axis=1), y)
        self.from_, self.to_ = fitted.X_thresholds_, fitted.y_thresholds_

    def _predict(self, x: FloatArray) -> FloatArray:
        return nearest_label(
            np.interp(x.mean(axis=1), self.from_, self.to_), self.labels_
        )


def nearest_label(values: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Return the label nearest to each value, the upper one of two; NaN for NaN.

    Examples
    --------
    >>> nearest_label([1.4, 1.5, 9], [1, 2, 3]).tolist()
    [1.0, 2.0, 3.0]
    """
    sorted_labels, x = np.sort(np.asarray(labels, float)), np.asarray(values)
    midpoints = (sorted_labels[:-1] + sorted_labels[1:]) / 2
    return np.where(
        np.isnan(x), np.nan, sorted_labels[np.searchsorted(midpoints, x, side="right")]
    )


def _leave_one_out(
    u: FloatArray, s: FloatArray, y: FloatArray, alphas: FloatArray
) -> FloatArray:
    """(z_i − h_ii y_i)/(1 − h_ii): what ridge predicts for an item from the others.

    Shape (penalties, items).
    """
    shrunk = s**2 / (s**2 + alphas[:, None])
    fitted = y.mean() + (shrunk * (u.T @ (y - y.mean()))) @ u.T
    # h_ii = 1/n + Σ_k u_ik² s_k² / (s_k² + α)
    leverage = 1 / len(y) + shrunk @ (u**2).T
    return (fitted - leverage * y) / np.maximum(1 - leverage, 1e-9)


def _matrix(X: Features) -> FloatArray:
    x = np.asarray(X, float)
    return x[:, None] if x.ndim == 1 else x


def _ids(X: Features) -> UInt64Array:
    """Hashes of the items' names; none for arrays, and frames that are numbered."""
    if isinstance(X, pd.DataFrame) and not isinstance(X.index, pd.RangeIndex):
        return hash64(X.index)
    return np.array([], dtype=np.uint64)
