"""The kernels of :mod:`argnn.kernels.cpu` for GPUs, in Triton.

Everything runs on the current stream without waiting for it and can be captured in a CUDA
graph, once the segments of the graph's matrices are there. No atomics: equal bits every time.
"""

from argnn.kernels.compiler_folders import find_triton_folder
from argnn.kernels.gpu.activation import norm_relu_dropout, norm_relu_dropout_backward
from argnn.kernels.gpu.launch import LAUNCH
from argnn.kernels.gpu.pointwise import (
    metric_norm,
    modulate,
    modulate_backward,
    softplus_diagonal,
    softplus_diagonal_backward,
)
from argnn.kernels.gpu.propagate import propagate
from argnn.kernels.gpu.propagate_backward import propagate_backward
from argnn.kernels.gpu.sums import (
    energy_gradient,
    gather_sum,
    laplacian,
    moments,
    moments_backward,
)

__all__ = [
    "LAUNCH",
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
    "softplus_diagonal",
    "softplus_diagonal_backward",
]

find_triton_folder()
