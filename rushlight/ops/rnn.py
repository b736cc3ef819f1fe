"""Recurrent networks: LSTM, GRU and plain RNN over sequences, and one step of each.

The inputs of all steps are multiplied by their weights at once; the recursion over one layer in one direction
is the primitive `rnn_sequence`. `_steps` is the same recursion written out in differentiable operations: it
serves second derivatives, projections, and types that the primitive does not have.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight.ops._again import looked_on
from rushlight.ops._examples import as_variables, known
from rushlight.ops._facts import told
from rushlight.ops._public import function, invalid_combination, type_name
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops.combine import cat, stack
from rushlight.ops.matmul import linear

ops = _C.ops
Tensor = _C.Tensor


_GATES = {"gru": 3, "lstm": 4}


def _cat(tensors, dim=0):
    return tensors[0] if len(tensors) == 1 else cat(tensors, dim)


def _added(a, b):
    """a + b, where torch writes it in place of a."""
    total = a + b
    if total.shape != a.shape:
        raise RuntimeError(
            f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(total.shape)}"
        )
    return total


def _gates(sums, count):
    """The parts of the rows for each gate, which are numbers between whole ones."""
    if not (sums.is_floating_point() or sums.is_complex()):
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {type_name(sums.dtype)}"
        )
    return sums.chunk(count, 1)


def _step(mode, gx, h, c, w_hh, b_hh, w_hr, of_h=None):
    """One step in the operations that torch does, and in their order; of_h is the product of h, if it is
    known."""
    if mode == "gru":
        of_x, of_h = _gates(gx, 3), _gates(linear(h, w_hh, b_hh), 3)
        reset, update = _added(of_h[0], of_x[0]).sigmoid(), _added(of_h[1], of_x[1]).sigmoid()
        new = (of_x[2] + of_h[2] * reset).tanh()
        return (h - new) * update + new, None
    sums = _added(linear(h, w_hh, b_hh) if of_h is None else of_h, gx)
    if mode != "lstm":
        return (sums.tanh() if mode == "tanh" else sums.relu()), None
    inward, forget, cell, outward = _gates(sums, 4)
    inward, forget, cell, outward = inward.sigmoid(), forget.sigmoid(), cell.tanh(), outward.sigmoid()
    c = forget * c + inward * cell
    h = outward * c.tanh()
    return (h if w_hr is None else linear(h, w_hr)), c


def _steps(mode, gx, h, c, w_hh, b_hh, w_hr, sizes, reverse):
    """out, h and c at the end.

    Rows of sequences that have ended wait in `ended`; backwards in time, rows of the initial state join where
    sequences begin.
    """
    padded = sizes is None
    sizes = [h.shape[0]] * gx.shape[0] if padded else list(sizes)
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    h0, c0 = h, c
    outs, ended = [None] * len(sizes), []
    if reverse:
        h, c = h0[:0], None if c0 is None else c0[:0]
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        size, here = sizes[t], h.shape[0]
        if size > here:
            h = _cat([h, h0[here:size]])
            c = None if c is None else _cat([c, c0[here:size]])
        elif size < here:
            ended.append((h[size:], None if c is None else c[size:]))
            h, c = h[:size], None if c is None else c[:size]
        x = gx[t] if padded else gx.narrow(0, offsets[t], size)
        h, c = _step(mode, x, h, c, w_hh, b_hh, w_hr)
        outs[t] = h
    if reverse and h.shape[0] < h0.shape[0]:
        ended.append((h0[h.shape[0] :], None if c is None else c0[h.shape[0] :]))
    ended.append((h, c))
    ended.reverse()
    out = stack(outs) if padded else _cat(outs)
    return out, _cat([p[0] for p in ended]), None if c is None else _cat([p[1] for p in ended])


def _sequence_gradient(
    g_out, g_hn, g_cn, gx, h0, c0, w_hh, b_hh, out, kept, cells, states, mode, sizes, reverse, needs
):
    if not _C.is_grad_enabled():
        if states.numel():
            out = states.view(out.shape)
        dgx, dh0, dc0, dw, db = ops.rnn_sequence_backward(
            g_out, g_hn, g_cn, h0, c0, w_hh, out, kept, cells, mode, sizes, reverse, b_hh is not None
        )
        return dgx, dh0, None if c0 is None else dc0, dw, None if b_hh is None else db
    # The gradient is to be differentiated in turn: take it from the written-out recursion.
    from rushlight.autograd import grad

    inputs = as_variables((gx, h0, c0, w_hh, b_hh), needs, (g_out, g_hn, g_cn))
    results = _steps(mode, *inputs, None, sizes, reverse)
    pairs = [
        (r, g) for r, g in zip(results, (g_out, g_hn, g_cn), strict=True) if g is not None and r is not None
    ]
    wanted = [t for t, needed in zip(inputs, needs, strict=True) if needed]
    found = iter(
        grad([r for r, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True)
    )
    return tuple(next(found) if needed else None for needed in needs)


derivative("rnn_sequence", _sequence_gradient, undefined=True)
# Only called where nothing is recorded; see _sequence_gradient.
no_derivative("rnn_sequence_backward")


def _sum(a, b):
    return a if b is None else a + b


def _fit(x, dims, b_ih, b_hh):
    """Whether the input and the biases may be of a layer; the rest is looked at where it is used."""
    if b_ih is None or b_hh is None:
        return b_ih is b_hh and x.dim() == dims
    return b_ih.dtype == b_hh.dtype == x.dtype and x.dim() == dims and b_ih.shape == b_hh.shape


def _in_steps(*tensors):
    """Whether hooks on saved tensors are to see the steps that torch takes."""
    return _C.top_saved_hooks() is not None and looked_on(*tensors)


def _direction(mode, x, h, c, weights, sizes, reverse, shown):
    """out, h and c of one layer in one direction. weights: w_ih, w_hh, b_ih, b_hh, w_hr (or None). shown:
    whether out itself is returned to the user, who may write into it."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if _fit(x, 3 if sizes is None else 2, b_ih, b_hh) and (
        _is_one_step(mode, x, sizes, w_hr) or not (_C.watched(x) or _in_steps(x, h, *weights))
    ):
        since = _C.next_sequence()
        try:
            results = _at_once(mode, x, h, c, weights, sizes, reverse, shown)
        except RuntimeError:
            pass  # `_steps` finds torch's words
        else:
            name = _node_name(mode, x, sizes, w_hr)
            _C.name_node(results[0], name, since, _kept(x, h, c, weights) if "Mkldnn" in name else {})
            return results
    return _steps(mode, linear(x, w_ih, b_ih), h, c, w_hh, b_hh, w_hr, sizes, reverse)


