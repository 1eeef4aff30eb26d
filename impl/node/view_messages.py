"""Statements about materialized views, and the calls by which they are built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CreateView:
    """Make a view of a table of tablets, by the value of its rows or by its remainder of `modulus`.

    With a `comparison` (<, <=, =, >=, >) rows are in it whose value compares so with `bound`.
    """

    number: int
    view: str
    table: str
    modulus: int = 0
    comparison: str = ""
    bound: int = 0


@dataclass(frozen=True, slots=True)
class DropView:
    """Drop a view, built or not."""

    number: int
    view: str


@dataclass(frozen=True, slots=True)
class WorkOnTasks:
    """work_on_view_building_tasks: the coordinator of a term has tasks of one tablet replica worked on."""

    number: int
    term: int
    shard: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkedOnTasks:
    """Those of them that are finished, or why none will be."""

    number: int
    finished: tuple[str, ...]
    problem: str = ""
