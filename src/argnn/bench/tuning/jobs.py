"""The work of a search: train one split of one trial."""

import math
import time
from dataclasses import dataclass

from torch_geometric.data import Data

from argnn.errors import RunError
from argnn.runs.problems import problem_of
from argnn.runs.run import failed_row
from argnn.runs.train_one import OnEpoch, train_one
from argnn.settings.run_config import RunConfig
from argnn.settings.search_space import Params, changed_config


@dataclass(frozen=True)
class Outcome:
    """What came of a job: a validation score and its epoch, or an error."""

    score: float = math.nan
    epoch: int = 0
    seconds: float = 0.0
    error: str | None = None
    traceback: str | None = None


@dataclass(frozen=True)
class SplitJob:
    """One split of a trial."""

    config: RunConfig
    trial: int
    params: Params
    split: int

    def run(self, graph: Data, on_epoch: OnEpoch | None = None) -> Outcome:
        """Train as ``argnn train`` does, but score nothing on the test set."""
        began = time.perf_counter()
        config = changed_config(self.config, self.params)
        problem = problem_of(config, graph, self.split)
        posed = (problem.visible, problem.task)
        result = train_one(config, *posed, split=self.split, on_epoch=on_epoch).result
        if not math.isfinite(result.val_score):
            raise RunError(f"the validation score of split {self.split} is {result.val_score}")
        return Outcome(result.val_score, result.best_epoch, time.perf_counter() - began)

    def failed(self, error: Exception, seconds: float) -> Outcome:
        """The error; with its traceback if it is one of the program."""
        row = failed_row(self.config, self.split, error)
        return Outcome(seconds=seconds, error=row["error"], traceback=row.get("traceback"))