def _kept(x, h, c, weights):
    """What torch reads in its one operation, more than the steps here: a write into any of it is refused."""
    read = {"input": x, **{f"weight{i}": w for i, w in enumerate(weights)}, "hx_": h, "cx_": c}
    return {name: _C.keep(t) for name, t in read.items() if t is not None} if _C.is_grad_enabled() else {}


def _is_one_step(mode, x, sizes, w_hr):
    """Whether torch has one operation for it; of the others, who looks on sees the steps."""
    return mode == "lstm" and sizes is None and x.dtype in _OF_LIBRARY and w_hr is None


def _node_name(mode, x, sizes, w_hr):
    """How torch calls the last step of a layer."""
    if sizes is not None:
        return "=CatBackward0"
    return "=MkldnnRnnLayerBackward0" if _is_one_step(mode, x, sizes, w_hr) else "=StackBackward0"


def _at_once(mode, x, h, c, weights, sizes, reverse, shown):
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if mode == "gru" or x.dtype in (_C.float16, _C.bfloat16):  # torch rounds each sum with its bias
        gx, state_bias = linear(x, w_ih, b_ih), b_hh
    else:
        gx, state_bias = linear(x, w_ih, b_ih if b_ih is None else _sum(b_ih, b_hh)), None
    fused = w_hr is None and gx.dtype in (_C.float32, _C.float64) and not gx.is_meta
    if fused and gx.dtype == h.dtype == w_hh.dtype and (c is None or c.dtype == h.dtype):
        out, hn, cn, *_ = ops.rnn_sequence(gx, h, c, w_hh, state_bias, mode, sizes, reverse, shown)
        return out, hn, None if c is None else cn
    return _steps(mode, gx, h, c, w_hh, state_bias, w_hr, sizes, reverse)


