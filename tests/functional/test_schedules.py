import math

import pytest

import reference
from argnn.functional.schedules import FORMS, theory_weights

CORA = {"homophily": 0.825, "num_nodes": 2708, "num_edges": 5278}
CORA_D64_L2 = CORA | {"num_layers": 2, "hidden_channels": 64}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("homophily", [0.0, 0.11, 0.5, 0.825, 1.0])
@pytest.mark.parametrize(
    ("nodes", "edges", "layers", "channels"),
    [(2708, 5278, 2, 64), (183, 280, 3, 128), (10, 5, 1, 128), (19717, 44324, 3, 128)],
)
def test_theory_weights_match_the_formula(form, homophily, nodes, edges, layers, channels):
    expected = reference.theory_weights(homophily, nodes, edges, layers, channels, form)
    found = theory_weights(homophily, nodes, edges, layers, channels, form)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_theory_weights_of_cora_are_not_those_of_the_papers_table():
    main, _ = theory_weights(**CORA_D64_L2)
    theorem, _ = theory_weights(**CORA_D64_L2, form="theorem")
    assert round(main, 5) == 0.00167
    assert round(theorem, 5) == 0.00138
    printed = 0.00576
    assert abs(main - printed) > 0.003
    assert abs(theorem - printed) > 0.003


def test_theory_weights_of_the_theorem_carry_the_homophily():
    main = theory_weights(**CORA_D64_L2)
    theorem = theory_weights(**CORA_D64_L2, form="theorem")
    assert theorem == pytest.approx([0.825 * weight for weight in main])


def test_theory_weights_main_is_the_default_form():
    assert theory_weights(**CORA_D64_L2) == theory_weights(**CORA_D64_L2, form="main")


def test_theory_weights_saturate_on_small_graphs():
    alpha, beta = theory_weights(0.5, 4, 3, num_layers=1, hidden_channels=64)
    assert alpha == pytest.approx(0.6)
    assert beta == pytest.approx(0.15 * 8 / 4)
    assert theory_weights(0.5, 4, 0, num_layers=1, hidden_channels=64)[0] == pytest.approx(0.6)


def test_theory_weights_fall_with_depth_and_ricci_weight_falls_with_homophily():
    shallow = theory_weights(**CORA, num_layers=1, hidden_channels=64)
    deep = theory_weights(**CORA, num_layers=4, hidden_channels=64)
    assert deep[0] == pytest.approx(shallow[0] / 4)
    assert deep[1] == shallow[1]
    heterophilic = theory_weights(**(CORA_D64_L2 | {"homophily": 0.1}))
    assert heterophilic[0] > theory_weights(**CORA_D64_L2)[0]
    assert heterophilic[1] < theory_weights(**CORA_D64_L2)[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": "lemma"}, r"form must be one of \('main', 'theorem'\) \(got 'lemma'\)"),
        ({"homophily": 1.2}, r"homophily must be in \[0, 1\] \(got 1.2\)"),
        ({"homophily": -0.1}, r"homophily must be in \[0, 1\] \(got -0.1\)"),
        ({"homophily": math.nan}, r"homophily must be in \[0, 1\] \(got nan\)"),
        ({"num_nodes": 0}, r"must be positive .* \(got 0, 2, 64, 5278\)"),
        ({"num_layers": 0}, r"must be positive .* \(got 2708, 0, 64, 5278\)"),
        ({"hidden_channels": 0}, r"must be positive .* \(got 2708, 2, 0, 5278\)"),
        ({"num_edges": -1}, r"num_edges not negative \(got 2708, 2, 64, -1\)"),
    ],
)
def test_theory_weights_refuse_impossible_values(change, message):
    with pytest.raises(ValueError, match=message):
        theory_weights(**(CORA_D64_L2 | change))
