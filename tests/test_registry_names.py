import pytest

from argnn.errors import ArgnnError, ConfigError
from argnn.registry import canonical_name, resolve, suggestion

MODELS = {"argnn": 1, "gcn": 2, "graph_sage": 3, "H2GCN": 4, "kappa-gcn": 5}


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("argnn", "argnn"),
        ("ARGNN", "argnn"),
        ("GraphSAGE", "graph_sage"),
        ("graph-sage", "graph_sage"),
        ("graph sage", "graph_sage"),
        ("h2-gcn", "H2GCN"),
        ("kappa_GCN", "kappa-gcn"),
        ("_g-c n_", "gcn"),
    ],
)
def test_names_are_found_whatever_their_case_and_dashes(typed, key):
    assert canonical_name(typed, MODELS, "model") == key
    assert resolve(typed, MODELS, "model") == MODELS[key]


def test_resolve_returns_the_value_itself():
    value = object()
    assert resolve("x", {"x": value}, "thing") is value


def test_resolve_returns_values_that_count_as_false():
    assert resolve("none", {"none": None}, "thing") is None
    assert resolve("zero", {"zero": 0}, "thing") == 0


@pytest.mark.parametrize("function", [resolve, canonical_name])
def test_unknown_names_are_explained(function):
    with pytest.raises(ConfigError) as caught:
        function("arggn", MODELS, "model")
    message = str(caught.value)
    assert message.startswith("unknown model 'arggn'; did you mean 'argnn'")
    assert message.endswith("choices: H2GCN, argnn, gcn, graph_sage, kappa-gcn")
    assert "\n" not in message


def test_unknown_names_are_errors_of_the_user_and_of_the_value():
    with pytest.raises(ArgnnError):
        resolve("nothing", MODELS, "model")
    with pytest.raises(ValueError, match="unknown data set 'nothing'"):
        resolve("nothing", MODELS, "data set")


def test_resolve_does_not_change_the_table():
    table = dict(MODELS)
    resolve("GCN", table, "model")
    assert table == MODELS


def test_suggestion_names_the_closest_choice_first():
    assert suggestion("coar", ["texas", "cora"]) == "did you mean 'cora'? choices: cora, texas"


def test_suggestion_names_two_close_choices():
    found = suggestion("splt_1", ["split_1", "split_2", "other"])
    assert found == "did you mean 'split_1' or 'split_2'? choices: other, split_1, split_2"


def test_suggestion_folds_before_it_compares():
    found = suggestion("GRAPH-SAGA", ["graph_sage", "texas"])
    assert found.startswith("did you mean 'graph_sage'?")


def test_suggestion_of_nothing_close_lists_the_choices():
    assert suggestion("zzz", ["cora", "texas"]) == "choices: cora, texas"


def test_suggestion_takes_any_iterable():
    assert suggestion("cora", iter({"cora": 1})) == "did you mean 'cora'? choices: cora"
    assert suggestion("cora", []) == "choices: "
