"""Tables of tablets and views are drawn beside what was drawn before, and no script uses what is not there."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from stagewright.impl.simulator.campaign.drawing import DIRECTED, NEWER, draw
from stagewright.impl.simulator.campaign.drawing_drops import DROPS_FROM
from stagewright.impl.simulator.campaign.drawing_tables import CHANGES, has_tablets
from stagewright.impl.simulator.campaign.shrinking import smaller, whole
from stagewright.impl.simulator.database.script import (
    OF_TABLES,
    OF_VIEWS,
    Operation,
    parse_script,
)

DRAWN = (*OF_TABLES, *OF_VIEWS)


def is_sound(script: tuple[Operation, ...]) -> bool:
    """Whether each table and view that is used is there, or a table of its name was."""
    tables, views = set[str](), set[str]()
    for one in script:
        match one.verb:
            case "table":
                tables.add(one.node)
            case "create":
                if one.by not in tables or one.node in views:
                    return False
                views.add(one.node)
            case "drop" if one.of_table:
                if one.node not in {"rows", *tables}:
                    return False
            case "await" | "drop":
                if one.node not in views:
                    return False
                views -= {one.node} if one.verb == "drop" else set()
            case verb if verb in OF_TABLES and one.node not in tables:
                return False
            case _:
                pass
    return True


@given(st.integers(0, 10**9))
def test_a_drawn_script_uses_what_is_there(seed: int) -> None:
    drawn = draw(seed)
    assert is_sound(drawn.script)
    has = has_tablets(seed) or any(d.tablets for d in DIRECTED if d.name == drawn.strategy)
    assert has == any(o.verb == "table" for o in drawn.script)
    assert all(2 <= o.replicas <= drawn.nodes for o in drawn.script if o.verb == "table")


@given(st.integers(0, 10**4), st.data())
def test_what_is_left_of_a_script_uses_what_is_there(seed: int, data: st.DataObject) -> None:
    drawn = draw(seed)
    kept = data.draw(st.lists(st.booleans(), min_size=len(drawn.script), max_size=40))
    left = whole(o for o, keeps in zip(drawn.script, kept, strict=False) if keeps)
    assert is_sound(left)
    assert whole(drawn.script) == drawn.script
    for less in smaller(drawn):
        assert parse_script(less.script_text) == less.script


def test_half_of_the_seeds_have_tablets_and_most_of_these_have_views() -> None:
    met: Counter[str] = Counter()
    for seed in range(400):
        verbs = [o.verb for o in draw(seed).script if o.verb in DRAWN]
        met.update({*verbs})
        met["again"] += any(
            o.verb == "create" and verbs.count("create") > 1 for o in draw(seed).script
        )
    assert 160 < met["table"] < 240
    assert met["create"] > 100
    assert min(met["await"], met["drop"], met["again"], *(met[v] for v in CHANGES)) > 30
    assert met["move"] > 50
    scripts = [draw(seed).script_text for seed in range(400)]
    assert min(sum(word in s for s in scripts) for word in ("balancing off", "abort n")) > 10


def test_what_is_drawn_beside_tables_is_the_same_as_without() -> None:
    """Seed 0 as it was before tables were drawn; what waits there is the second view."""
    script = tuple(o for o in draw(0).script if o.verb not in (*DRAWN, "wait"))
    assert script == parse_script(
        "write 88; remove n1; write 59; join n4; cleanup; write 24; join n5"
    )
    assert draw(8).script_text == "write 74; rebuild n1; join n5; write 28"


def test_what_two_rare_things_are_needed_for_is_drawn() -> None:
    """Views are built at once, or as the move of a tablet is undone; nodes do not hear of the newest streams."""
    drawn = [draw(seed) for seed in range(200)]
    undone = [d for d in drawn if any(kind == "dead" for kind, _ in d.faults.aimed)]
    begins = ("create", "move")
    assert undone
    assert all(
        tuple(o.verb for o in d.script if o.verb in begins)[:2] == begins
        for d in undone
        if has_tablets(d.seed)
    )
    texts = [d.script_text for d in drawn]
    assert (
        sum("generation; isolate n" in t and d.cdc for t, d in zip(texts, drawn, strict=True)) > 2
    )
    pairs = (pairwise_views(d.script) for d in drawn)
    assert sum(pairs) > 4


def pairwise_views(script: tuple[Operation, ...]) -> bool:
    """Whether a view of a table is created right after another one of it."""
    three = zip(script, script[1:], script[2:], strict=False)
    return any(
        (a.verb, b.verb, c.verb) == ("create", "wait", "create") and a.by == c.by
        for a, b, c in three
    )


@given(st.integers(DROPS_FROM, 10**9), st.data())
def test_what_is_left_of_a_script_with_drops_uses_what_is_there(
    seed: int, data: st.DataObject
) -> None:
    drawn = draw(seed)
    assert whole(drawn.script) == drawn.script
    assert parse_script(drawn.script_text) == drawn.script
    kept = data.draw(st.lists(st.booleans(), min_size=len(drawn.script), max_size=60))
    assert is_sound(whole(o for o, keeps in zip(drawn.script, kept, strict=False) if keeps))


def test_tables_are_dropped_from_a_seed_on_and_created_again() -> None:
    before = [draw(seed).script_text for seed in range(200)]
    assert not any("drop table" in text for text in before)
    scripts = [draw(DROPS_FROM + seed) for seed in range(400)]
    drops = [s for s in scripts if "drop table" in s.script_text]
    assert 140 < len(drops) < 220
    again = [s for s in drops if _created_after_its_drop(s.script)]
    assert len(again) > 80
    assert sum(s.cdc for s in again) > 15
    late = [s for s in again if any(o.through for o in s.script)]
    assert len(late) > 10
    assert all(
        f"partition {o.through}" in s.script_text for s in late for o in s.script if o.through
    )
    met = Counter(o.verb for s in late for o in s.script if o.through)
    assert min(met["table"], met["drop"]) > 3
    assert sum("drop table rows" in s.script_text for s in scripts) > 20
    asked = (f"ask {one} t; wait" in s.script_text for s in drops for one in ("split", "merge"))
    assert sum(asked) > 10


def _created_after_its_drop(script: tuple[Operation, ...]) -> bool:
    gone = set[str]()
    for one in script:
        if one.verb == "table" and one.node in gone:
            return True
        gone |= {one.node} if one.verb == "drop" and one.of_table else set()
    return False


def test_newer_seeds_copy_tokens_and_aim_at_tablets_that_turn_back() -> None:
    drawn = [draw(NEWER + seed) for seed in range(600)]
    copied = [s for s in drawn for o in s.script if o.tokens_of]
    assert 60 < len(copied) < 120
    assert not any(o.tokens_of for seed in range(200) for o in draw(seed).script)
    for scenario in copied:
        names = [o.by or o.node for o in scenario.script if o.verb in ("join", "replace")]
        assert len({*names}) == len(names)
    back = [s for s in drawn if any(kind == "pending" for kind, _ in s.faults.aimed)]
    assert len(back) > 4
    for scenario in back:
        assert scenario.nodes >= 5
        assert {o.replicas for o in scenario.script if o.verb == "table"} == {3}
