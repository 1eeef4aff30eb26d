"""What promises share is computed once, and what is computed is still whether one is broken."""

from pathlib import Path

from hypothesis import given, strategies as st
from tests.checker.explicit.random_models import Maker

from stagewright.checker.explicit.native.code.factoring import any_broken
from stagewright.spec.grounding.ground import GroundNode
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of

MODELS = Path(__file__).resolve().parents[3] / "models"


@given(seed=st.integers(0, 2**32))
def test_it_is_true_where_some_condition_is_false(seed: int) -> None:
    maker = Maker(seed, narrow=True)
    pool = [maker.condition(1) for _ in range(4)]

    def one() -> GroundNode:
        chosen = maker.chance.sample(pool, maker.chance.randint(1, 3))
        return maker.builder.not_(maker.builder.and_([*chosen, maker.condition(1)]))

    conditions = [one() for _ in range(maker.chance.randint(0, 8))]
    broken = any_broken(maker.builder, conditions)
    for _ in range(20):
        state = maker.state()
        assert bool(evaluate(broken, state)) == any(not evaluate(c, state) for c in conditions)


def test_pairs_of_members_cost_no_more_than_members() -> None:
    definition = load(str(MODELS / "two_phase_commit.py"))
    model = ground(definition, scope_of(definition, {"manager": 9}))
    conditions = [p.condition for p in model.invariants]
    assert len(conditions) == 81
    before = len(model.builder.nodes)
    broken = any_broken(model.builder, conditions[:64])
    assert operations(broken) < 50
    assert len(model.builder.nodes) > before


def operations(node: GroundNode) -> int:
    """How many binary operations the distinct parts of a condition take."""
    seen: set[int] = set()

    def count(part: GroundNode) -> int:
        if part.id in seen:
            return 0
        seen.add(part.id)
        return max(0, len(part.args) - 1) + sum(count(arg) for arg in part.args)

    return count(node)
