"""From a messy folder to predictions: dates, text, decimal commas, codes, gaps and a rare class."""

import csv
import json
import random
from pathlib import Path

import pytest
import torch

from argnn.data import load

WORDS = ("late", "new", "red", "large", "gift", "call", "back", "soon")
NODES = "id;since;spent;share;article;notes;mail;status"


def order(rng: random.Random, name: str, status: str) -> str:
    spent = f"{rng.gauss(900 if status == 'open' else 1500, 80):,.2f}"
    swapped = spent.translate(str.maketrans(",.", ".,"))
    cells = [name, f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.2024", f"{swapped} €"]
    cells += [rng.choice(["n/a", f"{rng.randint(1, 99)} %"]), f"A{rng.randint(0, 300)}"]
    cells += [" ".join(rng.choices(WORDS, k=5)), f"{name}@x.org", status]
    return ";".join(cells)


@pytest.fixture
def orders(argnn) -> dict[str, str]:
    """Write a folder, and return the true status of every order by id."""
    rng = random.Random(0)
    truth = {f"o-{i}": rng.choices(["open", "paid", "lost"], [10, 10, 1])[0] for i in range(200)}
    gone = set(rng.sample(sorted(truth), 30))
    rows = [order(rng, name, status) for name, status in truth.items()]
    rows = [
        row.replace(truth[name], "?") if name in gone else row
        for name, row in zip(truth, rows, strict=True)
    ]
    Path("orders").mkdir()
    Path("orders/nodes.csv").write_text("\n".join([NODES, *rows]))
    ends = [f"{name};{rng.choice(list(truth))}" for name in truth for _ in range(2)]
    Path("orders/edges.csv").write_text("\n".join(["source;target", *ends]))
    return {name: truth[name] for name in gone}


def test_from_a_messy_folder_to_a_page_and_predictions(argnn, orders, brief_trial, brief_maps):
    done = argnn("train", "orders")
    assert (done.code, done.out) == (2, "")
    assert "the column of the classes could be status (--label status)" in done.err

    done = argnn("inspect", "orders", "--label=status", "--json")
    assert (done.code, done.err) == (0, "")
    became = {row["column"]: row["became"] for row in json.loads(done.out)["columns"]}
    assert became["spent"] == "a number with decimal comma in €, standardized"
    assert became["since"].startswith("a date: years before 2024-12-")
    assert became["article"].endswith("different ones hashed to 128 features")
    assert became["notes"].startswith("text")
    assert became["status"] == "the class, one of 3"
    assert "mail" not in became

    done = argnn("train", "orders", "--label=status", "--epochs=60", "--out=run")
    assert (done.code, done.err) == (0, "")
    assert "Note: column mail: another word in nearly every row" in done.out
    assert "Note: column status: '?' count as no label" in done.out

    assert "│ lost  " in done.out  # a rare class has scores of its own

    done = argnn("analyze", "run")
    assert (done.code, done.err) == (0, "")
    assert "spent" in Path("report.html").read_text()

    done = argnn("predict", "run")
    assert (done.code, done.err) == (0, "")
    rows = list(csv.DictReader(Path("predictions.csv").read_text().splitlines()))
    right = [row["class"] == orders[row["id"]] for row in rows if row["id"] in orders]
    assert sum(right) > 20  # of 30: what was spent tells open orders from paid ones


def test_new_nodes_another_graph_and_a_program(argnn, orders):
    done = argnn("train", "orders", "--label=status", "--model=gcn", "--epochs=2", "--out=run")
    assert (done.code, done.err) == (0, "")
    new = NODES.rsplit(";", 1)[0] + "\nn-1;31.1.2025;1.200,50 €;?;A7;late new;a@b.c\n"
    Path("new.csv").write_text(new)
    Path("links.csv").write_text("source,target\nn-1,o-3\n")
    words = ("--new-nodes=new.csv", "--new-edges=links.csv", "--out=new-out.csv")
    done = argnn("predict", "run", *words)
    assert (done.code, done.err) == (0, "")
    assert Path("new-out.csv").read_text().splitlines()[1].startswith("n-1,")

    Path("new.csv").write_text(
        new.replace("31.1.2025", "2025-01-31").replace("1.200,50", "1200.50")
    )
    done = argnn("predict", "run", *words, "--force")
    date, number = done.err.splitlines()
    assert "line 2, column since: '2025-01-31' must be a date written as day, month, year" in date
    assert "column spent: '1200.50 €' must be a number with ',' before decimals in €" in number

    done = argnn("export", "run", "--out=model.pt2")
    assert (done.code, done.err) == (0, "")
    graph = load("orders", label="status")
    program = torch.export.load("model.pt2").module()
    assert program(graph.x, graph.edge_index).shape == (200, 3)


@pytest.mark.parametrize("command", ["inspect", "train", "convert"])
def test_all_problems_are_one_line_each(argnn, orders, command, monkeypatch):
    from argnn.data.graph_store import converting

    monkeypatch.setattr(converting, "STREAMED_FROM", 0)
    path = Path("orders/nodes.csv")
    header, first, *rows = path.read_text().splitlines()
    cells = first.split(";")
    cells[1], cells[2] = "soon", "a lot"
    path.write_text("\n".join([header, ";".join(cells), *rows]))
    out = {"inspect": (), "train": ("--out=run",), "convert": ("store",)}[command]
    done = argnn(command, "orders", *out)
    assert (done.code, done.out) == (2, "")
    assert [line.split("; ")[-1] for line in done.err.splitlines()] == [
        "--drop since leaves the column out",
        "--drop spent leaves the column out",
    ]
    assert not any(Path(name).exists() for name in ("run", "store"))
