"""Fused kernels: the edge sums of the method without a tensor per edge and channel.

``use("plain")`` forces the plain torch formulation, ``use("fused")`` the kernels, and
``use("auto")``, the default, takes kernels for single and half precision on CPUs and CUDA
devices: the plain path keeps double precision, graphs too small to compile anything for on a
CPU, and the devices no kernel knows.
"""

from argnn.kernels.choice import MODES, current_mode, use
from argnn.kernels.compiler_folders import avoid_foreign_inductor_folder
from argnn.kernels.contents import unchanged

__all__ = ["MODES", "current_mode", "unchanged", "use"]

avoid_foreign_inductor_folder()  # torch has made its choice when the modules above are there
