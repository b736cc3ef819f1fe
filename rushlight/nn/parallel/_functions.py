"""Copies between devices that autograd records: tensors on the CPU are refused in torch's words."""

from rushlight.autograd import Function
from rushlight.nn.parallel import comm

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


class Broadcast(Function):
    """Copies of the inputs on each device."""

    @staticmethod
    def forward(ctx, target_gpus, *inputs):
        if not all(tensor.device.type != "cpu" for tensor in inputs):
            raise AssertionError("Broadcast function not implemented for CPU tensors")
        if not inputs:
            return ()
        return comm.broadcast_coalesced(inputs, target_gpus)


class ReduceAddCoalesced(Function):
    """Sums of inputs on several devices."""

    @staticmethod
    def forward(ctx, destination, num_inputs, *grads):
        groups = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(groups, destination)


class Gather(Function):
    """Inputs on several devices, together on one."""

    @staticmethod
    def forward(ctx, target_device, dim, *inputs):
        if not all(tensor.device.type != "cpu" for tensor in inputs):
            raise AssertionError("Gather function not implemented for CPU tensors")
        return comm.gather(inputs, dim, target_device)


class Scatter(Function):
    """Parts of the input on each device."""

    @staticmethod
    def forward(ctx, target_gpus, chunk_sizes, dim, input):
        return comm.scatter(input, target_gpus, chunk_sizes, dim)


def _get_stream(device):
    """None: the CPU has no streams."""
