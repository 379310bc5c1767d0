"""``argnn train --batching clusters``."""

import json

import pytest

CLUSTERS = ("--batching=clusters", "--parts=6", "--clusters-per-batch=3")


def row_of(done) -> dict:
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_the_settings_are_in_the_record_and_in_the_model(argnn):
    found = row_of(argnn("train", "mixed", "--epochs=2", *CLUSTERS, "--out=run", "--json"))
    train = found["config"]["train"]
    assert (train["batching"], train["parts"], train["clusters_per_batch"]) == ("clusters", 6, 3)
    assert "halo" not in train  # at its usual value, as all settings that were added later
    done = argnn("predict", "run", "mixed", "--out=out.csv")
    assert done.code == 0, done.err


def test_the_whole_graph_is_as_it_was(argnn):
    options = ("train", "mixed", "--epochs=2", "--json")
    usual = row_of(argnn(*options, "--out=usual"))
    said = row_of(argnn(*options, "--batching=whole", "--out=said"))
    assert "batching" not in usual["config"]["train"]
    assert said["splits"][0]["test"] == usual["splits"][0]["test"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--parts=8",), "--parts belongs to --batching clusters"),
        (("--batching=whole", "--halo=1"), "--halo belongs to --batching clusters"),
        (("--batching=random",), "batching must be one of whole, clusters (got 'random')"),
        (("--batching=clusters", "--parts=0"), "parts must be at least 1 (got 0)"),
        (("--batching=clusters", "--parts=100000"), "number of nodes"),
        (("--batching=clusters", "--halo=-1"), "halo must be finite and not negative (got -1)"),
        ((*CLUSTERS, "--model=gcn"), "gcn sees the whole graph at once"),
        ((*CLUSTERS, "--dashboard"), "leave out --dashboard"),
        ((*CLUSTERS, "--set=ricci_weight=0.1"), "halo of at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(refused, options, words):
    refused("train", "mixed", "--epochs=1", *options, "--out=run", message=words)


def test_without_a_trial_the_preset_is_taken(argnn, small_npz):
    found = row_of(argnn("train", small_npz(), "--no-trial", "--epochs=1", "--out=run", "--json"))
    assert found["config"]["trial"] is None
    assert found["config"]["source"].startswith("preset default")
