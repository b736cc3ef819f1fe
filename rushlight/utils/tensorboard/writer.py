"""SummaryWriter: scalars, histograms, images, texts and hyperparameters in files that TensorBoard shows.

Nothing beside the standard library is needed to write them. What is not there raises NotImplementedError.
"""

from __future__ import annotations

import bisect
import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from typing import Any

import rushlight
from rushlight.utils.tensorboard._events import EventFile, Single, message

__all__ = ["FileWriter", "SummaryWriter"]


def _number(value: Any) -> float:
    if isinstance(value, rushlight.Tensor):
        value = value.detach()
    if getattr(value, "numel", lambda: 1)() != 1 or getattr(value, "size", 1) == 0:
        raise AssertionError("scalar should be 0D")
    return float(value)


def _metadata(plugin: str, content: bytes = b"") -> bytes:
    return message((1, message((1, plugin), (2, content or None))))


def _tensor(values: Any) -> rushlight.Tensor:
    return values.detach() if isinstance(values, rushlight.Tensor) else rushlight.as_tensor(values)


def _default_limits() -> list[float]:
    """Limits that grow by a tenth from 1e-12 to 1e20, on both sides of zero."""
    limits, value = [], 1e-12
    while value < 1e20:
        limits.append(value)
        value *= 1.1
    return [-limit for limit in reversed(limits)] + [0.0] + limits


def _histogram(values: Any, bins: Any, max_bins: int | None) -> bytes:
    values = _tensor(values).to(rushlight.float64).reshape(-1)
    if not values.numel():
        raise ValueError("The input has no element.")
    if not bool(values.isfinite().all()):
        raise ValueError("The histogram is empty, please file a bug report.")
    least, most = float(values.min()), float(values.max())
    if bins == "tensorflow":
        limits = _default_limits()
    elif isinstance(bins, str):
        import numpy  # NumPy's rules for a good number of bins

        limits = numpy.histogram_bin_edges(values.numpy(), bins).tolist()
    elif isinstance(bins, int):
        low, high = (least, most) if least < most else (least - 0.5, most + 0.5)
        limits = rushlight.linspace(low, high, bins + 1, dtype=rushlight.float64).tolist()
    else:
        limits = [float(limit) for limit in _tensor(bins).tolist()]
    edges = rushlight.tensor(limits, dtype=rushlight.float64)
    places = rushlight.bucketize(values, edges, right=True)
    places = rushlight.where(values == edges[-1], len(limits) - 1, places)
    counts = rushlight.bincount(places, minlength=len(limits) + 1)[1 : len(limits)].tolist()
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        padded = counts + [0] * (-len(counts) % step)
        limits_end = limits[-1]
        limits = limits[:-1][::step]
        counts = [sum(padded[i : i + step]) for i in range(0, len(padded), step)]
        limits = [*limits, limits_end]
    taken = [0]
    for count in counts:
        taken.append(taken[-1] + count)
    # The empty bins at either end are left out but for one before the first.
    start = bisect.bisect_right(taken, 0) - 1
    end = bisect.bisect_left(taken, taken[-1])
    counts = counts[start - 1 : end] if start > 0 else [0, *counts[:end]]
    limits = limits[start : end + 1]
    return _raw_histogram(
        least, most, values.numel(), float(values.sum()), float(values.dot(values)), limits, counts
    )


def _raw_histogram(least, most, count, total, squares, limits, counts) -> bytes:
    return message(
        (1, float(least)), (2, float(most)), (3, float(count)), (4, float(total)), (5, float(squares)),
        (6, [float(limit) for limit in limits]), (7, [float(n) for n in counts]),
    )  # fmt: skip


