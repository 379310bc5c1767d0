"""Turn a trained model into a program, or an ONNX model, that runs without the package."""

import io
import json
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx import Node

import argnn
from argnn.errors import ConfigError, require
from argnn.estimators import ARGNNClassifier, ARGNNRegressor, load
from argnn.estimators.base import GraphEstimator
from argnn.files import require_writable, write_output
from argnn.nn import ARGNN, AbstractNodeModel, LinkModel
from argnn.outputs.onnx_program import onnx_bytes
from argnn.outputs.plain_ops import cleaned, plain_table
from argnn.telling import Tell, be_silent
from argnn.train.target_tasks import TargetRule
from argnn.wording import shortened

#: What can be written.
FORMATS = ("pt2", "onnx")
#: Name of the file in the program's archive, or of the entry, that describes inputs and outputs.
FACTS = "argnn.json"
_PREFIX = "argnn."
_EDGE_WISE = "it weighs edges one by one from tables that torch.export cannot follow"
#: Why tracing a method fails, where it does.
_REASONS = dict.fromkeys(("cusp", "fagcn", "gat", "gnrf", "h2gcn", "hgat", "kappa-gcn"), _EDGE_WISE)


class _NodeProgram(nn.Module):
    """From features and edges to calibrated probabilities, or to targets in their own units."""

    def __init__(
        self,
        model: AbstractNodeModel,
        temperature: float,
        directed: bool,
        target: TargetRule | None = None,
    ) -> None:
        super().__init__()
        self.model, self.temperature, self.directed = model, temperature, directed
        self.target = target

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edges = cleaned(edge_index, x.size(0), self.directed, edge_weight)
        outputs = self.model(x, *edges)
        if self.target is not None:
            return self.target.finished(outputs)
        return torch.softmax(outputs / self.temperature, dim=-1)


