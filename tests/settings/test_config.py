import json
from contextlib import nullcontext
from dataclasses import fields

import pytest
import torch

from argnn.checked import checked
from argnn.errors import ConfigError, RunError
from argnn.files import fingerprint
from argnn.nn import MODELS, model_class
from argnn.settings.options import (
    ModelSpec,
    check_preset,
    parse_overrides,
    recorded_options,
    resolve_options,
    resolve_train,
)
from argnn.settings.run_config import RunConfig
from argnn.train import TrainConfig
from argnn.train.config import completed_record
from argnn.train.devices import current_device, on_cuda, resolve_device


def config(**changes):
    fields = {
        "data": "mixed",
        "task": "node",
        "model": "argnn",
        "preset": "paper",
        "directed": False,
        "row_normalize": False,
        "seed": 3,
        "device": "cpu",
        "threads": 1,
        "splits": (0, 2),
        "options": resolve_options("argnn", "paper"),
        "train": resolve_train("argnn", "paper", 3),
        "source": "preset paper",
    }
    return RunConfig(**{**fields, **changes})


def test_json_round_trip():
    before = config(trial={"chosen": "x"}, graph={"name": "mixed"})
    text = json.dumps(before.to_json(), allow_nan=False)
    assert RunConfig.from_json(json.loads(text), "config.json") == before


#: Of complete options before the first of those that came later; see ``recorded_options``.
FINGERPRINTS = {
    ("argnn", "default"): "0e4120b0736c",
    ("argnn", "paper"): "34fa453d3128",
    ("argnn", "reference"): "c7a6fc408d72",
    ("gcn", "default"): "d8ff7c618864",
    ("gat", "default"): "42fed79d1d22",
    ("graphsage", "default"): "f066f663a77c",
    ("hgcn", "default"): "3b9c73f85f0f",
    ("hgat", "default"): "df469ea73332",
    ("kappa-gcn", "default"): "c88b99f2bb9f",
    ("q-gcn", "default"): "0aa8663dca90",
    ("h2gcn", "default"): "d25531058bbe",
    ("gprgnn", "default"): "4e38cc519e4f",
    ("fagcn", "default"): "5bde4b2b3bd1",
    ("cusp", "default"): "c37bf8784daf",
    ("gnrf", "default"): "d6a34923771a",
    ("curvdrop", "default"): "2a6fa8f35e86",
    ("mlp", "default"): "45fedbe112d5",
    ("linkx", "default"): "2e4a067e9662",
}


@pytest.mark.parametrize(("model", "preset"), FINGERPRINTS)
def test_new_options_leave_the_record_of_finished_runs_alone(model, preset):
    """With the old options, a run has the fingerprint that it was stored with."""
    options, train = resolve_options(model, preset), resolve_train(model, preset, 3)
    run = config(model=model, preset=preset, options=options, train=train)
    stored = run.to_json()
    assert fingerprint(stored["options"])[:12] == FINGERPRINTS[model, preset]
    assert RunConfig.from_json(stored, "config.json") == run


#: Of complete training settings (seed 3) before the optimiser could be chosen.
TRAIN_FINGERPRINTS = {
    ("argnn", "paper"): "438771385745",
    ("argnn", "reference"): "7e4b72c805ab",
    ("argnn", "default"): "a370e90e3f7a",
    ("gcn", "default"): "bf1096a7d087",
}


@pytest.mark.parametrize(("model", "preset"), TRAIN_FINGERPRINTS)
def test_new_training_settings_leave_the_record_of_finished_runs_alone(model, preset):
    options, train = resolve_options(model, preset), resolve_train(model, preset, 3)
    stored = config(model=model, preset=preset, options=options, train=train).to_json()
    assert fingerprint(stored["train"])[:12] == TRAIN_FINGERPRINTS[model, preset]


@pytest.mark.parametrize("new", [{"optimizer": "adamw"}, {"metric_weight_decay": 0.0}])
def test_new_training_setting_is_recorded_where_it_changes_something(new):
    train = resolve_train("argnn", "default", 3, new)
    run = config(train=train)
    assert new.items() <= run.to_json()["train"].items()
    assert RunConfig.from_json(run.to_json(), "config.json") == run


@pytest.mark.parametrize("model", sorted(MODELS))
def test_stored_run_keeps_its_options_where_defaults_change(model, monkeypatch):
    run = config(model=model, preset="default", options=resolve_options(model, "default"))
    stored = run.to_json()
    without_defaults = classmethod(lambda cls, preset, options: dict(options))
    monkeypatch.setattr(MODELS[model], "completed_options", without_defaults)
    assert RunConfig.from_json(stored, "config.json").options == run.options


