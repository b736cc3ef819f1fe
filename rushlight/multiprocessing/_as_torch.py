"""Imported by a server of processes under `python -m rushlight`: torch is Rushlight there."""

from rushlight.__main__ import prepare

prepare()
