"""Models that are written as a user would: as many states as TLC finds, in our export and in TLA+ by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.checker.tla.tlc import Tlc, tlc_in
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.spec import scope_of
from stagewright.spec.loading import load
from stagewright.spec.verdict import Outcome

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests" / "models"
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Model:
    """A model at a scope: its distinct states, and the constants of the same by hand, if there is one."""

    file: str
    states: int
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    by_hand: str = ""
    constants: dict[str, str] = field(default_factory=dict[str, str])
    invariants: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join([Path(self.file).stem, *map(str, self.sizes.values())])

    @property
    def machine(self) -> str:
        """Where its file lies: among the models of tests, or that of an example, which names the class."""
        return str((EXAMPLES if ":" in self.file else MODELS) / self.file)

    @property
    def tla(self) -> Path:
        """The same, written by hand."""
        folder = Path(self.machine).parent if ":" in self.file else MODELS / "tla"
        return folder / f"{self.by_hand}.tla"


OF_MESSAGES = [
    Model("ewd840/ewd840.py:Ewd840", 302, {"node": 3}),
    Model("ewd840/ewd840.py:Ewd840", 1_566, {"node": 4}),
    Model(
        "chang_roberts/chang_roberts.py:ChangRoberts",
        564,
        {"node": 4},
        "chang_roberts",
        {"N": "4"},
        ("LeastWins",),
    ),
    Model(
        "alternating_bit/alternating_bit.py:AlternatingBit",
        240,
        {},
        "alternating_bit",
        {"Data": "{first, second}", "Room": "2"},
        ("Arrived",),
    ),
    Model(
        "public_examples/lamport_mutex.py",
        685,
        {"process": 2},
        "lamport_mutex",
        {"N": "2", "Latest": "5", "Room": "3"},
        ("OneAtMost",),
    ),
    Model("two_phase_commit/two_phase_commit.py:TwoPhaseCommit", 288, {"manager": 3}),
    Model("two_phase_commit/two_phase_commit.py:TwoPhaseCommit", 1_568, {"manager": 4}),
    Model(
        "work_queue.py",
        585,
        {"job": 2},
        "work_queue",
        {"Job": "{a, b}", "Most": "2"},
        ("DoneOnce",),
    ),
    Model("lock_server/lock_server.py:LockServer", 98, {"client": 3}),
    Model(
        "paxos/paxos.py:Paxos",
        3_921,
        {"acceptor": 3, "ballot": 2},
        "paxos",
        {
            "Acceptor": "{a, b, c}",
            "Quorum": "{{a, b}, {b, c}, {a, c}}",
            "Ballots": "2",
            "Value": "{red, blue}",
            "None": "None",
        },
        ("OneChosen",),
    ),
    Model("raft_election/raft_election.py:RaftElection", 4_488, {"node": 3}),
    Model("chain_replication/chain_replication.py:ChainReplication", 1_691),
    Model("saga/saga.py:Saga", 45),
    Model("cache_invalidation/cache_invalidation.py:CacheInvalidation", 299),
    Model("outbox/outbox.py:Outbox", 318),
]


TICKETS = {"T": "4"}
OF_NUMBERS = [
    Model("public_examples/die_hard.py", 16),
    Model("public_examples/coffee_can_by_colour.py", 44),
    Model("ewd998/ewd998.py:Ewd998", 19_268),
    Model(
        "bakery/bakery.py:Bakery",
        88,
        {"process": 2},
        "bakery",
        {"N": "2", **TICKETS},
        ("OneAtATime",),
    ),
    Model(
        "bakery/bakery.py:Bakery",
        790,
        {"process": 3},
        "bakery",
        {"N": "3", **TICKETS},
        ("OneAtATime",),
    ),
]


@pytest.fixture
def tlc(tmp_path: Path) -> Tlc:
    return tlc_in(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model", some_of([*OF_MESSAGES, *OF_NUMBERS], each=4), ids=str)
def test_as_many_states_as_tlc_finds(model: Model, tlc: Tlc) -> None:
    definition = load(model.machine)
    scope = scope_of(definition, model.sizes)
    report = check(definition, scope, symmetry=False)
    assert all(v.outcome is Outcome.HOLDS for v in report.verdicts)
    assert report.states == model.states
    exported = tlc.check_safety(definition, scope)
    assert (exported.distinct, exported.broken) == (model.states, ())
    if model.by_hand:
        found = by_hand(model, tlc)
        assert found == model.states


def by_hand(model: Model, tlc: Tlc) -> int:
    """What TLC finds of the text that was written by hand."""
    name = model.by_hand
    text = model.tla.read_text("utf-8")
    (tlc.directory / f"{name}.tla").write_text(text, "utf-8")
    constants = "\n".join(f"  {k} = {v}" for k, v in model.constants.items())
    config = (
        f"SPECIFICATION Spec\nCONSTANTS\n{constants}\nINVARIANTS {' '.join(model.invariants)}\n"
    )
    (tlc.directory / f"{name}.cfg").write_text(config, "utf-8")
    run = tlc.run(name)
    assert run.broken == (), run.text
    return run.distinct
