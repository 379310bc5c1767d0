"""Files and words made to do harm; ``crafted.py`` and ``bad_files.py`` have those about graphs."""

from collections.abc import Callable
from pathlib import Path

from tests.cli.bad_files import CORPUS

from .crafted import CRAFTED, alias_bomb
from .world import SLOW, TASKS

_LONG, _DEEP = "n" * 5000, "[" * 100_000
_ROW = '{"task": "node", "data": %s, "model": "gcn", "cell": "a", "test": {"f1": %s}}\n'


def _written(name: str, content: str | bytes, command: str) -> Callable[[Path], list[str]]:
    """A case that writes one file."""

    def write(here: Path) -> list[str]:
        path = here / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return command.format(name).split()

    return write


def _from_corpus(name: str) -> Callable[[Path], list[str]]:
    def write(here: Path) -> list[str]:
        root = here / "corpus"
        root.mkdir()
        return ["inspect", str(CORPUS[name][0](root))]

    return write


TEXTS = {
    "alias bomb": alias_bomb(),
    "deep": _DEEP,
    "5,000 digits": "9" * 5000,
    "date that is none": "epochs: 2024-99-99\nformat: 1",
    "object": "!!python/object/apply:os.system ['touch hacked']",
    "merge of itself": "a: &a\n  <<: *a\n",
    "NUL": "a: \0",
    "nothing": "",
    "a word": "word",
    "bytes": "\udcff\ufffe",
}

FILES: dict[str, Callable[[Path], list[str]]] = {
    **CRAFTED,
    **{f"corpus, {name}": _from_corpus(name) for name in CORPUS},
    **{
        f"{kind} of {what}": _written(file, text.encode(errors="surrogateescape"), command)
        for what, text in TEXTS.items()
        for kind, file, command in (
            ("experiment", "bad.yaml", "bench {} --workers=1"),
            ("settings", "bad.yaml", "train small.npz --epochs=1 --out=new --settings={}"),
            ("results", "bad.jsonl", "table {} --json"),
            ("results to continue", "bad.jsonl", "bench mine.yaml --workers=1 --out={}"),
            ("journal", "bad.journal", "tune small.npz --model=gcn --trials=1 --storage={}"),
            ("configuration", "run/config.json", "train --resume run"),
            ("result", "run/split-0/result.json", "train --resume run"),
            ("model", "run/split-0/model/model.json", "predict run"),
            ("weights", "run/split-0/model/model.safetensors", "predict run"),
        )
    },
    **{
        f"results with {what}": _written("odd.jsonl", _ROW % (data, score), "table {} --json")
        for what, data, score in (
            ("a list for a name", "[]", "1"),
            ("an object for a score", '"a"', "{}"),
            ("a word for a score", '"a"', '"b"'),
            ("infinity", '"a"', "1e999"),
            ("no number", '"a"', "NaN"),
            ("5,000 digits", '"a"', "9" * 5000),
            ("a deep list", '"a"', "[" * 50_000 + "]" * 50_000),
        )
    },
}

COMMANDS: dict[str, list[str]] = {
    **{
        f"{name}: a name of 5,000 letters for the {kind}": TASKS[name]
        .format(i=_LONG if kind == "input" else ".", o=f"{_LONG}/" if kind == "folder" else _LONG)
        .split()
        for name in TASKS
        for kind in ("input", "output", "folder")
        if name not in SLOW and ("{i}" if kind == "input" else "{o}") in TASKS[name]
    },
    **{
        f"--set {value[:20]}": ["train", "small.npz", "--model=gcn", "--out=new", "--set", value]
        for value in (
            "train.lr=2024-99-99",
            "lr=" + "9" * 5000,
            "lr=" + _DEEP[:50_000],
            "lr=&a [*a, *a]",
            "lr=!!python/object/apply:os.system ['touch hacked']",
            "lr=1e999",
            "lr=nan",
            "epochs=1e9999",
            "hidden_channels=99999999999",
            "hidden_channels=-1",
            "=" * 4000,
            "a.b.c.d=1",
            "\x1b[2J=1",
            "lr=\n\n- a",
        )
    },
    "--split of 5,000 digits": ["train", "small.npz", "--out=new", "--split", "9" * 5000],
    "--ratio of words": ["train", "small.npz", "--task=link", "--out=new", "--ratio", "a/b/c"],
    "--seed of 30 digits": ["train", "small.npz", "--out=new", "--seed", "9" * 30],
}
