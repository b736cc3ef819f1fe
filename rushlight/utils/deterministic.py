"""torch.utils.deterministic: what deterministic algorithms do with memory that nobody has written."""

fill_uninitialized_memory = True
