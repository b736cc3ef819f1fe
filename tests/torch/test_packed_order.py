"""Hooks on saved tensors are shown what torch's are shown, in its order and sizes by calls and layers."""

import pytest
from corners import same_in_torch
from outcomes import collector

pytestmark = pytest.mark.torch

# A call of `f` (nn.functional), `torch`, `nn` with tensors a, b, c, d of these sizes.
CALLS = {
    "f.linear(a, b)": [(3, 2), (4, 2)],
    "f.linear(a, b, c)": [(3, 2), (4, 2), (4,)],
    "f.linear(a, b)  #3": [(2, 3, 2), (4, 2)],
    "f.linear(a, b, c)  #3": [(2, 3, 2), (4, 2), (4,)],
    "f.linear(a, b)  #1": [(2,), (4, 2)],
    "f.linear(a, b, c)  #1": [(2,), (4, 2), (4,)],
    "a @ b": [(5, 3, 2), (2, 4)],
    "a @ b  #2": [(3, 2), (5, 2, 4)],
    "a @ b  #3": [(2,), (5, 2, 4)],
    "a @ b  #4": [(5, 3, 2), (2,)],
    "a @ b  #5": [(2, 5, 3, 2), (2, 5, 2, 4)],
    "a @ b  #6": [(5, 1, 3, 2), (2, 2, 4)],
    "a @ b  #7": [(2,), (2, 4)],
    "f.scaled_dot_product_attention(a, b, c)": [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)],
    "f.scaled_dot_product_attention(a, b, c, d)": [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (3, 5)],
    "f.scaled_dot_product_attention(a, b, b, is_causal=True)": [(2, 2, 3, 4), (2, 2, 3, 4)],
    "f.scaled_dot_product_attention(a, b, b, scale=0.3)": [(2, 2, 3, 4), (2, 2, 3, 4)],
    "f.scaled_dot_product_attention(a, b, b, enable_gqa=True)": [(1, 4, 3, 4), (1, 2, 3, 4)],
    "f.scaled_dot_product_attention(a, b, b, dropout_p=0.5)": [(2, 2, 3, 4), (2, 2, 3, 4)],
    "f.scaled_dot_product_attention(a, b, b)": [(2, 3, 4), (2, 3, 4)],
    "nn.MultiheadAttention(4, 2)(a, a, a)[0]": [(3, 2, 4)],
    "nn.MultiheadAttention(4, 2)(a, a, a, need_weights=False)[0]": [(3, 2, 4)],
    "nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)(a)": [(3, 2, 4)],
    "nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)(a, b)": [(3, 2, 4), (3, 2, 4)],
    "nn.LSTMCell(2, 3)(a)[0]": [(4, 2)],
    "nn.LSTMCell(2, 3)(a, (b, c))[1]": [(4, 2), (4, 3), (4, 3)],
    "nn.LSTMCell(2, 3, bias=False)(a, (b, c))[0]": [(4, 2), (4, 3), (4, 3)],
    "nn.GRUCell(2, 3)(a, b)": [(4, 2), (4, 3)],
    "nn.RNNCell(2, 3)(a, b)": [(4, 2), (4, 3)],
    "nn.RNNCell(2, 3, nonlinearity='relu')(a)": [(4, 2)],
    "nn.GRU(2, 3)(a)[0]": [(2, 1, 2)],
    "nn.GRU(2, 3, 2, bidirectional=True)(a)[1]": [(2, 1, 2)],
    "nn.RNN(2, 3)(a)[0]": [(2, 1, 2)],
    "nn.LSTM(2, 3, dtype=torch.float64)(a.double())[0]": [(2, 1, 2)],
    "nn.LSTM(2, 3, proj_size=2)(a)[0]": [(2, 1, 2)],
    "f.affine_grid(a, (2, 1, 3, 3), align_corners=False)": [(2, 2, 3)],
    "f.affine_grid(a, (2, 1, 3, 3, 2), align_corners=True)": [(2, 3, 4)],
    "f.cosine_similarity(a, b)": [(3, 2), (3, 2)],
    "f.embedding_bag(torch.tensor([0, 1, 2]), a, torch.tensor([0, 2]))": [(3, 2)],
    "f.embedding_bag(torch.tensor([0, 1, 2]), a, torch.tensor([0, 2]), per_sample_weights=b, mode='sum')": [
        (3, 2),
        (3,),
    ],
    "f.embedding_bag(torch.tensor([0, 1, 2]), a, torch.tensor([0, 2]), mode='max')": [(3, 2)],
    "f.batch_norm(a, c, d, b, training=True)": [(3, 2), (2,)],
    "f.batch_norm(a, c, d, b)": [(3, 2), (2,)],
    "f.layer_norm(a, (4,), b, c)": [(3, 4), (4,), (4,)],
    "f.group_norm(a, 2, b, c)": [(3, 4), (4,), (4,)],
    "f.poisson_nll_loss(a, b, full=True)": [(3, 2), (3, 2)],
    "f.multilabel_margin_loss(a, torch.tensor([[1, 0, -1]]))": [(1, 3)],
    "f.linear_cross_entropy(a, b, torch.tensor([0, 1, 0]))": [(3, 2), (4, 2)],
    "torch._weight_norm(a, b)": [(3, 2), (3, 1)],
    "nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))(a)": [(4, 2)],
    "torch.clamp(a, b, c)": [(3,), (3,), (3,)],
    "torch.clamp(a, b)": [(3,), (3,)],
    "torch.clamp(a, max=b)": [(3,), (3,)],
    "a.masked_select(a > 0.5)": [(3, 2)],
    "torch.combinations(a, 2)": [(3,)],
    "a.take(torch.tensor([0, 2]))": [(3,)],
    "torch.aminmax(a, dim=0)[0]": [(3, 2)],
    "torch.scatter_reduce(a, 0, torch.tensor([0, 1]), b, 'prod')": [(3,), (2,)],
    "torch.index_reduce(a, 0, torch.tensor([0, 1]), b, 'amax')": [(3,), (2,)],
    "torch.ormqr(a, b, c)": [(3, 3), (3,), (3, 2)],
    "torch.triangular_solve(a, b)[0]": [(3, 2), (3, 3)],
    "torch.linalg.lu(a)[1]": [(3, 3)],
    "torch._unsafe_masked_index(a, torch.tensor([True, False]), [torch.tensor([1, 9])], 0.0)": [(3,)],
}


