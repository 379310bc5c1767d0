"""Measure training in parts: time, memory, accuracy, and what processes send each other.

    python scripts/measure_scale.py sizes STORE STORE ...      # of argnn generate, small to large
    python scripts/measure_scale.py accuracy STORE             # clusters beside the whole graph
    python scripts/measure_scale.py graphs pubmed FOLDER/fb_amherst.npz --parts 16
    python scripts/measure_scale.py ranks STORE                # 1, 2 and 4 processes
    python scripts/measure_scale.py cuts cora pubmed STORE     # streaming partition beside METIS
    python scripts/measure_scale.py papers                     # after sizes and ranks

Each one writes its file in docs/results. Every measurement has a process of its own, so that peaks
of memory are its own. Processor time is that of all threads: other work on the machine hardly
changes it, while seconds on the clock may be up to three times too long.
"""

import argparse
import csv
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import distributed as dist

from argnn.data import adjacency_of, load
from argnn.data.adjacency import Adjacency
from argnn.data.partition import Partition, partition
from argnn.folders import cache_root
from argnn.runs.batch_sources import RankBatches, batch_source
from argnn.runs.machine import peak_mib, versions
from argnn.runs.prepare import prepare
from argnn.runs.problems import pose_problem
from argnn.runs.ranks import is_leader, meeting, next_order, rank_count
from argnn.runs.run import run_cell
from argnn.runs.summary import interval_half_width
from argnn.runs.train_one import train_one
from argnn.settings.options import seeded
from argnn.settings.resolve import Request
from argnn.train import EpochRecord, fit

RESULTS = Path(__file__).parent.parent / "docs" / "results"
#: Nodes of one cluster and clusters of one batch where sizes are compared.
CLUSTER, PER_BATCH = 2_000, 10
Row = dict[str, Any]


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def settings(train: Sequence[str] = (), channels: int = 64) -> tuple[str, ...]:
    """Two layers without dropout of the input; no patience, so that all train equally long."""
    size = (f"hidden_channels={channels}", "num_layers=2", "patience=0")
    return (*size, *train)


def in_clusters(parts: int, per_batch: int) -> tuple[str, ...]:
    """The settings of so many clusters."""
    return ("batching=clusters", f"parts={parts}", f"clusters_per_batch={per_batch}")


def clusters_of(num_nodes: int) -> tuple[str, ...]:
    """Clusters of about equal size, whatever the graph."""
    return in_clusters(max(PER_BATCH, num_nodes // CLUSTER), PER_BATCH)


def divided(adjacency: Adjacency, parts: int, method: str = "auto") -> tuple[Partition, float]:
    """A new partition, and seconds of processor time; files of earlier ones are removed."""
    shutil.rmtree(cache_root() / "partitions", ignore_errors=True)
    began = time.process_time()
    return partition(adjacency, parts, method), time.process_time() - began


# Time and memory.


def size(store: str, epochs: int) -> Row:
    """Partition and some epochs by clusters; the first epoch, which compiles, is left out."""
    graph = load(store)
    parts = clusters_of(graph.num_nodes)
    number = int(parts[1].partition("=")[2])
    found, seconds = divided(adjacency_of(graph), number)
    asked = Request(store, overrides=settings((*parts, f"epochs={epochs}")), no_trial=True)
    config = prepare(asked, graph=graph).config
    problem = pose_problem(graph, 0, config.device, in_parts=True)
    marks = [(time.process_time(), time.perf_counter())]
    train_one(
        config,
        problem.visible,
        problem.task,
        on_epoch=lambda _: marks.append((time.process_time(), time.perf_counter())),
    )
    spans = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:], strict=False)]
    spans = spans[1:] or spans
    edges = graph.num_edges // 2
    processor, clock = (statistics.median(column) for column in zip(*spans, strict=True))
    return {
        "nodes": f"{graph.num_nodes:,}",
        "edges": f"{edges:,}",
        "parts": number,
        "partition": found.method,
        "cut, %": f"{100 * found.cut:.0f}",
        "partition, s of processor": f"{seconds:.1f}",
        "epoch, s of processor": f"{processor:.1f}",
        "epoch, s": f"{clock:.1f}",
        "us of processor per edge": f"{1e6 * processor / edges:.2f}",
        "peak memory, MiB": f"{peak_mib():.0f}",
    }


# Accuracy.


def one_run(data: str, split: int, overrides: tuple[str, ...]) -> Row:
    """One run as ``argnn train --no-trial`` makes it: test accuracy, and validation by epoch."""
    graph = load(data)
    asked = Request(data, split=str(split), overrides=overrides, no_trial=True)
    config = prepare(asked, graph=graph).config
    marks, scores = [time.process_time()], list[float]()

    def on_epoch(record: EpochRecord) -> None:
        marks.append(time.process_time())
        scores.append(record.val_score or 0.0)

    row = run_cell(config, graph, split, on_epoch=on_epoch)
    return {
        "accuracy": 100 * row["test"]["accuracy"],
        "scores": scores,
        "seconds": [mark - marks[0] for mark in marks[1:]],
        "memory": row["peak_memory_mib"],
    }


