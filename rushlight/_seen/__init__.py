"""What is seen of derivatives by who looks on: `_table.py` says how, the rest are its rules by family."""

from rushlight._seen import elementwise, fft, functions, index, layers, reduce
