"""Good files of every kind, and what every command makes when nobody disturbs it."""

import importlib
import json
import os
import re
import shutil
import signal
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from .process import Place

#: Commands with ``{i}`` for the folder of inputs and ``{o}`` for that of outputs.
TASKS = {
    "train": "train {i}/small.npz --preset=paper --set=hidden_channels=8 --split=0,1 --epochs=20 "
    "--checkpoint-every=4 --workers=1 --out={o}run",
    "train link": "train {i}/csv --task=link --model=gcn --epochs=40 --checkpoint-every=4 "
    "--out={o}run",
    "train curvature": "train {i}/small.npz --model=curvdrop --epochs=10 --checkpoint-every=2 "
    "--out={o}run",
    "tune": "tune {i}/small.npz --model=gcn --trials=4 --epochs=4 --split=0 --json "
    "--storage={o}search.journal --out={o}tuned.yaml",
    "bench": "bench {i}/mine.yaml --workers=1 --json --out={o}rows.jsonl",
    "predict": "predict {i}/run --out={o}classes.csv",
    "analyze": "analyze {i}/run --out={o}page.html --tables={o}tables",
    "figures": "figures {i}/run --format=svg --out={o}figures",
    "export": "export {i}/run --out={o}model.pt2",
    "convert": "convert {i}/csv {o}store",
    "generate": "generate {o}store --nodes=400 --edges=1600 --seed=3",
    "compare": "compare {i}/small.npz --models=gcn --epochs=2 --recipes=1 --workers=1 --split=0 "
    "--out={o}compared",
    "table": "table {i}/rows.jsonl --out={o}table.md",
    "inspect": "inspect {i}/graphml.graphml --json",
    "datasets": "datasets --json",
    "models": "models --json",
    "train workers": "train {i}/small.npz --model=gcn --split=all --epochs=40 --workers=2 "
    "--checkpoint-every=4 --out={o}run",
    "perf": "perf --nodes=200 --edges=800 --channels=8 --layers=1 --repeats=2 --budget=1 "
    "--models=gcn --json={o}perf.json",
    "demo": "demo --out={o}demo",
}
#: These start Python anew or train for a minute.
SLOW = ("train workers", "perf", "demo")
QUICK = tuple(name for name in TASKS if name not in SLOW)
#: Files that grow; all others are there as a whole, or not at all.
GROWING = (".jsonl", ".journal", "scores.json")

BENCHMARK = "wisconsin"
READ_BENCHMARK = f"inspect {BENCHMARK} --data-root=data --json"
_SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
_MEASURED = re.compile(
    rb'"(seconds|peak_memory_mib|finished|resumed_from_epoch|digest|sha256|checksum)":'
    rb' ?("[^"]*"|[^,}\n\]]*)'
)


def words(name: str, inputs: object, out: str = "") -> list[str]:
    """The words of a command."""
    return TASKS[name].format(i=inputs, o=out).split()


def essence(content: bytes) -> bytes:
    """Content without what differs between two runs that nobody disturbed."""
    return b"\n".join(
        sorted(line.rstrip(b",") for line in _MEASURED.sub(b"", content).split(b"\n"))
    )


