"""Functions compiled once for any number of rows, traced here as on a GPU."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from episodic_curiosity.support import compiling
from episodic_curiosity.support.compiling import compile_varying, compiled_size


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
