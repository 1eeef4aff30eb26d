"""Which engine searches: the native one where code can be compiled, else NumPy's."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING

from stagewright.checker.explicit.checkpoint import Checkpoint
from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.exploration import Exploration, Watch
from stagewright.checker.limits import OnProgress, Stop
from stagewright.spec.grounding.ground import GroundModel

if TYPE_CHECKING:
    from stagewright.checker.symmetry.groups import Symmetry


class EngineKind(Enum):
    """How successors are computed."""

    AUTO = "auto"
    NATIVE = "native"
    NUMPY = "numpy"


def search(
    model: GroundModel,
    watch: Watch,
    stop: Stop,
    progress: OnProgress | None = None,
    *,
    kind: EngineKind = EngineKind.AUTO,
    workers: int | None = None,
    keep: bool = True,
    checkpoint: Checkpoint | None = None,
    symmetry: Symmetry | None = None,
) -> Exploration:
    """Search a model breadth-first; the result is the same for every engine and number of workers.

    `workers`: None for one a core. `keep`: False to forget states as early as possible.
    `symmetry`: search one state of each orbit; the model must be closed under it.
    """
    from stagewright.checker.explicit.native.code.jit import available
    from stagewright.checker.symmetry.reduced import Reduced

    if kind is EngineKind.NUMPY or (kind is EngineKind.AUTO and not available()):
        from stagewright.checker.explicit.numpy_engine import numpy_engine
        from stagewright.checker.explicit.search import explore as explore_in_batches

        serving: Engine = numpy_engine(model)
        if symmetry is not None:
            serving = Reduced(serving, symmetry)
        return explore_in_batches(serving, watch, stop, progress, checkpoint=checkpoint)
    from stagewright.checker.explicit.native.engine import NativeEngine
    from stagewright.checker.explicit.native.search import Stored, explore
    from stagewright.checker.symmetry.compiled import canonical_source

    engine, stored = NativeEngine(model), None
    if symmetry is not None:
        canonical = canonical_source(engine.layout, symmetry)
        stored = Stored(Reduced(engine, symmetry), canonical)
    count = cores() if workers is None else workers
    return explore(
        engine,
        watch,
        stop,
        progress,
        workers=count,
        keep=keep,
        checkpoint=checkpoint,
        stored=stored,
    )


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
