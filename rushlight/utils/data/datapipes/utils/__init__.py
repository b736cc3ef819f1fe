"""Tools of the steps."""

from rushlight.utils.data.datapipes.utils import common

__all__ = ["common"]
