"""Quantised computing, which is not here."""

engine = "none"
supported_engines = ["none"]
