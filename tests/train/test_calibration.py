"""The temperature and the calibration error, against values known by hand."""

import math

import numpy as np
import pytest
import torch

from argnn.train.calibration import (
    TEMPERATURES,
    best_temperature,
    calibrate,
    calibration_error,
    probabilities,
    two_class_logits,
)


def drawn(temperature: float, count: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits whose labels were drawn from their softmax at a temperature."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(count, 4, generator=generator, dtype=torch.float64)
    chances = torch.softmax(logits / temperature, dim=-1)
    return logits, torch.multinomial(chances, 1, generator=generator).squeeze(-1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_temperature_is_recovered(temperature):
    logits, y = drawn(temperature)
    assert best_temperature(logits, y) == pytest.approx(temperature, rel=0.1)


def test_calibration_lowers_error_and_likelihood():
    found = calibrate(*drawn(3.0))
    assert found.temperature > 2
    assert found.ece < 0.03 < found.ece_uncalibrated
    assert found.nll < found.nll_uncalibrated
    assert found.count == 4000


def test_error_against_a_loop():
    logits, y = drawn(2.0, 500)
    p = probabilities(logits)
    expected = 0.0
    for low in np.arange(15) / 15:
        confidence, predicted = p.max(-1)
        inside = (confidence >= low) & (confidence < low + 1 / 15)
        if inside.any():
            accuracy = (predicted[inside] == y[inside]).double().mean()
            expected += inside.double().mean() * (accuracy - confidence[inside].mean()).abs()
    assert calibration_error(p, y) == pytest.approx(float(expected))


def test_certain_and_right_is_calibrated():
    assert calibration_error(torch.eye(3), torch.arange(3)) == 0.0
    assert calibration_error(torch.eye(3), torch.tensor([1, 2, 0])) == 1.0


def test_temperature_stays_in_its_range():
    perfect, y = torch.eye(3).repeat(2000, 1), torch.arange(3).repeat(2000)
    low, high = TEMPERATURES
    assert low <= best_temperature(perfect, y) < 0.2
    assert 10 < best_temperature(50 * perfect, y.roll(1)) <= high


@pytest.mark.parametrize("scale", [2.0, 6.0])
def test_few_nodes_that_are_all_right_make_nothing_certain(scale):
    logits, y = scale * torch.eye(3).repeat(2, 1), torch.arange(3).repeat(2)
    few, many = (best_temperature(logits.repeat(n, 1), y.repeat(n)) for n in (1, 500))
    assert 0.4 < few < 1
    assert many < 0.9 * few  # many can say so


def test_temperature_weighs_likelihood_against_what_is_usual():
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(20, 3, generator=generator)
    y = torch.randint(3, (20,), generator=generator)
    grid = torch.linspace(math.log(0.05), math.log(20), 20001, dtype=torch.float64).exp()
    scores = torch.stack(
        [torch.log_softmax(logits.double() / t, -1)[range(20), y].sum() for t in grid]
    )
    doubt = -scores + grid.log().square() / (2 * math.log(2) ** 2)
    assert best_temperature(logits, y) == pytest.approx(float(grid[doubt.argmin()]), rel=2e-3)


def test_nothing_to_choose_by_leaves_one():
    assert best_temperature(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])) == 1.0


def test_two_classes_are_a_sigmoid():
    logits = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    expected = torch.sigmoid(logits / 1.7)
    assert torch.allclose(probabilities(two_class_logits(logits), 1.7)[:, 1], expected)


def test_bad_shapes():
    with pytest.raises(ValueError, match="M > 0"):
        calibrate(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match="M > 0"):
        calibration_error(torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64))
