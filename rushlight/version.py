"""What this was built with."""

import rushlight

__version__ = rushlight.__version__
cuda = None
hip = None
rocm = None
xpu = None
debug = False
git_version = "Unknown"  # as torch says where it was not built from a repository
