"""Measure training in parts: time, memory, accuracy, and what processes send each other.

    python scripts/measure_scale.py sizes STORE STORE ...      # of argnn generate, small to large
    python scripts/measure_scale.py noise STORE                # how far gradients of steps scatter
    python scripts/measure_scale.py accuracy STORE             # clusters beside the whole graph
    python scripts/measure_scale.py graphs pubmed FOLDER/fb_amherst.npz --parts 16
    python scripts/measure_scale.py choice pubmed STORE        # cluster sizes, by validation
    python scripts/measure_scale.py gpu STORE                  # the whole graph on a GPU
    python scripts/measure_scale.py ranks STORE                # 1, 2 and 4 processes
    python scripts/measure_scale.py weak STORE STORE STORE     # each twice as large as the last
    python scripts/measure_scale.py cuts cora pubmed STORE     # streaming partition beside METIS
    python scripts/measure_scale.py papers                     # after sizes and ranks

Each one writes its file in docs/results. Every measurement has a process of its own, so that peaks
of memory are its own; ``--workers`` says how many run at once. Processor time is that of all
threads: other work on the machine hardly changes it, while seconds on the clock may be up to three
times too long.
"""

import argparse
import csv
import json
import multiprocessing
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from argnn.data import adjacency_of, load
from argnn.data.adjacency import Adjacency
from argnn.data.graph_parts import GraphParts
from argnn.data.partition import Partition, partition
from argnn.folders import cache_root
from argnn.functional.neighborhood import edges_of
from argnn.nn import AbstractNodeModel
from argnn.runs.batch_sources import ClusterBatches, RankBatches, batch_source
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
from argnn.train.batches import Batch

RESULTS = Path(__file__).parent.parent / "docs" / "results"
#: Nodes of one cluster and clusters of one batch where sizes are compared.
CLUSTER, PER_BATCH = 2_000, 10
Row = dict[str, Any]


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def at_once(work: Callable[..., Row], jobs: Sequence[tuple[Any, ...]], workers: int) -> list[Row]:
    """What a function returns for each job, in a process of its own, some at the same time.

    What is done is printed, so that nothing is lost if the time for this command runs out.
    """
    rows: list[Row] = [{}] * len(jobs)
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        numbered = [(number, work, job) for number, job in enumerate(jobs)]
        for number, row in pool.imap_unordered(_numbered, numbered):
            rows[number] = row
            brief = {name: value for name, value in row.items() if not isinstance(value, list)}
            print(*jobs[number], brief, flush=True)
    return rows


def _numbered(job: tuple[int, Callable[..., Row], tuple[Any, ...]]) -> tuple[int, Row]:
    number, work, arguments = job
    return number, work(*arguments)


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


def one_run(data: str, split: int, overrides: tuple[str, ...], seed: int = 0) -> Row:
    """One run as ``argnn train --no-trial`` makes it: test accuracy, and validation by epoch."""
    graph = load(data)
    asked = Request(data, split=str(split), seed=seed, overrides=overrides, no_trial=True)
    config = prepare(asked, graph=graph).config
    marks, scores = [time.process_time()], list[float]()

    def on_epoch(record: EpochRecord) -> None:
        marks.append(time.process_time())
        scores.append(record.val_score or 0.0)

    row = run_cell(config, graph, split, on_epoch=on_epoch)
    return {
        "accuracy": 100 * row["test"]["accuracy"],
        "best": 100 * max(scores),
        "scores": scores,
        "seconds": [mark - marks[0] for mark in marks[1:]],
        "memory": row["peak_memory_mib"],
    }


def ways_of(clusters: Iterable[tuple[int, int]]) -> dict[str, tuple[str, ...]]:
    """The settings of clusters of some sizes, without and with a halo, by name."""
    ways = {}
    for parts, per_batch in clusters:
        chosen, name = in_clusters(parts, per_batch), f"{per_batch} of {parts} clusters"
        ways[name] = chosen
        ways[f"{name}, halo of 1"] = (*chosen, "halo=1")
    return ways


