# mypy: disable-error-code="no-untyped-def"
r"""Optimal transport between the lazy random walks of neighbours, exactly, in whole numbers.

The walks from the two ends of an edge live on their neighbourhoods, so that mass moves by one, two
or three hops; what both walks share stays where it is. With costs of 1, 2 and 3 the method of
successive shortest paths is three maximum flows. Between a sender with supply and a receiver with
demand the direct way is always open, so that no unit ever costs more than three:

1. send as much as possible between neighbours;
2. send as much as possible at two per unit, which may redirect what was sent before: the minimum
   cut of the first stage says over which pairs;
3. what is left costs three.

The end of lower degree is the center of an edge. Its neighbours receive, and are kept as bits, 64
in a word: one pass over the words of a sender finds all receivers that it reaches, and the words
serve all edges of the center. Masses are multiplied by their common denominator: sums are exact.
Walks that follow the weights of edges have masses in units of 2^-48, rounded down; the rest stays.
"""

from concurrent.futures import ThreadPoolExecutor, as_completed
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from numba import njit
from numba.core import types
from numba.extending import intrinsic
from torch import Tensor

from argnn.kernels.csr import Csr
from argnn.kernels.kept import kept_jit
from argnn.telling import TellCount

_Integers = npt.NDArray[np.int64]

#: Pieces of work for each thread: enough that none waits long for the last.
_PIECES_PER_THREAD = 32
#: Work of an edge besides its cells, in cells.
_EDGE_COST = 256
#: Laziness is taken as a ratio of whole numbers up to this one.
_LARGEST_DENOMINATOR = 10**9
#: Units of mass of a weighted walk.
_UNITS = 2**48


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_jit: Any = njit(**_OPTIONS)
_kept_jit: Any = partial(kept_jit, **_OPTIONS)


@intrinsic
def _lowest_bit(typing_context, word):
    """Position of the lowest bit of a word that is not zero."""

    def generate(context, builder, signature, arguments):
        from llvmlite import ir  # type: ignore[import-untyped]

        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


@_jit
def _place_of(word_number, word):
    """Place of the lowest bit of a word in its row."""
    return 64 * word_number + np.int64(_lowest_bit(word))  # type: ignore[call-arg]


@_jit
def _without_lowest(word):
    return word & (word - np.uint64(1))


@_jit
def _set_bit(words, place):
    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@_jit
def _clear_bit(words, place):
    words[place >> 6] &= ~(np.uint64(1) << np.uint64(place & 63))


@_jit
def _has_bit(words, place):
    return (words[place >> 6] >> np.uint64(place & 63)) & np.uint64(1) != 0


# --- maximum flow -----------------------------------------------------------------------------


class _Network(NamedTuple):
    """Senders, receivers and the flow between them, with room for the largest edge.

    Attributes:
        supply: What each sender still holds, ``[S]``.
        demand: What each receiver still wants, ``[R]``.
        wanted: Bits of the receivers with demand left.
        arcs: Bits of the receivers that each sender may send to, ``[S, words]``.
        flow: What a sender gave to a receiver, one row per sender, flat.
        givers: Bits of the senders that gave to each receiver, ``[R, words]``.
        level: Layer of each sender, negative outside of all.
        layers: Bits of the receivers in each layer, ``[S + 1, words]``.
        seen: Bits of the receivers in any layer.
        queue: Senders in the order of their layers.
        path: Sender and receiver of each step, ``[S + 1, 2]``.
    """

    supply: Any
    demand: Any
    wanted: Any
    arcs: Any
    flow: Any
    givers: Any
    level: Any
    layers: Any
    seen: Any
    queue: Any
    path: Any


def _network(senders: int, receivers: int) -> _Network:
    words, sender_words = _words(receivers), _words(senders)
    return _Network(
        supply=np.zeros(senders, np.int64),
        demand=np.zeros(receivers, np.int64),
        wanted=np.zeros(words, np.uint64),
        arcs=np.zeros((senders, words), np.uint64),
        flow=np.zeros(senders * receivers, np.int64),
        givers=np.zeros((receivers, sender_words), np.uint64),
        level=np.zeros(senders, np.int64),
        layers=np.zeros((senders + 1, words), np.uint64),
        seen=np.zeros(words, np.uint64),
        queue=np.zeros(senders, np.int64),
        path=np.zeros((senders + 1, 2), np.int64),
    )


def _words(bits: int) -> int:
    return (bits + 63) // 64


