"""Packages that torch brings along and libraries import from there."""
