"""Streams of data frames, through pandas where it is installed."""

from rushlight.utils.data.datapipes.dataframe.dataframes import CaptureDataFrame, DFIterDataPipe
from rushlight.utils.data.datapipes.dataframe.datapipes import DataFramesAsTuplesPipe

__all__ = ["CaptureDataFrame", "DFIterDataPipe", "DataFramesAsTuplesPipe"]
