"""scikit-learn's conventions, as far as they make sense where the input is a graph."""

import pickle

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from argnn import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor

KINDS = [ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor]
#: The checks of scikit-learn that do not feed a matrix to ``fit``.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_valid_tag_types",
    "check_estimator_tags_renamed",
    "check_parameters_default_constructible",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_scikit_learn(kind, name):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip(f"this scikit-learn has no {name}")
    check(kind.__name__, kind())


@pytest.mark.parametrize("kind", KINDS)
def test_bases(kind):
    assert issubclass(kind, BaseEstimator)
    if kind is ARGNNRegressor:
        assert is_regressor(kind())
        return
    assert issubclass(kind, ClassifierMixin)
    assert is_classifier(kind())


@pytest.mark.parametrize("kind", KINDS)
def test_clone_and_set_params(kind):
    options = {"dropout": 0.1}
    original = kind("gcn", epochs=3, model_options=options, random_state=7)
    copy = clone(original)
    assert copy is not original
    assert copy.get_params() == original.get_params()
    copy.set_params(epochs=9, model="mlp")
    assert (copy.epochs, copy.model) == (9, "mlp")
    assert (original.epochs, original.model) == (3, "gcn")
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(nothing=1)


@pytest.mark.parametrize("kind", KINDS)
def test_unfitted_estimator_can_be_pickled(kind):
    original = kind("gcn", epochs=3)
    copy = pickle.loads(pickle.dumps(original))
    assert copy.get_params() == original.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(copy, "model_")


@pytest.mark.parametrize("kind", KINDS)
def test_repr_shows_what_was_changed(kind):
    assert repr(kind("gcn", epochs=3)) == f"{kind.__name__}(epochs=3, model='gcn')"


def test_fit_returns_self_and_leaves_parameters_alone(graph):
    clf = ARGNNClassifier("gcn", epochs=2, device="cpu")
    before = clf.get_params()
    assert clf.fit(graph) is clf
    assert clf.get_params() == before
    first = clf.predict_proba(graph)
    assert (clf.fit(graph).predict_proba(graph) == first).all()  # fitting again starts anew


def test_grid_of_parameters(graph):
    for params in ParameterGrid({"model": ["gcn", "mlp"], "epochs": [1, 2]}):
        clf = clone(ARGNNClassifier(device="cpu")).set_params(**params).fit(graph)
        assert clf.n_iter_ == params["epochs"]
