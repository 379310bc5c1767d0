"""Check a graph from any source, and bring it to the one form that the library works with."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from argnn.data.splits import (
    MASK_NAMES,
    Folds,
    Masks,
    check_folds,
    check_usable,
    fold_splits,
    stratified_splits,
)
from argnn.data.targets import check_targets
from argnn.errors import ConfigError, DataError, error_prefix

DRAWN_FRACTIONS = (0.6, 0.2, 0.2)
DRAWN_SEED = 0
#: How a split was drawn, in words: for classes, and for other targets.
DRAWN_RULES = tuple(
    f"one {kind} 60/20/20 split drawn with seed {DRAWN_SEED}" for kind in ("stratified", "random")
)
ROW_RULE = "rows scaled to sum 1, zero rows kept"
WEIGHT_RULE = "weights kept (of duplicates the mean)"
TIME_RULE = "times kept (of duplicates the first)"
NO_SPLIT_ASKED = "no split was asked for"
#: How the rule begins where the source has masks that cannot be used.
UNUSABLE_MASKS = "the masks cannot be used"
_KEPT = ("geometry", "geometry_names", "region", "targets", "target_names", "target_kind")


class TooFewLabelsError(DataError):
    """There are too few labels to draw a split."""


def assemble(
    source: Data,
    *,
    origin: str,
    name: str,
    directed: bool = False,
    row_normalize: bool = False,
    made_features: int = 0,
    undirected_source: bool = False,
    draw_split: bool = True,
    folds: Folds | None = None,
) -> Data:
    """Check every field of ``source`` and return a graph that keeps the contract of ``load``.

    Args:
        source: Holds ``x`` and ``edge_index``, optionally ``y``, the three masks, ``edge_weight``,
            ``class_names``, ``split_rule`` and ``fold_groups``. It is not changed.
        origin: The file or data set, for error messages.
        name: Name of the graph.
        directed: Keep the directions of the edges.
        row_normalize: Scale each row of the nodes' own features to sum one.
        made_features: How many of the last features were made from the edges and are not scaled.
        undirected_source: The source has no directions to keep; ``edge_rule`` says so.
        draw_split: As in ``load``.
        folds: Folds that replace the masks of the source.
    """
    with error_prefix(f"{origin}:"):
        x = _features(source)
        edge_index = checked_edges(source, x.size(0))
        y = _labels(source, x.size(0))
        class_names = _class_names(source, y)
        known = known_labels(source, y, draw_split or folds is not None)
        replaced: list[str] = []
        if folds is not None:
            masks, split_rule, replaced = folded(source, known, class_names, folds)
        else:
            masks, split_rule = (_masks if draw_split else _masks_if_usable)(source, known)
        train, val, test = masks
        weight = _weight(source, edge_index)
        time = _time(source, edge_index)
        feature_rule = "as stored"
        if row_normalize:
            own, made = x.split([x.size(1) - made_features, made_features], dim=1)
            x = torch.cat([row_normalized(own), made], dim=1)
            feature_rule = ROW_RULE
    notes = replaced + _edge_notes(edge_index, x.size(0))
    keeps_directions = directed and not undirected_source
    found = merged_edges(edge_index, weight, time, x.size(0), keeps_directions)
    edge_index, weight, time = found
    graph = Data(x=x, edge_index=edge_index, y=y, train_mask=train, val_mask=val, test_mask=test)
    graph.name, graph.class_count, graph.class_names = name, len(class_names), class_names
    graph.edge_rule = edge_rule(source, keeps_directions, said=directed)
    graph.feature_rule, graph.split_rule, graph.notes = feature_rule, split_rule, notes
    if weight is not None:
        graph.edge_weight = weight
    if time is not None:
        graph.edge_time = time
    for key in _KEPT:
        if source.get(key) is not None:
            graph[key] = source[key]
    return graph


def features_and_edges(graph: Data) -> Data:
    """What a model computes from: features, edges and their weights, without labels."""
    names = ("x", "edge_index", "edge_weight")
    return Data(**{name: graph[name] for name in names if graph.get(name) is not None})


def without_weightless_edges(source: Data, origin: str) -> list[str]:
    """Take out edges whose weight is zero, which are none, and say so.

    ``source`` holds ``edge_weight`` and ``keep_weight``.
    """
    with error_prefix(f"{origin}:"):
        weight = _weight(source, _integers(source, "edge_index"))
    if weight is None or bool((weight != 0).all()):
        return []
    kept = weight != 0
    source.edge_index = source.edge_index[:, kept]
    source.edge_weight = source.edge_weight.flatten()[kept]
    if source.get("keep_time"):
        source.edge_time = source.edge_time[kept]
    return [f"{int((~kept).sum())} edges of weight 0 left out"]


def _first(wrong: Tensor) -> list[int] | None:
    """Where the first true entry is; none if all are false."""
    places = wrong.nonzero()
    return places[0].tolist() if len(places) else None


def _check_shape(field: str, value: Tensor, fits: bool, expected: str) -> None:
    if not fits:
        raise DataError(f"{field} must have shape {expected} (got {list(value.shape)})")


def _tensor(source: Data, field: str) -> Tensor:
    value = source.get(field)
    if not isinstance(value, Tensor):
        found = "nothing" if value is None else type(value).__name__
        raise DataError(f"{field} must be an array (got {found})")
    if value.layout != torch.strided or value.is_complex():
        raise DataError(f"{field} must be a dense array of real numbers")
    return value.detach().cpu()


def _integers(source: Data, field: str) -> Tensor:
    value = _tensor(source, field)
    # numpy and torch turn an empty list into a float array, which is no error.
    if value.is_floating_point() and value.numel():
        dtype = str(value.dtype).removeprefix("torch.")
        raise DataError(f"{field} must hold integers (got {dtype})")
    return value.to(torch.int64)


def _features(source: Data) -> Tensor:
    stored = _tensor(source, "x")
    fits = stored.dim() == 2 and 0 not in stored.shape
    _check_shape("x", stored, fits, "[nodes, features], both at least 1")
    return check_finite(stored)


def check_finite(stored: Tensor, first: int = 0) -> Tensor:
    """Features in float32, all of them finite; ``first`` is the number of the first row."""
    x = stored.to(torch.float32)
    # The two ends of the range show whether all is finite; to find the place takes a copy of all.
    if not bool(torch.stack(torch.aminmax(x)).isfinite().all()):
        row, column = _first(~torch.isfinite(x)) or (0, 0)
        found = stored[row, column].item()
        raise DataError(f"x[{first + row}, {column}] is not finite (got {found})")
    return x.contiguous()


def checked_edges(source: Data, num_nodes: int) -> Tensor:
    """The edges of ``source``, ``[2, E]``, if they are integers that name nodes."""
    edge_index = _integers(source, "edge_index")
    fits = edge_index.dim() == 2 and edge_index.size(0) == 2
    _check_shape("edge_index", edge_index, fits, "[2, edges]")
    if place := _first((edge_index < 0) | (edge_index >= num_nodes)):
        row, column = place
        raise DataError(
            f"edge_index[{row}, {column}] is {int(edge_index[row, column])}, "
            f"but node ids go from 0 to {num_nodes - 1}"
        )
    return edge_index


def _labels(source: Data, num_nodes: int) -> Tensor:
    if source.get("y") is None:
        return torch.full((num_nodes,), -1)
    y = _integers(source, "y")
    if y.shape == (num_nodes, 1):  # as Open Graph Benchmark has it
        y = y.view(num_nodes)
    expected = f"[{num_nodes}], one label per row of x"
    _check_shape("y", y, y.shape == (num_nodes,), expected)
    if place := _first(y < -1):
        (row,) = place
        raise DataError(f"y[{row}] is {int(y[row])}; labels start at 0, -1 marks unlabelled nodes")
    if y.numel() and int(y.max()) >= num_nodes:
        row = int(y.argmax())
        raise DataError(
            f"y[{row}] is {int(y[row])}; labels must be numbered 0, 1, 2, ... "
            f"and cannot exceed the {num_nodes} nodes"
        )
    return y.contiguous()


def known_labels(source: Data, y: Tensor, check: bool) -> Tensor:
    """Labels that tell the nodes of which something is known; without classes, 0 or -1."""
    targets = source.get("targets")
    if targets is None:
        return y
    if check:
        check_targets(targets, source.target_names, source.target_kind)
    return torch.where(targets.isnan().any(1), -1, 0)


def _class_names(source: Data, y: Tensor) -> list[str]:
    count = int(y.max()) + 1
    names: Any = source.get("class_names")
    if names is None:
        return [f"class {index}" for index in range(count)]
    if len(names) < count:
        raise DataError(f"class_names has {len(names)} entries for {count} classes")
    return [str(name) for name in names]


def _masks(source: Data, y: Tensor) -> tuple[Masks, str]:
    given = [name for name in MASK_NAMES if source.get(name) is not None]
    if 0 < len(given) < 3:
        missing = next(name for name in MASK_NAMES if name not in given)
        raise DataError(f"{missing} is missing; give all three masks or none")
    if given:
        train, val, test = (_mask(source, name, y) for name in MASK_NAMES)
        if bool((y >= 0).any()) or bool(train.any()):
            check_usable(train, val, test)
        return (train, val, test), source.get("split_rule") or "masks of the source"
    if not bool((y >= 0).any()):
        return empty_masks(len(y)), "no split: the graph has no labels"
    train, val, test = stratified_splits(y, DRAWN_FRACTIONS, count=1, seed=DRAWN_SEED)
    if not (bool(train.any()) and bool(val.any())):
        raise TooFewLabelsError("too few labels to draw a split; give train, val and test masks")
    return (train, val, test), DRAWN_RULES[source.get("targets") is not None]


def folded(
    source: Data, y: Tensor, class_names: list[str], folds: Folds
) -> tuple[Masks, str, list[str]]:
    """Masks of folds, their rule, and notes; ``y`` holds labels, 0 or -1 without classes."""
    groups, notes = source.get("fold_groups"), []
    class_names = [name.removeprefix("class ") for name in class_names]
    check_folds(y, folds, class_names, groups)
    masks = fold_splits(y, folds.count, DRAWN_SEED, groups)
    check_usable(*masks)
    if any(source.get(name) is not None for name in MASK_NAMES):
        notes.append(f"the split of the source is replaced by {folds.count} folds")
    if groups is not None:
        count = len(groups[groups >= 0].unique())
        notes.append(f"column {folds.column}: {count} groups, each in one fold; no feature")
    for number, name in enumerate(class_names):
        lacking = (~masks[0][y == number].any(0)).nonzero().flatten().tolist()
        if lacking and bool((y == number).any()):
            where = ", ".join(map(str, lacking))
            notes.append(f"class {name} is in too few groups: split {where} trains without it")
    return masks, folds.rule(DRAWN_SEED, bool(class_names)), notes


def _masks_if_usable(source: Data, y: Tensor) -> tuple[Masks, str]:
    """The masks of the source if they can be used, else empty ones, and the reason as the rule.

    Without any labels nodes of a mask need none: labels may be given apart from the graph.
    """
    given = [source.get(name) for name in MASK_NAMES if source.get(name) is not None]
    if not any(not isinstance(mask, Tensor) or bool(mask.any()) for mask in given):
        return empty_masks(len(y)), NO_SPLIT_ASKED
    try:
        return _masks(source, y if bool((y >= 0).any()) else torch.zeros_like(y))
    except DataError as error:
        return empty_masks(len(y)), f"{UNUSABLE_MASKS}: {error}"


def empty_masks(num_nodes: int) -> Masks:
    """Masks of one split in which no node is."""
    train, val, test = (torch.zeros(num_nodes, 1, dtype=torch.bool) for _ in range(3))
    return train, val, test


def _mask(source: Data, field: str, y: Tensor) -> Tensor:
    mask = _integers(source, field)
    fits = mask.dim() in (1, 2) and mask.size(0) == len(y) and 0 not in mask.shape
    _check_shape(field, mask, fits, f"[{len(y)}] or [{len(y)}, splits]")
    mask = mask.view(len(y), -1)
    if place := _first((mask != 0) & (mask != 1)):
        row, split = place
        raise DataError(f"{field}[{row}, {split}] must be 0 or 1 (got {int(mask[row, split])})")
    if place := _first(mask.bool() & (y < 0).unsqueeze(1)):
        row, split = place
        raise DataError(f"{field}[{row}, {split}] is set, but node {row} has no label")
    return mask.bool().contiguous()


def arranged_edges(edge_index: Tensor, num_nodes: int, directed: bool) -> Tensor:
    """Edges without self-loops and duplicates, in both directions if undirected.

    Example:
        >>> arranged_edges(torch.tensor([[0, 0, 1], [1, 1, 1]]), 2, directed=False).tolist()
        [[0, 1], [1, 0]]
    """
    return _arranged(edge_index, None, num_nodes, directed)[0]


def merged_edges(
    edge_index: Tensor, weight: Tensor | None, time: Tensor | None, num_nodes: int, directed: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """:func:`arranged_edges` with weights and times ``[E]``, where edges have any.

    Merged edges have the mean of their weights, or the time and weight of the first in time.
    """
    if time is not None:
        return _first_in_time(edge_index, weight, time, num_nodes, directed)
    return *_arranged(edge_index, weight, num_nodes, directed), None


def _arranged(
    edge_index: Tensor, weight: Tensor | None, num_nodes: int, directed: bool
) -> tuple[Tensor, Tensor | None]:
    edge_index, weight = remove_self_loops(edge_index, weight)
    merge = coalesce if directed else to_undirected
    if weight is None:
        return merge(edge_index, num_nodes=num_nodes).contiguous(), None
    # The mean keeps the weights of a list that has every edge in both directions.
    edge_index, weight = merge(edge_index, weight, num_nodes=num_nodes, reduce="mean")
    return edge_index.contiguous(), weight


def _first_in_time(
    edge_index: Tensor, weight: Tensor | None, time: Tensor, num_nodes: int, directed: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """As :func:`_arranged`; merged edges have the time and weight of the first of them.

    A later weight would tell a model about edges that it must not see yet.
    """
    place = (edge_index[0] != edge_index[1]).nonzero().squeeze(-1)
    edges = edge_index[:, place]
    if not directed:
        edges, place = torch.cat([edges, edges.flip(0)], dim=1), place.repeat(2)
    # Sorted by ends, then by time: the first of each run of equal ends is kept.
    order = torch.argsort(time[place], stable=True)
    key = (edges[0] * num_nodes + edges[1])[order]
    by_ends = torch.argsort(key, stable=True)
    key, order = key[by_ends], order[by_ends]
    is_first = torch.ones_like(key, dtype=torch.bool)
    is_first[1:] = key[1:] != key[:-1]
    chosen = order[is_first]
    weight = None if weight is None else weight[place[chosen]]
    return edges[:, chosen].contiguous(), weight, time[place[chosen]]


def edge_rule(source: Data, keeps_directions: bool, said: bool) -> str:
    """What was done to the edges, in words."""
    directions = "directions kept" if keeps_directions else "both directions listed"
    rule = f"self-loops removed, {directions}, duplicates merged"
    if source.get("keep_time"):
        rule += f", {TIME_RULE}"
    elif source.get("keep_weight"):
        rule += f", {WEIGHT_RULE}"
    rule += " (the source is undirected)" if said and not keeps_directions else ""
    # After duplicates are merged there is no single value per edge, and no model would use it.
    dropped = ["edge_attr"] if source.get("keep_weight") else ["edge_weight", "edge_attr"]
    names = [name for name in dropped if source.get(name) is not None]
    return rule + (f", {' and '.join(names)} dropped" if names else "")


def _edge_notes(edge_index: Tensor, num_nodes: int) -> list[str]:
    """How many edges were changed, and how many nodes have none."""
    simple = remove_self_loops(edge_index)[0]
    merged = coalesce(simple, num_nodes=num_nodes)
    alone = num_nodes - int(simple.unique().numel())
    return edge_notes(edge_index.size(1) - simple.size(1), simple.size(1) - merged.size(1), alone)


def edge_notes(self_loops: int, duplicates: int, alone: int) -> list[str]:
    """What was done to the edges, in numbers."""
    counts = {
        "self-loops removed": self_loops,
        "duplicate edges merged": duplicates,
        "nodes without edges": alone,
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _weight(source: Data, edge_index: Tensor) -> Tensor | None:
    """The weights of the edges, if the user asked for them."""
    if not source.get("keep_weight"):
        return None
    return checked_weights(_tensor(source, "edge_weight"), edge_index)


def checked_weights(given: Any, edge_index: Tensor) -> Tensor:
    """Weights ``[E]`` of edges, if they are finite and not negative; ``[E, 1]`` will do, too."""
    given = torch.as_tensor(given)
    weight: Tensor = given.double().flatten()
    expected = f"[{edge_index.size(1)}], one per edge"
    fits = weight.numel() == edge_index.size(1)
    _check_shape("edge_weight", given, fits, expected)
    if place := _first(~torch.isfinite(weight.float())):
        (row,) = place
        raise DataError(f"edge_weight[{row}] is not finite (got {weight[row].item()})")
    if place := _first(weight < 0):
        (row,) = place
        raise DataError(f"edge_weight[{row}] is negative (got {weight[row].item()})")
    return weight.float()


def _time(source: Data, edge_index: Tensor) -> Tensor | None:
    """The times of the edges, if the user asked for them."""
    if not source.get("keep_time"):
        return None
    time = _tensor(source, "edge_time").double()
    expected = f"[{edge_index.size(1)}], one per edge"
    _check_shape("edge_time", time, time.shape == edge_index.shape[1:], expected)
    if place := _first(~torch.isfinite(time)):
        (row,) = place
        raise DataError(f"edge_time[{row}] is not finite (got {time[row].item()})")
    return time


def row_normalized(x: Tensor, first: int = 0) -> Tensor:
    """Rows scaled to sum one; ``first`` is the number of the first row, for error messages."""
    if not x.size(1):
        raise ConfigError("row_normalize scales the nodes' own features; there are none")
    if place := _first(x < 0):
        row, column = place
        raise ConfigError(
            "row_normalize needs features that are not negative "
            f"(x[{first + row}, {column}] is {x[row, column].item():g})"
        )
    total = x.sum(dim=1, keepdim=True)
    return x / torch.where(total > 0, total, 1.0)
