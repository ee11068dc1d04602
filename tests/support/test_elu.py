"""The exponential linear unit beside torch's."""

import pytest
import torch
from torch.nn.functional import elu

from episodic_curiosity.support.elu import ELU

VALUES = torch.cat([torch.linspace(-20, 20, 997), torch.tensor([0.0, -0.0, 1e-9, -1e-9])])


def test_values_and_gradients_are_those_of_torch():
    ours, theirs = VALUES.clone().requires_grad_(), VALUES.clone().requires_grad_()
    output, expected = ELU()(ours), elu(theirs)
    assert torch.allclose(output, expected, rtol=0, atol=1e-7)
    weights = torch.linspace(-1, 1, len(VALUES))
    output.backward(weights)
    expected.backward(weights)
    assert torch.allclose(ours.grad, theirs.grad, rtol=0, atol=1e-7)


def test_the_ends_of_the_scale():
    ends = torch.tensor([-torch.inf, -1e38, 1e38, torch.inf])
    assert ELU()(ends).tolist() == [-1.0, -1.0, ends[2].item(), torch.inf]
    assert ELU()(torch.tensor([torch.nan])).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shape_order_and_type_stay(dtype):
    frames = torch.randn(2, 3, 5, 7, dtype=dtype).to(memory_format=torch.channels_last)
    output = ELU()(frames)
    assert (output.shape, output.dtype) == (frames.shape, dtype)
    assert output.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(output.float(), elu(frames.float()), atol=1e-2)
    small = torch.full((1000,), -0.013, dtype=dtype)  # bfloat16 has three digits of it, too
    assert torch.allclose(ELU()(small).float(), elu(small.float()), rtol=4e-3)


@pytest.mark.gpu
def test_a_gpu_gives_the_same():
    assert torch.allclose(ELU()(VALUES.cuda()).cpu(), ELU()(VALUES), rtol=0, atol=1e-6)
