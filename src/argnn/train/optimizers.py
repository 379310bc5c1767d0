"""Optimisers by name."""

from collections.abc import Callable

from torch.optim import Adam, AdamW, Optimizer

#: Every optimiser by its name in ``TrainConfig.optimizer``. The value is called with parameter
#: groups and the keywords ``fused`` and ``capturable``. For every parameter, the optimiser keeps a
#: state of tensors, which checkpoints store.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": Adam, "adamw": AdamW}