def _pixels(image: Any, dataformats: str) -> rushlight.Tensor:
    """The image as bytes, height x width x channels, with a batch laid out as a grid."""
    image = _tensor(image)
    if image.dim() != len(dataformats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {tuple(image.shape)}, "
            f"input_format: {dataformats}"
        )
    dataformats = dataformats.upper()
    if set(dataformats) - set("NCHW"):
        raise ValueError(f"dataformats names the dimensions N, C, H and W, not {dataformats}")
    if image.dtype != rushlight.uint8:
        image = (image.to(rushlight.float32) * 255).clamp(0, 255).to(rushlight.uint8)
    for kind in "NCH":
        if kind not in dataformats:
            image, dataformats = image.unsqueeze(0), kind + dataformats
    image = image.permute(*(dataformats.index(kind) for kind in "NHWC"))
    if image.shape[-1] == 1:
        image = image.expand(*image.shape[:-1], 3)
    count, height, width, channels = image.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = rushlight.zeros(rows * height, columns * width, channels, dtype=rushlight.uint8)
    for i in range(count):
        top, left = i // columns * height, i % columns * width
        grid[top : top + height, left : left + width] = image[i]
    return grid


def _png(pixels: rushlight.Tensor) -> bytes:
    height, width, channels = pixels.shape
    colour = {3: 2, 4: 6}.get(channels)
    if colour is None:
        raise ValueError(f"an image has 1, 3 or 4 channels, not {channels}")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(row) for row in pixels.reshape(height, -1).tolist())
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _image(image: Any, dataformats: str) -> bytes:
    pixels = _pixels(image, dataformats)
    height, width, channels = pixels.shape
    return message((1, height), (2, width), (3, channels), (4, _png(pixels)))


class FileWriter:
    """Writes values of summaries into the event file of a directory."""

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self._directory = str(log_dir)
        self._file = EventFile(self._directory, filename_suffix)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._waiting, self._flushed = 0, time.monotonic()

    def get_logdir(self) -> str:
        """The directory."""
        return self._directory

    def add_value(self, value: bytes, step: Any = None, walltime: float | None = None) -> None:
        """Adds one value; `max_queue` of them or `flush_secs` seconds later all are on disk."""
        step = None if step is None else int(_number(step))
        self._file.write(value, step, walltime)
        self._waiting += 1
        if self._waiting >= self._max_queue or time.monotonic() - self._flushed > self._flush_secs:
            self.flush()

    def flush(self) -> None:
        """Brings everything to disk."""
        self._file.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """Ends the file."""
        self._file.close()


