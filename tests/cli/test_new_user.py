"""A new user's path: look, train, look at what was learned, predict, on tables of their own."""

import csv
import json
import random
import re
from pathlib import Path

import pytest

TASTES = ("books", "games", "music")
GAPS = {"without an age": range(0, 90, 11), "without a label": range(4, 90, 13)}


@pytest.fixture
def customers(argnn) -> dict[str, str]:
    """Write a folder of tables, and return the true taste of every customer by id."""
    rng = random.Random(0)
    truth = {f"c/{number:02d}": rng.choice(TASTES) for number in range(90)}
    nodes, edges = ["id,age,town,label"], ["source,target"]
    for number, (name, taste) in enumerate(truth.items()):
        age = "" if number in GAPS["without an age"] else 20 + 15 * TASTES.index(taste)
        label = "" if number in GAPS["without a label"] else taste
        nodes.append(f"{name},{age},{rng.choice(['Bonn', 'Jena'])},{label}")
        friends = [other for other in truth if truth[other] == taste]
        edges += [f"{name},{other}" for other in rng.choices(friends, k=3)]
    Path("shop").mkdir()
    Path("shop/nodes.csv").write_text("\n".join(nodes) + "\n")
    Path("shop/edges.csv").write_text("\n".join(edges) + "\n")
    return truth


def test_inspect_train_analyze_predict(argnn, customers, brief_trial):
    unlabelled = [f"c/{number:02d}" for number in GAPS["without a label"]]

    done = argnn("inspect", "shop", "--json")
    assert (done.code, done.err) == (0, "")
    seen = json.loads(done.out)
    assert (seen["nodes"], seen["unlabelled"]) == (90, len(unlabelled))
    assert any("column age: 9 missing values" in note for note in seen["notes"])
    assert not Path("run").exists()

    done = argnn("train", "shop", "--standardize", "--epochs=40", "--out=run")
    assert (done.code, done.err) == (0, "")
    assert "test accuracy" in done.out

    done = argnn("analyze", "run", "--out=report.html")
    assert (done.code, done.err) == (0, "")
    page = Path("report.html").read_text()
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    assert shown["ids"] == list(customers)
    assert shown["classes"] == list(TASTES)
    assert shown["layers"], "a learned metric"

    done = argnn("predict", "run", "--out=predictions.csv")
    assert (done.code, done.err) == (0, "")
    rows = list(csv.DictReader(Path("predictions.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == list(customers)
    for row in rows:
        chances = {taste: float(row[f"p_{taste}"]) for taste in TASTES}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-4)
        assert row["class"] == max(chances, key=chances.get)
    right = [row["class"] == customers[row["id"]] for row in rows if row["id"] in unlabelled]
    assert sum(right) >= 5  # of 7 without a label, whose ages and friends give them away
