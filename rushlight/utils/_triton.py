"""Triton, which has no devices to run on here."""


def has_triton_package() -> bool:
    """Whether Triton can be used: no."""
    return False


has_triton = has_triton_tma = has_triton_tma_device = has_triton_stable_tma_api = has_triton_package
has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = has_triton_package
has_datacenter_blackwell_tma_device = has_triton_package
