"""The first interface for operations of one's own, which torch keeps beside `torch.library`."""

import rushlight._custom_op.impl
