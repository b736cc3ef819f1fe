"""What the comparisons with torch share."""

import contextlib

with contextlib.suppress(ImportError):  # without torch they are skipped
    import torch.cuda.random
    import torch.xpu.random

    # torch.manual_seed also seeds devices that are not there: it keeps the call, and the stack as text, until
    # they are, which takes a millisecond. The tests seed ten thousand times.
    for _device in (torch.cuda, torch.xpu):
        if not _device.is_available():
            _device.random._lazy_call = lambda call, **options: None
