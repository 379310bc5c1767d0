"""`argnn theory`: what it prints, writes and refuses."""

import json
from pathlib import Path

import pytest

from argnn.bench.theory import CLAIMS


def test_claims_are_printed_and_written(argnn):
    done = argnn("theory", "weights", "Gradients", "--out=tables", "--plots=plots")
    assert done.code == 0, done.err
    for words in ("0 of 108 cells", "refuted", "Rule, recommended weights", "Tables: tables"):
        assert words in done.out
    names = {path.name for path in Path("tables").iterdir()}
    tables = ("weights", "weights-implied", "gradients", "verdicts-weights", "verdicts-gradients")
    assert names == {f"theory-{name}.csv" for name in tables}
    drawn = {path.name for path in Path("plots").iterdir()}
    assert drawn == {
        f"theory-{name}.{kind}"
        for name in ("weights", "gradients")
        for kind in ("pdf", "svg", "png")
    }
    before = Path("tables/theory-weights.csv").read_bytes()
    again = argnn("theory", "weights", "--out=tables")
    assert again.code == 2
    assert "theory-verdicts-weights.csv" in again.err
    assert Path("tables/theory-weights.csv").read_bytes() == before
    assert argnn("theory", "weights", "--out=tables", "--force").code == 0


def test_json(argnn):
    done = argnn("theory", "gradients", "--seed=2", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert (document["size"], document["seed"]) == ("small", 2)
    statements = document["claims"]["gradients"]["statements"]
    assert {"name", "says", "place", "measured", "rule", "verdict"} == set(statements[0])
    assert document["claims"]["gradients"]["tables"]["gradients"][0]["graph"] == "ring"


def test_unknown_claim(argnn):
    done = argnn("theory", "gradient")
    assert done.code == 2
    assert "unknown claim 'gradient'; did you mean 'gradients'" in done.err


@pytest.mark.parametrize("name", CLAIMS)
def test_help_names_every_claim(argnn, name):
    assert name in argnn("theory", "--help").out
