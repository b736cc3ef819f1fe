"""Kernels written in Python's GPU languages, of which none is here."""

available_dsls: list[str] = []
all_dsls: list[str] = []