def accuracy(store: str, epochs: int, parts: int, per_batch: int) -> list[Row]:
    """The whole graph beside clusters: accuracy, and how soon it is reached."""
    length = (f"epochs={epochs}",)
    ways = {
        "whole graph": settings(length),
        f"{per_batch} of {parts} clusters": settings((*in_clusters(parts, per_batch), *length)),
        "the same, --halo 1": settings((*in_clusters(parts, per_batch), "halo=1", *length)),
    }
    runs = {way: alone(one_run, store, 0, overrides) for way, overrides in ways.items()}
    goal = 0.99 * max(runs["whole graph"]["scores"])
    rows = []
    for way, run in runs.items():
        reached = [epoch for epoch, score in enumerate(run["scores"]) if score >= goal]
        first = reached[0] if reached else None
        rows.append(
            {
                "batches": way,
                "test accuracy": f"{run['accuracy']:.2f}",
                "best validation accuracy": f"{100 * max(run['scores']):.2f}",
                "epochs to 99 %": "" if first is None else first + 1,
                "s of processor to 99 %": "" if first is None else f"{run['seconds'][first]:.0f}",
                "s of processor in all": f"{run['seconds'][-1]:.0f}",
                "peak memory, MiB": f"{run['memory']:.0f}",
            }
        )
    return rows


def graph_runs(data: str, splits: int, parts: int, per_batch: int) -> Row:
    """Test accuracy of both ways on some splits of a real graph, same settings."""
    found: dict[str, list[float]] = {"whole": [], "clusters": []}
    for split in range(splits):
        for way, overrides in (("whole", ()), ("clusters", in_clusters(parts, per_batch))):
            found[way].append(alone(one_run, data, split, overrides)["accuracy"])
        print(
            data, split, *(f"{way} {values[-1]:.3f}" for way, values in found.items()), flush=True
        )
    return compared(Path(data).stem, found, parts, per_batch)


def compared(graph: str, found: dict[str, list[float]], parts: int, per_batch: int) -> Row:
    """Means over splits, and the 95 % interval of the difference."""
    gaps = [b - a for a, b in zip(found["whole"], found["clusters"], strict=True)]
    half = interval_half_width(gaps) if len(gaps) > 1 else None
    return {
        "graph": graph,
        "splits": len(gaps),
        "whole graph": f"{statistics.mean(found['whole']):.2f}",
        f"{per_batch} of {parts} clusters": f"{statistics.mean(found['clusters']):.2f}",
        "difference": f"{statistics.mean(gaps):+.2f}" + ("" if half is None else f" ± {half:.2f}"),
    }


# Partitions.


def cut(data: str, parts: int, method: str) -> tuple[float, float]:
    """Share of the edges between parts, and seconds of processor time."""
    adjacency = adjacency_of(load(data))
    divided(adjacency_of(load("mixed")), 2, method)  # compiles
    found, seconds = divided(adjacency, parts, method)
    return 100 * found.cut, seconds


def cuts(data: str, parts: int) -> Row:
    """METIS beside the streaming method."""
    found = {method: alone(cut, data, parts, method) for method in ("metis", "streaming")}
    return {
        "graph": Path(data).stem,
        "parts": parts,
        **{f"{method}, cut %": f"{share:.1f}" for method, (share, _) in found.items()},
        **{f"{method}, s": f"{seconds:.1f}" for method, (_, seconds) in found.items()},
    }


# Several processes.


def rank_worker(data: str, epochs: int) -> None:
    """What each process of torchrun does: it trains, and the first one prints a row."""
    with meeting():
        graph = load(data)
        asked = Request(data, overrides=settings((f"epochs={epochs}",)), no_trial=True)
        config = prepare(asked, graph=graph).config
        problem = pose_problem(graph, 0, config.device, in_parts=True)
        marks = [time.perf_counter()]
        with seeded(config.seed):
            model = config.spec.build()
        source = batch_source(config, problem.visible, problem.task)
        fit(
            model,
            problem.visible,
            problem.task,
            config.train,
            batches=source,
            on_epoch=lambda _: marks.append(time.perf_counter()),
        )
        spans = [b - a for a, b in zip(marks[1:], marks[2:], strict=False)]
        own = {"halo": 0, "sent": 0}
        if isinstance(source, RankBatches):
            own = {
                "halo": source.part.num_nodes - source.part.num_own,
                "sent": source.exchange.bytes_sent,
            }
        boxes: list[Any] = [own]
        if rank_count() > 1:
            boxes = [None] * rank_count()
            dist.all_gather_object(boxes, own)
        if is_leader():
            row = {
                "processes": rank_count(),
                "nodes": f"{graph.num_nodes:,}",
                "edges": f"{graph.num_edges // 2:,}",
                "rows of all halos": f"{sum(box['halo'] for box in boxes):,}",
                "MB sent per epoch": f"{sum(box['sent'] for box in boxes) / epochs / 1e6:.2f}",
                "epoch, s": f"{statistics.median(spans):.2f}",
                "peak memory of the first, MiB": f"{peak_mib():.0f}",
            }
            print(json.dumps(row), flush=True)
        else:
            next_order()  # the first process says that nothing is left


