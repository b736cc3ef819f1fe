"""A function that programs once had to give a DataLoader of pipes."""

import warnings


def worker_init_fn(worker_id):
    """Does nothing: the loader shards pipes by itself."""
    warnings.warn(
        "Usage of `backward_compatibility.worker_init_fn` is deprecated as `DataLoader` automatically "
        "applies sharding in every worker",
        FutureWarning,
        stacklevel=2,
    )
