"""Where torch keeps the layers that live in another file here: pickled models name the file."""

LAYER_FILES: dict[str, str] = {
    "LinearCrossEntropyLoss": "loss",
    "LinearCrossEntropyOptions": "linear_cross_entropy_options",
    "MultiheadAttention": "activation",
}