def cases(torch):
    found, case = collector()

    def packed(text, sizes, wanted):
        torch.manual_seed(0)
        tensors = [torch.rand(*size) for size in sizes]
        names = dict(zip("abcd", tensors, strict=False))
        names |= {"torch": torch, "nn": torch.nn, "f": torch.nn.functional}
        for at, tensor in enumerate(tensors):
            tensor.requires_grad_(wanted in (None, at))
        for name in "cd":
            names.setdefault(name, torch.ones(2))
        shown, read = [], []

        def which(tensor):
            places = {t.data_ptr(): name for name, t in zip("abcd", tensors, strict=False) if t.numel()}
            return places.get(tensor.data_ptr(), "?"), tuple(tensor.shape), tensor.requires_grad

        def pack(tensor):
            shown.append(which(tensor))
            return len(shown) - 1, tensor

        def unpack(pair):
            read.append(pair[0])
            return pair[1]

        def gradients():
            torch.manual_seed(0)
            result = eval(text, names)
            asked = [t for t in tensors if t.requires_grad]
            weights = torch.linspace(0.5, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
            return torch.autograd.grad((result * weights.detach()).sum(), asked)

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            hooked = gradients()
        same = [torch.allclose(one, other, atol=1e-5) for one, other in zip(hooked, gradients(), strict=True)]
        return shown, read, same

    for text, sizes in CALLS.items():
        for wanted in (None, *range(len(sizes))):

            @case(f"{text} {wanted}")
            def _(text=text, sizes=sizes, wanted=wanted):
                return packed(text, sizes, wanted)

    return found


test_packed_in_order = same_in_torch(cases)