def ranks(data: str, count: int, epochs: int) -> Row:
    """Time and traffic of an epoch with some processes, of one thread each."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count)]
    words = [__file__, "rank-worker", data, "--epochs", str(epochs)]
    done = subprocess.run(
        [*launcher, *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    row: Row = json.loads(done.stdout.splitlines()[-1])
    print(row, flush=True)
    return row


# On paper.


def papers() -> list[Row]:
    """What a graph of the size of ogbn-papers100M would take, from the files of sizes and ranks."""
    nodes, edges, features, channels, layers = 111_000_000, 1_600_000_000, 128, 64, 2
    sizes, sent = _stored("scale-sizes")[-1], _stored("scale-ranks")
    listed, micro = 2 * edges, float(sizes["us of processor per edge"])
    known = int(sizes["edges"].replace(",", ""))
    cut_time = float(sizes["partition, s of processor"]) / known * edges
    halo, owned = (int(sent[-1][name].replace(",", "")) for name in ("rows of all halos", "nodes"))
    rows = nodes * halo / owned
    return [
        {"what": what, "how it is found": how, "value": value}
        for what, how, value in (
            (
                "store",
                "4 bytes for each feature and each end of an edge",
                f"{(4 * nodes * features + 4 * listed) / 1e9:.0f} GB",
            ),
            (
                "partition, streaming",
                f"as {sizes['edges']} edges, per edge",
                f"{cut_time / 60:.0f} min of one core",
            ),
            (
                "epoch by clusters",
                f"{micro} us of one core per edge",
                f"{micro * edges / 3.6e9:.1f} h of one core",
            ),
            (
                "memory of an exact validation",
                "two states and the descriptor of all nodes",
                f"{nodes * (2 * 4 * channels + 40) / 1e9:.0f} GB",
            ),
            (
                "sent in a step of 4 processes",
                f"{rows / nodes:.1f} halo rows per node, {layers} layers, forward and back",
                f"{rows * 4 * channels * 2 * layers / 1e9:.0f} GB",
            ),
        )
    ]


def _stored(name: str) -> list[dict[str, str]]:
    with (RESULTS / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def write(name: str, rows: Sequence[Row], note: str) -> None:
    """Write a file of docs/results."""
    known = versions()
    words = " ".join([Path(word).name for word in sys.argv[1:]])
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# command: python scripts/measure_scale.py {words}\n")
        file.write("# machine: 2 CPU cores, 24 GiB, shared with other work\n")
        file.write(f"# versions: argnn {known['argnn']}, torch {known['torch']}\n")
        file.write(f"# date: {datetime.now(UTC).date()}\n")
        file.write(f"# note: {note}\n")
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[*WHAT, "rank-worker"])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--clusters-per-batch", type=int, default=4)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    asked = parser.parse_args()
    if asked.what == "rank-worker":
        rank_worker(asked.data[0], asked.epochs)
    else:
        name, work, note = WHAT[asked.what]
        write(name, work(asked), note)


#: By name: the file, what gives its rows, and what readers should know.
WHAT: dict[str, tuple[str, Callable[[argparse.Namespace], list[Row]], str]] = {
    "sizes": (
        "scale-sizes",
        lambda a: [alone(size, data, a.epochs) for data in a.data],
        "64 features, 64 channels, 2 layers; exact validation of all nodes included; "
        "the peak is that of the whole process",
    ),
    "accuracy": (
        "scale-accuracy",
        lambda a: [
            row
            for data in a.data
            for row in accuracy(data, a.epochs, a.parts, a.clusters_per_batch)
        ],
        "64 channels, 2 layers, no patience; 99 % of the best validation accuracy of the whole "
        "graph",
    ),
    "graphs": (
        "scale-graphs",
        lambda a: [graph_runs(d, a.splits, a.parts, a.clusters_per_batch) for d in a.data],
        "test accuracy; PubMed with its stored settings, the others with the preset default",
    ),
    "ranks": (
        "scale-ranks",
        lambda a: [ranks(data, count, a.epochs) for data in a.data for count in a.processes],
        "64 channels, 2 layers, one thread for each process",
    ),
    "papers": (
        "scale-papers",
        lambda a: papers(),
        "no run; the constants of scale-sizes.csv and scale-ranks.csv",
    ),
    "cuts": (
        "scale-cuts",
        lambda a: [cuts(data, a.parts) for data in a.data],
        "seconds of processor time",
    ),
}

if __name__ == "__main__":
    main()
