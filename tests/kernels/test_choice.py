import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from argnn import functional as AF
from argnn.kernels import MODES, cpu, current_mode, use
from argnn.kernels.choice import MAX_GPU_CHANNELS, MIN_CPU_NUMBERS, backend, is_fused
from argnn.kernels.neighborhood import neighborhood

EDGES = torch.tensor([[0, 1], [1, 0]])
SINGLE = (torch.float32, torch.bfloat16, torch.float16)


@pytest.fixture(autouse=True)
def usual_mode():
    assert current_mode() == "auto"
    yield
    use("auto")


def on(device, *shape, dtype=torch.float32):
    """A tensor without values that says it is on a device."""
    with FakeTensorMode():
        return torch.empty(shape, device=device, dtype=dtype)


@pytest.mark.parametrize("mode", MODES)
def test_mode_holds_from_here_on(mode):
    use(mode)
    assert current_mode() == mode


@pytest.mark.parametrize("mode", MODES)
def test_mode_holds_inside_a_block_only(mode):
    with use(mode):
        assert current_mode() == mode
        with use("plain"):
            assert current_mode() == "plain"
        assert current_mode() == mode
    assert current_mode() == "auto"


def test_mode_is_restored_after_an_exception():
    with pytest.raises(ZeroDivisionError), use("fused"):
        raise ZeroDivisionError
    assert current_mode() == "auto"


def test_block_restores_the_mode_that_was_chosen_before():
    use("plain")
    with use("fused"):
        pass
    assert current_mode() == "plain"


def test_unknown_mode_is_named_and_changes_nothing():
    message = r"mode must be one of \('auto', 'plain', 'fused'\) \(got 'quick'\)"
    with pytest.raises(ValueError, match=message):
        use("quick")
    assert current_mode() == "auto"


@pytest.mark.parametrize(
    ("dtype", "fused"), [*((dtype, True) for dtype in SINGLE), (torch.float64, False)]
)
def test_auto_leaves_double_precision_to_the_plain_path(dtype, fused):
    x = torch.ones(2, 3, dtype=dtype)
    assert is_fused(x, num_edges=MIN_CPU_NUMBERS) is fused
    assert is_fused(x, torch.ones(2, 3), num_edges=MIN_CPU_NUMBERS) is fused
    with use("fused"):
        assert is_fused(x)
    with use("plain"):
        assert not is_fused(x)


@pytest.mark.parametrize(
    ("dtype", "plain"), [(torch.float32, False), (torch.float64, True)], ids=str
)
def test_auto_prepares_what_its_path_needs(dtype, plain):
    nodes = MIN_CPU_NUMBERS // 2
    edges = EDGES.clone()
    AF.aggregate(torch.ones(nodes, 2, dtype=dtype), edges)
    hood = neighborhood(edges, nodes)
    assert any(key[0] == "operator" for key in hood.derived) is plain
    assert ("_matrices" in vars(hood)) is not plain


def test_auto_takes_the_plain_path_on_unknown_devices():
    assert not is_fused(on("meta", 2, 3))
    x = torch.ones(2, 3, device="meta")
    assert AF.modulate(x, x).shape == (2, 3)


@pytest.mark.parametrize(
    ("tensor", "obstacle"),
    [
        (("meta", 2, 3, torch.float32), "device meta"),
        (("cuda", 2, 3, torch.float64), "torch.float64 on cuda"),
        (("cuda", 2, 513, torch.float32), r"513 channels on cuda \(at most 512\)"),
        (("cpu", 2, 3, torch.int64), "torch.int64 on cpu"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_forced_kernels_name_the_obstacle(tensor, obstacle):
    device, *shape, dtype = tensor
    x = on(device, *shape, dtype=dtype)
    assert not is_fused(x)
    message = rf"no fused kernel for {obstacle}; use\('auto'\) or use\('plain'\)"
    with use("fused"), pytest.raises(RuntimeError, match=message):
        is_fused(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: AF.modulate(x, x),
        lambda x: AF.aggregate(x, EDGES),
        lambda x: AF.neighbor_moments(x, EDGES),
        lambda x: AF.propagate(x, x, x, EDGES),
        lambda x: AF.discrete_ricci(x, EDGES),
        lambda x: AF.ricci_energy(x, EDGES),
        lambda x: AF.smoothness_energy(x, EDGES),
        lambda x: AF.metric_energies([x], EDGES),
    ],
)
def test_forced_kernels_are_refused_by_every_function_on_an_unknown_device(function):
    x = torch.ones(2, 3, device="meta")
    with use("fused"), pytest.raises(RuntimeError, match="no fused kernel for device meta"):
        function(x)


def test_one_tensor_without_a_kernel_is_enough():
    x = torch.ones(2, 3)
    assert not is_fused(x, x.double())
    with use("fused"), pytest.raises(RuntimeError, match="no fused kernel for device meta"):
        AF.propagate(x, x, x.to("meta"), EDGES)


@pytest.mark.parametrize(
    ("device", "channels", "fused"),
    [
        ("cuda", MAX_GPU_CHANNELS, True),
        ("cuda", MAX_GPU_CHANNELS + 1, False),
        ("cpu", MAX_GPU_CHANNELS + 1, True),
    ],
)
def test_only_gpus_have_a_largest_width(device, channels, fused):
    assert is_fused(on(device, 2, channels), num_edges=MIN_CPU_NUMBERS) is fused


@pytest.mark.parametrize(
    ("nodes", "edges", "fused"),
    [(64, 0, False), (64, 2047, False), (64, 2048, True), (2047, 0, False), (2048, 0, True)],
)
def test_small_graphs_do_without_kernels_on_a_cpu(nodes, edges, fused):
    channels = MIN_CPU_NUMBERS // 2048
    x = torch.ones(nodes, channels)
    assert is_fused(x, num_edges=edges) is fused
    assert is_fused(on("cuda", nodes, channels), num_edges=edges)
    with use("fused"):
        assert is_fused(x, num_edges=edges)


def test_small_graphs_give_the_same_with_and_without_kernels():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    ring = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    chosen = AF.aggregate(x, ring)
    with use("fused"):
        torch.testing.assert_close(AF.aggregate(x, ring), chosen)


def test_backend_of_a_cpu():
    assert backend(torch.ones(1)) is cpu
