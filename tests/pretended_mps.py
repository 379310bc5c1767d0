"""A device that can do what a GPU of Apple can, and no more, on the memory of the CPU.

Nobody here has such a machine. The tensors of this device are tensors of the CPU in a wrapper: to
torch they are those of another device, so that the code under test chooses as it would there. An
operation is refused if torch has none for ``mps`` (torch has a list of its operations), if it
meets float64 or a sparse matrix, or if tensors of two devices meet.

Call :func:`set_up` in a process of its own: torch has one name to give away, and keeps it.
"""

import json
import sys
from contextlib import chdir, nullcontext
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import torch
import torchgen
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from torchgen.gen import parse_native_yaml
from torchgen.model import DispatchKey

#: The name of the device; torch gives away all but its own.
NAME = "pretended"
#: Copies from one device to another.
_COPIES = ("aten::copy_", "aten::_to_copy", "aten::_copy_from_and_resize")
_WIDE = (torch.float64, torch.complex128)
#: The operations of the device.
_THERE: set[str] = set()


class RefusedError(Exception):
    """What a GPU of Apple would not do."""


class _Tensor(torch.Tensor):
    """A tensor of the device."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "_Tensor":
        """A wrapper around a tensor of the CPU."""
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=f"{NAME}:0",
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return _run(operation, args, kwargs or {})

    @property
    def data(self) -> torch.Tensor:
        """As of any tensor; what it is replaced by takes its place in the wrapper, too."""
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, value: "_Tensor") -> None:
        torch.Tensor.data.__set__(self, value)
        self.inner = value.inner

    def tolist(self) -> Any:
        """As of any tensor; torch has it for its own only."""
        return self.inner.tolist()

    def __repr__(self, **_: Any) -> str:
        return f"{NAME}({self.inner!r})"

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self.detach().clone().requires_grad_(self.requires_grad)


class _Mode(TorchDispatchMode):
    """Sees what makes tensors out of nothing."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return _run(operation, args, kwargs or {})


