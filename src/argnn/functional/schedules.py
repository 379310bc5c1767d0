"""Closed-form weights of the penalties, as plain functions of floats."""

import math

from argnn.errors import require

FORMS = ("main", "theorem")


def theory_weights(
    homophily: float,
    num_nodes: int,
    num_edges: int,
    num_layers: int,
    hidden_channels: int,
    form: str = "main",
) -> tuple[float, float]:
    r"""Penalty weights that the paper derives from the data (:eq:`theory_weights`).

    .. math::
        \alpha = \frac{c_1}{L}\min\!\left(1, \frac{D}{|\mathcal{E}|}\right), \quad
        \beta = \frac{c_2\sqrt{D}}{|\mathcal{V}|}, \quad
        c_1 = (1 - H) + 0.1, \quad c_2 = 0.1\,(1 + H)

    The theorem of the paper carries a further factor :math:`H` in both (``form="theorem"``);
    its table of recommended values follows neither form.

    Args:
        homophily: :math:`H` in [0, 1], from training labels only.
        num_nodes: :math:`|\mathcal{V}|`.
        num_edges: :math:`|\mathcal{E}|`, each undirected edge once.
        num_layers: :math:`L`.
        hidden_channels: :math:`D`.
        form: ``"main"`` or ``"theorem"``.

    Returns:
        Ricci weight :math:`\alpha` and smoothness weight :math:`\beta`.

    Example:
        >>> alpha, beta = theory_weights(0.825, 2708, 5278, num_layers=2, hidden_channels=64)
        >>> round(alpha, 5), round(beta, 6)
        (0.00167, 0.000539)
    """
    require(form in FORMS, "form", f"one of {FORMS}", repr(form))
    require(0 <= homophily <= 1, "homophily", "in [0, 1]", homophily)
    if min(num_nodes, num_layers, hidden_channels) < 1 or num_edges < 0:
        raise ValueError(
            "num_nodes, num_layers and hidden_channels must be positive and num_edges not "
            f"negative (got {num_nodes}, {num_layers}, {hidden_channels}, {num_edges})"
        )
    share = 1.0 if num_edges == 0 else min(1.0, hidden_channels / num_edges)
    alpha = ((1 - homophily) + 0.1) / num_layers * share
    beta = 0.1 * (1 + homophily) * math.sqrt(hidden_channels) / num_nodes
    factor = homophily if form == "theorem" else 1.0
    return factor * alpha, factor * beta
