"""What the pipes need of a library of data frames: pandas, or one set by ``set_df_wrapper``."""

from __future__ import annotations

from typing import Any

_pandas: Any = None
_WITH_PANDAS: bool | None = None


def _with_pandas() -> bool:
    """Whether pandas is there; it is imported when first asked for."""
    global _pandas, _WITH_PANDAS
    if _WITH_PANDAS is None:
        try:
            import pandas

            _pandas, _WITH_PANDAS = pandas, True
        except ImportError:
            _WITH_PANDAS = False
    return _WITH_PANDAS


def _needed() -> Any:
    if not _with_pandas():
        raise RuntimeError("DataFrames prototype requires pandas to function")
    return _pandas


class PandasWrapper:
    """Data frames of pandas."""

    @classmethod
    def create_dataframe(cls, data: Any, columns: Any) -> Any:
        """A data frame of these rows."""
        return _needed().DataFrame(data, columns=columns)

    @classmethod
    def is_dataframe(cls, data: Any) -> bool:
        """Whether this is a data frame."""
        return _with_pandas() and isinstance(data, _pandas.core.frame.DataFrame)

    @classmethod
    def is_column(cls, data: Any) -> bool:
        """Whether this is a column of one."""
        return _with_pandas() and isinstance(data, _pandas.core.series.Series)

    @classmethod
    def iterate(cls, data: Any) -> Any:
        """The rows as tuples."""
        _needed()
        yield from data.itertuples(index=False)

    @classmethod
    def concat(cls, buffer: Any) -> Any:
        """Data frames under each other."""
        return _needed().concat(buffer)

    @classmethod
    def get_item(cls, data: Any, idx: int) -> Any:
        """A data frame of one row."""
        _needed()
        return data[idx : idx + 1]

    @classmethod
    def get_len(cls, df: Any) -> int:
        """The number of rows."""
        _needed()
        return len(df.index)

    @classmethod
    def get_columns(cls, df: Any) -> list[Any]:
        """The names of the columns."""
        _needed()
        return list(df.columns.values.tolist())


default_wrapper = PandasWrapper


def get_df_wrapper() -> Any:
    """The library in use."""
    return default_wrapper


def set_df_wrapper(wrapper: Any) -> None:
    """Use another library: a class with the methods of PandasWrapper."""
    global default_wrapper
    default_wrapper = wrapper


def create_dataframe(data: Any, columns: Any = None) -> Any:
    """A data frame of these rows."""
    return get_df_wrapper().create_dataframe(data, columns)


def is_dataframe(data: Any) -> bool:
    """Whether this is a data frame."""
    return get_df_wrapper().is_dataframe(data)


def get_columns(data: Any) -> list[Any]:
    """The names of the columns."""
    return get_df_wrapper().get_columns(data)


def is_column(data: Any) -> bool:
    """Whether this is a column."""
    return get_df_wrapper().is_column(data)


def concat(buffer: Any) -> Any:
    """Data frames under each other."""
    return get_df_wrapper().concat(buffer)


def iterate(data: Any) -> Any:
    """The rows as tuples."""
    return get_df_wrapper().iterate(data)


def get_item(data: Any, idx: int) -> Any:
    """A data frame of one row."""
    return get_df_wrapper().get_item(data, idx)


def get_len(df: Any) -> int:
    """The number of rows."""
    return get_df_wrapper().get_len(df)
