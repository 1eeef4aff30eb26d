"""Definitions as modules of TLA+, which TLC checks as they stand."""

from stagewright.checker.tla.module import TlaModule as TlaModule, tla_module as tla_module
