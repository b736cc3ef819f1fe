"""Datasets in steps: `iter` for streams, `map` for samples by index."""

from rushlight.utils.data.datapipes import dataframe, datapipe, iter, map, utils

__all__ = ["dataframe", "datapipe", "iter", "map", "utils"]
