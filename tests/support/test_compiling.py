"""Functions compiled once for any number of rows, traced here as on a GPU."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from episodic_curiosity.support import compiling
from episodic_curiosity.support.compiling import (
    compile_varying,
    compiled_size,
    fused,
    fused_in_training,
    run_network,
)


def num_graphs():
    return counters["stats"]["unique_graphs"]


def scaled(rows, extra, factor):
    return rows * factor + extra[0].sum()


def test_any_number_of_rows_is_compiled_once():
    compiled = compile_varying(scaled, backend="eager")
    before = num_graphs()
    for count in (2, 7, 5):
        rows, extra = torch.rand(count, 3), (torch.rand(count),)
        torch.testing.assert_close(compiled(rows, extra, 2.0), scaled(rows, extra, 2.0))
    assert num_graphs() == before + 1


def test_what_is_fixed_is_compiled_for_its_size():
    compiled = compile_varying(scaled, backend="eager", fixed=(tuple,))
    before = num_graphs()
    for count in (2, 7):
        compiled(torch.rand(4, 3), (torch.rand(count),), 2.0)
    assert num_graphs() == before + 2


def test_whoever_calls_it_is_compiled_once_and_without_gradients():
    compiled = compile_varying(scaled, backend="eager")
    before = num_graphs()
    rows, extra = torch.rand(4, 3, requires_grad=True), (torch.rand(4),)
    assert not compiled(rows, extra, 2.0).requires_grad
    with torch.no_grad():
        compiled(rows, extra, 2.0)
    assert num_graphs() == before + 1


def test_rows_are_filled_up_or_worked_on_in_pieces_before_another_size_is_compiled():
    what, asked = object(), [1024, 512, 18, 1, 8192, 16_385, 8192, 1025, 16_386 * 16]
    given = [compiled_size(what, size, most_pieces=16) for size in asked]
    assert given == [1024, 1024, 1024, 1024, 1024, 16_385, 16_385, 16_385, 16_386 * 16]
    assert [compiled_size(what, size) for size in (1000, 1025)] == [1024, 16_385]
    assert compiled_size(object(), 18) == 18  # something else


@pytest.fixture
def traced():
    """`run_network` as on a GPU, but for the kernels."""
    made = {}

    def compiled_for(architecture):
        if architecture not in made:
            made[architecture] = compile_varying(
                compiling._run, backend="eager", fixed=(nn.Module,), differentiable=True
            )
        return made[architecture]

    return lambda network, inputs: compiled_for(repr(network))(network, inputs)


def test_networks_that_are_built_alike_share_what_was_compiled(traced):
    def network():
        return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))

    before = num_graphs()
    for count in (2, 6):
        model, inputs = network(), torch.rand(count, 3)
        outputs = traced(model, inputs)
        torch.testing.assert_close(outputs, model(inputs))
        outputs.sum().backward()
        assert model[0].weight.grad is not None
    assert num_graphs() == before + 1
    with torch.no_grad():  # a graph of its own: nothing is kept for a backward pass
        traced(network(), torch.rand(4, 3))
    assert num_graphs() == before + 2


def test_a_cpu_runs_networks_as_they_are():
    model = nn.Linear(3, 2)
    before = num_graphs()
    inputs = torch.rand(4, 3)
    assert torch.equal(compiling.run_network(model, inputs), model(inputs))
    assert num_graphs() == before


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Fused functions are compiled on a CPU, too, but for the kernels."""
    monkeypatch.setattr(compiling, "compiles", lambda _: True)
    compile_varying = compiling.compile_varying

    def traced(function, **options):
        return compile_varying(function, **options, backend="eager")

    monkeypatch.setattr(compiling, "compile_varying", traced)
    compiling.forget_fused()
    yield
    compiling.forget_fused()


@fused
def add_where(total, rows, where, factor):
    total += rows.sum(dim=0)
    return torch.where(where, factor * rows[:, 0], 0.0)


@pytest.mark.usefixtures("as_on_a_gpu")
def test_a_fused_function_changes_its_arguments_and_is_compiled_for_any_rows():
    before = num_graphs()
    for count in (2, 7, 5):
        total, rows = torch.ones(3), torch.rand(count, 3)
        where = torch.arange(count) % 2 == 0
        returned = add_where(total, rows, where, 3.0)
        torch.testing.assert_close(total, 1.0 + rows.sum(dim=0))
        torch.testing.assert_close(returned, torch.where(where, 3.0 * rows[:, 0], 0.0))
    assert num_graphs() == before + 1
    add_where(torch.ones(3), torch.rand(4, 3), torch.ones(4) > 0, 2.0)  # another constant
    assert num_graphs() == before + 2
    add_where(torch.ones(2), torch.rand(4, 2), torch.ones(4) > 0, 2.0)  # another shape
    assert num_graphs() == before + 3


def test_a_fused_function_is_called_as_it_is_on_a_cpu():
    before = num_graphs()
    total = torch.zeros(2)
    assert add_where(total, torch.ones(3, 2), torch.ones(3) > 0, 2.0).tolist() == [2.0] * 3
    assert total.tolist() == [3.0, 3.0]
    assert num_graphs() == before


@fused_in_training
def squared_error(network, pair):
    inputs, target = pair
    return (run_network(network, inputs) - target).square().mean()


@pytest.mark.usefixtures("as_on_a_gpu")
def test_a_loss_that_is_fused_has_gradients_and_alike_networks_share_it():
    pair = torch.rand(6, 3), torch.rand(6, 2)
    before = num_graphs()
    for _ in range(2):
        network = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
        squared_error(network, pair).backward()
        gradient = network[0].weight.grad.clone()
        network.zero_grad()
        (network(pair[0]) - pair[1]).square().mean().backward()
        torch.testing.assert_close(gradient, network[0].weight.grad)
    assert num_graphs() == before + 1
    for length in (4, 5, 3):  # one more for all other lengths
        squared_error(network, tuple(part[:length] for part in pair))
    assert num_graphs() == before + 2
    with pytest.raises(TypeError, match="by name, got pair"):
        squared_error(network, pair=pair)
