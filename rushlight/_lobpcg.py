"""Where torch has `lobpcg` and the object that its tracker is given."""

from rushlight.ops.lowrank import LOBPCG as LOBPCG
from rushlight.ops.lowrank import lobpcg as lobpcg
