"""``argnn train`` on a user's own tables: which columns mean what."""

import json
import random
from pathlib import Path

import pytest

QUICK = ("--model=gcn", "--epochs=2", "--out=run")


@pytest.fixture
def shop():
    """Customers with ids that are words, gaps, a weight per edge, and a few unlabelled."""
    rng = random.Random(0)
    folder = Path("shop")
    folder.mkdir()
    names = [f"c-{number}" for number in range(40)]
    ages = ["" if index % 7 == 0 else index for index in range(40)]
    kinds = ["" if index % 9 == 0 else "ab"[index % 2] for index in range(40)]
    rows = [f"{i},{name},{ages[i]},{'xyz'[i % 3]},{kinds[i]}" for i, name in enumerate(names)]
    (folder / "nodes.csv").write_text("row,customer,age,town,kind\n" + "\n".join(rows))
    pairs = [f"{rng.choice(names)},{rng.choice(names)},{rng.random():.3f}" for _ in range(80)]
    (folder / "edges.csv").write_text("source,target,weight\n" + "\n".join(pairs))
    return folder


CHOICE = ("--id=customer", "--label=kind", "--drop=row")


def config_of(run="run"):
    return json.loads(Path(run, "config.json").read_text())["run"]


def test_columns_are_understood_and_stored(argnn, shop):
    done = argnn("train", shop, *CHOICE, "--standardize", "--features=degree", *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "Note: column age: 6 missing values became the mean" in done.out
    config = config_of()
    assert config["columns"] == {
        "features": "degree",
        "label": "kind",
        "node_id": "customer",
        "drop": ["row"],
        "standardize": True,
    }
    assert (config["graph"]["nodes"], config["graph"]["classes"]) == (40, 2)
    assert config["graph"]["features"] == 2 + 3 + 18


def test_run_is_continued_with_the_same_columns(argnn, shop):
    argnn("train", shop, *CHOICE, *QUICK)
    Path("run/split-0/result.json").unlink()
    done = argnn("train", "--resume=run", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["config"]["columns"]["label"] == "kind"
    refused = argnn("train", "--resume=run", "--label=town")
    assert (refused.code, "leave out --label" in refused.err) == (2, True)


def test_changed_table_is_noticed(argnn, shop):
    argnn("train", shop, *CHOICE, *QUICK)
    path = shop / "nodes.csv"
    path.write_text(path.read_text().replace(",8,", ",9,", 1))
    done = argnn("train", "--resume=run")
    assert (done.code, "the graph has changed" in done.err) == (2, True)


def test_runs_without_columns_are_stored_as_before(argnn):
    argnn("train", "mixed", *QUICK)
    assert "columns" not in config_of()


def test_weights_are_refused_until_they_are_ignored(argnn, shop):
    done = argnn("train", shop, *CHOICE, "--weight=weight", *QUICK)
    assert done.code == 2
    assert done.err == (
        "argnn: error: gcn does not use edge weights: leave out --weight, or say --ignore-weights\n"
    )
    assert not Path("run").exists()
    done = argnn("train", shop, *CHOICE, "--weight=weight", "--ignore-weights", *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "weight" not in config_of()["columns"]


def test_edge_list_for_links(argnn):
    rng = random.Random(1)
    lines = [f"{rng.randrange(30)}\t{rng.randrange(30)}" for _ in range(120)]
    Path("web.txt").write_text("# FromNodeId\tToNodeId\n" + "\n".join(lines))
    done = argnn("train", "web.txt", "--task=link", *QUICK)
    assert (done.code, done.out) == (2, "")
    assert "the nodes have no features; choose some" in done.err
    done = argnn("train", "web.txt", "--task=link", "--features=laplacian", *QUICK)
    assert (done.code, done.err) == (0, "")
    assert config_of()["graph"]["features"] == 16


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--features=pagerank", "features must be one of degree, onehot, random, laplacian"),
        ("--label=knid", "nodes.csv: no column 'knid' for the labels; did you mean 'kind'"),
        ("--id=custmer", "no column 'custmer' for the node ids; did you mean 'customer'"),
        ("--drop=rwo", "no column 'rwo' for the columns to drop"),
        ("--id=town", "column town: duplicate id 'x' (also in line 2)"),
    ],
)
def test_wrong_column(argnn, shop, option, message):
    done = argnn("train", shop, option, "--model=gcn")
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_columns_of_a_file_without_names(argnn, small_npz):
    done = argnn("train", small_npz(), "--label=y")
    assert (done.code, "needs a table with named columns" in done.err) == (2, True)