def contents(folder: Path, skipped: str | None = None) -> dict[str, bytes]:
    """The essence of every file below a folder; hidden ones and logs are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not path.is_file() or hidden or name == skipped or path.name == "log.txt":
            continue
        if path.suffix == ".pt2":  # holds dates
            found[name] = "\n".join(sorted(zipfile.ZipFile(path).namelist())).encode()
        elif path.name == "perf.json":  # holds times
            found[name] = "\n".join(sorted(json.loads(path.read_text()))).encode()
        elif path.suffix == ".journal":  # holds random names of workers
            found[name] = b""
        else:
            found[name] = essence(path.read_bytes())
    return found


@dataclass(frozen=True)
class Whole:
    """What a command makes when nobody disturbs it."""

    place: Place
    files: dict[str, bytes]
    seconds: float


class World:
    """Inputs and undisturbed results, made once; those of the first ``count`` commands at once."""

    def __init__(self, root: Path, count: int) -> None:
        root.chmod(0o755)  # another user is going to read it
        self.root, self._known = root, {}
        self.inputs = Place(root / "inputs")
        write_inputs(self.inputs.here)
        for name, folder in (("train", "run"), ("train link", "links")):
            shutil.copytree(self.whole(name).place.here / "run", self.inputs.here / folder)
        shutil.copy(self.whole("bench").place.here / "rows.jsonl", self.inputs.here)
        self.half = Place(root / "half")
        self._stop_halfway()
        self.benchmark = Place(root / "benchmark")
        self._copy_benchmark()
        for name in QUICK[:count]:
            self.whole(name)

    def whole(self, name: str) -> Whole:
        """What a command makes undisturbed, and its seconds."""
        if name not in self._known:
            place = Place(self.root / f"whole-{os.getpid()}" / name.replace(" ", "-"))
            began = time.perf_counter()
            ended = place.run(words(name, self.inputs.here))
            seconds = time.perf_counter() - began
            if ended.kind != "done":
                raise RuntimeError(f"{name}: undisturbed, it ends with {ended}")
            # Another user may not be allowed to read Python's own files.
            for module in (place.root / "modules").read_text().split():
                if "__main__" not in module and "__mp_main__" not in module:
                    with suppress(ImportError):
                        importlib.import_module(module)
            self._known[name] = Whole(place, contents(place.here), seconds)
        return self._known[name]

    def _stop_halfway(self) -> None:
        pid = self.half.begin(words("train", self.inputs.here))
        while not (self.half.here / "run/split-1/checkpoint.safetensors").exists():
            time.sleep(0.001)
        os.kill(pid, signal.SIGKILL)
        self.half.end(pid)

    def _copy_benchmark(self) -> None:
        """A benchmark graph, where there is one, and the cache that a command made of it."""
        source = Path(os.environ.get("ARGNN_DATA") or _SHARED) / BENCHMARK
        self.has_benchmark = source.is_dir()
        if self.has_benchmark:
            shutil.copytree(source, self.benchmark.here / "data" / BENCHMARK)
            for path in self.benchmark.here.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
            self.benchmark.run(READ_BENCHMARK.split())


def write_inputs(folder: Path) -> None:
    """One small graph in every format, and the other files that commands read."""
    rng = np.random.default_rng(0)
    y, ends = np.arange(90) % 3, rng.integers(0, 90, size=(2, 300))
    x = np.round(np.eye(3)[y] + rng.normal(size=(90, 3)), 4)
    order = np.stack([rng.permutation(90) for _ in range(3)], axis=1)
    masks = {"train": order < 40, "val": (order >= 40) & (order < 65), "test": order >= 65}
    np.savez(
        folder / "small.npz",
        x=x,
        y=y,
        edge_index=ends,
        **{f"{name}_mask": mask for name, mask in masks.items()},
    )
    part = np.select([mask[:, 0] for mask in masks.values()], list(masks), default="")
    rows = [f"n{i},{a},{b},{c},c{y[i]},{part[i]}" for i, (a, b, c) in enumerate(x)]
    pairs = [f"n{source},n{target}" for source, target in ends.T]
    (folder / "csv").mkdir()
    (folder / "csv/nodes.csv").write_text("\n".join(["id,a,b,c,label,split", *rows, ""]))
    (folder / "csv/edges.csv").write_text("\n".join(["source,target", *pairs, ""]))
    (folder / "pairs.csv").write_text("\n".join(["source,target", *pairs[:20], ""]))
    (folder / "list.txt").write_text("\n".join(["# edges", *pairs, ""]).replace(",", "\t"))
    write_parquet(folder / "parquet", folder / "csv")
    keys = '<key id="k" for="node" attr.name="a" attr.type="double"/>'
    nodes = [f'<node id="n{i}"><data key="k">{x[i, 0]}</data></node>' for i in range(90)]
    edges = [f'<edge source="n{source}" target="n{target}"/>' for source, target in ends.T]
    graph = f'{keys}<graph edgedefault="undirected">{"".join(nodes + edges)}</graph>'
    (folder / "graphml.graphml").write_text(f"<graphml>{graph}</graphml>")
    experiment = {
        "name": "mine",
        "title": "Two models",
        "task": "node",
        "data": [str(folder / "small.npz")],
        "methods": [{"model": name, "set": ["epochs=10"]} for name in ("gcn", "mlp")],
        "splits": [0],
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(experiment))


def write_parquet(folder: Path, tables: Path) -> None:
    """The CSV tables once more."""
    from pyarrow import csv, parquet

    folder.mkdir()
    for name in ("nodes", "edges"):
        parquet.write_table(csv.read_csv(tables / f"{name}.csv"), folder / f"{name}.parquet")