class _LinkProgram(nn.Module):
    """From features, edges and pairs of nodes to calibrated probabilities of links."""

    def __init__(self, model: LinkModel, temperature: float) -> None:
        super().__init__()
        self.model, self.temperature = model, temperature

    def forward(
        self, x: Tensor, edge_index: Tensor, pairs: Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        embedding = self.model(x, *cleaned(edge_index, x.size(0), False, edge_weight))
        return torch.sigmoid(self.model.pair_scores(embedding, pairs) / self.temperature)


def export_model(
    run: Path,
    out: Path,
    *,
    split: int | None = None,
    kind: str = "pt2",
    force: bool = False,
    tell: Tell = be_silent,
) -> dict[str, Any]:
    """Write the model of a run, or of a model folder, as a program.

    The options are those of the command. The result says what was written: the program, its method
    and task, inputs and output in words, and the label of each column of the output.
    """
    require(kind in FORMATS, "--format", f"one of {', '.join(FORMATS)}", f"'{shortened(kind)}'")
    require_writable(out, force)
    tell(0, 3, "reading the model")
    estimator: GraphEstimator = load(run, split=split)
    tell(1, 3, "following the computation")
    if kind == "onnx" and _has_factored_metric(estimator.model_):
        reason = "ONNX has no inverse of a complex matrix, which metric_shape lowrank and full need"
        raise ConfigError(f"argnn cannot become an ONNX model: {reason}; --format pt2 can hold it")
    program = exported(estimator)
    facts = _facts(estimator)
    files = {FACTS: json.dumps(facts, indent=2)}
    tell(2, 3, f"making the {kind} file")
    if kind == "onnx":
        content = onnx_bytes(program, facts["model"], files)
    else:
        saved = io.BytesIO()
        torch.export.save(program, saved, extra_files=files)
        content = saved.getvalue()
    write_output(out, content, force=force)
    return {"out": str(out), **facts, "size": len(content)}


def exported(estimator: GraphEstimator) -> ExportedProgram:
    """The program of a fitted estimator, for any number of nodes, edges and pairs."""
    # A copy, since the caller's model must stay on its device.
    model, name = deepcopy(estimator.model_).cpu().eval(), estimator.settings_.spec.model
    if model.node_parameters():
        reason = "its weights belong to the nodes of one graph"
        raise ConfigError(f"{name} cannot be exported: {reason}; argnn.load opens it")
    if _has_factored_metric(model, on_edges=True):
        reason = "with metric_shape lowrank or full it needs modulation=operator or interpolation"
        raise ConfigError(f"{name} cannot be exported: {reason}; argnn.load opens it")
    example = _example(estimator.n_features_in_)
    nodes, edges, pairs = Dim("nodes", min=2), Dim("edges", min=0), Dim("pairs", min=1)
    shapes: tuple[Any, ...] = ({0: nodes}, {1: edges}, {1: pairs}, {0: edges})
    module: nn.Module
    if isinstance(model, LinkModel):
        module, inputs = _LinkProgram(model, estimator.temperature_), [0, 1, 2]
    else:
        target = getattr(estimator, "target_", None)
        module = _NodeProgram(model, estimator.temperature_, estimator.directed, target)
        inputs = [0, 1]
    inputs += [3] if _is_weighted(estimator) else []
    example, shapes = (tuple(all_of[i] for i in inputs) for all_of in (example, shapes))
    try:
        # While the model is traced, each sum is one operator of the package.
        with warnings.catch_warnings(), torch.no_grad(), argnn.kernels.use("auto"):
            warnings.simplefilter("ignore")
            traced = torch.export.export(module, example, dynamic_shapes=shapes, strict=False)
            share_steps(traced)
            program: ExportedProgram = traced.run_decompositions(plain_table(estimator.directed))
            share_steps(program)
    except Exception as error:  # tracing may fail in any way
        reason = _REASONS.get(name, f"{type(error).__name__}: {shortened(error)}")
        raise ConfigError(f"{name} cannot be exported: {reason}; argnn.load opens it") from error
    left = sorted({str(n.target) for n in program.graph.nodes if str(n.target).startswith(_PREFIX)})
    if left:
        raise ConfigError(f"{name} cannot be exported: {left[0]} exists in the package only")
    return program


def _has_factored_metric(model: AbstractNodeModel, *, on_edges: bool = False) -> bool:
    """Whether metrics are not diagonal, and perhaps act on single edges."""
    encoder = model.encoder if isinstance(model, LinkModel) else model
    if not isinstance(encoder, ARGNN) or len(encoder.metric_size) == 1:
        return False
    return encoder.metric_on_edges or not on_edges


def _example(num_features: int) -> tuple[Tensor, ...]:
    """A graph with all kinds of edges, so that the traced program is valid for all of them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, num_features, generator=generator)
    edges = torch.randint(12, (2, 40), generator=generator)
    pairs = torch.randint(12, (2, 7), generator=generator)
    return x, edges, pairs, 0.5 + torch.rand(40, generator=generator)


def _is_weighted(estimator: GraphEstimator) -> bool:
    """Whether the model was trained with weights of edges."""
    return (estimator.schema_ or {}).get("weight") is not None


def _facts(estimator: GraphEstimator) -> dict[str, Any]:
    inputs = {
        # As argnn.data.load encodes them: columns of a table are not part of the program.
        "x": f"float32 [nodes, {estimator.n_features_in_}], two nodes or more",
        "edge_index": "int64 [2, edges], source and target",
    }
    if isinstance(estimator, ARGNNRegressor):
        assert estimator.target_ is not None
        output = f"float32 [nodes, targets], {', '.join(estimator.target_.names)}"
        classes = list[Any]()
    elif isinstance(estimator, ARGNNClassifier):
        output, classes = "float32 [nodes, classes], probabilities", estimator.classes_.tolist()
    else:
        inputs["pairs"] = "int64 [2, pairs], rows of x"
        output, classes = "float32 [pairs], probability of a link", []
    if _is_weighted(estimator):
        inputs["edge_weight"] = "float32 [edges], finite and not negative; the last input"
    return {
        "model": estimator.settings_.spec.model,
        "task": estimator.task,
        "inputs": inputs,
        "output": output,
        "classes": classes,
        "decision_rule": getattr(estimator, "decision_rule_", None),
    }


def share_steps(program: ExportedProgram) -> None:
    """Compute equal steps of a program once, which is possible as inference draws no numbers.

    Every layer sums over the same edges. What the sums prepare, such as the order of the edges and
    their weights, is in the program once for each sum; all copies but the first are removed.
    """
    graph = program.graph_module.graph
    returned = set(graph.output_node().all_input_nodes)
    first: dict[Any, Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node in returned:  # the signature names what is returned
            continue
        # Sizes that are known only from the data have a name of their own each time they are met.
        sizes = tuple(map(str, _sizes(node.meta.get("val"))))
        key = (node.target, _frozen(node.args), _frozen(node.kwargs), sizes)
        earlier = first.setdefault(key, node)
        if earlier is not node:
            node.replace_all_uses_with(earlier)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _sizes(value: Any) -> Iterator[Any]:
    """Sizes and types of all tensors in a value, or the value."""
    if isinstance(value, torch.Tensor):
        yield from (*value.shape, value.dtype)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _sizes(part)
    else:
        yield value


def _frozen(value: Any) -> Any:
    """The same as something that can be a key; 1, 1.0 and True stay different."""
    if isinstance(value, tuple | list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in sorted(value.items()))
    return value if isinstance(value, Node) else (type(value), value)
