"""GPU work that is recorded once and replayed, which saves most launch time on small graphs."""

from collections.abc import Callable

import torch
from torch import Tensor

#: Steps that run normally first: they fill caches and create the optimiser's state.
WARM_UP = 3


class RecordedStep:
    """The kernels that a function launches, as a CUDA graph.

    Args:
        compute: Reads and writes the same tensors in every call, draws random numbers only from
            torch's default generator, and never waits for the device. It is called once, to
            record its kernels without running them.
    """

    def __init__(self, compute: Callable[[], Tensor]) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = compute()

    def __call__(self) -> Tensor:
        """Run the kernels on the present values of the tensors."""
        self.graph.replay()
        return self.result.clone()  # the next call overwrites the original
