"""XNNPACK, which is not here."""

enabled = False
