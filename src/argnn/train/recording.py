"""Work on a GPU that is recorded once and replayed: small graphs are all launching otherwise."""

from collections.abc import Callable

import torch
from torch import Tensor

#: Epochs that run as usual first: they fill caches and make the optimiser's state.
WARM_UP = 3


class Recorded:
    """The kernels that a function launches, as a CUDA graph.

    Args:
        compute: Reads and writes the same tensors in every call, draws random numbers only
            from torch's default generator, and never waits for the device. It is called once,
            without any kernel being run.
    """

    def __init__(self, compute: Callable[[], Tensor]) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = compute()

    def __call__(self) -> Tensor:
        """Run the kernels on what the tensors hold now."""
        self.graph.replay()
        return self.result.clone()  # the next call writes over the original
