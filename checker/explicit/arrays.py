"""The arrays that graphs of states, and searches over them, are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
