"""The presets, switch by switch, as the specification states them."""

from dataclasses import FrozenInstanceError, fields

import pytest

from argnn.errors import ConfigError
from argnn.nn import PRESETS, Formulation
from argnn.nn.models.formulation import formulation

#: The equations as printed: no encoder, no baseline, scalar modulation with attention, a metric
#: network of depth two on [h; a] with the Xavier-style start, dropout 0.3.
PAPER = {
    "encoder": False,
    "modulation": "scalar",
    "attention": True,
    "self_path": True,
    "direction": "in",
    "normalization": "sum",
    "hops": 1,
    "eps0": 0.0,
    "neighbor_norm": "own",
    "metric": "features",
    "metric_layers": 2,
    "metric_init": "xavier",
    "metric_start": 1.0,
    "metric_spread": 0.0,
    "metric_ceiling": None,
    "metric_sharpness": 1.0,
    "metric_norm": False,
    "metric_closed": False,
    "norm": "none",
    "jump": "last",
    "head": "linear",
    "dropout": 0.3,
    "input_dropout": 0.0,
}
#: The public code: encoder, LayerNorm, self-loops in the mean, the neighbour's norm in G_i,
#: softplus of sharpness two clamped to [1e-3, 10], scores from the last convolution.
REFERENCE = {
    "encoder": True,
    "modulation": "scalar",
    "attention": True,
    "self_path": True,
    "direction": "in",
    "normalization": "sum",
    "eps0": 0.0,
    "neighbor_norm": "target",
    "metric": "features",
    "metric_layers": 2,
    "metric_clamp": True,
    "metric_floor": 1e-3,
    "metric_ceiling": 10.0,
    "metric_sharpness": 2.0,
    "metric_closed": True,
    "norm": "layer",
    "jump": "last",
    "head": "conv",
}
#: The project's own search: operator form, structural inputs, a start away from g = 1.
DEFAULT = {
    "encoder": True,
    "modulation": "operator",
    "self_path": True,
    "direction": "undirected",
    "normalization": "sym",
    "hops": 1,
    "metric": "both",
    "metric_layers": 2,
    "metric_init": "ones",
    "metric_start": 0.5,
    "metric_hidden": 64,
    "metric_clamp": False,
    "metric_floor": 1e-6,
    "norm": "layer",
    "jump": "cat",
    "head": "linear",
}


@pytest.mark.parametrize(
    ("preset", "expected"), [("paper", PAPER), ("reference", REFERENCE), ("default", DEFAULT)]
)
def test_preset_has_the_switches_of_the_specification(preset, expected):
    assert {name: getattr(PRESETS[preset], name) for name in expected} == expected


def test_there_are_exactly_three_presets_and_default_is_the_formulation_without_options():
    assert set(PRESETS) == {"paper", "reference", "default"}
    assert PRESETS["default"] == Formulation()


def test_overrides_change_only_what_they_name():
    changed = formulation("paper", {"eps0": 0.2, "encoder": True})
    differing = {
        field.name
        for field in fields(Formulation)
        if getattr(changed, field.name) != getattr(PRESETS["paper"], field.name)
    }
    assert differing == {"eps0", "encoder"}
    assert PRESETS["paper"].eps0 == 0.0


def test_preset_names_are_folded():
    assert formulation("Paper", {}) is not None
    assert formulation("DEFAULT", {}) == PRESETS["default"]


def test_a_formulation_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Formulation().eps0 = 1.0


def test_unknown_switch_and_preset_are_explained():
    with pytest.raises(ConfigError, match="unknown option 'dropuot' of argnn; did you mean 'drop"):
        formulation("default", {"dropuot": 0.5})
    with pytest.raises(ConfigError, match="choices: default, paper, reference"):
        formulation("mine", {})
