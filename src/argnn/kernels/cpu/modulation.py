# mypy: disable-error-code="no-untyped-def"
"""The modulation of a channel by its metric."""

from argnn.kernels.cpu.compiling import exact_jit

# Where squares still fit into float32, and tanh(-log g) is -1 to the last bit.
_LARGEST = 1e18


@exact_jit
def modulation(g, one):
    """tanh(-log g) = (1 - g^2) / (1 + g^2), exact near 1; ``one`` is 1 in the dtype of ``g``."""
    bounded = min(g, type(one)(_LARGEST))
    return (one - bounded) * (one + bounded) / (one + bounded * bounded)
