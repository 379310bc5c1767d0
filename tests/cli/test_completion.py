"""What a shell offers after Tab: the protocol by which a completion script asks the program."""

import pytest

import packaged
from argnn.data import DATASETS
from argnn.nn import DECODERS, MODELS, PRESETS
from argnn.train import SELECTIONS


@pytest.fixture
def offered(argnn, monkeypatch):
    """The words that bash gets for the last word of a line."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_ARGNN_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        done = argnn()
        assert (done.code, done.err) == (0, "")
        return done.out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("argnn tr", ["train"]),
        ("argnn train ", DATASETS),
        ("argnn convert mix", ["mixed"]),
        ("argnn train x --model ", MODELS),
        ("argnn compare x --models gcn,ga", ["gcn,gat"]),
        ("argnn train x --task ", SELECTIONS),
        ("argnn tune x --preset ", PRESETS),
        ("argnn bench ", packaged.NAMES),
        ("argnn ablate --study ", packaged.STUDY_NAMES),
        ("argnn train x --decoder ", DECODERS),
        ("argnn train x --deci", ["--decimal"]),
        ("argnn train x --set train.l", ["train.lr=", "train.layers_weight_decay="]),
        ("argnn train x --set lr", ["lr="]),
        ("argnn train x --model gat --set model.h", ["model.hidden_channels=", "model.heads="]),
        ("argnn predict run --device cp", ["cpu"]),
        ("argnn export run --format ", ["pt2", "onnx"]),
        ("argnn generate store --features ", []),
        ("argnn train my_fol", []),  # then bash offers files
    ],
)
def test_values(offered, line, words):
    assert sorted(offered(line)) == sorted(words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(argnn, monkeypatch, shell):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = argnn("--show-completion", shell)
    assert done.code == 0
    assert f"_ARGNN_COMPLETE=complete_{shell}" in done.out


def test_installing_writes_into_the_home_of_the_user(argnn, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert argnn("--install-completion", "bash").code == 0
    assert "complete_bash" in (tmp_path / ".bash_completions" / "argnn.sh").read_text()
    assert "argnn.sh" in (tmp_path / ".bashrc").read_text()
