"""Recurrent layers (RNN, LSTM, GRU) over sequences, and their cells, which make one step."""

import math
import sys
import weakref

import rushlight
from rushlight._warn import warn
from rushlight.nn import init
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_FUNCTIONS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def _autocasts():
    """Whether autocast is on, without importing it."""
    mode = sys.modules.get("rushlight.amp.autocast_mode")
    return mode is not None and mode.is_autocast_enabled("cpu")


class RNNBase(Module):
    """What RNN, LSTM and GRU have in common: parameters by layer and direction, and checks of the input."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        self._flat_weights_names = []
        self._all_weights = []
        state = proj_size if proj_size > 0 else hidden_size
        directions = 2 if bidirectional else 1
        gates = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            features = input_size if layer == 0 else state * directions
            for direction in range(directions):
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                shapes = {"weight_ih": (gates, features), "weight_hh": (gates, state)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [name + suffix for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(rushlight.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _check_arguments(self, dropout):
        from numbers import Number

        if not isinstance(dropout, Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being "
                "zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}"
            )
        for name in ("bias", "batch_first"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    # The weights in the order of use are kept in a list, which programs may replace. It is looked up again
    # when a name means another tensor than then, as under functional_call.

    def _init_flat_weights(self):
        weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weights = weights
        self._flat_weight_refs = [None if weight is None else weakref.ref(weight) for weight in weights]

    def _update_flat_weights(self):
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=True):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                self._init_flat_weights()
                return

    def __setattr__(self, name, value):
        names = self.__dict__.get("_flat_weights_names", ())
        if name in names:
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn, recurse=True):
        self._flat_weight_refs = []
        super()._apply(fn, recurse)
        self._init_flat_weights()
        return self

    def __getstate__(self):
        self._update_flat_weights()
        state = self.__dict__.copy()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self._flat_weight_refs = [
            weight if weight is None else weakref.ref(weight) for weight in self._flat_weights
        ]

    @property
    def all_weights(self):
        """The parameters, one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing to do: the parameters are used where they are."""

    def reset_parameters(self):
        """Draw the weights anew, uniformly within ``1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Raise torch's error unless type, dimensions and features of the input fit."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not _autocasts():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert "
                f"input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def _state_shape(self, input, batch_sizes, features=None):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        state = self.proj_size if self.proj_size > 0 else self.hidden_size
        return (self.num_layers * directions, batch, state if features is None else features)

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of the hidden state for this input."""
        return self._state_shape(input, batch_sizes)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise torch's error unless the state has the expected shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Check input and state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with its sequences in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zero_state(self, input, batch_sizes):
        shape = self._state_shape(input, batch_sizes)
        return rushlight.zeros(shape, dtype=input.dtype, device=input.device)

    def _with_batch(self, hx):
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        return hx.unsqueeze(1)

    def _check_state_dims(self, hx):
        if hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def forward(self, input, hx=None):
        self._update_flat_weights()
        batch_sizes = sorted_indices = unsorted_indices = None
        batched = True
        if isinstance(input, PackedSequence):
            input, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is not None:
                hx = self.permute_hidden(hx, sorted_indices)
        else:
            if input.dim() not in (2, 3):
                what = "D tensor" if self.mode.startswith("RNN") else "D"
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}{what} instead"
                )
            batched = input.dim() == 3
            if not batched:
                input = input.unsqueeze(0 if self.batch_first else 1)
                hx = None if hx is None else self._with_batch(hx)
            elif hx is not None:
                self._check_state_dims(hx)
        if hx is None:
            hx = self._zero_state(input, batch_sizes)
        self.check_forward_args(input, hx, batch_sizes)
        run = getattr(rushlight, _FUNCTIONS[self.mode])
        layers = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            result = run(input, hx, self._flat_weights, *layers, self.batch_first)
        else:
            result = run(input, batch_sizes, hx, self._flat_weights, *layers)
        output, hidden = result[0], result[1] if len(result) == 2 else result[1:]
        if batch_sizes is not None:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return output, self.permute_hidden(hidden, unsorted_indices)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            hidden = self._without_batch(hidden)
        return output, hidden

    def _without_batch(self, hidden):
        return hidden.squeeze(1)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    """``h = tanh(W_ih x + b_ih + W_hh h + b_hh)`` over a sequence; or relu, with ``nonlinearity="relu"``.

    >>> import rushlight as torch
    >>> output, h = torch.nn.RNN(2, 3)(torch.randn(5, 4, 2))
    >>> output.shape, h.shape
    (torch.Size([5, 4, 3]), torch.Size([1, 4, 3]))
    """

    def __init__(
        self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, *args, **kwargs
    ):
        if "proj_size" in kwargs or len(args) > 3:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = f"RNN_{nonlinearity.upper()}"
        self.nonlinearity = nonlinearity
        super().__init__(mode, input_size, hidden_size, num_layers, bias, *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units over a sequence.

    >>> import rushlight as torch
    >>> output, h = torch.nn.GRU(2, 3, num_layers=2, bidirectional=True)(torch.randn(5, 4, 2))
    >>> output.shape, h.shape
    (torch.Size([5, 4, 6]), torch.Size([4, 4, 3]))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory over a sequence.

    >>> import rushlight as torch
    >>> output, (h, c) = torch.nn.LSTM(2, 3)(torch.randn(5, 4, 2))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 4, 3]), torch.Size([1, 4, 3]), torch.Size([1, 4, 3]))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of the cell state for this input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Check input and both states."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        """Both states with their sequences in another order."""
        return tuple(super(LSTM, self).permute_hidden(each, permutation) for each in hx)

    def _zero_state(self, input, batch_sizes):
        cell = self.get_expected_cell_size(input, batch_sizes)
        return super()._zero_state(input, batch_sizes), rushlight.zeros(
            cell, dtype=input.dtype, device=input.device
        )

    def _with_batch(self, hx):
        if hx[0].dim() != 2 or hx[1].dim() != 2:
            raise RuntimeError(
                "For unbatched 2-D input, hx and cx should also be 2-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _check_state_dims(self, hx):
        if hx[0].dim() != 3 or hx[1].dim() != 3:
            raise RuntimeError(
                "For batched 3-D input, hx and cx should also be 3-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _without_batch(self, hidden):
        return hidden[0].squeeze(1), hidden[1].squeeze(1)


class RNNCellBase(Module):
    """What the cells have in common."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        make = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(rushlight.empty((num_chunks * hidden_size, input_size), **make))
        self.weight_hh = Parameter(rushlight.empty((num_chunks * hidden_size, hidden_size), **make))
        if bias:
            self.bias_ih = Parameter(rushlight.empty(num_chunks * hidden_size, **make))
            self.bias_hh = Parameter(rushlight.empty(num_chunks * hidden_size, **make))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def reset_parameters(self):
        """Draw the weights anew, uniformly within ``1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dims(self, value, what):
        if value.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {value.dim()}D instead"
            )

    def _step(self, function, input, hx):
        """One step with a single state, which starts at zero."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        else:
            shape = (*input.shape[:-1], self.hidden_size)
            hx = rushlight.zeros(shape, dtype=input.dtype, device=input.device)
        batched = input.dim() == 2
        result = function(
            input if batched else input.unsqueeze(0),
            hx if batched else hx.unsqueeze(0),
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
        )
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an RNN.

    >>> import rushlight as torch
    >>> torch.nn.RNNCell(2, 3)(torch.randn(4, 2)).shape
    torch.Size([4, 3])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        return self._step(self._cell, input, hx)

    def _cell(self, *args):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return (rushlight.rnn_tanh_cell if self.nonlinearity == "tanh" else rushlight.rnn_relu_cell)(*args)


class GRUCell(RNNCellBase):
    """One step of a GRU.

    >>> import rushlight as torch
    >>> torch.nn.GRUCell(2, 3)(torch.randn(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(rushlight.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: the new state and cell.

    >>> import rushlight as torch
    >>> h, c = torch.nn.LSTMCell(2, 3)(torch.randn(4, 2))
    >>> h.shape, c.shape
    (torch.Size([4, 3]), torch.Size([4, 3]))
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        self._check_dims(input, "input")
        if hx is not None:
            for k, value in enumerate(hx):
                self._check_dims(value, f"hx[{k}]")
        if hx is None:
            shape = (*input.shape[:-1], self.hidden_size)
            zeros = rushlight.zeros(shape, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        batched = input.dim() == 2
        if not batched:
            input, hx = input.unsqueeze(0), (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        result = rushlight.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else tuple(state.squeeze(0) for state in result)
