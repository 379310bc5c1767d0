import pytest
import torch

from argnn.nn import ARGNN, GCN, MLP
from argnn.train import TrainConfig, fit, scores_and_metrics
from argnn.train.devices import PRECISIONS, products_in

from .cases import assert_same_weights, model_of, task_of, two_blocks, weights

GRAPH = two_blocks()

MODELS = {
    "argnn": lambda: model_of(GRAPH, dropout=0.0),
    "argnn, paper": lambda: model_of(GRAPH, preset="paper"),
    # Three scores for two classes: it normalises its scores, and two would be plus and minus one.
    "argnn, reference": lambda: ARGNN(6, 8, 3, num_layers=2, preset="reference", dropout=0.0),
    "gcn": lambda: GCN(6, 8, 2),
    "mlp": lambda: MLP(6, 8, 2),
}


def trained(build, precision):
    torch.manual_seed(0)
    model = build()
    config = TrainConfig(
        epochs=40, lr=0.02, evaluate_every=5, checkpoint_every=40, precision=precision
    )
    snapshots = []
    result = fit(model, GRAPH, task_of(GRAPH), config, save=snapshots.append)
    return model, result, snapshots[-1]


def lowest_loss(result):
    return min(record.task_loss for record in result.history)


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS.keys())
def test_bfloat16_learns_as_well_as_float32_with_weights_and_optimizer_in_float32(build):
    exact = trained(build, "float32")[1]
    model, result, snapshot = trained(build, "bfloat16")
    assert lowest_loss(result) < 0.75 * result.history[0].task_loss
    assert abs(lowest_loss(result) - lowest_loss(exact)) < 0.1
    state = [*model.state_dict().items(), *snapshot.tensors.items()]
    weights = [t for name, t in state if "statistics." not in name]
    assert {t.dtype for t in weights if t.is_floating_point()} == {torch.float32}
    assert all(t.isfinite().all() for _, t in state)


class Watched(ARGNN):
    """A network that notes whether it runs under autocast, and gives half types."""

    def __init__(self) -> None:
        super().__init__(6, 8, 2, num_layers=1)
        self.seen = []

    def forward_with_metric(self, x, edge_index):
        self.seen.append((self.training, torch.is_autocast_enabled("cpu")))
        weight = self.head.weight.sum() / 8
        return (x[:, :2] * weight).bfloat16(), [(1 + x.square() * weight.square()).bfloat16()]


class WatchedTask:
    """A task that notes the type of the scores, and whether autocast is on."""

    def __init__(self) -> None:
        self.real, self.seen = task_of(GRAPH), set()
        self.homophily = self.real.homophily

    def _noted(self, scores):
        self.seen.add((scores.dtype, torch.is_autocast_enabled("cpu")))
        return scores

    def loss(self, model, outputs):
        return self.real.loss(model, self._noted(outputs))

    def validate(self, model, outputs):
        return self.real.validate(model, self._noted(outputs))


def rounded(value):
    return torch.tensor(value).bfloat16().item()


def test_network_runs_under_autocast_but_losses_and_energies_are_float32():
    model, task = Watched(), WatchedTask()
    config = TrainConfig(
        epochs=4,
        precision="bfloat16",
        ricci_weight=0.1,
        smoothness_weight=0.1,
        magnitude_weight=0.1,
    )
    history = fit(model, GRAPH, task, config).history
    assert set(model.seen[1:]) == {(True, True), (False, True)}  # the first only counts layers
    assert task.seen == {(torch.float32, False)}
    for name in ("loss", "task_loss", "penalty", "val_loss"):
        values = [getattr(record, name) for record in history]
        assert any(value != rounded(value) for value in values), name


def test_float32_leaves_every_type_alone():
    model = model_of(GRAPH).eval()
    double = model_of(GRAPH).double().eval()
    scores, metrics = scores_and_metrics(model, GRAPH.x, GRAPH.edge_index, "float32")
    assert torch.equal(scores, model(GRAPH.x, GRAPH.edge_index))
    assert {t.dtype for t in (scores, *metrics)} == {torch.float32}
    scores, metrics = scores_and_metrics(double, GRAPH.x.double(), GRAPH.edge_index, "float32")
    assert {t.dtype for t in (scores, *metrics)} == {torch.float64}


def test_bfloat16_gives_the_same_bits_twice():
    runs = [trained(MODELS["gcn"], "bfloat16") for _ in range(2)]
    assert_same_weights(weights(runs[0][0]), weights(runs[1][0]))
    assert runs[0][1].history == runs[1][1].history


MATMUL = torch.backends.cuda.matmul


@pytest.fixture(params=["none", "ieee"])
def before(request):
    found, MATMUL.fp32_precision = MATMUL.fp32_precision, request.param
    yield request.param
    MATMUL.fp32_precision = found


@pytest.mark.parametrize("precision", PRECISIONS)
def test_tf32_is_allowed_inside_and_the_former_state_comes_back(precision, before):
    allowed = []

    def fail():
        allowed.append(MATMUL.allow_tf32)
        with products_in("tf32"):
            allowed.append(MATMUL.allow_tf32)
        allowed.append(MATMUL.allow_tf32)
        raise KeyError

    with pytest.raises(KeyError), products_in(precision):
        fail()
    assert allowed == [precision == "tf32", True, precision == "tf32"]
    assert MATMUL.fp32_precision == before
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_who_has_allowed_tf32_keeps_it(precision):
    MATMUL.allow_tf32 = True
    try:
        with products_in(precision):
            assert MATMUL.allow_tf32
        assert MATMUL.allow_tf32
    finally:
        MATMUL.allow_tf32 = False


def test_tf32_is_allowed_forward_and_back_and_changes_nothing_on_a_cpu():
    allowed = {"forward": set(), "backward": set()}

    class Watching(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            allowed["forward"].add(MATMUL.allow_tf32)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            allowed["backward"].add(MATMUL.allow_tf32)
            return grad

    class WatchedGCN(GCN):
        def forward_with_metric(self, x, edge_index):
            scores, metrics = super().forward_with_metric(x, edge_index)
            return Watching.apply(scores), metrics

    def watched():
        return WatchedGCN(6, 8, 2)

    model, result, _ = trained(watched, "tf32")
    assert allowed == {"forward": {True, False}, "backward": {True}}  # False: it counts layers
    assert not MATMUL.allow_tf32
    exact, expected, _ = trained(watched, "float32")
    assert result.history == expected.history
    assert_same_weights(weights(model), weights(exact))
