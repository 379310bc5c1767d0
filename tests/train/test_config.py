import math
from dataclasses import FrozenInstanceError, fields

import pytest

from argnn.errors import ConfigError
from argnn.train import TRAIN_PRESETS, TrainConfig, train_config
from argnn.train.config import learning_rate_factor


@pytest.mark.parametrize("name", ["epochs", "step_size", "evaluate_every"])
@pytest.mark.parametrize("value", [0, -1])
def test_counts_must_be_at_least_one(name, value):
    with pytest.raises(ConfigError, match=rf"{name} must be at least 1 \(got {value}\)"):
        TrainConfig(**{name: value})


@pytest.mark.parametrize("name", ["lr", "metric_lr", "penalty_lr", "clip_norm", "step_factor"])
@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf])
def test_rates_must_be_positive(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be positive"):
        TrainConfig(**{name: value})


@pytest.mark.parametrize(
    "name",
    [
        "weight_decay",
        "patience",
        "tolerance",
        "checkpoint_every",
        "seed",
        "ricci_weight",
        "smoothness_weight",
        "magnitude_weight",
    ],
)
@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_weights_must_be_finite_and_not_negative(name, value):
    whole = name in ("patience", "checkpoint_every", "seed") and isinstance(value, float)
    expected = "a whole number" if whole else "finite and not negative"
    with pytest.raises(ConfigError, match=f"{name} must be {expected}"):
        TrainConfig(**{name: value})


@pytest.mark.parametrize("name", ["schedule", "precision", "penalty_weights", "penalty_reduction"])
def test_choices_are_listed_when_one_is_unknown(name):
    with pytest.raises(ConfigError, match=rf"{name} must be one of .*, .* \(got 'other'\)"):
        TrainConfig(**{name: "other"})


@pytest.mark.parametrize("name", ["lr", "step_factor", "epochs", "weight_decay", "schedule"])
def test_settings_that_are_no_option_cannot_be_none(name):
    with pytest.raises(ConfigError, match=name):
        TrainConfig(**{name: None})


@pytest.mark.parametrize("name", ["epochs", "patience", "seed", "evaluate_every", "step_size"])
def test_counts_must_be_whole_numbers(name):
    with pytest.raises(ConfigError, match=name):
        TrainConfig(**{name: 2.5})


@pytest.mark.parametrize("name", ["epochs", "lr", "patience", "weight_decay"])
def test_words_are_no_numbers(name):
    with pytest.raises(ConfigError, match=name):
        TrainConfig(**{name: "many"})


def test_default_config_is_valid_and_frozen():
    config = TrainConfig()
    with pytest.raises(FrozenInstanceError):
        config.lr = 1.0


def test_paper_preset_has_the_papers_optimiser_and_literal_penalties():
    paper = TRAIN_PRESETS["paper"]
    assert (paper.lr, paper.weight_decay) == (5e-3, 1e-4)
    assert (paper.penalty_weights, paper.penalty_reduction) == ("theory", "sum")
    assert (paper.magnitude_weight, paper.clip_norm, paper.schedule) == (0.0, None, "constant")


def test_reference_preset_has_the_settings_of_the_public_code():
    reference = TRAIN_PRESETS["reference"]
    assert (reference.schedule, reference.step_size, reference.step_factor) == ("step", 50, 0.1)
    assert reference.clip_norm == 1.0
    assert (reference.penalty_weights, reference.penalty_reduction) == ("fixed", "mean")
    assert reference.ricci_weight == 0.0
    assert reference.smoothness_weight > 0
    assert reference.magnitude_weight > 0


def test_default_preset_has_no_penalty():
    default = TRAIN_PRESETS["default"]
    assert default == TrainConfig()
    assert (default.ricci_weight, default.smoothness_weight, default.magnitude_weight) == (0, 0, 0)
    assert set(TRAIN_PRESETS) == {"paper", "reference", "default"}


def test_overrides_change_only_what_they_name():
    changed = train_config("Reference", {"lr": 0.1, "epochs": 7})
    original = TRAIN_PRESETS["reference"]
    differing = {
        field.name
        for field in fields(TrainConfig)
        if getattr(changed, field.name) != getattr(original, field.name)
    }
    assert differing == {"lr", "epochs"}


def test_unknown_setting_and_preset_are_explained():
    with pytest.raises(ConfigError, match="unknown training setting 'epoch'; did you mean 'epo"):
        train_config("default", {"epoch": 3})
    with pytest.raises(ConfigError, match="unknown preset 'refrence'; did you mean 'reference'"):
        train_config("refrence", {})
    with pytest.raises(ConfigError, match="lr must be positive"):
        train_config("default", {"lr": -1.0})


def test_constant_schedule_is_one():
    config = TrainConfig(epochs=100)
    assert {learning_rate_factor(config, epoch) for epoch in (1, 50, 100)} == {1.0}


def test_step_schedule_drops_after_every_step_as_pytorchs_does():
    config = TrainConfig(epochs=200, schedule="step", step_size=50, step_factor=0.1)
    expected = {1: 1.0, 50: 1.0, 51: 0.1, 100: 0.1, 101: 0.01, 151: 0.001, 200: 0.001}
    for epoch, factor in expected.items():
        assert learning_rate_factor(config, epoch) == pytest.approx(factor, rel=1e-12)


def test_cosine_schedule_falls_from_one_towards_zero():
    config = TrainConfig(epochs=10, schedule="cosine")
    factors = [learning_rate_factor(config, epoch) for epoch in range(1, 11)]
    assert factors[0] == 1.0
    assert factors[5] == pytest.approx(0.5)
    assert all(0 < later < earlier for earlier, later in zip(factors, factors[1:], strict=False))
    assert learning_rate_factor(config, 11) == pytest.approx(0.0, abs=1e-15)
