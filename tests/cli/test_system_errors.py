"""What the operating system refuses: one line that names the file, and exit code 2.

Every command, with every option that takes a path, meets every way in which a path can fail.
"""

import inspect
import json
from typing import get_args

import numpy as np
import pytest
import yaml
from typer.main import get_command

from argnn.cli import app
from forked import run_forked

from .system_errors import run_all

pytestmark = pytest.mark.slow

LONG = "x" * 300
GCN = ("--model=gcn", "--epochs=1")
MASKS = ("train_mask", "val_mask", "test_mask")

#: Command, option and the rest of the command; {} is the path, {run} and so on are good ones.
READING = {
    ("train", "data"): "{} --model=gcn",
    ("train", "--resume"): "--resume={}",
    ("train", "--settings"): "{graph} --settings={}",
    ("train", "--data-root"): "texas --model=gcn --data-root={}",
    ("bench", "experiments"): "{}",
    ("bench", "--data-root"): "node-small --data-root={}",
    ("tune", "data"): "{} --model=gcn",
    ("tune", "--data-root"): "texas --model=gcn --data-root={}",
    ("compare", "data"): "{} --models=gcn",
    ("compare", "--data-root"): "texas --models=gcn --data-root={}",
    ("ablate", "data"): "{} --study=neighbor-norm",
    ("ablate", "--data-root"): "texas --study=neighbor-norm --data-root={}",
    ("theory", "--data-root"): "generalization --full --data-root={}",
    ("table", "files"): "{}",
    ("predict", "run"): "{}",
    ("predict", "data"): "{run} {}",
    ("predict", "--pairs"): "{links} --pairs={}",
    ("predict", "--new-nodes"): "{run} --new-nodes={} --new-edges={edges}",
    ("predict", "--new-edges"): "{run} --new-nodes={nodes} --new-edges={}",
    ("predict", "--data-root"): "{run} texas --data-root={}",
    ("analyze", "run"): "{}",
    ("importances", "run"): "{}",
    ("figures", "runs"): "{}",
    ("figures", "--results"): "--results={}",
    ("export", "run"): "{}",
    ("inspect", "data"): "{}",
    ("inspect", "--data-root"): "texas --data-root={}",
    ("convert", "source"): "{} store",
    ("convert", "--data-root"): "texas store --data-root={}",
}
WRITING = {
    ("train", "--out"): "{graph} --model=gcn --epochs=1 --out={}",
    ("bench", "--out"): "{experiment} --workers=1 --out={}",
    ("compare", "--out"): "{graph} --models=gcn --epochs=1 --recipes=1 --workers=1 --out={}",
    ("ablate", "--out"): "{graph} --study=neighbor-norm --set=epochs=1 --split=0 --seeds=1 "
    "--workers=1 --out={}",
    ("ablate", "--plots"): "{graph} --study=neighbor-norm --set=epochs=1 --split=0 --seeds=1 "
    "--workers=1 --out=a --plots={}",
    ("theory", "--out"): "weights --out={}",
    ("theory", "--plots"): "weights --plots={}",
    ("importances", "--out"): "{run} --out={}",
    ("tune", "--storage"): "{graph} --model=gcn --epochs=1 --trials=1 --out=t --storage={}",
    ("tune", "--out"): "{graph} --model=gcn --epochs=1 --trials=1 --storage=s --out={}",
    ("table", "--out"): "{results} --out={}",
    ("table", "--diagram"): "{results} --diagram={}.png",
    ("perf", "--json"): "--nodes=20 --edges=40 --channels=4 --models=gcn --json={}",
    ("predict", "--out"): "{run} --out={}",
    ("analyze", "--out"): "{run} --out={}",
    ("analyze", "--tables"): "{run} --tables={}",
    ("figures", "--out"): "{run} --format=png --out={}",
    ("export", "--out"): "{run} --out={}",
    ("demo", "--out"): "--out={}",
    ("convert", "store"): "{graph} {}",
    ("generate", "store"): "{} --nodes=100 --edges=200 --features=2 --classes=2",
}
#: A folder where nothing is, is an answer of its own there.
NOT_REFUSED = {("datasets", "--data-root")}
#: The stored graph is read from the cache, and the folder of its raw files is not needed.
SAME_GRAPH = {("analyze", "--data-root"), ("figures", "--data-root"),
              ("importances", "--data-root")}  # fmt: skip


#: Options that take a path as a text: it may be a name as well, or something else.
TEXTS = ("data", "source", "experiments", "--data-root", "--settings", "--json")


