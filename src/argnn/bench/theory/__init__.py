"""Claims of the paper, each measured by one function: ``argnn theory``."""

from collections.abc import Callable

from argnn.bench.theory.complexity import measured_complexity
from argnn.bench.theory.convergence import measured_convergence
from argnn.bench.theory.finding import Effort, Finding
from argnn.bench.theory.flow import measured_flow
from argnn.bench.theory.generalization import measured_generalization
from argnn.bench.theory.gradients import measured_gradients
from argnn.bench.theory.robustness import measured_robustness
from argnn.bench.theory.special_cases import measured_special_cases
from argnn.bench.theory.stability import measured_stability
from argnn.bench.theory.universality import measured_universality
from argnn.bench.theory.weights import measured_weights

#: What measures each claim, by name.
CLAIMS: dict[str, Callable[[Effort], Finding]] = {
    "weights": measured_weights,
    "gradients": measured_gradients,
    "generalization": measured_generalization,
    "flow": measured_flow,
    "convergence": measured_convergence,
    "stability": measured_stability,
    "robustness": measured_robustness,
    "special-cases": measured_special_cases,
    "universality": measured_universality,
    "complexity": measured_complexity,
}

__all__ = ["CLAIMS", "Effort", "Finding"]