def _check_counts(states, params, cells, has_biases, bidirectional, projected):
    """How many parameters each layer has in each direction, if they and the states are enough."""
    per_cell = (4 if has_biases else 2) + projected
    if params % per_cell:
        raise RuntimeError("got an incorrect number of RNN parameters")
    groups = params // per_cell
    if bidirectional and (states % 2 or groups % 2):
        raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
    if cells != states or cells < 1:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    if cells != groups:
        raise RuntimeError("Expected more weights in stacked_rnn")
    return per_cell


# An LSTM of these torch leaves to oneDNN, layer by layer: it does not ask for the counts first, nor whether
# there are states and weights that no layer uses.
_OF_LIBRARY = _C.float32, _C.bfloat16


def _check_slices(x, h0, params, cells, per_cell):
    if params % per_cell:
        raise RuntimeError(f"MatrixRef: ArrayRef size {params} not divisible by stride {per_cell}")
    if cells <= 0:
        none, below = (
            "stack expects a non-empty TensorList",
            "cannot create std::vector larger than max_size()",
        )
        raise RuntimeError(below if cells else none)
    for k in range(cells):
        if (k + 1) * per_cell > params:
            raise RuntimeError(
                f"ArrayRef: invalid slice, N = {k * per_cell}; M = {per_cell}; size = {params}"
            )
        h0.select(0, k)
        for dim in range(3):
            x.size(dim)


def _layers(
    mode, x, hx, params, has_biases, num_layers, dropout, train, bidirectional, sizes, one=_direction
):
    """out, h and c of all layers; x is (time, batch, features), or packed with `sizes`. one: what runs one
    layer in one direction."""
    directions = 2 if bidirectional else 1
    if mode == "lstm" and len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    h0, c0 = hx if mode == "lstm" else (hx, None)
    cells = num_layers * directions
    projected = c0 is not None and h0.size(2) != c0.size(2)
    if sizes is None and x.dim() and x.size(0) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    plain = per_cell = 4 if has_biases else 2
    of_library = mode == "lstm" and not projected and x.dtype in _OF_LIBRARY and x.numel() and sizes is None
    if of_library:
        _check_slices(x, h0, len(params), cells, per_cell)
    else:
        per_cell = _check_counts(h0.size(0), len(params), cells, has_biases, bidirectional, projected)
    if mode == "gru" and sizes is not None and h0.dim() == 2:
        h0[0].size(1)  # the IndexError that torch gives
    if dropout and train and num_layers > 1 and not 0 <= dropout <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout:g}")
    # torch's own layers take the states apart at once.
    h_first, c_first = (
        t.unbind() if t is not None and t.requires_grad and not of_library else t for t in (h0, c0)
    )
    hs, cs = [], []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            own = list(params[k * per_cell : (k + 1) * per_cell])
            projection = own.pop() if per_cell > plain else None
            weights = (*own, *([None] * (4 - len(own))), projection)
            c = None if c_first is None else c_first[k]
            shown = directions == 1 and layer == num_layers - 1
            out, h, c = one(mode, x, h_first[k], c, weights, sizes, direction == 1, shown)
            outs.append(out)
            hs.append(h)
            cs.append(c)
        x = _cat(outs, -1)
        if dropout and train and layer < num_layers - 1:
            from rushlight.nn.functional.dropout import dropout as drop

            x = drop(x, dropout)
    return x, stack(hs), None if c0 is None else stack(cs)


