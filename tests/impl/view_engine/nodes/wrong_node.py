"""A node whose process is a wrong build: `wrong_node.py DEFECT FOLDER NAME [TRACE]`."""

from __future__ import annotations

import sys

from stagewright.impl.view_engine.defects import Defect, built_with
from stagewright.impl.view_engine.nodes.program import main

if __name__ == "__main__":
    with built_with(Defect[sys.argv[1]]):
        sys.exit(main(sys.argv[2:]))
