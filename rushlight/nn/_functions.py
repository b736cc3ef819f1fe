"""The autograd Functions of torch.nn.modules._functions, which some programs apply by themselves."""

import rushlight
from rushlight.autograd.function import Function


class CrossMapLRN2d(Function):
    """What the layer of that name computes."""

    @staticmethod
    def forward(ctx, input, size, alpha=1e-4, beta=0.75, k=1):
        ctx.layer = rushlight.nn.CrossMapLRN2d(size, alpha, beta, k)
        ctx.save_for_backward(input)
        return ctx.layer(input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        with rushlight.enable_grad():
            if not input.requires_grad:
                input = input.detach().requires_grad_()
            output = ctx.layer(input)
        (grad,) = rushlight.autograd.grad(
            output, input, grad_output, create_graph=rushlight.is_grad_enabled()
        )
        return grad, None, None, None, None


class BackwardHookFunction(Function):
    """All its arguments, as results of one node that hooks can be put on."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        return args


class SyncBatchNorm(Function):
    """Would normalise over the batches of several processes."""

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("SyncBatchNorm over several processes: Rushlight trains in one")
