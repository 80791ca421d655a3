"""One look at one argument, with nothing but torch's own ops: on the CPU, and where the kernel cannot be had."""

from __future__ import annotations

import torch


def find(requirement):
    """The value of the first offender, its flat position and how many there are; None where all is well. Waits."""
    if requirement.total == 0:
        return None
    wrong = requirement.wrong()
    if not bool(wrong.any()):
        return None
    first, count, bits = _statistics(requirement.tensor, wrong).tolist()
    return _value(bits, requirement.tensor.dtype), first, count


class PlainCheck:
    """A look that was begun and is not waited for."""

    def __init__(self, requirement):
        wrong = requirement.wrong()
        tensor = requirement.tensor
        self.requirement = requirement
        self.dtype = tensor.dtype
        self.mended = requirement.mended(wrong)
        self.event = None
        self.found = _statistics(tensor, wrong)
        if tensor.is_cuda:
            arrived = torch.empty(3, dtype=torch.int64, pin_memory=True)
            self.found = arrived.copy_(self.found, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()

    def is_done(self):
        return self.event is None or self.event.query()

    def wait(self):
        if self.event is not None:
            self.event.synchronize()

    def offender(self):
        """As `find` gives it, once the look is done."""
        first, count, bits = self.found.tolist()
        return (_value(bits, self.dtype), first, count) if count else None


def _statistics(tensor, wrong):
    """The first offender's flat position, how many there are, and its value's bits, in one tensor."""
    wrong, tensor = wrong.reshape(-1), tensor.reshape(-1)
    places = torch.arange(len(wrong), device=wrong.device)
    first = torch.where(wrong, places, len(wrong) - 1).amin()
    value = tensor.gather(0, first.reshape(1))
    bits = value.double().view(torch.int64) if tensor.is_floating_point() else value.to(torch.int64)
    return torch.cat((first.reshape(1), wrong.sum().reshape(1), bits))


def _value(bits, dtype):
    if dtype.is_floating_point:
        return torch.tensor(bits).view(torch.float64).item()
    return bits