@told(node_name="TransposeBackward1")
def _transposed(out):
    """torch transposes the result in place: no view, and written once. Here it is also what was saved."""
    out = _C.forget_base(out.transpose(0, 1))
    _C.set_version(out, 1)
    return out


def _run(name, mode, args, kwargs, one=_direction):
    """Both forms: (input, hx, params, ...) if padded, (data, batch_sizes, hx, params, ...) if packed."""
    common = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
    packed, padded = ("data", "batch_sizes", *common), ("input", *common, "batch_first")
    # Packed are a tensor of sizes and then the state; padded the state (of an LSTM a pair) and then a list.
    second, third = (args[1], args[2] if len(args) > 2 else None) if len(args) > 1 else (None, None)
    lists = isinstance(third, (list, tuple)) and mode != "lstm"
    is_packed = "batch_sizes" in kwargs or (isinstance(second, Tensor) and not lists)
    names = packed if is_packed else padded
    if len(args) > len(names):
        raise TypeError(f"{name}() takes {len(names)} arguments but {len(args)} were given")
    given = dict(zip(names, args)) | kwargs
    missing = [n for n in names if n not in given]
    if missing or len(given) > len(names):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: missing {', '.join(missing)}"
        )
    if isinstance(given["num_layers"], Tensor) and given["num_layers"].dim():
        raise invalid_combination(name, args)
    rest = tuple(given[n] for n in common)
    if is_packed:
        if given["batch_sizes"].dtype != _C.int64:
            found = type_name(given["batch_sizes"].dtype)
            raise RuntimeError(f"expected scalar type Long but found {found}")
        sizes = given["batch_sizes"]
        sizes = tuple(known(sizes.reshape(-1)[: sizes.size(0)]).tolist())
        if mode == "lstm" and sizes and sizes[0] == sizes[-1] and given["data"].dtype in _OF_LIBRARY:
            given["data"].reshape(len(sizes), sizes[0], given["data"].size(-1))  # must be one block
        return _layers(mode, given["data"], *rest, sizes, one)
    x = given["input"].transpose(0, 1) if given["batch_first"] else given["input"]
    out, h, c = _layers(mode, x, *rest, None, one)
    if given["batch_first"]:
        out = out.transpose(0, 1) if mode == "lstm" else _transposed(out)
    return out, h, c


@function
def lstm(*args, **kwargs):
    """Long short-term memory: lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first), or lstm(data, batch_sizes, hx, params, ..., bidirectional) of packed sequences.

    >>> m = rushlight.nn.LSTM(2, 3)
    >>> h = rushlight.zeros(1, 1, 3)
    >>> out, hn, cn = rushlight.lstm(
    ...     rushlight.ones(4, 1, 2), (h, h), list(m.parameters()), True, 1, 0.0, True, False, False)
    >>> out.shape
    torch.Size([4, 1, 3])
    """
    return _run("lstm", "lstm", args, kwargs)


@function
def gru(*args, **kwargs):
    """Gated recurrent units, with the arguments of lstm().

    >>> m = rushlight.nn.GRU(2, 3)
    >>> h = rushlight.zeros(1, 1, 3)
    >>> out, hn = rushlight.gru(
    ...     rushlight.ones(4, 1, 2), h, list(m.parameters()), True, 1, 0.0, True, False, False)
    >>> out.shape
    torch.Size([4, 1, 3])
    """
    return _run("gru", "gru", args, kwargs)[:2]


@function
def rnn_tanh(*args, **kwargs):
    """h = tanh(W x + V h + b), with the arguments of lstm().

    >>> m = rushlight.nn.RNN(2, 3)
    >>> rushlight.rnn_tanh(rushlight.ones(4, 1, 2), rushlight.zeros(1, 1, 3), list(m.parameters()), True, 1,
    ...     0.0, True, False, False)[1].shape
    torch.Size([1, 1, 3])
    """
    return _run("rnn_tanh", "tanh", args, kwargs)[:2]


