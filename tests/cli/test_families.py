"""Every family of metrics through the commands: train, resume, predict, analyze, export."""

from pathlib import Path

import numpy as np
import pytest

from argnn.nn import METRICS
from argnn.nn.metric import METRIC_SHAPES

ACTIONS = {
    "operator": (),
    "scalar": ("--set=modulation=scalar", "--set=attention=true"),
    "sending": ("--set=sending_metric=true",),
    "interpolation": ("--set=modulation=interpolation",),
}
#: In the usual suite; the others are among the many cases.
USUAL = [("both", "lowrank", "scalar"), ("free", "full", "operator")]
CASES = [
    *USUAL,
    *((source, shape, "operator") for source in METRICS for shape in METRIC_SHAPES),
    *((source, "lowrank", action) for source in METRICS for action in ACTIONS),
    ("both", "diagonal", "sending"),
    ("both", "diagonal", "interpolation"),
]
CASES = [case for case in dict.fromkeys(CASES) if case[::2] != ("message", "scalar")]  # is refused


@pytest.mark.parametrize(
    ("source", "shape", "action"),
    [pytest.param(*case, marks=() if case in USUAL else pytest.mark.torture) for case in CASES],
)
def test_commands(argnn, small_npz, monkeypatch, source, shape, action):
    path = small_npz()
    kind = (f"metric={source}", f"metric_shape={shape}", "metric_groups=3", "hidden_channels=8")
    words = ("train", path, "--split=0", "--no-trial", "--workers=1", "--epochs=4")
    words += (*(f"--set={setting}" for setting in kind), *ACTIONS[action])
    penalties = ("--set=ricci_weight=0.1", "--set=smoothness_weight=0.1")

    def done(*arguments):
        found = argnn(*arguments)
        assert found.code == 0, (arguments, found.err)

    every = (*words, *penalties, "--checkpoint-every=1")
    done(*every, "--out=whole")
    with monkeypatch.context() as patch:
        patch.setattr("argnn.runs.run.write_checkpoint", stop_after(2))
        assert argnn(*every, "--out=run").code == 130
    done("train", "--resume=run")
    weights = "split-0/model/model.safetensors"
    assert Path("run", weights).read_bytes() == Path("whole", weights).read_bytes()

    done("predict", "run", "--out=own.csv")
    done("analyze", "run", "--out=page.html")
    x = np.random.default_rng(1).normal(size=(31, 3))  # the last node has no edges
    np.savez("other.npz", x=x, edge_index=[[*range(29), 3], [*range(1, 30), 7]])
    of_one_graph = source == "free"
    by_edges = action == "scalar" and shape in ("lowrank", "full") and source != "fixed"
    for refused, reason, arguments in (
        (of_one_graph, "each of the 90 nodes", ("predict", "run", "other.npz", "--out=other.csv")),
        (of_one_graph or by_edges, "cannot be exported", ("export", "run", "--out=program.pt2")),
    ):
        answer = argnn(*arguments)
        assert answer.code == (2 if refused else 0), answer.err
        assert len(answer.err.splitlines()) == refused, answer.err
        assert (reason in answer.err) == refused
        assert Path(arguments[-1].removeprefix("--out=")).exists() == (not refused)

    if shape in ("lowrank", "full") and source != "fixed":
        answer = argnn("export", "run", "--format=onnx", "--out=model.onnx")
        assert "ONNX has no inverse of a complex matrix" in answer.err

    clusters = ("--batching=clusters", "--parts=4", "--clusters-per-batch=2", "--halo=1")
    done(*words, *penalties, *clusters, "--out=clusters")
    done(*words, *penalties, "--task=link", "--decoder=metric", "--out=links")
    Path("pairs.csv").write_text("source,target\n0,1\n4,7\n")
    done("predict", "links", "--pairs=pairs.csv", "--out=scores.csv")


def stop_after(count):
    """A function that writes so many checkpoints, and is then interrupted."""
    from argnn.store.run_folder import write_checkpoint

    written = []

    def write(*arguments):
        if len(written) == count:
            raise KeyboardInterrupt
        written.append(write_checkpoint(*arguments))

    return write
