"""The parts of the loader: collating samples, fetching them, worker processes."""

from rushlight.utils.data._utils import collate, fetch, pin_memory, signal_handling, worker
from rushlight.utils.data._utils.worker import MP_STATUS_CHECK_INTERVAL

python_exit_status = False
HAS_NUMPY = True