@function
def rnn_relu(*args, **kwargs):
    """h = relu(W x + V h + b), with the arguments of lstm().

    >>> m = rushlight.nn.RNN(2, 3, nonlinearity="relu")
    >>> rushlight.rnn_relu(rushlight.ones(4, 1, 2), rushlight.zeros(1, 1, 3), list(m.parameters()), True, 1,
    ...     0.0, True, False, False)[1].shape
    torch.Size([1, 1, 3])
    """
    return _run("rnn_relu", "relu", args, kwargs)[:2]


def _check_input(mode, x, states, w_ih, w_hh):
    if x.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {x.size(1)} expected {w_ih.size(1)}")


def _check_states(mode, x, states, w_ih, w_hh):
    for k, state in enumerate(states):
        if x.size(0) != state.size(0):
            raise RuntimeError(
                f"Input batch size {x.size(0)} doesn't match hidden{k} batch size {state.size(0)}"
            )
        if state.size(1) != w_hh.size(1):
            raise RuntimeError(
                f"hidden{k} has inconsistent hidden_size: got {state.size(1)}, expected {w_hh.size(1)}"
            )


def _check_weights(mode, x, states, w_ih, w_hh):
    gates, size = _GATES.get(mode, 1), w_hh.size(1)
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.size(0) != gates * size:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * size}, but got {weight.size(0)}"
            )


# In the order in which torch looks.
_CHECKS = {
    "gru": (_check_input, _check_states, _check_weights),
    "lstm": (_check_input, _check_weights, _check_states),
}
_PLAIN_CHECKS = (_check_weights, _check_input, _check_states)


def _cell(mode, x, h, c, w_ih, w_hh, b_ih, b_hh):
    states = (h,) if c is None else (h, c)
    for check in _CHECKS.get(mode, _PLAIN_CHECKS):
        check(mode, x, states, w_ih, w_hh)
    weights = (w_ih, w_hh, b_ih, b_hh, None)
    if _fit(x, 2, b_ih, b_hh) and not (_C.watched(x) or _in_steps(x, *states, *weights)):
        try:
            out, _, c = _at_once(mode, x, h, c, weights, (x.shape[0],), False, True)
            return out, c
        except RuntimeError:
            pass  # `_step` finds torch's words
    of_h = None if mode == "gru" else linear(h, w_hh, b_hh)  # whose refusal comes first
    return _step(mode, linear(x, w_ih, b_ih), h, c, w_hh, b_hh, None, of_h)


@function
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM: the new (h, c).

    >>> w = rushlight.zeros(4, 1)
    >>> rushlight.lstm_cell(rushlight.ones(1, 1), (rushlight.zeros(1, 1), rushlight.ones(1, 1)), w, w)[1]
    tensor([[0.5000]])
    """
    if not isinstance(hx, (tuple, list)):
        raise TypeError(
            f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {class_name(hx)}"
        )
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm", input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)


@function
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU.

    >>> w = rushlight.zeros(3, 1)
    >>> rushlight.gru_cell(rushlight.ones(1, 1), rushlight.ones(1, 1), w, w)
    tensor([[0.5000]])
    """
    return _cell("gru", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@function
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a plain RNN: tanh(w_ih x + w_hh h + b).

    >>> w = rushlight.ones(1, 1)
    >>> rushlight.rnn_tanh_cell(rushlight.zeros(1, 1), rushlight.zeros(1, 1), w, w)
    tensor([[0.]])
    """
    return _cell("tanh", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@function
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a plain RNN: relu(w_ih x + w_hh h + b).

    >>> w = rushlight.ones(1, 1)
    >>> rushlight.rnn_relu_cell(rushlight.ones(1, 1), rushlight.ones(1, 1), w, w)
    tensor([[2.]])
    """
    return _cell("relu", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]
