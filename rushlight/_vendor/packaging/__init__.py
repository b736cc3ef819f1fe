"""The part of `packaging` that compares versions."""
