"""Datasets in steps: `iter` for streams, `map` for samples by index."""

from rushlight.utils.data.datapipes import datapipe, iter, map, utils

__all__ = ["datapipe", "iter", "map", "utils"]