def accuracy(asked: argparse.Namespace) -> list[Row]:
    """The whole graph beside clusters of some sizes: accuracy, and how soon it is reached.

    The whole graph makes one step in each epoch, clusters several: it is also given as many steps.
    """
    (store,), epochs = asked.data, asked.epochs
    length = (f"epochs={epochs}",)
    batches = max(-(-parts // per_batch) for parts, per_batch in asked.clusters)
    ways = {"whole graph": length, "whole graph, as many steps": (f"epochs={batches * epochs}",)}
    ways |= {way: (*chosen, *length) for way, chosen in ways_of(asked.clusters).items()}
    ordered = sorted(ways, key=lambda way: "halo" not in way)  # the slow ones first
    jobs = [(store, 0, settings(ways[way]), seed) for way in ordered for seed in range(asked.seeds)]
    found = at_once(one_run, jobs, asked.workers)
    runs = {way: found[i * asked.seeds : (i + 1) * asked.seeds] for i, way in enumerate(ordered)}
    goal = 0.99 * statistics.mean(max(run["scores"]) for run in runs["whole graph"])
    rows = []
    for way in ways:
        tests = [run["accuracy"] for run in runs[way]]
        reached = [_first(run["scores"], goal) for run in runs[way]]
        spent = [
            run["seconds"][first]
            for run, first in zip(runs[way], reached, strict=True)
            if first is not None
        ]
        whole = len(spent) == len(reached)
        epoch = (
            statistics.median(first + 1 for first in reached if first is not None) if whole else 0
        )
        seconds = statistics.median(run["seconds"][-1] for run in runs[way])
        rows.append(
            {
                "batches": way,
                "seeds": len(tests),
                "test accuracy": f"{statistics.mean(tests):.2f}",
                "lowest to highest": f"{min(tests):.2f} to {max(tests):.2f}",
                "best validation accuracy": f"{statistics.mean(r['best'] for r in runs[way]):.2f}",
                "epochs to 99 %": f"{epoch:g}" if whole else "",
                "s of processor to 99 %": f"{statistics.median(spent):.0f}" if whole else "",
                "s of processor in all": f"{seconds:.0f}",
                "peak memory, MiB": f"{max(run['memory'] for run in runs[way]):.0f}",
            }
        )
    return rows


def _first(scores: Sequence[float], goal: float) -> int | None:
    return next((epoch for epoch, score in enumerate(scores) if score >= goal), None)


def graph_rows(asked: argparse.Namespace) -> list[Row]:
    """Test accuracy of both ways on some splits of real graphs, same settings."""
    (sizes,) = asked.clusters
    ways = {"clusters": in_clusters(*sizes), "whole": ()}
    # Both ways of a split one after the other: what is printed before an interruption is paired.
    jobs = [
        (data, split, overrides)
        for data in asked.data
        for split in range(asked.splits)
        for overrides in ways.values()
    ]
    found = iter(at_once(one_run, jobs, asked.workers))
    rows = []
    for data in asked.data:
        tests: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(asked.splits):
            for accuracies in tests.values():
                accuracies.append(next(found)["accuracy"])
        rows.append(compared(Path(data).stem, tests, *sizes))
    return rows


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


def choice(asked: argparse.Namespace) -> list[Row]:
    """Best validation accuracy with clusters of some sizes, by which the usual ones are chosen."""
    ways = {"whole graph": (), **ways_of(asked.clusters)}
    length = () if asked.epochs is None else (f"epochs={asked.epochs}",)
    jobs = [
        (data, split, (*overrides, *length))
        for data in asked.data
        for overrides in reversed(ways.values())
        for split in range(asked.splits)
    ]
    found = iter(at_once(one_run, jobs, asked.workers))
    rows = []
    for data in asked.data:
        best = {
            way: statistics.mean(next(found)["best"] for _ in range(asked.splits))
            for way in reversed(ways)
        }
        scores = {way: f"{best[way]:.2f}" for way in ways}
        rows.append({"graph": Path(data).stem, "splits": asked.splits, **scores})
    return rows


# Gradients of steps.


def gradients(model: AbstractNodeModel, batches: Iterable[Batch]) -> Tensor:
    """The gradient of each batch, ``[B, P]``."""
    rows = []
    for batch in batches:
        model.zero_grad()
        batch.loss(model, model.forward_with_metric(batch.x, batch.edge_index)[0]).backward()
        found = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in model.parameters()]
        rows.append(torch.cat([gradient.flatten() for gradient in found]))
    return torch.stack(rows)


def noise(asked: argparse.Namespace) -> list[Row]:
    """Gradients of the batches of one epoch beside that of the whole graph, before training."""
    (data,) = asked.data
    graph = load(data)
    problem = pose_problem(graph, 0, "cpu", in_parts=True)
    adjacency = adjacency_of(problem.visible)
    rows = []
    for way, overrides in ways_of(asked.clusters).items():
        chosen = settings((*overrides, "dropout=0.0", "input_dropout=0.0"))
        config = prepare(Request(data, overrides=chosen, no_trial=True), graph=graph).config
        with seeded(config.seed):
            model = config.spec.build()
        x, edges = problem.visible.x, edges_of(problem.visible)
        model.fit_to_graph(edges, graph.num_nodes)
        (whole,) = gradients(model.train(), [Batch(x, edges, problem.task.loss)])
        parts, task = GraphParts(x, adjacency), problem.task
        found = partition(adjacency, config.train.parts, config.train.partition)
        drawn = np.random.default_rng(0).permutation(graph.num_nodes) % found.num_parts
        by_chance = Partition(drawn.astype(np.int32), found.num_parts, "drawn", 1.0)
        for words, clusters, dealt in (
            (", drawn without regard to classes", found, False),
            ("", found, True),
            (", clusters of random nodes", by_chance, True),
        ):
            source = ClusterBatches(parts, clusters, task, config.train)
            if not dealt:
                source.main_class.zero_()
            each = gradients(model, source.epoch())
            rows.append(
                {
                    "batches": way + words,
                    "error of their mean, %": f"{100 * _length(each.mean(0) - whole, whole):.1f}",
                    "error of one step, %": f"{100 * _length(each - whole, whole):.0f}",
                }
            )
    return rows


def _length(vectors: Tensor, unit: Tensor) -> float:
    """Mean length of some vectors in lengths of another."""
    return float(vectors.norm(dim=-1).mean() / unit.norm())


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


# The whole graph on a GPU.


def gpu_run(store: str, model: str, epochs: int, precision: str) -> Row:
    """What ``argnn train STORE --no-trial`` takes, with a validation in every tenth epoch."""
    began = time.perf_counter()
    graph = load(store)
    chosen = settings((f"epochs={epochs}", "evaluate_every=10", f"precision={precision}"))
    asked = Request(store, model=model, overrides=chosen, no_trial=True)
    config = prepare(asked, graph=graph).config
    marks, read = [(0, time.perf_counter())], time.perf_counter()
    losses: list[float] = []

    def on_epoch(record: EpochRecord) -> None:
        losses.append(record.loss)
        if record.val_score is not None:  # the only epochs that wait for the device
            marks.append((record.epoch, time.perf_counter()))

    row = run_cell(config, graph, 0, on_epoch=on_epoch)
    spans = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(marks[1:], marks[2:], strict=False)]
    on_device = row.get("peak_device_memory_mib", 0.0)
    return {
        "model": model,
        "precision": precision,
        "nodes": f"{graph.num_nodes:,}",
        "edges": f"{graph.num_edges // 2:,}",
        "reading, s": f"{read - began:.1f}",
        "preparing and 10 epochs, s": f"{marks[1][1] - read:.1f}",
        "step, ms": f"{1e3 * statistics.median(spans):.0f}",
        "scores of all nodes, s": f"{time.perf_counter() - marks[-1][1]:.1f}",
        "peak memory of the GPU, GiB": f"{on_device / 2**10:.1f}",
        "peak memory, GiB": f"{row['peak_memory_mib'] / 2**10:.1f}",
        "first loss": f"{losses[0]:.4f}",
        "last loss": f"{losses[-1]:.4f}",
        "test accuracy": f"{100 * row['test']['accuracy']:.2f}",
    }


