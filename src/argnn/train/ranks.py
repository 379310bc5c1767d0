"""Several processes that train one model together: what they send each other.

``torchrun`` starts the processes, which are called ranks. Each one owns some nodes of the graph and
needs rows of their neighbours, its halo, from the ranks that own these.
"""

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


class RankExchange:
    """Sends rows between ranks; gradients go the way back.

    All ranks make one at the same time, and call its methods in the same order.

    Args:
        nodes: The nodes of each rank, sorted.
        halo: The halo of this rank: nodes of other ranks, in the order of ranks.
        device: Where the rows are.

    Attributes:
        bytes_sent: What this rank has sent by :meth:`halo` so far, gradients included.
    """

    def __init__(self, nodes: list[Tensor], halo: Tensor, device: torch.device) -> None:
        self.rank, self.device = dist.get_rank(), device
        self.sizes = [part.numel() for part in nodes]
        self.bytes_sent = 0
        owner = torch.empty(sum(self.sizes), dtype=torch.int64)
        for rank, part in enumerate(nodes):
            owner[part] = rank
        #: Row of each node of the graph where the rows of all ranks follow one another, ``[N]``.
        self._row = torch.cat(nodes).argsort().to(device)
        asked = [halo[owner[halo] == rank] for rank in range(len(nodes))]
        self._received = [part.numel() for part in asked]
        counts = torch.tensor(self._received, device=device)
        wanted = torch.empty_like(counts)
        dist.all_to_all_single(wanted, counts)
        self._sent = wanted.tolist()
        numbers = torch.empty(sum(self._sent), dtype=torch.int64, device=device)
        dist.all_to_all_single(numbers, torch.cat(asked).to(device), self._sent, self._received)
        #: Own rows that other ranks asked for, rank after rank.
        self._asked_rows = torch.searchsorted(nodes[self.rank].to(device), numbers)

    def halo(self, own: Tensor) -> Tensor:
        """Rows of the halo, ``[H, D]``, from own rows ``[N_own, D]``."""
        return _Halo.apply(own.index_select(0, self._asked_rows), self)

    def total(self, value: Tensor) -> Tensor:
        """Sum of a tensor over all ranks."""
        return _Total.apply(value)

    def gathered(self, own: Tensor) -> Tensor:
        """Rows of all nodes of the graph, ``[N, D]``, from own rows ``[N_own, D]``."""
        rows: Tensor = _AllGather.apply(own, self)
        return rows.index_select(0, self._row)

    def swap(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """Send runs of rows to all ranks, and receive theirs."""
        out = rows.new_empty(sum(received), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), received, sent)
        self.bytes_sent += rows.numel() * rows.element_size()
        return out


class _Halo(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, exchange: RankExchange) -> Tensor:
        ctx.exchange = exchange
        return exchange.swap(rows, exchange._sent, exchange._received)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        exchange = ctx.exchange
        return exchange.swap(grad, exchange._received, exchange._sent), None


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        value = value.clone()
        dist.all_reduce(value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, exchange: RankExchange) -> Tensor:
        ctx.exchange = exchange
        most = max(exchange.sizes)  # all ranks must send equally much
        sent = own.new_zeros(most, *own.shape[1:])
        sent[: own.size(0)] = own
        parts = [torch.empty_like(sent) for _ in exchange.sizes]
        dist.all_gather(parts, sent)
        return torch.cat([part[:size] for part, size in zip(parts, exchange.sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        exchange = ctx.exchange
        grad = grad.clone()
        dist.all_reduce(grad)
        first = sum(exchange.sizes[: exchange.rank])
        return grad[first : first + exchange.sizes[exchange.rank]], None
