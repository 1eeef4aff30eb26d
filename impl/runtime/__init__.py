"""Run a definition: a `transitions` machine made from it in one call, behind a typed `Instance`."""

from stagewright.impl.runtime.commands import (
    Log as Log,
    Place as Place,
    Record as Record,
    Taken as Taken,
    command as command,
)
from stagewright.impl.runtime.instance import Instance as Instance, instance as instance
from stagewright.impl.runtime.program import Program as Program