def test_split_of_a_stored_run_keeps_its_settings_where_defaults_change():
    own = {"options": config().options, "train": config().train, "source": "a trial", "trial": None}
    recorded = {
        **own,
        "options": recorded_options("gat", resolve_options("gat", "default")),
        "train": TrainConfig(lr=0.5).to_json(),
    }
    usual = {"model": "gat", "preset": "default", "options": resolve_options("gat", "default")}
    run = config(**usual, per_split={"0": recorded})
    found = RunConfig.from_json(run.to_json(), "config.json").for_split(0)
    assert (found.options, found.train) == (run.options, TrainConfig(lr=0.5))
    assert "input_dropout" not in recorded["options"]


def test_record_of_a_training_keeps_its_settings_where_defaults_change(monkeypatch):
    stored, read = config().to_json(), []
    names = [field.name for field in fields(TrainConfig)]
    assert sorted(completed_record(stored["train"])) == sorted(names)

    def noted(value, kind):
        read.append(value)
        return checked(value, kind)

    monkeypatch.setattr("argnn.settings.run_config.checked", noted)
    RunConfig.from_json(stored, "config.json")
    assert sorted(read[0]["train"]) == sorted(names)
    changed = ["adamw" if name == "optimizer" else getattr(TrainConfig(), name) for name in names]
    monkeypatch.setattr(TrainConfig.__init__, "__defaults__", tuple(changed))
    assert TrainConfig().optimizer == "adamw"
    assert TrainConfig.from_json(stored["train"]).optimizer == "adam"


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"gcn"}))
def test_new_option_is_recorded_where_it_changes_something(model):
    new = {"structure_features": True} if model == "argnn" else {"input_dropout": 0.3}
    options = resolve_options(model, "default", new)
    run = config(model=model, preset="default", options=options)
    assert new.items() <= run.to_json()["options"].items()
    assert RunConfig.from_json(run.to_json(), "config.json") == run


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.pop("seed"),
        lambda values: values.update(colour="red"),
        lambda values: values["train"].update(lr=-1.0),
        lambda values: values["train"].update(momentum=0.9),
        lambda values: values["options"].update(dropout=7.0),
        lambda values: values["options"].update(input_dropout=-0.5),
        lambda values: values.update(model="nonsense"),
    ],
)
def test_json_of_another_version_is_refused(change):
    values = config().to_json()
    change(values)
    with pytest.raises(RunError, match="config.json: not a configuration of this version"):
        RunConfig.from_json(values, "config.json")


def test_later_layers_win():
    options = resolve_options("argnn", "default", {"dropout": 0.1, "hops": 2}, {"dropout": 0.2})
    assert (options["dropout"], options["hops"], options["hidden_channels"]) == (0.2, 2, 128)
    train = resolve_train("argnn", "reference", 5, {"lr": 1}, {"epochs": 7})
    assert (train.lr, train.epochs, train.seed, train.clip_norm) == (1.0, 7, 5, 1.0)
    assert isinstance(train.lr, float)


@pytest.mark.parametrize(("preset", "layers"), [("paper", 3), ("reference", 3), ("default", 2)])
def test_sizes_of_a_preset(preset, layers):
    options = resolve_options("argnn", preset)
    assert (options["hidden_channels"], options["num_layers"]) == (128, layers)


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn"}))
def test_baseline_defaults(model):
    options, train = resolve_options(model, "default"), resolve_train(model, "default", 0)
    assert (options["hidden_channels"], options["num_layers"], options["dropout"]) == (64, 2, 0.5)
    assert (train.lr, train.weight_decay, train.epochs) == (0.01, 5e-4, 200)


@pytest.mark.parametrize("model", MODELS)
def test_complete_options_build_the_model(model):
    options = resolve_options(model, "default")
    assert options.keys() == model_class(model).option_types().keys()
    built = ModelSpec(model, options, None, 5, 3).build()
    assert (built.in_channels, built.out_channels) == (5, 3)


def test_checking_options_leaves_the_random_state_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    resolve_options("argnn", "default")
    assert torch.equal(torch.get_rng_state(), before)


def test_overrides_are_sorted_and_typed():
    found = parse_overrides(
        ["train.lr=1e-2", "dropout=0", "self_path=false", "metric_ceiling=null", "patience=3"],
        "argnn",
    )
    assert found.options == {"dropout": 0.0, "self_path": False, "metric_ceiling": None}
    assert found.train == {"lr": 0.01, "patience": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "must read key=value"),
        ("=3", "must read key=value"),
        ("dropuot=0.3", "unknown setting 'dropuot' of argnn; did you mean 'dropout'"),
        ("train.dropout=0.3", "did you mean 'model.dropout'"),
        ("modle.dropout=0.3", "did you mean 'model.dropout'"),
        ("seed=3", "set with --seed"),
        ("lr=abc", "lr must be a number .got 'abc'."),
        ("lr=nan", "lr must be a number"),
        ("lr=[1]", "lr must be a number"),
        ("lr=", "lr must be a number"),
        ("lr=true", "lr must be a number .got True."),
        ("lr=[", r"--set lr=\[: not YAML: "),
        ("epochs=1.5", "epochs must be a whole number"),
        ("self_path=3", "self_path must be true or false"),
        ("norm=3", "norm must be a text"),
        ("in_channels=3", "unknown setting 'in_channels'"),
    ],
)
def test_bad_override_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_overrides([text], "argnn")


