"""The parts of the loader: collating samples, fetching them, worker processes."""

from rushlight.utils.data._utils import collate, fetch, worker
