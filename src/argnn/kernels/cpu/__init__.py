"""The edge sums on a CPU: one pass over the edges, rows shared out among threads by work.

Every kernel loops over the rows of a :class:`~argnn.kernels.csr.Csr` and writes each row once, so
the result does not depend on the number of threads.
"""

from argnn.kernels.cpu.activation import norm_relu_dropout, norm_relu_dropout_backward
from argnn.kernels.cpu.energies import energy_gradient, laplacian
from argnn.kernels.cpu.gather import gather_sum
from argnn.kernels.cpu.moments import moments, moments_backward
from argnn.kernels.cpu.pointwise import metric_norm, modulate, modulate_backward
from argnn.kernels.cpu.propagate import propagate
from argnn.kernels.cpu.propagate_backward import propagate_backward

__all__ = [
    "energy_gradient",
    "gather_sum",
    "laplacian",
    "metric_norm",
    "modulate",
    "modulate_backward",
    "moments",
    "moments_backward",
    "norm_relu_dropout",
    "norm_relu_dropout_backward",
    "propagate",
    "propagate_backward",
]
