"""Finds the few lines of a log that matter, without a look at the others one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from stagewright.traces.readers.lines import Lines


def any_of(words: Sequence[str]) -> str:
    """A pattern that finds any of the words."""
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in words)


def sorted_out(lines: Lines, pattern: str) -> tuple[int, list[int]]:
    """How many lines are blank, and which ones the pattern finds something in."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its functions are made when it is imported
    offsets = pa.array(lines.bounds.tolist(), pa.int32()).buffers()[1]
    texts = pa.BinaryArray.from_buffers(
        pa.binary(), len(lines), [None, offsets, pa.py_buffer(lines.data)]
    )
    blank = int(compute.sum(compute.match_substring_regex(texts, r"^\s*$")).as_py() or 0)
    relevant = compute.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return blank, np.flatnonzero(relevant).tolist()