@_jit
def _start_layers(net, senders, words):
    """All senders with supply are of level 0; how many there are."""
    for w in range(words):
        net.seen[w] = 0
    count = 0
    for i in range(senders):
        net.level[i] = -1
        if net.supply[i] > 0:
            net.level[i] = 0
            net.queue[count] = i
            count += 1
    return count


@_jit
def _fill_layer(net, begin, end, words, depth):
    """Receivers that the queued senders are the first to reach; whether one has demand.

    Where one has, only those with demand are kept: this is the last layer.
    """
    layer = net.layers[depth]
    for w in range(words):
        layer[w] = 0
    for place in range(begin, end):
        row = net.arcs[net.queue[place]]
        for w in range(words):
            layer[w] |= row[w]
    arrived = False
    for w in range(words):
        layer[w] &= ~net.seen[w]
        net.seen[w] |= layer[w]
        arrived |= (layer[w] & net.wanted[w]) != 0
    if arrived:
        for w in range(words):
            layer[w] &= net.wanted[w]
    return arrived


@_jit
def _queue_givers(net, end, words, sender_words, depth):
    """Senders that gave to a receiver of the layer before ``depth``; the new end of the queue."""
    for w in range(words):
        layer = net.layers[depth - 1, w]
        while layer != 0:
            receiver = _place_of(w, layer)
            layer = _without_lowest(layer)
            for v in range(sender_words):
                givers = net.givers[receiver, v]
                while givers != 0:
                    sender = _place_of(v, givers)
                    givers = _without_lowest(givers)
                    if net.level[sender] < 0:
                        net.level[sender] = depth
                        net.queue[end] = sender
                        end += 1
    return end


@_jit
def _find_layers(net, senders, words, sender_words):
    """Breadth-first layers from supply to demand; the last one, or -1 if demand is not reached."""
    begin, end, depth = 0, _start_layers(net, senders, words), 0
    while begin < end:
        if _fill_layer(net, begin, end, words, depth):
            return depth
        begin, depth = end, depth + 1
        end = _queue_givers(net, end, words, sender_words, depth)
    return -1


@_jit
def _receiver_after(net, sender, depth, words):
    """First receiver of a layer that a sender may send to, or -1."""
    for w in range(words):
        both = net.arcs[sender, w] & net.layers[depth, w]
        if both != 0:
            return _place_of(w, both)
    return -1


@_jit
def _giver_after(net, receiver, depth, sender_words):
    """First sender of a level that gave to a receiver, or -1."""
    for v in range(sender_words):
        givers = net.givers[receiver, v]
        while givers != 0:
            sender = _place_of(v, givers)
            givers = _without_lowest(givers)
            if net.level[sender] == depth:
                return sender
    return -1


@_jit
def _find_path(net, root, words, sender_words, last):
    """A way through the layers from ``root`` to demand, left in ``path``; whether there is one.

    Senders and receivers that turn out to lead nowhere are taken out of their layers.
    """
    depth = 0
    net.path[0, 0] = root
    while depth >= 0:
        sender = net.path[depth, 0]
        receiver = _receiver_after(net, sender, depth, words)
        if receiver < 0:
            net.level[sender] = -1
            depth -= 1
            continue
        net.path[depth, 1] = receiver
        if depth == last:
            return True
        giver = _giver_after(net, receiver, depth + 1, sender_words)
        if giver < 0:
            _clear_bit(net.layers[depth], receiver)
        else:
            depth += 1
            net.path[depth, 0] = giver
    return False


@_jit
def _send_along_path(net, receivers, last):
    """As much as the path takes; each sender on it gives what the next one gave before."""
    root, end = net.path[0, 0], net.path[last, 1]
    amount = min(net.supply[root], net.demand[end])
    for depth in range(last):
        amount = min(amount, net.flow[net.path[depth + 1, 0] * receivers + net.path[depth, 1]])
    for depth in range(last + 1):
        sender, receiver = net.path[depth, 0], net.path[depth, 1]
        net.flow[sender * receivers + receiver] += amount
        _set_bit(net.givers[receiver], sender)
        if depth < last:
            giver = net.path[depth + 1, 0]
            net.flow[giver * receivers + receiver] -= amount
            if net.flow[giver * receivers + receiver] == 0:
                _clear_bit(net.givers[receiver], giver)
    net.supply[root] -= amount
    net.demand[end] -= amount
    if net.demand[end] == 0:
        _clear_bit(net.layers[last], end)
        _clear_bit(net.wanted, end)
    return amount


