"""Whether the predictions of held-out nodes are better than guesses."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, mannwhitneyu, pearsonr

#: Guesses are as good as this more seldom than once in twenty times, or the model is doubted.
LEVEL = 0.05


def doubt_of_classes(true: NDArray[np.int64], predicted: NDArray[np.int64]) -> str | None:
    """A sentence if the classes of held-out nodes, ``[M]``, may be guessed; None if not.

    A guess names each class as often as the model does, without a look at the node. That is fair
    to a model that looks for a rare class, and one that always names the same class is a guess.

    Example:
        >>> doubt_of_classes(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
        'The model predicts no better than chance: 75.0 % of 4 test nodes right, guesses 75.0 %.'
    """
    if not true.size:
        return None
    count = int(max(true.max(), predicted.max())) + 1
    shares = [np.bincount(part, minlength=count) / part.size for part in (true, predicted)]
    guessed, right = min(float(shares[0] @ shares[1]), 1.0), int((true == predicted).sum())
    if binomtest(right, true.size, guessed, alternative="greater").pvalue < LEVEL:
        return None
    return (
        f"The model predicts no better than chance: {100 * right / true.size:.1f} % of "
        f"{true.size:,} test nodes right, guesses {100 * guessed:.1f} %."
    )


def doubt_of_targets(
    true: NDArray[np.float64], predicted: NDArray[np.float64], *, are_labels: bool
) -> str | None:
    """The same for targets of held-out nodes, ``[M, T]``: numbers, or labels with probabilities.

    No target has numbers that rise with the predicted ones, or labels that go with larger
    probabilities. Several targets are several tries: each must be so much the clearer.
    """
    columns = [
        (a, b)
        for a, b in zip(true.T, predicted.T, strict=True)
        if len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0
    ]
    if not len(true):
        return None
    for known, said in columns:
        if are_labels:
            found = mannwhitneyu(said[known > 0], said[known <= 0], alternative="greater").pvalue
        else:
            found = pearsonr(known, said, alternative="greater").pvalue
        if found < LEVEL / true.shape[1]:
            return None
    return f"The model predicts no better than chance on {len(true):,} test nodes."