class SummaryWriter:
    """Writes what a training run has to tell, for TensorBoard to show.

    >>> import tempfile, os
    >>> where = tempfile.mkdtemp()
    >>> with rushlight.utils.tensorboard.SummaryWriter(where) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    >>> len(os.listdir(where))
    1
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        if purge_step is not None:
            self._get_file_writer()._file.purge(purge_step)
        else:
            self._get_file_writer()

    def _writer(self, directory: str) -> FileWriter:
        if directory not in self.all_writers:
            self.all_writers[directory] = FileWriter(
                directory, self.max_queue, self.flush_secs, self.filename_suffix
            )
        return self.all_writers[directory]

    def _get_file_writer(self) -> FileWriter:
        self.file_writer = self._writer(self.log_dir)
        return self.file_writer

    def _add(self, tag: str, field: tuple[int, Any], step: Any, walltime: Any, plugin: str = "") -> None:
        metadata = _metadata(plugin) if plugin else None
        value = message((1, tag), field, (9, metadata))
        self._get_file_writer().add_value(value, step, walltime)

    def get_logdir(self) -> str:
        """The directory of the event files."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds one number, with four bytes; of the new style, as a tensor, it may have eight."""
        value = _number(scalar_value)
        if new_style:
            tensor = (
                message((1, 2), (6, [value])) if double_precision else message((1, 1), (5, _packed(value)))
            )
            self._add(tag, (8, tensor), global_step, walltime, "scalars")
        else:
            self._add(tag, (2, Single(value)), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds numbers that share a chart, each as a run of its own below the directory."""
        for tag, value in tag_scalar_dict.items():
            directory = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            entry = message((1, main_tag), (2, Single(_number(value))))
            self._writer(directory).add_value(entry, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds how the elements of `values` are distributed."""
        self._add(tag, (5, _histogram(values, bins, max_bins)), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a histogram that is counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        histogram = _raw_histogram(min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(tag, (5, histogram), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds an image: bytes, or floating numbers from 0 to 1."""
        self._add(tag, (4, _image(img_tensor, dataformats)), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds a batch of images as one grid."""
        if isinstance(img_tensor, (list, tuple)):
            img_tensor = rushlight.stack([_tensor(image) for image in img_tensor])
        self._add(tag, (4, _image(img_tensor, dataformats)), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a figure of matplotlib, or a list of them."""
        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        images = []
        for one in figures:
            canvas = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(one)
            canvas.draw()
            width, height = canvas.get_width_height()
            pixels = rushlight.frombuffer(bytearray(canvas.buffer_rgba()), dtype=rushlight.uint8)
            images.append(pixels.reshape(height, width, 4)[:, :, :3])
            if close:
                import_module("matplotlib.pyplot").close(one)
        if isinstance(figure, (list, tuple)):
            self.add_images(tag, images, global_step, walltime, dataformats="NHWC")
        else:
            self.add_image(tag, images[0], global_step, walltime, dataformats="HWC")

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds a text, shown as Markdown."""
        shape = message((2, message((1, 1))))
        tensor = message((1, 7), (2, shape), (8, text_string))
        self._add(f"{tag}/text_summary", (8, tensor), global_step, walltime, "text")

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, list] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Adds the hyperparameters of a run and what they led to, in a directory of its own."""
        if not isinstance(hparam_dict, Mapping) or not isinstance(metric_dict, Mapping):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        directory = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(directory) as writer:
            for name, content in _hparams(hparam_dict, metric_dict, hparam_domain_discrete or {}):
                value = message((1, f"_hparams_/{name}"), (9, _metadata("hparams", content)))
                writer._get_file_writer().add_value(value)
            for tag, metric in metric_dict.items():
                writer.add_scalar(tag, metric, global_step)

    def flush(self) -> None:
        """Brings everything to disk."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Ends the files; what is added afterwards goes into new ones."""
        for writer in self.all_writers.values():
            writer.close()
        self.file_writer = None
        self.all_writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _missing(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "SummaryWriter has add_scalar(s), add_histogram(_raw), add_image(s), add_figure, add_text and "
            "add_hparams; audio, video, meshes, embeddings, graphs, curves and layouts are not implemented"
        )

    add_audio = add_video = add_mesh = add_embedding = add_graph = add_onnx_graph = _missing
    add_pr_curve = add_pr_curve_raw = add_image_with_boxes = _missing
    add_custom_scalars = add_custom_scalars_multilinechart = add_custom_scalars_marginchart = _missing


def _packed(value: float) -> bytes:
    return struct.pack("<f", value)


def _protobuf_value(value: Any) -> tuple[int, bytes]:
    """The type of a hyperparameter and its value as google.protobuf.Value."""
    if isinstance(value, bool):
        return 2, message((4, value))
    if isinstance(value, (int, float, rushlight.Tensor)):
        return 3, message((2, _number(value)))
    if isinstance(value, str):
        return 1, message((3, value))
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _hparams(hparams: Mapping, metrics: Mapping, domains: Mapping) -> list[tuple[str, bytes]]:
    infos: list[tuple[int, Any]] = []
    session: list[tuple[int, Any]] = []
    for name, value in hparams.items():
        if value is None:
            continue
        kind, encoded = _protobuf_value(value)
        domain = None
        if name in domains:
            domain = message(*((1, _protobuf_value(one)[1]) for one in domains[name]))
        infos.append((4, message((1, name), (4, kind), (5, domain))))
        session.append((1, message((1, name), (2, encoded))))
    infos += [(5, message((1, message((2, metric))))) for metric in metrics]
    return [
        ("experiment", message((2, message(*infos)))),
        ("session_start_info", message((3, message(*session)))),
        ("session_end_info", message((4, message((1, 1))))),
    ]
