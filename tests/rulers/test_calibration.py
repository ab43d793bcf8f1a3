"""Phase III against oracles: refits without an item,
and the definition word for word.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from rubricnb.rulers.calibration import Calibrator, IsotonicCalibrator

SCALE = np.arange(1, 7)
# The shares of the labels 1 to 6 among the essays of ASAP set 2, rounded.
CUTS = np.cumsum([0.014, 0.08, 0.42, 0.43, 0.05])


def essays(rng, n, n_traits=4):
    """Simulated essays: labels by people, and what a harsh,
    hedging judge says of each trait.
    """
    quality = rng.standard_normal(n)
    seen = 0.8 * quality + 0.6 * rng.standard_normal(n)
    uniform = np.argsort(np.argsort(quality + 0.45 * rng.standard_normal(n))) / n
    labels = SCALE[np.searchsorted(CUTS, uniform)]
    traits = 2.4 + 0.7 * seen[:, None] + 0.5 * rng.standard_normal((n, n_traits))
    invalid = rng.binomial(2, 0.15, (n, n_traits)) / 2
    return np.hstack([np.clip(np.round(traits), 1, 6), invalid]), labels.astype(float)


@pytest.fixture(scope="module")
def fitted():
    x, y = essays(np.random.default_rng(1), 200)
    return Calibrator().fit(x, y), x, y


def test_the_latents_are_what_ridge_says_without_each_item(fitted):
    calibrator, x, y = fitted
    standard, ridge = (x - x.mean(axis=0)) / x.std(axis=0), Ridge(calibrator.alpha_)
    without = cross_val_predict(ridge, standard, y, cv=LeaveOneOut())
    np.testing.assert_allclose(np.sort(without), calibrator.latents_, atol=1e-9)


def test_the_regression_is_ridge_on_standardised_features(fitted):
    calibrator, x, y = fitted
    ridge = Ridge(calibrator.alpha_).fit((x - x.mean(axis=0)) / x.std(axis=0), y)
    np.testing.assert_allclose(calibrator.coef_, ridge.coef_, atol=1e-9)
    new, _ = essays(np.random.default_rng(2), 50)
    own = ridge.predict((new - x.mean(axis=0)) / x.std(axis=0))
    np.testing.assert_allclose(calibrator.latent(new), own, atol=1e-9)


def test_the_map_is_the_definition_word_for_word(fitted):
    calibrator, _, y = fitted
    new, _ = essays(np.random.default_rng(3), 300)
    latent, labels = calibrator.latent(new), calibrator.predict(new)
    for z, label in zip(latent, labels, strict=True):
        u = np.mean(calibrator.latents_ < z) + np.mean(calibrator.latents_ == z) / 2
        assert label == min(s for s in np.unique(y) if np.mean(y <= s) >= u - 1e-12)
    assert (np.diff(labels[np.argsort(latent, kind="stable")]) >= 0).all()


def test_ties_in_the_features_give_no_nan_and_equal_labels():
    """A judge that knows two answers:
    the quantile map of the paper's code is NaN there.
    """
    x = np.array([[2.0], [4.0]] * 50)
    y = np.array([1.0, 5, 2, 4] * 25)
    labels = Calibrator().fit(x, y).predict([[2], [2], [4], [3]])
    assert not np.isnan(labels).any()
    assert labels[0] == labels[1] <= labels[3] <= labels[2]


def test_labels_never_seen_are_never_predicted():
    x, y = essays(np.random.default_rng(0), 400)
    rare = np.isin(y, [1, 6])
    calibrator = Calibrator().fit(x[~rare], y[~rare])
    assert not np.isin(calibrator.predict(x[rare]), [1, 6]).any()


def test_items_of_the_calibration_are_refused_also_after_pickling():
    x, y = essays(np.random.default_rng(0), 60)
    frame = pd.DataFrame(x, index=[f"essay {k}" for k in range(60)])
    calibrator = Calibrator().fit(frame[:30], y[:30])
    for one in (calibrator, pickle.loads(pickle.dumps(calibrator))):
        assert len(one.predict(frame[30:])) == 30
        with pytest.raises(
            ValueError, match=r"2 test items were used .* the first is 'essay 28'"
        ):
            one.predict(frame[28:])


def test_what_the_judge_left_unscored_is_left_out_and_stays_missing():
    x, y = essays(np.random.default_rng(0), 90)
    x[[3, 70], 0] = np.nan
    calibrator = Calibrator().fit(x[:60], y[:60])
    labels = calibrator.predict(x[60:])
    assert np.flatnonzero(np.isnan(labels)).tolist() == [10]


def test_the_isotonic_map_rises_and_gives_labels():
    x, y = essays(np.random.default_rng(0), 300)
    mean = x[:, :4].mean(axis=1)
    labels = IsotonicCalibrator().fit(mean, y).predict(np.sort(mean))
    assert set(labels) <= set(y)
    assert (np.diff(labels) >= 0).all()


def test_bad_input_is_named():
    x, y = essays(np.random.default_rng(0), 60)
    with pytest.raises(
        ValueError, match=r"5 calibration items .* needs 10, and .* 200"
    ):
        Calibrator().fit(x[:5], y[:5])
    with pytest.raises(
        ValueError, match="all 60 calibration labels are 3: the map cannot learn"
    ):
        Calibrator().fit(x, np.full(60, 3.0))
    with pytest.raises(ValueError, match="label is missing"):
        Calibrator().fit(x, np.append(y[1:], np.nan))
    with pytest.raises(ValueError, match="3 features, but the calibration had 8"):
        Calibrator().fit(x, y).predict(x[:, :3])
