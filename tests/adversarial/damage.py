"""Files that commands read, the commands that read them, and ways to damage a file."""

import random
import re
from dataclasses import dataclass

from .process import Place
from .world import READ_BENCHMARK, TASKS, World

_RESUME = "train --resume run --json"
_RUN = (
    _RESUME,
    "predict run --out=classes.csv",
    "analyze run --out=page.html",
    "figures run --format=svg --out=figures",
    "export run --out=model.pt2",
)
_GRAPH = ("inspect {} --json", "train {} --model=mlp --features=degree --epochs=1 --json --out=new")


@dataclass(frozen=True)
class Target:
    """Files of one kind.

    Attributes:
        source: Whose files: a command, or ``inputs``, ``benchmark``, ``half`` for a killed run.
        files: Patterns of the files to damage, below the place.
        readers: Commands that read them.
    """

    source: str
    files: tuple[str, ...]
    readers: tuple[str, ...]

    def copied(self, world: World, place: Place) -> None:
        """Put undamaged files into a place."""
        known = {"inputs": world.inputs, "half": world.half, "benchmark": world.benchmark}
        source = known.get(self.source) or world.whole(self.source).place
        source.copy(place.root)


#: What argnn wrote itself: a flipped bit is noticed, or changes nothing.
WRITTEN = {
    "run": Target("train", ("here/run/**/*",), _RUN),
    "stopped run": Target("half", ("here/run/**/*",), (_RESUME,)),
    "run of links": Target(
        "train link",
        ("here/run/**/*",),
        (_RESUME, "predict run --pairs={i}/pairs.csv --out=classes.csv"),
    ),
    "results": Target("bench", ("here/rows.jsonl",), ("table rows.jsonl --json", TASKS["bench"])),
    "journal": Target("tune", ("here/search.journal",), (TASKS["tune"],)),
    "tuned settings": Target(
        "tune",
        ("here/tuned.yaml",),
        ("train {i}/small.npz --settings=tuned.yaml --epochs=5 --json --out=new",),
    ),
    "benchmark": Target("benchmark", ("here/data/**/*", "cache/**/*"), (READ_BENCHMARK,)),
    "cached curvature": Target(
        "train curvature",
        ("cache/**/*",),
        (TASKS["train curvature"].replace("{o}run", "new") + " --json",),
    ),
}

#: What others write: anything may come, and is read or refused.
FOREIGN = {
    "CSV": Target("inputs", ("here/csv/*",), tuple(c.format("csv") for c in _GRAPH)),
    "Parquet": Target("inputs", ("here/parquet/*",), tuple(c.format("parquet") for c in _GRAPH)),
    "npz": Target("inputs", ("here/small.npz",), tuple(c.format("small.npz") for c in _GRAPH)),
    "GraphML": Target("inputs", ("here/*.graphml",), (_GRAPH[0].format("graphml.graphml"),)),
    "edge list": Target("inputs", ("here/list.txt",), (_GRAPH[0].format("list.txt"),)),
    "pairs": Target(
        "inputs", ("here/pairs.csv",), ("predict links --pairs=pairs.csv --out=classes.csv",)
    ),
    "experiment": Target("inputs", ("here/mine.yaml",), ("bench mine.yaml --workers=1 --json",)),
}
_TOKENS = (
    b"\0 \n , \" ' < > & - -1 1e999 nan inf null true [] {} [ { : * & ! % @ 99999999999999999999 "
    b"0x7fffffff \xff\xfe \xc3\x28 2024-99-99 &a *a <<: !!python/object:os.system ../../ "
).split(b" ")


def flipped(content: bytes, rng: random.Random) -> bytes:
    """One bit is another."""
    damaged = bytearray(content)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Some bytes are others, in one to five places."""
    for _ in range(rng.randint(1, 5)):
        start, length = rng.randrange(len(content) + 1), rng.choice((0, 1, 4, 40, 400))
        cut = content[start : start + length]
        new = rng.choice(
            (
                rng.choice(_TOKENS),
                rng.randbytes(max(len(cut), 1)),
                cut * rng.choice((0, 2, 50)),
                rng.choice(_TOKENS) * rng.choice((1, 3, 5000)),
                content[: rng.randrange(1 + len(content))][-400:],
            )
        )
        content = content[:start] + new + content[start + length :]
    # Another number in a text: lengths, counts and types that do not fit.
    numbers = list(re.finditer(rb"\d+", content[:100_000]))
    if numbers and rng.random() < 0.5:
        found = rng.choice(numbers)
        new = rng.choice((b"0", b"-1", b"1e9", b"4294967296", b"9" * 5000, b"[]", b'"a"', b"null"))
        content = content[: found.start()] + new + content[found.end() :]
    return content if rng.random() < 0.9 else content[: rng.randrange(len(content) + 1)]
