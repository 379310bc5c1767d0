"""The training loop, and the snapshots from which it can continue."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from argnn.errors import ConfigError, DivergenceError, RunError
from argnn.functional.neighborhood import Edges, edges_of, unchanged
from argnn.nn import AbstractNodeModel, Regularizer, total_penalty
from argnn.nn.models.base import require_weights_taken
from argnn.train.batches import Batch, BatchSource, WholeGraph
from argnn.train.config import (
    OPTIMIZERS,
    RECORDABLE_OPTIMIZERS,
    TrainConfig,
    learning_rate_factor,
    optimizer_groups,
)
from argnn.train.devices import products_in, scores_and_metrics
from argnn.train.penalties import build_penalties
from argnn.train.recording import WARM_UP, RecordedStep
from argnn.train.tasks import Task, Validation


class Graph(Protocol):
    """What `fit` reads of a graph: features and edges, no labels.

    Edges have weights where there is an attribute ``edge_weight``, ``[E]``, that is not None.
    """

    x: Tensor
    edge_index: Tensor


@dataclass(frozen=True)
class EpochRecord:
    """Losses and scores of one epoch; those of validation are None in epochs without it."""

    epoch: int
    loss: float
    task_loss: float
    penalty: float
    gradient_norm: float
    val_score: float | None = None
    val_loss: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything that is needed to continue a run with the same result as without a stop."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


@dataclass
class _Progress:
    """State of the loop besides weights and optimiser."""

    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    best: Validation = field(default_factory=lambda: Validation(-math.inf, math.inf))
    best_weights: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class FitResult:
    """Result of a training. The model has the weights of :attr:`best_epoch`.

    Attributes:
        best_epoch: The epoch with the best validation score, counted from 1.
        val_score: Its validation score.
        val_loss: Its validation loss.
        epochs_run: Number of trained epochs.
        stopped_by: ``"epochs"``, ``"patience"`` or ``"tolerance"``.
        penalty_weights: Final weight of each penalty, by name.
        history: One record per epoch.
        seconds: Time spent in this call.
    """

    best_epoch: int
    val_score: float
    val_loss: float
    epochs_run: int
    stopped_by: str
    penalty_weights: dict[str, float]
    history: list[EpochRecord]
    seconds: float


def fit(
    model: AbstractNodeModel,
    graph: Graph,
    task: Task,
    config: TrainConfig,
    *,
    batches: BatchSource | None = None,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    save: Callable[[Snapshot], None] | None = None,
    observe: Callable[[int, Tensor], None] | None = None,
    resume_from: Snapshot | None = None,
) -> FitResult:
    """Train a model and give it the weights of its best validation epoch.

    Only ``x``, ``edge_index`` and ``edge_weight`` of the graph are read, and a task has no test
    label. Nothing may change these tensors during training, not even a callback: they are
    :class:`~argnn.kernels.unchanged`, and a change raises an error at the end. On one machine and
    device the same seed gives the same bits, also if the run was stopped and continued.

    The loop waits for the device only if validation or a checkpoint is due, if training ends, and
    in every epoch with ``config.tolerance``. Only then it reads the losses of the epochs since the
    last time.

    Args:
        model: The model, with its initial weights.
        graph: Features ``x``, edges ``edge_index`` and perhaps their weights ``edge_weight``.
        task: Loss and validation score.
        config: Optimiser, penalties, stopping.
        batches: What the training steps see; the whole graph if not given.
        on_epoch: Called with the record of every epoch, in order, as soon as losses are read.
        save: Called with a snapshot every ``config.checkpoint_every`` epochs.
        observe: Called with the epoch and the model's outputs at every validation. It cannot change
            the training.
        resume_from: A snapshot to continue from.

    Raises:
        DivergenceError: The loss or the gradient was not finite.
    """
    began = time.perf_counter()
    device = next(model.parameters()).device
    watched = _tensors(graph) if batches is None or batches.reads_whole else []
    with _own_random_state(device), unchanged(*watched):
        torch.manual_seed(config.seed)
        loop = _Loop(model, graph, task, config, batches, observe)
        if resume_from is not None:
            loop.restore(resume_from)
        stopped_by = loop.stop_reason()
        while stopped_by is None:
            for record in loop.run_epoch():
                if on_epoch is not None:
                    on_epoch(record)
            if save is not None and loop.checkpoint_is_due():
                save(loop.snapshot())
            stopped_by = loop.stop_reason()
    return loop.finish(stopped_by, time.perf_counter() - began)


def _own_random_state(device: torch.device) -> AbstractContextManager[None]:
    """Give back afterwards the random states of the CPU and of a device."""
    if device.type == "cpu":
        return torch.random.fork_rng([])
    return torch.random.fork_rng([device], device_type=device.type)


def _tensors(graph: Graph) -> list[Tensor]:
    weight = getattr(graph, "edge_weight", None)
    return [graph.x, graph.edge_index, *([] if weight is None else [weight])]


class _Loop:
    def __init__(
        self,
        model: AbstractNodeModel,
        graph: Graph,
        task: Task,
        config: TrainConfig,
        batches: BatchSource | None,
        observe: Callable[[int, Tensor], None] | None,
    ) -> None:
        if config.select is not None or config.class_weight is not None:
            task = task.configured(config)
        self.model, self.task, self.config, self.observe = model, task, config, observe
        # Nothing else of the graph is kept, because it may have labels that training must not see.
        self.x, self.edge_index = graph.x, edges_of(graph)
        if self.edge_index is not graph.edge_index:
            require_weights_taken(model)
        self.batches = batches or WholeGraph(Batch(graph.x, self.edge_index, task.loss))
        self.progress = _Progress()
        # Loss, task loss and gradient norm of steps that are not read from the device yet.
        self.unread: list[Tensor] = []
        self.recorded_step: RecordedStep | None = None
        self.recorded_forward: RecordedStep | None = None
        self.warm_up = WARM_UP
        self.batches.fit_model(model, graph.x, self.edge_index)
        with torch.no_grad():
            sample = self.batches.sample(graph.x, self.edge_index)
            metrics = model.eval().forward_with_metric(*sample)[1]
        self.device = device = sample[0].device
        self.penalties = build_penalties(
            config, self.edge_index, graph.x.size(0), metrics, model.hidden_channels, task
        ).to(device)
        on_gpu = device.type == "cuda"
        recordable = model.recordable and config.optimizer in RECORDABLE_OPTIMIZERS
        self.records = on_gpu and config.record and recordable and self.batches.same_tensors
        groups = optimizer_groups(model, self.penalties, config)
        self.initial_rates = [float(group["lr"]) for group in groups]
        if self.records:  # a recorded step reads its learning rates from the device
            for group in groups:
                group["lr"] = torch.tensor(group["lr"], device=device)
        # Fused on a GPU only: on a CPU it would change the bits.
        build = OPTIMIZERS[config.optimizer]
        self.optimizer = build(groups, fused=on_gpu, capturable=self.records)

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.progress.history) + len(self.unread) // self.batches.num_batches

    def run_epoch(self) -> list[EpochRecord]:
        """Train for one epoch; return the records of all unread epochs, if it is time for that."""
        self._set_learning_rates()
        self.unread += [self._step(batch) for batch in self.batches.epoch()]
        return self._read_and_validate() if self._reading_is_due() else []

    def _set_learning_rates(self) -> None:
        factor = learning_rate_factor(self.config, self.epoch + 1)
        for group, rate in zip(self.optimizer.param_groups, self.initial_rates, strict=True):
            if self.records:
                group["lr"].fill_(rate * factor)
            else:
                group["lr"] = rate * factor

    def _step(self, batch: Batch) -> Tensor:
        """Loss, task loss and norm of the gradient, a tensor on the device."""
        if not self.records or self.warm_up > 0:
            self.warm_up -= 1
            return self._compute_step(batch)
        if self.recorded_step is None:
            self.recorded_step = RecordedStep(lambda: self._compute_step(batch))
        return self.recorded_step()

    def _compute_step(self, batch: Batch) -> Tensor:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        outputs, metrics = self._forward(batch.x, batch.edge_index)
        task_loss = batch.loss(self.model, outputs)
        loss = task_loss
        if self.penalties:
            penalty = total_penalty(self.penalties, metrics, batch.edge_index)
            loss = loss + batch.penalty_factor * penalty
        with products_in(self.config.precision):
            loss.backward()
        self._sum_gradients()
        limit = math.inf if self.config.clip_norm is None else self.config.clip_norm
        gradient_norm = nn.utils.clip_grad_norm_(self._parameters(), limit)
        self.optimizer.step()
        self.model.constrain()
        losses = self.batches.total(torch.stack([loss.detach(), task_loss.detach()]))
        return torch.cat([losses, gradient_norm.reshape(1)])

    def _sum_gradients(self) -> None:
        """Add up the gradients of processes that train together; each has them all after it."""
        for parameter in self._parameters():
            if parameter.grad is not None:
                parameter.grad = self.batches.total(parameter.grad)

    def _forward(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        return scores_and_metrics(self.model, x, edge_index, self.config.precision)

    def _parameters(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _require_finite(self, name: str, value: float, epoch: int) -> None:
        if not math.isfinite(value):
            raise DivergenceError(
                f"the {name} became {value} in epoch {epoch} "
                f"(lr {self.config.lr:g}); a smaller lr or a clip_norm may help"
            )

    def _reading_is_due(self) -> bool:
        return (
            self.config.tolerance > 0
            or self._evaluation_is_due()
            or self.checkpoint_is_due()
            or self._patience_is_over()
        )

    def _read_and_validate(self) -> list[EpochRecord]:
        """Wait for the device: turn unread epochs into records, and validate if that is due."""
        records = self._read()
        if self._evaluation_is_due() or records[-1].gradient_norm < self.config.tolerance:
            validation = self._validate()
            records[-1] = replace(records[-1], val_score=validation.score, val_loss=validation.loss)
        self.progress.history += records
        self.unread.clear()
        return records

    def _read(self) -> list[EpochRecord]:
        """Records of the unread epochs, in one transfer from the device."""
        records = []
        steps = torch.stack(self.unread).view(-1, self.batches.num_batches, 3)
        rows = steps.mean(1).tolist()
        for epoch, row in enumerate(rows, start=len(self.progress.history) + 1):
            loss, task_loss, gradient_norm = row
            self._require_finite("loss", loss, epoch)
            self._require_finite("gradient norm", gradient_norm, epoch)
            records.append(EpochRecord(epoch, loss, task_loss, loss - task_loss, gradient_norm))
        return records

    @torch.no_grad()
    def _validate(self) -> Validation:
        self.model.eval()
        outputs = self._outputs()
        validation = self.task.validate(self.model, outputs)
        self._require_finite("validation loss", validation.loss, self.epoch)
        if not math.isfinite(validation.score):
            raise ConfigError(
                "the validation nodes do not define the score that chooses the epoch: choose by "
                'loss (scoring="loss", --select loss)'
            )
        if self.observe is not None:
            # Random numbers that the observer draws do not change those of the training.
            with _own_random_state(outputs.device):
                self.observe(self.epoch, outputs)
        if validation.key > self.progress.best.key:
            self.progress.best, self.progress.best_epoch = validation, self.epoch
            self.progress.best_weights = _copy(self.model.state_dict())
        return validation

    def _outputs(self) -> Tensor:
        """Outputs of the model, in evaluation mode, on the whole graph."""
        if self.recorded_step is None:
            return self.batches.outputs(self.model, self._forward, self.x, self.edge_index)
        if self.recorded_forward is None:
            self.recorded_forward = RecordedStep(lambda: self._forward(self.x, self.edge_index)[0])
        return self.recorded_forward()

    def stop_reason(self) -> str | None:
        """Why training is over, or None while it is not."""
        if self.epoch == 0:
            return None
        tolerance = self.config.tolerance
        if tolerance > 0 and self.progress.history[-1].gradient_norm < tolerance:
            return "tolerance"
        if self.epoch >= self.config.epochs:
            return "epochs"
        return "patience" if self._patience_is_over() else None

    def _patience_is_over(self) -> bool:
        waited = self.epoch - self.progress.best_epoch
        evaluated = self.progress.best_epoch > 0
        return evaluated and 0 < self.config.patience <= waited

    def _evaluation_is_due(self) -> bool:
        return self.epoch % self.config.evaluate_every == 0 or self.epoch == self.config.epochs

    def checkpoint_is_due(self) -> bool:
        every = self.config.checkpoint_every
        return every > 0 and self.epoch % every == 0

    def snapshot(self) -> Snapshot:
        tensors = {
            **_prefixed("model", self.model.state_dict()),
            **_prefixed("penalty", self.penalties.state_dict()),
            **_prefixed("best", self.progress.best_weights),
            "rng/cpu": torch.get_rng_state(),
        }
        if self.device.type != "cpu":
            state = torch.get_device_module(self.device).get_rng_state(self.device)
            tensors[f"rng/{self.device.type}"] = state
        if self.batches.generator is not None:
            tensors["rng/batches"] = self.batches.generator.get_state()
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors.update(_prefixed(f"optimizer/{index}", state))
        values = {
            "best_epoch": self.progress.best_epoch,
            "best_score": self.progress.best.score,
            "best_loss": self.progress.best.loss,
            "history": [asdict(record) for record in self.progress.history],
        }
        return Snapshot({name: t.detach().cpu().clone() for name, t in tensors.items()}, values)

    def restore(self, snapshot: Snapshot) -> None:
        try:
            self._restore(snapshot)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise RunError(f"the checkpoint does not fit this run: {error}") from error

    def _restore(self, snapshot: Snapshot) -> None:
        # Copies, because the optimiser changes its state in place and snapshots may be used again.
        tensors, values = _copy(snapshot.tensors), snapshot.values
        self.model.load_state_dict(_unprefixed("model", tensors))
        self.penalties.load_state_dict(_unprefixed("penalty", tensors))
        self._restore_optimizer(tensors)
        best_weights = _unprefixed("best", tensors)
        if values["best_epoch"] > 0 and best_weights.keys() != self.model.state_dict().keys():
            raise ValueError("the weights of the best epoch are incomplete")
        self.progress = _Progress(
            history=[EpochRecord(**record) for record in values["history"]],
            best_epoch=values["best_epoch"],
            best=Validation(values["best_score"], values["best_loss"]),
            best_weights=best_weights,
        )
        torch.set_rng_state(tensors["rng/cpu"])
        if self.device.type != "cpu":
            state = tensors[f"rng/{self.device.type}"]
            torch.get_device_module(self.device).set_rng_state(state, self.device)
        # One process that saw the whole graph has none; several may go on from there.
        if self.batches.generator is not None and "rng/batches" in tensors:
            self.batches.generator.set_state(tensors["rng/batches"])

    def _restore_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state = self.optimizer.state_dict()
        for index in range(len(self._parameters())):
            entry = _unprefixed(f"optimizer/{index}", tensors)
            if not entry:
                raise ValueError(f"the state of the optimizer lacks parameter {index}")
            state["state"][index] = entry
        self.optimizer.load_state_dict(state)

    def finish(self, stopped_by: str, seconds: float) -> FitResult:
        self.model.load_state_dict(self.progress.best_weights)
        self.model.eval()
        return FitResult(
            best_epoch=self.progress.best_epoch,
            val_score=self.progress.best.score,
            val_loss=self.progress.best.loss,
            epochs_run=self.epoch,
            stopped_by=stopped_by,
            penalty_weights={
                type(penalty).__name__: penalty.effective_weight()
                for penalty in self.penalties
                if isinstance(penalty, Regularizer)
            },
            history=self.progress.history,
            seconds=seconds,
        )


def _copy(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def _prefixed(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": tensor for name, tensor in state.items()}


def _unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}/"
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}
