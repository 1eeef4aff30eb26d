"""Where there are many of an entity, steps are made of templates: traces are decided as with a list of all steps."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from stagewright import spec as sw
from stagewright.spec.define import define
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding import left_open
from stagewright.spec.grounding.families import Families
from stagewright.spec.grounding.ground_eval import enabled, take
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import observation
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.automaton.subset_automaton import Determinised
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import Recording
from stagewright.traces.options import Options
from stagewright.traces.validate import validate


class Member(sw.Entity, scope=3):
    """One of a group."""


class Rank(sw.States):
    """What a member is, and whether it votes."""

    out = False
    follower = True
    leader = True

    def __init__(self, votes: bool) -> None:
        self.votes = votes


class Group(sw.Machine):
    """Members come and go; one leads, and hands that over."""

    rank = sw.per(Member, sw.one_of(Rank, init=Rank.out))
    after = sw.per(Member, sw.optional(Member))
    known: sw.SetVar[Member] = sw.set_of(Member)

    @sw.action
    def join(self, m: sw.Term[Member]) -> None:
        """A member joins, and everybody knows of it."""
        sw.require(self.rank[m] == Rank.out, "it is out")
        self.rank[m] = Rank.follower
        self.known.add(m)

    @sw.action
    def follow(self, m: sw.Term[Member], other: sw.Term[Member]) -> None:
        """A member is told whom it comes after; to be told again changes nothing."""
        sw.require(m != other, "another one")
        sw.require(self.rank[m].column(lambda r: r.votes), "it votes")
        sw.require(sw.every((x == m) | (self.after[x] != other) for x in Member), "it alone")
        self.after[m] = other

    @sw.action
    def elect(self, m: sw.Term[Member]) -> None:
        """A follower leads; all others forget whom they came after."""
        sw.require(self.rank[m] == Rank.follower, "it follows")
        sw.require(sw.every(self.rank[x] != Rank.leader for x in Member), "nobody leads")
        self.rank[m] = Rank.leader
        for x in Member:
            self.after[x] = sw.choose(x == m, self.after[x], None)

    @sw.action
    def hand_over(self, m: sw.Term[Member], to: sw.Term[Member]) -> None:
        """Another one leads: two places of one map are assigned."""
        sw.require(m != to, "another one")
        sw.require(self.rank[m] == Rank.leader, "it leads")
        sw.require(self.rank[to] == Rank.follower, "that one follows")
        self.rank[m] = Rank.follower
        self.rank[to] = Rank.leader

    @sw.action
    def leave(self, m: sw.Term[Member]) -> None:
        """A follower leaves."""
        sw.require(self.rank[m] == Rank.follower, "it follows")
        self.rank[m] = Rank.out
        self.known.discard(m)


GROUP = define(Group)


Event = dict[str, object]


def random_walk(seed: int, length: int) -> list[Event]:
    """A run of it, as events that name some of their parameters, and one that may be wrong."""
    dice, scope = random.Random(seed), scope_of(GROUP)
    model = ground(GROUP, scope)
    state, events = model.initial[0], list[Event]()
    for number in range(length):
        step = dice.choice([s for s in model.steps if enabled(s, state)])
        state = take(step, state)
        given = {name: str(value) for name, value in step.arguments if dice.random() < 0.8}
        events.append({"action": step.action.name, "params": given})
        if number % 3 == 0:
            seen = observation(model.decode(state))
            events[-1]["observed"] = {k: v for k, v in seen.items() if k.startswith("rank[")}
    if dice.random() < 0.5:
        wrong = {"m": dice.choice(("member0", "member1", "member2"))}
        events[dice.randrange(length)] = {"action": dice.choice(("join", "leave")), "params": wrong}
    if dice.random() < 0.3:
        events[dice.randrange(length)] = {"observed": {"known": ["member0"]}}
    return events


def written(path: Path, traces: Mapping[str, list[Event]]) -> Path:
    lines: list[str] = []
    for entity, steps in traces.items():
        common = {"v": 1, "machine": "Group", "entity": entity}
        events: list[Event] = [{}, *steps, {"end": True}]
        lines += [json.dumps({**common, "seq": i, **event}) for i, event in enumerate(events)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are made of templates however few there are."""
    monkeypatch.setattr(left_open, "HEAVY", 0)


@pytest.mark.usefixtures("templates")
def test_the_steps_of_templates_are_those_of_a_list() -> None:
    scope = scope_of(GROUP)
    listed = ground(GROUP, scope, bounded=False)
    made = ground(GROUP, scope, bounded=False, wide=True)
    assert isinstance(made.steps, Families)
    actions = [template.action.name for template in made.steps.templates]
    assert actions == ["join", "follow", "elect", "hand_over", "leave"]
    assert not made.steps.wide, "so few steps can be tried one by one"
    by_label = {step.label: step for step in listed.steps}
    assigned = {s.label: made.assigned(s) for s in made.steps if s.label in by_label}
    assert assigned == {label: frozenset(step.updates) for label, step in by_label.items()}
    running = Determinised(of_model(made, Recording()))
    state, dice = listed.initial[0], random.Random(1)
    for _ in range(60):
        expected = {s.label: take(s, state) for s in listed.steps if enabled(s, state)}
        found = running.steps_from(running.state_number(state))
        assert {made.steps[i].label: running.states[n] for i, n in found} == expected
        state = dice.choice(sorted(expected.values()))


def reported(path: Path) -> tuple[object, ...]:
    report = validate([path], GROUP, Options(), engine=Embedded(1))
    coverage = report.coverage
    assert coverage is not None
    return report.verdicts, report.entities, coverage


def test_verdicts_explanations_and_coverage_are_those_of_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(
        tmp_path / "groups.jsonl", {f"group-{seed}": random_walk(seed, 12) for seed in range(40)}
    )
    listed = reported(path)
    monkeypatch.setattr(left_open, "HEAVY", 0)
    assert reported(path) == listed


def test_a_trace_with_very_many_members_is_decided_by_what_events_say(tmp_path: Path) -> None:
    scope = scope_of(GROUP, {"Member": 150})
    with pytest.raises(ScopeError, match="together at most"):
        ground(GROUP, scope)
    joins: list[Event] = [{"action": "join", "params": {"m": f"member{i}"}} for i in range(149)]
    for then, verdict in (("follow", 0), ("leave", 1)):
        rest: list[Event] = [
            {"action": "elect", "params": {"m": "member7"}},
            {"action": then, "params": {"m": "member7"}},
        ]
        path = written(tmp_path / "group.jsonl", {"group": [*joins, *rest]})
        report = validate([path], GROUP, Options(scope=lambda _: scope), engine=Embedded(1))
        assert report.exit_code == verdict
