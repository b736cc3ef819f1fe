"""spectral_norm as torch had it first: the weight is computed by a hook before each forward."""

import rushlight
import rushlight.nn.functional as F
from rushlight.nn.parameter import Parameter

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: sets `name` to `name_orig` over its largest singular value."""

    _version = 1  # of what a state dict holds of it: since 1 `name_v` is in it and `name` is not

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight):
        """The weight with the dimension of outputs first and the others joined."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        """The normalised weight."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with rushlight.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(rushlight.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(rushlight.mv(matrix, v), dim=0, eps=self.eps))
                if self.n_power_iterations > 0:
                    u, v = u.clone(), v.clone()  # the graph keeps these while the buffers go on
        return weight / rushlight.dot(u, rushlight.mv(matrix, v))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Puts the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with rushlight.no_grad():
            height, width = hook.reshape_weight_to_matrix(weight).size()
            u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook

    def _solve_v(self, matrix, u, sigma):
        """The v that files of old versions lack: with u it gives the singular value of the saved weight."""
        v = (matrix.t().mm(matrix).pinverse() @ matrix.t() @ u.unsqueeze(1)).squeeze(1)
        return v.mul_(sigma / rushlight.dot(u, rushlight.mv(matrix, v)))

    def remove(self, module):
        """Makes the weight a parameter again."""
        with rushlight.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for part in ("_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class SpectralNormStateDictHook:
    """Notes in a state dict which version of the normalisation it was saved with."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Brings the state dict of an old version into the present form."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version", None)
        name = prefix + self.fn.name
        if version is not None and version >= 1:
            return
        if all(name + part in state_dict for part in ("_orig", "_u", "_v")) and name not in state_dict:
            return  # the present form, only without its version
        missing = [name + part for part in ("_orig", "", "_u") if name + part not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with rushlight.no_grad():
            original = state_dict[name + "_orig"]
            sigma = (original / state_dict.pop(name)).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            state_dict[name + "_v"] = self.fn._solve_v(matrix, state_dict[name + "_u"], sigma)


def _drop(hooks, kind, name):
    """Take the hook of a kind for this weight out of a table, if it is there."""
    for key, hook in hooks.items():
        if isinstance(hook, kind) and hook.fn.name == name:
            del hooks[key]
            return


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its largest singular value, which is followed by power iteration."""
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Takes spectral_norm off a module."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            _drop(module._state_dict_hooks, SpectralNormStateDictHook, name)
            _drop(module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook, name)
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