# Several processes.


def rank_worker(data: str, epochs: int, method: str) -> None:
    """What each process of torchrun does: it trains, and the first one prints a row."""
    with meeting():
        graph, chosen = load(data), (f"epochs={epochs}", f"partition={method}")
        asked = Request(data, overrides=settings(chosen), no_trial=True)
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


def ranks(data: str, count: int, epochs: int, method: str) -> Row:
    """Time and traffic of an epoch with some processes, of one thread each."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count)]
    words = [__file__, "rank-worker", data, "--epochs", str(epochs), "--partition", method]
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


def write(name: str, rows: Sequence[Row], note: str, machine: str) -> None:
    """Write a file of docs/results."""
    known = versions()
    words = shlex.join([Path(word).name for word in sys.argv[1:]])
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# command: python scripts/measure_scale.py {words}\n")
        file.write(f"# machine: {machine}\n")
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
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--parts", type=int, nargs="+", default=[16])
    parser.add_argument("--clusters-per-batch", type=int, nargs="+", default=[4])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--partition", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--machine", default="2 CPU cores, 24 GiB, shared with other work")
    parser.add_argument("--file", help="another name for the file of results")
    asked = parser.parse_args()
    asked.clusters = list(zip(asked.parts, asked.clusters_per_batch, strict=True))
    if asked.what not in ("choice", "graphs"):
        asked.epochs = asked.epochs or 3
    if asked.what == "rank-worker":
        rank_worker(asked.data[0], asked.epochs, asked.partition)
    else:
        name, work, note = WHAT[asked.what]
        write(asked.file or name, work(asked), note, asked.machine)


#: By name: the file, what gives its rows, and what readers should know.
WHAT: dict[str, tuple[str, Callable[[argparse.Namespace], list[Row]], str]] = {
    "sizes": (
        "scale-sizes",
        lambda a: [alone(size, data, a.epochs) for data in a.data],
        "64 features, 64 channels, 2 layers; exact validation of all nodes included; "
        "the peak is that of the whole process",
    ),
    "noise": (
        "scale-noise",
        noise,
        "64 channels, 2 layers, no dropout, weights before training; lengths of differences, in "
        "lengths of the gradient of the whole graph",
    ),
    "accuracy": (
        "scale-accuracy",
        accuracy,
        "64 channels, 2 layers, no patience; 99 % of the best validation accuracy of the whole "
        "graph",
    ),
    "graphs": (
        "scale-graphs",
        graph_rows,
        "test accuracy; PubMed with its stored settings, the others with the preset default",
    ),
    "choice": (
        "scale-choice",
        choice,
        "best validation accuracy, mean over splits; PubMed with its stored settings, the others "
        "with the preset default",
    ),
    "ranks": (
        "scale-ranks",
        lambda a: [
            ranks(data, count, a.epochs, a.partition) for data in a.data for count in a.processes
        ],
        "64 channels, 2 layers, one thread for each process",
    ),
    "weak": (
        "scale-weak",
        lambda a: [
            ranks(data, count, a.epochs, a.partition)
            for data, count in zip(a.data, a.processes, strict=True)
        ],
        "64 channels, 2 layers, one thread for each process; as many edges for each process",
    ),
    "gpu": (
        "scale-gpu",
        lambda a: at_once(
            gpu_run,
            [(data, model, a.epochs, a.precision) for data in a.data for model in ("argnn", "gcn")],
            1,
        ),
        "64 features, 64 channels, 2 layers, the whole graph in every step; a step has its share "
        "of a validation in every tenth epoch",
    ),
    "papers": (
        "scale-papers",
        lambda a: papers(),
        "no run; the constants of scale-sizes.csv and scale-ranks.csv",
    ),
    "cuts": (
        "scale-cuts",
        lambda a: [cuts(data, a.parts[0]) for data in a.data],
        "seconds of processor time",
    ),
}

if __name__ == "__main__":
    main()
