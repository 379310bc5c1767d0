"""The YAML of a chosen configuration: what is written comes back, and nothing else is taken."""

from contextlib import suppress
from dataclasses import asdict, replace

import pytest
import yaml

from argnn.data.import_options import Columns
from argnn.errors import ConfigError, RunError
from argnn.settings.run_config import LinkConfig
from argnn.settings.tuned import (
    TrialCounts,
    TunedSettings,
    ValidationScore,
    read_tuned,
    write_tuned,
)

TUNED = TunedSettings(
    data="cora",
    task="node",
    directed=False,
    row_normalize=False,
    model="gcn",
    preset="default",
    options={"hidden_channels": 32, "dropout": 0.2},
    train={"lr": 0.002, "weight_decay": 5e-05, "clip_norm": None},
    source="trial 3, best of 20: by hand",
    validation=ValidationScore("accuracy", 0.8802, [0, 1, 2], 0),
    trials=TrialCounts(20, 12, 7, 1),
)
LINK = replace(
    TUNED,
    task="link",
    model="argnn",
    options={"metric": "structure", "self_path": False},
    link=LinkConfig("85/5/10", spanning_forest=False, decoder="dot"),
    columns=Columns(features="degree", drop=("name",)),
)


@pytest.mark.parametrize("tuned", [TUNED, LINK], ids=["node", "link"])
def test_round_trip(tmp_path, tuned):
    path = tmp_path / "new" / "tuned.yaml"
    write_tuned(path, tuned)
    assert read_tuned(path) == tuned
    again = tmp_path / "again.yaml"
    write_tuned(again, read_tuned(path))
    assert again.read_bytes() == path.read_bytes()


def test_plain_yaml_for_other_programs(tmp_path):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, TUNED)
    values = yaml.safe_load(path.read_text())
    assert values.pop("format") == 1
    assert len(values.pop("digest")) == 64
    assert values == {name: value for name, value in asdict(TUNED).items() if value is not None}


def test_numbers_as_people_write_them(tmp_path):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, TUNED)
    text = path.read_text().replace("lr: 0.002", "lr: 3e-3")  # a text for YAML
    path.write_text(text)
    with pytest.raises(ConfigError, match="if you changed it, delete the line 'digest'"):
        read_tuned(path)
    path.write_text(text[: text.index("digest: ")])
    assert read_tuned(path).train["lr"] == 0.003


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, LINK)
    content = path.read_bytes()
    for place in range(0, 8 * len(content), 7):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with suppress(ConfigError):
            assert read_tuned(path) == LINK  # a comment or a space


def test_names_as_people_write_them(tmp_path):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, replace(TUNED, model="GCN", preset="Default", task="Node"))
    assert read_tuned(path) == TUNED


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, TUNED)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        write_tuned(path, LINK)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


CHANGES = [
    ({"format": 2}, "format must be 1 for this version of argnn (got 2)"),
    ({"format": True}, "format must be 1"),
    ({"format": None}, "format must be 1"),
    ({"optoins": {}}, "unknown key 'optoins'; did you mean 'options'"),
    ({3: {}}, "must be a mapping of names to values (key 3 is no text)"),
    ({"data": 3}, "data must be a text (got 3)"),
    ({"source": ""}, "source must be a text (got '')"),
    ({"directed": "no"}, "directed must be true or false (got 'no')"),
    ({"directed": 0}, "directed must be true or false (got 0)"),
    ({"task": "edges"}, "unknown task 'edges'"),
    ({"model": "gnc"}, "unknown model 'gnc'; did you mean 'gcn'"),
    ({"model": None}, "model must be a text (got None)"),
    ({"preset": "paper"}, "preset 'paper' belongs to argnn"),
    ({"options": [1]}, "options must be a mapping of names to values (got [1])"),
    ({"options": None}, "options must be a mapping"),
    ({"options": {1: 2}}, "options must be a mapping of names"),
    ({"options": {"droput": 0.1}}, "unknown option 'droput' of gcn; did you mean 'dropout'"),
    ({"options": {"dropout": "much"}}, "dropout must be a number (got 'much')"),
    ({"options": {"dropout": 1.5}}, "dropout must be in [0, 1)"),
    ({"train": {"lr": -1}}, "lr must be positive"),
    ({"train": {"rl": 1}}, "unknown training setting 'rl'"),
    ({"train": {"seed": 1}}, "train must not name a seed"),
    ({"validation": 0.9}, "validation must be a mapping of names to values (got 0.9)"),
    ({"validation": {"name": "accuracy"}}, "validation has no 'score'"),
    ({"validation": {"colour": 1}}, "validation: unknown key 'colour'; choices: name, score"),
    ({"trials": {"asked": 1}}, "trials has no 'finished'"),
    (
        {"trials": dict.fromkeys(("asked", "finished", "pruned", "failed"), -1)},
        "trials.asked must be",
    ),
    ({"link": "85/5/10"}, "link must be a mapping"),
    ({"link": {"ratio": "85/5/10"}}, "link has no 'spanning_forest'"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=lambda value: str(value)[:40])
def test_changed_file_is_refused_by_name_and_key(tmp_path, change, message):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, TUNED)
    values = yaml.safe_load(path.read_text())
    del values["digest"]
    path.write_text(yaml.safe_dump({**values, **change}))
    with pytest.raises(ConfigError) as refused:
        read_tuned(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("key", ["format", *asdict(TUNED)])
def test_missing_key_is_named(tmp_path, key):
    path = tmp_path / "tuned.yaml"
    write_tuned(path, LINK)
    values = yaml.safe_load(path.read_text())
    del values[key], values["digest"]
    path.write_text(yaml.safe_dump(values))
    if key in ("link", "columns"):
        assert getattr(read_tuned(path), key) is None
        return
    with pytest.raises(ConfigError, match=f"has no '{key}'"):
        read_tuned(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be a mapping of names to values (got None)"),
        (b"- format: 1", "must be a mapping of names to values (got [{'format': 1}])"),
        (b"format: [1", "not YAML"),
        (b"format: \xff\xfe", "not YAML"),
        (b"\x00", "not YAML"),
        (b"!!python/object/apply:os.system ['touch hacked']", "not YAML"),
        (b"[" * 5000, "not YAML"),
    ],
    ids=["empty", "list", "unclosed", "bytes", "nul", "hostile", "deep"],
)
def test_other_files(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tuned.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_tuned(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == [path]


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.yaml"):
        read_tuned(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="not a file"):
        read_tuned(tmp_path)


def test_required_values(tmp_path):
    path = tmp_path / "tuned.yaml"
    TUNED.require(path, {"model": "gcn", "directed": False})
    with pytest.raises(ConfigError, match=r"tuned\.yaml: model is gcn there, not argnn"):
        TUNED.require(path, {"task": "node", "model": "argnn"})
    with pytest.raises(ConfigError, match="directed is false there, not true"):
        TUNED.require(path, {"directed": True})
