"""What the penalties left of the geometry: messages and metric of finished runs.

For each run folder of the `paper` preset, averaged over splits and layers: how much of a message
passes (mean absolute modulation), and how much the metric differs between neighbours (NRMD).

    python scripts/literal_form.py runs/texas-paper runs/texas-paper-without-penalties
"""

import argparse
import statistics
from pathlib import Path

import torch

from argnn import functional as AF
from argnn.runs.prepare import reopen
from argnn.runs.run import trained_model
from argnn.settings.run_config import RunConfig
from argnn.store.run_folder import open_run


@torch.no_grad()
def describe(path: Path) -> str:
    """One line of a Markdown table."""
    folder, stored = open_run(path)
    config = RunConfig.from_json(stored, str(folder.config))
    graph = reopen(config, None, None).graph
    passed, dispersion = [], []
    for split in config.splits:
        model = trained_model(folder, split).eval()
        states, metrics = model.hidden_states(graph.x, graph.edge_index)
        for h, g in zip([graph.x, *states], metrics, strict=False):
            passed.append(float(AF.edge_modulation(h, g, graph.edge_index).abs().mean()))
            dispersion.append(float(AF.nrmd(g, graph.edge_index)))
    weights = config.train.penalty_weights
    return (
        f"| {config.data} | {weights} | {statistics.fmean(passed):.3f} "
        f"| {statistics.fmean(dispersion):.3f} |"
    )


def main() -> None:
    """Describe every run named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    print("| data | penalty weights | mean abs. modulation | NRMD |\n|---|---|---|---|")
    for path in parser.parse_args().runs:
        print(describe(path), flush=True)


if __name__ == "__main__":
    main()
