"""Gradient of a logarithm with respect to a small curvature: geoopt's, ours, and the right one.

Why the spaces of constant curvature are not geoopt's: a learned curvature has to pass through zero
in float32.

    python scripts/geoopt_gradient.py
"""

import torch
from geoopt.manifolds.stereographic import math as geoopt_math

from argnn.functional import stereographic

CURVATURES = (-1e-3, -1e-5, -1e-6, -2e-8, 1e-8, 1e-6, 1e-4)


def gradient(curvature: float, dtype: torch.dtype, is_geoopt: bool) -> float:
    """Derivative of the sum of ``log_0`` of five fixed points."""
    x = 0.3 * torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    k = torch.tensor(curvature, dtype=dtype, requires_grad=True)
    x = x.to(dtype)
    y = geoopt_math.logmap0(x, k=k) if is_geoopt else stereographic.logmap0(x, k)
    return torch.autograd.grad(y.sum(), k)[0].item()


def main() -> None:
    """Print one line per curvature."""
    print(f"{'curvature':>10} {'float64':>10} {'ours, float32':>15} {'geoopt, float32':>17}")
    for curvature in CURVATURES:
        right = gradient(curvature, torch.float64, is_geoopt=False)
        ours = gradient(curvature, torch.float32, is_geoopt=False)
        theirs = gradient(curvature, torch.float32, is_geoopt=True)
        print(f"{curvature:>10g} {right:>10.4f} {ours:>15.4f} {theirs:>17.4f}")


if __name__ == "__main__":
    main()
