"""Help, what is said about wrong words, and how much a command says."""

import json
import re
import shlex

import pytest
import typer

from argnn.cli.app import EXAMPLE, app

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_of_itself(argnn, name):
    done = argnn(name, "--help")
    assert (done.code, done.err) == (0, "")
    command = COMMANDS[name]
    assert command.epilog.startswith(f"{EXAMPLE}argnn {name}")
    assert "argnn " + name in done.out
    with command.make_context(name, shlex.split(command.epilog)[3:]) as context:
        assert context.params.keys() >= {"quiet", "verbose"}
    for option in command.params:
        assert option.name in ("quiet", "verbose") or option.help, option.name
        for word in option.opts if option.param_type_name == "option" else ():
            assert re.search(rf"{word}\b", done.out), word


@pytest.mark.parametrize("command", ["train", "tune", "compare"])
def test_options_are_in_groups(argnn, command):
    out = argnn(command, "--help").out
    for heading in ("Training", "Links", "Batches", "Graph and columns", "Machine", "Output"):
        assert f"─ {heading} ─" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'?"),
        ("train mixed --epoch 3", "No such option: --epoch; did you mean --epochs?"),
        ("train mixed --zzz", "No such option: --zzz; see: argnn train --help"),
        ("predict", "Missing argument 'run'; for example: argnn predict runs/cora-argnn"),
        ("generate s --nodes=9", "Missing option '--edges'; for example: argnn generate my_store"),
        ("-v", "Missing command; see: argnn --help"),
    ],
)
def test_wrong_words_are_answered_with_what_was_meant(refused, words, message):
    refused(*words.split(), message=message)


TRAIN = ("train", "mixed", "--model=gcn", "--epochs=2", "--workers=1")


def test_quiet_leaves_results(argnn):
    usual, before = argnn(*TRAIN, "--out=a"), argnn("-q", *TRAIN, "--out=b")
    after = argnn(*TRAIN, "--quiet", "--out=c")
    assert (usual.code, before.code, after.code) == (0, 0, 0)
    assert "Settings: " in usual.out
    assert "split 0: test " in usual.out
    shown = usual.out[usual.out.index("mixed, gcn, preset") :]
    assert before.out == shown.replace("Run folder: a", "Run folder: b")
    assert after.out == shown.replace("Run folder: a", "Run folder: c")
    assert before.err == after.err == ""


def test_quiet_hides_warnings_of_the_package_but_not_errors(argnn, caplog):
    assert argnn("-q", *TRAIN, "--out=a").code == 0
    assert caplog.text == ""
    done = argnn("-q", *TRAIN, "--out=a")
    assert done.code == 2
    assert done.err.startswith("argnn: error: a: ")


@pytest.mark.parametrize("where", ["before", "after"])
def test_verbose_says_settings_device_and_time_and_json_stays_whole(argnn, caplog, where):
    words = ("-v", *TRAIN) if where == "before" else (*TRAIN, "--verbose")
    done = argnn(*words, "--json", "--out=a")
    assert json.loads(done.out)["run"] == "a"
    assert '"epochs": 2' in caplog.text
    assert re.search(r"--device auto takes (cpu|cuda)", caplog.text)
    assert re.search(r"mixed: \d+ nodes, read in [\d.]+ s", caplog.text)
    assert re.search(r"[\d.]+ s in all", caplog.text)
    caplog.clear()
    argnn("models")
    assert caplog.text == ""  # the next command says as much as usual


def test_run_goes_on_quietly(argnn):
    assert argnn(*TRAIN, "--out=a").code == 0
    assert argnn("train", "--resume=a", "-q").code == 0
