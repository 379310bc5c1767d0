"""``argnn train`` on a user's own tables: which columns mean what."""

import json
import random
import shlex
from pathlib import Path

import pytest
import yaml

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


def test_record_that_says_nothing_means_numbers_as_they_are(argnn, shop):
    """As records did before numbers of tables were standardized by default."""
    done = argnn("train", shop, *CHOICE, "--no-standardize", *QUICK)
    assert (done.code, done.err) == (0, "")
    config = config_of()
    assert "standardize" not in config["columns"]
    assert "standardized" not in config["graph"]["feature_rule"]
    Path("run/split-0/result.json").unlink()
    done = argnn("train", "--resume=run", "--json")
    assert (done.code, done.err) == (0, "")
    argnn("train", shop, *CHOICE, *QUICK[:2], "--out=other")
    usual = config_of("other")
    assert usual["columns"] == config["columns"] | {"standardize": True}
    assert usual["graph"]["digest"] != config["graph"]["digest"]


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


def test_weights_are_used_or_ignored(argnn, shop):
    found = {}
    for name, words in {
        "without": (),
        "with": ("--weight=weight",),
        "ignored": ("--weight=weight", "--ignore-weights"),
    }.items():
        done = argnn("train", shop, *CHOICE, *words, *QUICK[:2], f"--out={name}")
        assert (done.code, done.err) == (0, "")
        assert argnn("predict", name, f"--out={name}.csv").code == 0
        found[name] = Path(f"{name}.csv").read_text(), config_of(name)
    assert found["without"] == found["ignored"]
    assert found["with"][0] != found["without"][0]
    assert found["with"][1]["columns"]["weight"] == "weight"
    assert found["with"][1]["graph"]["digest"] != found["without"][1]["graph"]["digest"]


def test_weights_of_one_give_the_same_bits(argnn, shop):
    path = shop / "edges.csv"
    rows = path.read_text().splitlines()
    path.write_text("\n".join([rows[0], *(row.rsplit(",", 1)[0] + ",1" for row in rows[1:])]))
    for name, words in {"without": (), "with": ("--weight=weight",)}.items():
        argnn("train", shop, *CHOICE, *words, *QUICK[:2], f"--out={name}")
        argnn("predict", name, f"--out={name}.csv")
    assert Path("with.csv").read_text() == Path("without.csv").read_text()


def test_a_model_with_weights_wants_them_again(argnn, shop):
    argnn("train", shop, *CHOICE, "--weight=weight", *QUICK)
    path = shop / "edges.csv"
    path.write_text(path.read_text().replace(",weight", ",strength", 1))
    done = argnn("predict", "run", shop, "--out=new.csv")
    assert (done.code, done.out) == (2, "")
    assert "edges.csv: no column 'weight' for the edge weights" in done.err
    assert not Path("new.csv").exists()


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("-1", "a weight must not be negative (got '-1')"),
        ("", "a weight must be a finite number (got '')"),
        ("much", "a weight must be a finite number (got 'much')"),
    ],
)
def test_wrong_weights(refused, shop, cell, problem):
    path = shop / "edges.csv"
    rows = path.read_text().splitlines()
    rows[3] = rows[3].rsplit(",", 1)[0] + f",{cell}"
    path.write_text("\n".join(rows))
    words = ("train", shop, *CHOICE, "--weight=weight", *QUICK)
    refused(*words, message=f"edges.csv, line 4, column weight: {problem}")


def test_edges_of_weight_zero_are_left_out(argnn, shop):
    path = shop / "edges.csv"
    rows = path.read_text().splitlines()
    zero = [row if i % 4 else row.rsplit(",", 1)[0] + ",0" for i, row in enumerate(rows)]
    for name, kept in {"zero": [rows[0], *zero[1:]], "gone": [rows[0], *zero[1:]]}.items():
        chosen = [row for row in kept if name == "zero" or not row.endswith(",0")]
        path.write_text("\n".join(chosen))
        done = argnn("train", shop, *CHOICE, "--weight=weight", *QUICK[:2], f"--out={name}")
        assert ("edges of weight 0 left out" in done.out) == (name == "zero")
        argnn("predict", name, f"--out={name}.csv")
    assert Path("zero.csv").read_text() == Path("gone.csv").read_text()


def test_weights_of_links(argnn, shop):
    words = ("--task=link", *CHOICE, *QUICK[:2])
    done = argnn("train", shop, *words, "--weight=weight", "--out=with", "--json")
    assert (done.code, done.err) == (0, "")
    argnn("train", shop, *words, "--out=without")
    Path("pairs.csv").write_text("source,target\nc-1,c-2\nc-3,c-4\n")
    for name in ("with", "without"):
        done = argnn("predict", name, "--pairs=pairs.csv", f"--out={name}.csv")
        assert (done.code, done.err) == (0, "")
    assert Path("with.csv").read_text() != Path("without.csv").read_text()


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