def test_options_of_another_model_are_unknown():
    with pytest.raises(ConfigError, match="unknown setting 'metric_floor' of gcn"):
        parse_overrides(["metric_floor=0.1"], "gcn")


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("argnn", {"hidden_channels": -3}),
        ("argnn", {"num_layers": 0}),
        ("argnn", {"dropout": 1.0}),
        ("argnn", {"hops": 0}),
        ("argnn", {"hops": 2, "modulation": "scalar"}),
        ("argnn", {"metric_layers": 4}),
        ("argnn", {"metric_floor": -1.0}),
        ("argnn", {"metric": "fixed", "metric_value": -1.0}),
        ("argnn", {"direction": "up"}),
        ("argnn", {"modulation": "scalar", "attention": True, "neighbor_norm": "none"}),
        ("argnn", {"eps0": -0.5}),
        ("argnn", {"head": "conv"}),
        ("gcn", {"hidden_channels": 0}),
        ("gcn", {"dropout": 1.5}),
        ("mlp", {"num_layers": -1}),
        ("mlp", {"dropout": "high"}),
        ("mlp", {"colour": 1}),
    ],
)
def test_impossible_option_is_refused(model, options):
    with pytest.raises(ConfigError) as caught:
        resolve_options(model, "default", options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "train", [{"lr": -1.0}, {"epochs": 0}, {"ricci_weight": -0.1}, {"momentum": 0.9}]
)
def test_impossible_training_setting_is_refused(train):
    with pytest.raises(ConfigError):
        resolve_train("argnn", "default", 0, train)


def test_presets_belong_to_argnn():
    assert check_preset("argnn", "Paper") == "paper"
    assert check_preset("gcn", "default") == "default"
    with pytest.raises(ConfigError, match="preset 'paper' belongs to argnn"):
        check_preset("gcn", "paper")


def test_devices():
    assert resolve_device("cpu") == "cpu"
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ConfigError, match="--device must be one of auto, cpu, cuda"):
        resolve_device("tpu", "--device")


def test_a_gpu_with_a_number_is_the_current_one_while_it_trains(monkeypatch):
    entered = []
    monkeypatch.setattr("torch.cuda.device", lambda name: entered.append(name) or nullcontext())
    for name in ("cpu", "cuda", "cuda:1"):
        with current_device(name):
            assert on_cuda(name) == (name != "cpu")
    assert entered == ["cuda:1"]


@pytest.mark.parametrize(
    ("count", "name", "message"),
    [
        (0, "cuda", "device cuda: no CUDA device is available here"),
        (0, "cuda:1", "device cuda:1: no CUDA device is available here"),
        (1, "cuda:1", "device cuda:1: this machine has 1 GPU, cuda:0"),
        (2, "cuda:2", "device cuda:2: this machine has 2 GPUs, cuda:0 to cuda:1"),
        (2, "cuda:", "device must be one of auto, cpu, cuda, cuda:N, mps "),
        (2, "cuda:-1", "device must be one of"),
        (2, "mps", "device mps: no GPU of Apple is available here"),
    ],
)
def test_device_that_is_not_there(monkeypatch, count, name, message):
    monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    with pytest.raises(ConfigError, match=f"^{message}"):
        resolve_device(name)
    known = [f"cuda:{n}" for n in range(count)]
    assert [resolve_device(name) for name in known] == known
    assert resolve_device("auto") == ("cuda" if count else "cpu")


HEXADECIMAL = "0x" + "f" * 20


@pytest.mark.parametrize(
    "value",
    [
        "2024-99-99",
        "!!timestamp x",
        "9" * 5000,
        "0x" + "f" * 5000,
        "[" * 1000,
        "[0x" + "f" * 5000 + "]",
        HEXADECIMAL,
    ],
    ids=lambda text: text[:10],
)
@pytest.mark.parametrize("name", ["epochs", "lr", "hidden_channels"])
def test_values_that_a_parser_trips_over(name, value):
    if (name, value) == ("lr", HEXADECIMAL):
        assert parse_overrides([f"{name}={value}"], "gcn").train["lr"] == float(16**20 - 1)
        return
    with pytest.raises(ConfigError) as caught:
        parse_overrides([f"{name}={value}"], "gcn")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("changes", "patience"),
    [({}, 0), ({"epochs": 500}, 0), ({"epochs": 501}, 100), ({"epochs": 501, "patience": 0}, 0)],
)
def test_many_epochs_have_a_patience_unless_one_is_named(changes, patience):
    assert resolve_train("gcn", "default", 0, changes).patience == patience