@_jit
def _send_all(net, senders, receivers):
    """Maximum flow over the arcs, on top of what flows already; what is added (Dinic's method).

    In the end ``level`` and ``seen`` mark what senders with supply can still reach.
    """
    words, sender_words = (receivers + 63) // 64, (senders + 63) // 64
    sent = 0
    last = _find_layers(net, senders, words, sender_words)
    while last >= 0:
        for root in range(senders):
            while net.supply[root] > 0 and net.level[root] == 0:
                if _find_path(net, root, words, sender_words, last):
                    sent += _send_along_path(net, receivers, last)
        last = _find_layers(net, senders, words, sender_words)
    return sent


@_jit
def _forget_flow(net, senders, receivers):
    for receiver in range(receivers):
        for v in range((senders + 63) // 64):
            givers = net.givers[receiver, v]
            while givers != 0:
                net.flow[_place_of(v, givers) * receivers + receiver] = 0
                givers = _without_lowest(givers)
            net.givers[receiver, v] = 0


# --- the edges of a center --------------------------------------------------------------------


class _Surroundings(NamedTuple):
    """The nodes near a center, and which members of its closed neighbourhood they are close to.

    A member has its place among the neighbours of the center as its number; the center has the
    number after them.

    Attributes:
        slot: Row of each node in the fields below, -1 for nodes that are not near, ``[N]``.
        nodes: Node of each row, ``[rows]``.
        one: Bits of the members at one hop, ``[rows, words]``.
        two: Bits of the members at one or two hops, ``[rows, words]``.
        has_two: Whether ``two`` is filled in, ``[rows]``.
        senders: Nodes that send over the current edge, ``[S]``.
        members: Bits of the members that receive over the current edge.
    """

    slot: Any
    nodes: Any
    one: Any
    two: Any
    has_two: Any
    senders: Any
    members: Any


def _around(num_nodes: int, rows: int, senders: int, receivers: int) -> _Surroundings:
    words = _words(receivers)
    return _Surroundings(
        slot=np.full(num_nodes, -1, np.int64),
        nodes=np.empty(rows, np.int64),
        one=np.empty((rows, words), np.uint64),
        two=np.empty((rows, words), np.uint64),
        has_two=np.empty(rows, np.bool_),
        senders=np.empty(senders, np.int64),
        members=np.empty(words, np.uint64),
    )


@_jit
def _look_around(around, center, rowptr, column, words):
    """Fill ``one`` for all nodes near ``center``; how many there are."""
    start, degree = rowptr[center], rowptr[center + 1] - rowptr[center]
    count = 0
    for place in range(degree + 1):
        member = center if place == degree else column[start + place]
        for e in range(rowptr[member], rowptr[member + 1]):
            node = column[e]
            if around.slot[node] < 0:
                around.slot[node] = count
                around.nodes[count] = node
                around.has_two[count] = False
                for w in range(words):
                    around.one[count, w] = 0
                count += 1
            _set_bit(around.one[around.slot[node]], place)
    return count


@_jit
def _look_further(around, node, rowptr, column, words):
    """Fill ``two`` for a node."""
    slot = around.slot[node]
    if around.has_two[slot]:
        return
    around.has_two[slot] = True
    row = around.two[slot]
    for w in range(words):
        row[w] = around.one[slot, w]
    for e in range(rowptr[node], rowptr[node + 1]):
        other = around.slot[column[e]]
        if other >= 0:
            for w in range(words):
                row[w] |= around.one[other, w]


@_jit
def _set_masses(net, around, x, center, rowptr, column, lazy, walk):
    """Too much mass on the walk from ``x`` is supply, too little is demand; number of senders.

    All masses are multiplied by both degrees and the denominator of the laziness.
    """
    start, degree = rowptr[center], rowptr[center + 1] - rowptr[center]
    x_degree = rowptr[x + 1] - rowptr[x]
    stay, leave, arrive = lazy * degree * x_degree, walk * degree, walk * x_degree
    next_to_x = around.one[around.slot[x]]
    for w in range((degree + 64) // 64):
        net.wanted[w] = 0
    senders = 0
    for place in range(degree + 1):
        if place == degree:
            node, demand = center, stay - leave
        else:
            node, demand = column[start + place], arrive
            if node == x:
                demand -= stay
            elif _has_bit(next_to_x, place):
                demand -= leave
        net.demand[place] = max(demand, 0)
        if demand > 0:
            _set_bit(net.wanted, place)
        elif demand < 0:
            around.senders[senders] = node
            net.supply[senders] = -demand
            senders += 1
    for e in range(rowptr[x], rowptr[x + 1]):
        node = column[e]
        is_member = node == center or _has_bit(around.one[around.slot[node]], degree)
        if not is_member:
            around.senders[senders] = node
            net.supply[senders] = leave
            senders += 1
    return senders


@_jit
def _place_in_row(column, start, stop, node):
    """Place of a node among the sorted columns of a row, or -1."""
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if column[middle] < node:
            start = middle + 1
        else:
            stop = middle
    return start if start < end and column[start] == node else -1


@_jit
def _set_weighted_masses(net, around, x, center, rowptr, column, mass, rest):
    """:func:`_set_masses` of walks with a mass for each entry, and a rest that stays."""
    start, degree = rowptr[center], rowptr[center + 1] - rowptr[center]
    for w in range((degree + 64) // 64):
        net.wanted[w] = 0
    senders = 0
    for place in range(degree + 1):
        if place == degree:
            node, demand = center, rest[center]
        else:
            node, demand = column[start + place], mass[start + place]
        if node == x:
            demand -= rest[x]
        else:
            entry = _place_in_row(column, rowptr[x], rowptr[x + 1], node)
            if entry >= 0:
                demand -= mass[entry]
        net.demand[place] = max(demand, 0)
        if demand > 0:
            _set_bit(net.wanted, place)
        elif demand < 0:
            around.senders[senders] = node
            net.supply[senders] = -demand
            senders += 1
    for e in range(rowptr[x], rowptr[x + 1]):
        node = column[e]
        is_member = node == center or _has_bit(around.one[around.slot[node]], degree)
        if not is_member and mass[e] > 0:
            around.senders[senders] = node
            net.supply[senders] = mass[e]
            senders += 1
    return senders


@_jit
def _open_first_stage(net, around, senders, words):
    for w in range(words):
        around.members[w] = net.wanted[w]
    for i in range(senders):
        near = around.one[around.slot[around.senders[i]]]
        for w in range(words):
            net.arcs[i, w] = near[w] & around.members[w]


@_jit
def _open_second_stage(net, around, senders, rowptr, column, words):
    """The pairs that cost nothing beyond the potentials which the cut of the first stage gives.

    A sender that was reached may send one hop to receivers that were reached and two hops to the
    others; a sender that was not may send one hop to receivers that were not.
    """
    for i in range(senders):
        node = around.senders[i]
        slot, row = around.slot[node], net.arcs[i]
        if net.level[i] >= 0:
            _look_further(around, node, rowptr, column, words)
            for w in range(words):
                seen = net.seen[w]
                near, close = around.one[slot, w] & seen, around.two[slot, w] & ~seen
                row[w] = (near | close) & around.members[w]
        else:
            for w in range(words):
                row[w] = around.one[slot, w] & ~net.seen[w] & around.members[w]


@_jit
def _edge_cost(net, around, x, center, rowptr, column, lazy, walk, mass, rest):
    receivers = rowptr[center + 1] - rowptr[center] + 1
    words = (receivers + 63) // 64
    if mass is None:
        senders = _set_masses(net, around, x, center, rowptr, column, lazy, walk)
    else:
        senders = _set_weighted_masses(net, around, x, center, rowptr, column, mass, rest)
    left = 0
    for i in range(senders):
        left += net.supply[i]
    _open_first_stage(net, around, senders, words)
    cost = _send_all(net, senders, receivers)
    left -= cost
    if left > 0:
        _open_second_stage(net, around, senders, rowptr, column, words)
        second = _send_all(net, senders, receivers)
        cost += 2 * second + 3 * (left - second)
    _forget_flow(net, senders, receivers)
    return cost


@_kept_jit
def _piece_costs(
    first, last, centers, bounds, others, rowptr, column, lazy, walk, mass, rest, net, around, out
):
    for c in range(first, last):
        center = centers[c]
        words = (rowptr[center + 1] - rowptr[center] + 64) // 64
        count = _look_around(around, center, rowptr, column, words)
        for place in range(bounds[c], bounds[c + 1]):
            x = others[place]
            out[place] = _edge_cost(net, around, x, center, rowptr, column, lazy, walk, mass, rest)
        for row in range(count):
            around.slot[around.nodes[row]] = -1


# --- all edges --------------------------------------------------------------------------------


class _Work:
    """The edges by their centers, centers of low degree first."""

    def __init__(self, csr: Csr, pairs: Tensor, alpha: float) -> None:
        self.rowptr, self.column = csr.rowptr.numpy(), csr.column.numpy()
        self.degree = np.diff(self.rowptr)
        #: Units of mass that a weighted walk sends to each entry, and those that stay at each node.
        self.mass, self.rest = _weighted_masses(csr, alpha)
        a, b = pairs.numpy()
        is_first = self.degree[a] <= self.degree[b]
        center, other = np.where(is_first, a, b), np.where(is_first, b, a)
        self.order = np.lexsort((center, self.degree[center]))
        self.center, self.other = center[self.order], other[self.order]
        begins = np.flatnonzero(np.diff(self.center, prepend=-1))
        self.centers = self.center[begins]
        self.bounds = np.append(begins, self.center.size)
        steps = np.concatenate([[0], np.cumsum(self.degree[self.column])])
        #: Most nodes that may be near each node.
        self.reach = np.minimum(self.degree + np.diff(steps[self.rowptr]), self.degree.size)
        #: Product of the two degrees of each edge.
        self.scale = self.degree[self.center] * self.degree[self.other]

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """Runs of centers with similar work, the longest edges first."""
        work = np.cumsum(self.scale + _EDGE_COST)[self.bounds[1:] - 1]
        wanted = np.linspace(0, work[-1], count + 1)[1:-1]
        ends = np.unique([0, *(np.searchsorted(work, wanted) + 1), self.centers.size])
        return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))[::-1]

    def solve(self, piece: tuple[int, int], lazy: int, walk: int, out: _Integers) -> int:
        """Write the costs of a piece; the number of its edges."""
        first, last = piece
        begin, end = self.bounds[first], self.bounds[last]
        centers = self.centers[first:last]
        senders = int(self.degree[self.other[begin:end]].max()) + 1
        receivers = int(self.degree[centers].max()) + 1
        rows = int(self.reach[centers].max())
        _piece_costs(
            first,
            last,
            self.centers,
            self.bounds,
            self.other,
            self.rowptr,
            self.column,
            lazy,
            walk,
            self.mass,
            self.rest,
            _network(senders, receivers),
            _around(self.degree.size, rows, senders, receivers),
            out,
        )
        return int(end - begin)


def _weighted_masses(csr: Csr, alpha: float) -> tuple[_Integers | None, _Integers | None]:
    if csr.weight is None:
        return None, None
    row = torch.repeat_interleave(csr.rowptr.diff())
    total = csr.weight.new_zeros(csr.num_rows).index_add_(0, row, csr.weight)
    mass = (_UNITS * ((1 - alpha) * csr.weight / total[row])).long()
    rest = _UNITS - mass.new_zeros(csr.num_rows).index_add_(0, row, mass)
    return mass.numpy(), rest.numpy()


def transport_costs(
    csr: Csr,
    pairs: Tensor,
    alpha: float,
    threads: int,
    on_progress: TellCount | None = None,
) -> Tensor:
    r""":math:`W_1(\mu_i, \mu_j)` of each pair of neighbours, ``[P]`` float64.

    Args:
        csr: The neighbours of every node, each pair of nodes in both directions once. Walks are
            proportional to its weights.
        pairs: Two neighbours each, ``[2, P]``.
        alpha: Laziness of the walks in [0, 1).
        threads: How many to use.
        on_progress: Called with the number of finished pairs and of all, now and then.
    """
    total = pairs.size(1)
    if total == 0:
        return torch.empty(0, dtype=torch.float64)
    work = _Work(csr, pairs, alpha)
    room = 2**60 // (3 * int(work.scale.max()))
    laziness = Fraction(alpha).limit_denominator(min(_LARGEST_DENOMINATOR, room))
    lazy, walk = laziness.numerator, laziness.denominator - laziness.numerator
    costs, done = np.empty(total, np.int64), 0
    with ThreadPoolExecutor(threads) as pool:
        pieces = work.pieces(_PIECES_PER_THREAD * threads)
        jobs = [pool.submit(work.solve, piece, lazy, walk, costs) for piece in pieces]
        try:
            for job in as_completed(jobs):
                done += job.result()
                if on_progress is not None:
                    on_progress(done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    out = np.empty(total)
    unit = _UNITS if work.mass is not None else work.scale * laziness.denominator
    out[work.order] = costs / unit
    return torch.from_numpy(out)