@pytest.mark.parametrize("command", ["train", "compare", "tune", "inspect"])
def test_commands_know_the_same_options_of_columns(argnn, command):
    shown = argnn(command, "--help").out
    flags = ("features", "label", "id", "weight", "time", "drop", "standardize", "directed")
    flags += ("no-standardize", "decimal", "month-first")
    assert [flag for flag in flags if f"--{flag} " not in shown] == []


def test_search_reads_the_columns_and_says_how_to_train(argnn, shop):
    quick = ("--model=gcn", "--trials=1", "--epochs=1", "--split=0", "--out=found.yaml")
    done = argnn("tune", shop, *CHOICE, "--weight=weight", "--standardize", *quick)
    assert (done.code, done.err) == (0, "")
    columns = yaml.safe_load(Path("found.yaml").read_text())["columns"]
    assert columns == {
        "label": "kind",
        "node_id": "customer",
        "weight": "weight",
        "drop": ["row"],
        "standardize": True,
    }
    [command] = [line for line in done.out.splitlines() if line.startswith("Use them: ")]
    trained = argnn(*shlex.split(command)[3:], "--epochs=1", "--out=run")
    assert (trained.code, trained.err) == (0, "")
    assert config_of()["columns"] == columns


def test_search_with_other_columns_is_another_search(argnn, shop):
    quick = ("--model=gcn", "--trials=1", "--epochs=1", "--split=0", "--storage=journal")
    argnn("tune", shop, *CHOICE, *quick)
    done = argnn("tune", shop, *CHOICE, "--no-standardize", *quick, "--force")
    assert (done.code, done.out) == (2, "")
    assert "columns" in done.err


def test_search_says_how_to_train_without_scaling(argnn, shop):
    quick = ("--model=mlp", "--trials=1", "--epochs=1", "--split=0", "--out=found.yaml")
    done = argnn("tune", shop, *CHOICE, "--no-standardize", *quick)
    assert (done.code, done.err) == (0, "")
    assert yaml.safe_load(Path("found.yaml").read_text())["columns"]["standardize"] is False
    [command] = [line for line in done.out.splitlines() if line.startswith("Use them: ")]
    assert command.endswith("--no-standardize")


def test_search_ignores_weights_on_request(argnn, shop):
    quick = ("--model=mlp", "--trials=1", "--epochs=1", "--split=0", "--out=found.yaml")
    done = argnn("tune", shop, *CHOICE, "--weight=weight", "--ignore-weights", *quick)
    assert (done.code, done.err) == (0, "")
    assert "weight" not in yaml.safe_load(Path("found.yaml").read_text())["columns"]


EXPERIMENT = """
name: mine
title: my shop
task: node
data: [{name: shop, columns: COLUMNS}]
methods: [{model: gcn, set: [train.epochs=1]}]
splits: [0]
seeds: [0]
"""


def bench_with(argnn, columns, model="gcn"):
    text = EXPERIMENT.replace("COLUMNS", columns).replace("shop,", "./shop,")
    Path("mine.yaml").write_text(text.replace("gcn", model))
    return argnn("bench", "mine.yaml", "--workers=1", "--json")


def test_experiment_reads_the_columns(argnn, shop):
    words = "{node_id: customer, label: kind, decimal: '.', month_first: true, drop: [row]}"
    done = bench_with(argnn, words)
    assert (done.code, done.err) == (0, "")
    row = json.loads(Path("results/mine.jsonl").read_text())
    columns = {"node_id": "customer", "label": "kind", "drop": ["row"]}
    columns |= {"decimal": ".", "month_first": True}
    assert row["config"]["columns"] == columns | {"standardize": True}
    same = ("--decimal=.", "--month-first", *QUICK[:1])
    argnn("train", shop, *CHOICE, *same, "--epochs=1", "--out=run")
    assert config_of()["columns"] == row["config"]["columns"]
    assert row["config"]["graph"] == config_of()["graph"]
    # No table compares methods that have seen other columns.
    assert bench_with(argnn, words.replace("drop", "standardize: false, drop"), "mlp").code == 0
    done = argnn("table", "results/mine.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "different options for its columns" in done.err
    wrong = bench_with(argnn, words.replace("'.'", "';'"))
    assert (wrong.code, "decimal must be . or , (got ';')" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("{colour: red}", "colour"),
        ("{drop: row}", "drop"),
        ("{label: colour}", "colour"),
    ],
)
def test_bad_columns_of_an_experiment_are_refused(argnn, shop, columns, message):
    done = bench_with(argnn, columns)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert message in done.err


def test_experiment_names_a_graph_once(argnn, shop):
    text = EXPERIMENT.replace("[{name", "[./shop, {name").replace("name: shop", "name: ./shop")
    Path("mine.yaml").write_text(text.replace("COLUMNS", "{label: kind}"))
    done = argnn("bench", "mine.yaml")
    assert (done.code, "data, entry 2" in done.err) == (2, True)
