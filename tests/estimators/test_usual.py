"""An estimator starts from the settings of ``argnn train`` on a graph that nobody has tuned."""

import pytest

from argnn.bench.prepare import Request, prepare
from argnn.estimators.base import complete_options
from argnn.estimators.usual import usual_settings
from argnn.nn import MODELS
from argnn.train import train_config


@pytest.mark.parametrize("task", ["node", "link"])
@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn"}))
def test_settings_are_those_of_the_command(small_npz, model, task):
    pytest.importorskip("geoopt")
    pytest.importorskip("ot")
    config = prepare(Request(str(small_npz()), model=model, task=task, device="cpu")).config
    usual = usual_settings(model, task, "default")
    options = complete_options(model, "default", usual.options)
    assert options.items() <= config.options.items()
    train = train_config("default", {**usual.train, "checkpoint_every": 25})
    assert train == config.train
    assert usual.source == config.source
    if task == "link":
        assert (usual.decoder or MODELS[model].link_decoder) == config.link.decoder


def test_links_of_argnn(small_npz):
    config = prepare(Request(str(small_npz()), task="link", device="cpu")).config
    usual = usual_settings("argnn", "link", "default")
    assert complete_options("argnn", "default", usual.options) == config.options
    assert (usual.source, usual.decoder) == (config.source, config.link.decoder)


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_presets_of_argnn(small_npz, preset):
    config = prepare(Request(str(small_npz()), preset=preset, device="cpu")).config
    usual = usual_settings("argnn", "node", preset)
    assert complete_options("argnn", preset, usual.options) == config.options
    assert train_config(preset, {**usual.train, "checkpoint_every": 25}) == config.train