def _run(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given = tree_leaves((args, kwargs))
    own = [value for value in given if isinstance(value, _Tensor)]
    wanted = kwargs.get("device")
    makes = bool(own) if wanted is None else torch.device(wanted).type == NAME
    name = operation.name()
    if own or makes:
        _check(name, own, given, is_copy=name.startswith(_COPIES))
    inside = {key: _unwrapped(value) for key, value in kwargs.items()}
    if wanted is not None and makes:
        inside["device"] = torch.device("cpu")
    found = operation(*_unwrapped(args), **inside)
    if name == "aten::copy_":
        return args[0]
    if makes:
        found = tree_map(lambda value: _wrapped(name, value), found)
    if not own or wanted is not None:
        return found
    return return_and_correct_aliasing(operation, args, kwargs, found)


def _check(name: str, own: list[Any], given: list[Any], *, is_copy: bool) -> None:
    if name.startswith("aten::") and name.removeprefix("aten::") not in _THERE:
        raise RefusedError(f"{name}: torch has none for mps")
    others = [
        value
        for value in given
        if isinstance(value, torch.Tensor) and not isinstance(value, _Tensor) and value.dim()
    ]
    if own and others and not is_copy:
        raise RefusedError(f"{name}: tensors of two devices")
    if any(isinstance(value, torch.Generator) for value in given):
        raise RefusedError(f"{name}: a generator of the CPU")


def _wrapped(name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype in _WIDE or value.layout != torch.strided:
        raise RefusedError(f"{name} gives {value.dtype}, {value.layout}")
    return _Tensor(value)


def _unwrapped(values: Any) -> Any:
    return tree_map(lambda value: value.inner if isinstance(value, _Tensor) else value, values)


def operations_of_mps() -> list[str]:
    """The operations that torch has for ``mps``, or makes of others; read in a second."""
    folder = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
    found = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    by_name = {str(function.func.name): function for function in found.native_functions}
    on_mps = found.backend_indices[DispatchKey.MPS]

    def is_there(function: Any) -> bool:
        if function.structured_delegate is not None:
            function = by_name[str(function.structured_delegate)]
        return bool(function.has_composite_kernel or on_mps.has_kernel(function))

    return [name for name, function in by_name.items() if is_there(function)]


class _Module:
    """The module of the device, as ``torch.mps`` is that of GPUs of Apple."""

    def __init__(self) -> None:
        self.is_available = lambda: True
        self.is_initialized = lambda: True
        self._is_in_bad_fork = lambda: False
        self.current_device = lambda: 0
        self.device_count = lambda: 1
        self.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]

    def manual_seed_all(self, seed: int) -> None:
        """Random numbers are those of the CPU."""

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """The state of random numbers."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        """Go back to a state."""
        torch.set_rng_state(state)


def set_up(operations: Path) -> TorchDispatchMode:
    """Make the device; what uses it runs inside of the mode that is returned.

    Args:
        operations: A file with :func:`operations_of_mps`, as JSON.
    """
    _THERE.update(json.loads(operations.read_text()))
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    return _Mode()


def print_differences(operations: Path, kind: str, cases: str, folder: str) -> None:
    """Print, for each case, how far its losses are from those of the CPU, or what was refused.

    Args:
        operations: See :func:`set_up`.
        kind: The name of an estimator.
        cases: A list of its options, as JSON.
        folder: Where models are saved.
    """
    import argnn
    from argnn.data import load
    from argnn.estimators import base, loading

    for module in (base, loading):
        module.resolve_device = lambda name, *_: name  # type: ignore[attr-defined]
    mode, found = set_up(operations), []
    for options in json.loads(cases):
        graph, kept = load("mixed"), []
        if options.pop("weighted", False):
            graph.edge_weight = 0.5 + graph.edge_index.sum(0) % 3
        targets = [graph.x[:, 0]] if kind == "ARGNNRegressor" else []
        for device in ("cpu", NAME):
            with mode if device == NAME else nullcontext():
                estimator = getattr(argnn, kind)(device=device, epochs=3, **options)
                try:
                    kept.append(_losses_and_answers(estimator.fit(graph, *targets), graph, folder))
                except RefusedError as error:
                    steps = [
                        step
                        for step in extract_tb(error.__traceback__)
                        if "src/argnn" in step.filename
                    ]
                    found.append(f"{error} at {steps[-1].filename}:{steps[-1].lineno}")
        if len(kept) == 2:
            found.append(max(abs(a - b) / max(1, abs(a)) for a, b in zip(*kept, strict=True)))
    sys.stdout.write(json.dumps(found))


def print_exit_codes(operations: Path, commands: str, folder: str) -> None:
    """Print the exit code and the last words of commands, whose ``--device mps`` is this one.

    Args:
        operations: See :func:`set_up`.
        commands: Lists of words, as JSON.
        folder: Where they run.
    """
    from typer.testing import CliRunner

    from argnn.cli import app
    from argnn.estimators import base, loading
    from argnn.outputs import predict
    from argnn.runs import prepare

    for module in (prepare, predict, base, loading):
        module.resolve_device = lambda name, *_: "cpu" if name == "cpu" else NAME  # type: ignore[attr-defined]
    found = []
    with set_up(operations), chdir(folder):
        for words in json.loads(commands):
            done = CliRunner().invoke(app, words)
            found.append((done.exit_code, done.output[-500:] + repr(done.exception)))
    sys.stdout.write(json.dumps(found))


def _losses_and_answers(estimator: Any, graph: Any, folder: str) -> list[float]:
    """Losses and gradients of the training, and answers of the model and of the saved model."""
    import argnn

    path = Path(folder) / "model"
    estimator.save(path, overwrite=True)
    loaded = argnn.load(path, device=estimator.device)
    numbers = [record[name] for record in estimator.history_ for name in ("loss", "gradient_norm")]
    for model in (estimator, loaded):
        if isinstance(model, argnn.ARGNNLinkPredictor):
            numbers += (
                model.predict_proba(graph.edge_index[:, :50].t().tolist(), graph).flatten().tolist()
            )
        else:
            ask = getattr(model, "predict_proba", model.predict)
            numbers += np.asarray(ask(graph)).flatten().tolist()
    return numbers