def test_every_option_with_a_path_is_on_the_list():
    commands = get_command(app).commands
    found = set()
    for command in app.registered_commands:
        name = command.callback.__name__
        places = {parameter.name: parameter.opts[0] for parameter in commands[name].params}
        for argument, parameter in inspect.signature(command.callback).parameters.items():
            if argument not in places:  # the context of typer is no option
                continue
            kind = str(get_args(parameter.annotation)[0])
            if "Path" in kind or ("str" in kind and places[argument] in TEXTS):
                found.add((name, places[argument]))
    assert found == READING.keys() | WRITING.keys() | NOT_REFUSED | SAME_GRAPH


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Runs, results and graphs that can be used."""
    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    split = (np.arange(40)[:, None] // 2) % 3 == np.arange(3)
    fields = {
        "x": np.eye(2)[y] + rng.normal(size=(40, 2)),
        "edge_index": rng.integers(0, 40, size=(2, 160)),
        "y": y,
        **{name: split[:, [place]] for place, name in enumerate(MASKS)},
    }
    np.savez(folder / "graph.npz", **fields)
    experiment = {
        "name": "mine",
        "title": "mine",
        "task": "node",
        "data": ["graph.npz"],
        "methods": [{"model": "gcn", "set": ["epochs=1"]}],
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(experiment))
    paths = {
        "graph": folder / "graph.npz",
        "experiment": folder / "mine.yaml",
        "run": folder / "run",
        "links": folder / "links",
        "results": folder / "results.jsonl",
        "nodes": folder / "nodes.npz",
        "edges": folder / "edges.npz",
    }
    np.savez(paths["nodes"], x=np.zeros((1, 2)))
    np.savez(paths["edges"], edge_index=np.array([[40], [0]]))
    graph = str(paths["graph"])
    tiny = ["train", graph, "--set=hidden_channels=4", "--epochs=2", "--preset=reference"]
    cases = [
        {"arguments": [*tiny, "--out=../run"]},
        {"arguments": ["train", graph, *GCN, "--task=link", "--out=../links"]},
        {"arguments": ["bench", "../mine.yaml", "--workers=1", "--out=../results.jsonl"]},
    ]
    outcomes = driven(cases, folder)
    assert [outcome["code"] for outcome in outcomes] == [0, 0, 0], outcomes
    return {name: str(path) for name, path in paths.items()}


def driven(cases, folder):
    """What became of each case."""
    here = folder / "here"
    here.mkdir()
    environment = {"ARGNN_OFFLINE": "1", "ARGNN_CACHE": str(folder / "cache"), "HOME": str(folder)}
    done, out, errors = run_forked(run_all, cases, cwd=here, ARGNN_DATA=None, **environment)
    assert done == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def check(cases, folder, codes=(2,)):
    """Every case is refused with one line; all that are not are shown together.

    Args:
        cases: The cases.
        folder: Where they run.
        codes: Exit codes that are right; 0 means that it worked, 1 that a split failed.
    """
    bad = []
    for case, outcome in zip(cases, driven(cases, folder), strict=True):
        lines = outcome["text"].splitlines()
        refused = (
            outcome["code"] in codes
            and len(lines) == (outcome["code"] > 0)
            and all(line.startswith("argnn: error: ") and len(line) < 1000 for line in lines)
        )
        if not refused:
            bad.append((" ".join(case["arguments"])[:200], case.get("room"), outcome))
    assert not bad, "\n\n".join(f"{a} {b}\n{c['code']}\n{c['text'][-1500:]}" for a, b, c in bad)


def case(place, rest, path, good, **more):
    words = [word.format(path, **good) for word in rest.split()]
    return {"arguments": [place[0], *words], **more}


#: The first two take half a minute.
KINDS = [
    ("closed", "below a file"),
    pytest.param(("long", "read-only"), marks=pytest.mark.torture),
]


def folders(tmp_path):
    """Paths that fail, each in its own way."""
    (tmp_path / "file").touch()
    for name, mode in (("closed", 0), ("read-only", 0o555)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inside").mkdir()
        (tmp_path / name).chmod(mode)
    return {
        "long": LONG,
        "below a file": str(tmp_path / "file" / "a"),
        "closed": str(tmp_path / "closed" / "inside" / "a"),
        "read-only": str(tmp_path / "read-only" / "a"),
    }


@pytest.mark.parametrize("kinds", KINDS, ids=" and ".join)
def test_paths_that_cannot_be_used(tmp_path, good, kinds):
    paths = folders(tmp_path)
    check(
        [
            case(*item, paths[kind], good, without_rights=True)
            for item in [*READING.items(), *WRITING.items()]
            for kind in kinds
        ],
        tmp_path,
    )


@pytest.mark.parametrize("room", [0, 3000])
def test_full_disk(tmp_path, good, room):
    """With some room small files are written, and the first large one is not."""
    cases = [case(*item, str(tmp_path / "out"), good, room=room) for item in WRITING.items()]
    check(cases, tmp_path, codes=(0, 1, 2) if room else (2,))
