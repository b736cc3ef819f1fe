"""Decoding a stream of files by their extension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from rushlight._warn import warn
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.decoder import Decoder, extension_extract_fn

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """Each path with what the first handler that knows its extension makes of the file."""

    def __init__(
        self,
        datapipe: Iterable[tuple[str, Any]],
        *handlers: Callable[[str, Any], Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        warn(
            "`RoutedDecoderIterDataPipe()` and its functional API `.routed_decode()` are deprecated since "
            "1.12 and will be removed in 1.13.\nSee https://github.com/pytorch/data/issues/163 for details.",
            FutureWarning,
        )
        self.datapipe = datapipe
        self.decoder = Decoder(*handlers, key_fn=key_fn)

    def add_handler(self, *handler: Callable[[str, Any], Any]) -> None:
        """Ask these handlers as well."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            pathname = data[0]
            yield pathname, self.decoder(data)[pathname]

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
