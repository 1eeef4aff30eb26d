"""A mapping file is checked before any log is read: each mistake is told with its line, key and mend."""

from pathlib import Path

import pytest
from tests.models.lease import LeaseTable
from tests.traces.readers.reading import shipped

from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.events.observability import ALL_HIDDEN
from stagewright.traces.mapping.kinds import leaf_kinds
from stagewright.traces.mapping.load import load_mapping, plan_of
from stagewright.traces.mapping.places import line_of, lines_of_keys, named
from stagewright.traces.mapping.plan import Plan
from stagewright.traces.mapping.sections import read_toml
from stagewright.traces.options import unbounded_scope

GOOD = r"""machine = "LeaseTable"
entity = "{lease}"
time = "{when}"

[source]
form = "text"
line = '^(?P<when>\S+) (?P<message>.*)$'

[recording]
hidden = ["go_silent"]

[[event]]
match = '^lease (?P<lease>\S+) granted to (?P<host>\S+)$'
action = "acquire"
members = {host = "Node"}
parameters = {n = "{host}"}

[[event]]
match = '^lease (?P<lease>\S+) is now (?P<state>\w+)$'
[event.observed]
lease = {from = "{state}", values = {FREE = "free", HELD = "held"}}
holder = {from = "{owner}", absent = "none"}
"""


def lease(name: str, profile: str) -> Definition:
    if name != "LeaseTable":
        raise InputError(f"there is no machine `{name}`", help="known: LeaseTable")
    return define(LeaseTable, profile)


def plan(text: str) -> Plan:
    return plan_of(read_toml("m.toml", text), "m.toml", lease, unbounded_scope)


def test_a_good_mapping_is_a_plan() -> None:
    found = plan(GOOD.replace("{owner}", "{state}"))
    assert found.machine == "LeaseTable"
    assert len(found.rules) == 2
    assert found.recording.hidden.actions == frozenset({"go_silent"})
    assert not found.recording.end_marked
    assert not found.by_time
    assert found.rules[1].observed[1][1].absent is None


MISTAKES = (
    ('machine = "LeaseTable"', 'machine = "Leese"', "m.toml:1: `machine`", "known: LeaseTable"),
    ('machine = "LeaseTable"', 'machin = "LeaseTable"', "m.toml:1: `machin`", "did you mean `machine`"),
    ('machine = "LeaseTable"', 'profile = "old"', "m.toml: no machine is named", "--machine"),
    ('machine = "LeaseTable"', 'machine = "LeaseTable"\nprofile = "old"', "m.toml:2: `profile` cannot", "profile"),
    ('entity = "{lease}"', "", "m.toml:12: `event 1` has no `entity`", "whose event"),
    ('entity = "{lease}"', 'entity = "{lease"', "m.toml:2: `entity` is no template", "{{ for a brace"),
    ('entity = "{lease}"', 'entity = "{leese}"', "reads `{leese}`, which a line does not have", "`lease`"),
    ('time = "{when}"', "time = 3", "m.toml:3: `time` is 3, not a text", ""),
    ('{host = "Node"}', '{a.host = "Node"}', "members.a` is {'host': 'Node'}, not a text", '"a.host" ='),
    ('time = "{when}"', 'time = {from = "{when}", format = "ISO"}', "`time.format` is `ISO`", "unix-ms"),
    ('time = "{when}"', 'time = {from = "{when}", zone = "Mars"}', "no time zone `Mars`", "Europe"),
    ('time = "{when}"', 'time = {from = "{when}", format = "%H:%Q"}', "`time.format` cannot be read by: 'Q'", "strptime"),
    ('time = "{when}"', 'time = {from = "{when}", format = "%H:%"}', "`time.format` cannot be read by: ", "strptime"),
    ('time = "{when}"', 'time = {format = "iso"}', "m.toml:3: `time.from` names no field", "{field}"),
    ('form = "text"', "", "m.toml:5: `source.form` is missing", "text, csv, jsonl, parquet"),
    ('form = "text"', 'form = "text"\nnode = "{when}"', "m.toml:7: `source.node` stands in a table", "move it up"),
    ('form = "text"', 'form = "xml"', "m.toml:6: `source.form` is `xml`", "known: text"),
    ('form = "text"', 'form = "csv"', "`source.line` means nothing for csv", "for text"),
    ('form = "text"', 'form = "text"\nunmatched = "no"', "m.toml:7: `source.unmatched`", "unparsed"),
    ('form = "text"', 'form = "text"\nstrict = 7', "`source.strict` is 7", "texts in a list"),
    ("(?P<when>", "(?P<when", "m.toml:7: `source.line` is no regular expression", "re"),
    ('"go_silent"]', '"go_silent"]\nsizes = {Nod = 2}', "m.toml:11: `recording.sizes.Nod` is no entity", "`Node`"),
    ('"go_silent"]', '"go_silent"]\nsizes = {Node = 0}', "`recording.sizes.Node` is 0", "1 .. 10000"),
    ('"go_silent"', '"go_quiet"', "m.toml:10: `recording.hidden` names `go_quiet`", "`go_silent`"),
    ("[[event]]", "[[events]]", "`events` is no key of a mapping", "`event`"),
    ("^lease (?P<lease>\\S+) granted", "^lease (?P<lease>\\S+ granted", "m.toml:13: `event 1, match`", ""),
    ("[[event]]", "[event]", "is not TOML", "in two brackets: [[event]]"),
    ('action = "acquire"', 'action = "aquire"', "m.toml:14: `event 1, action` is `aquire`", "`acquire`"),
    ('action = "acquire"', "", "m.toml:16: `event 1, parameters` stand without an action", "say which"),
    ('host = "Node"', 'host = "Nod"', "m.toml:15: `event 1, members.host` is `Nod`", "`node`"),
    ('{host = "Node"}', '{hots = "Node"}', "m.toml:15: `event 1, members.hots` is a field from which no", "`host`"),
    ("{n = ", "{node = ", "`event 1, parameters.node` is no parameter of `acquire`", "known: n"),
    ("n = \"{host}\"", 'n = "node7"', "is `node7`, which `n` cannot be", "known: node0"),
    ("HELD = \"held\"", 'HELD = "hold"', "m.toml:21: `event 2, observed.lease.values.HELD` is `hold`", "`held`"),
    ("holder =", "holdr =", "m.toml:22: `event 2, observed.holdr` is no variable", "`holder`"),
    ('absent = "none"', "absent = 3", "`event 2, observed.holder.absent` is `3`", "known: node0"),
    ("absent =", "abcent =", "`event 2, observed.holder.abcent` is no key", "`absent`"),
    ('form = "text"', 'form = "text"\norder = "random"', "`source.order` is `random`", "lines, time"),
    ('"acquire"', '"acquire"\nsequence = "{host}"', "`event 2` has no `sequence`", "every event"),
    ('"acquire"', '"acquire"\nend = "yes"', "`event 1, end` is 'yes'", "true or false"),
)  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "mend"), MISTAKES)
def test_a_mistake_is_reported_with_its_line_its_key_and_its_mend(
    old: str, new: str, message: str, mend: str
) -> None:
    good = GOOD.replace("{owner}", "{state}")
    assert old in good
    with pytest.raises(InputError) as error:
        plan(good.replace(old, new))
    assert message in str(error.value)
    assert mend in str(error.value)


def test_a_file_that_is_no_toml_or_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    for content, message in (
        (b"machine = \n", "at line 1"),
        (b"machine = '\xff'\n", "not UTF-8 text at byte 12"),
        (b"", "no machine is named"),
        (b"machine = 'LeaseTable'\n", "`source.form` is missing"),
        (b"machine = 'LeaseTable'\n[source]\nform = 'csv'\n", "there is no [[event]]"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"m\.toml") as error:
            load_mapping(path, lease, unbounded_scope)
        assert message in str(error.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_mapping(tmp_path / "none.toml", lease, unbounded_scope)


def test_hidden_steps_may_be_all_but_what_shows() -> None:
    text = GOOD.replace("{owner}", "{state}").replace(
        'hidden = ["go_silent"]', 'hidden = "all"\nvisible = {lease = ["held"]}\nfrom_start = false'
    )
    recording = plan(text).recording
    assert recording.hidden.actions == ALL_HIDDEN.actions
    assert dict(recording.hidden.visible) == {"lease": frozenset({"held"})}
    assert not recording.from_start
    with pytest.raises(InputError, match="has `hold`, which `lease` cannot be"):
        plan(text.replace('"held"]}', '"hold"]}'))
    assert dict(plan(text.replace('{lease = ["held"]}', '["lease"]')).recording.hidden.visible) == {
        "lease": None
    }


@pytest.mark.parametrize("name", ["tablet-migration", "index-permissions", "view-task", "tablet"])
def test_the_leaves_are_those_that_the_evaluate_knows(name: str) -> None:
    definition = shipped(name, "")
    scope = unbounded_scope(definition)
    assert set(leaf_kinds(definition, scope)) == set(automaton(definition, scope).leaves)


def test_keys_have_lines() -> None:
    text = 'a = 1\n[b]\n"c d".e = 2\n[[f]]\ng = {h = 3}\n[[f]]\n[f.i]\n"j[x=y]" = 4\n'
    lines = lines_of_keys(text)
    assert line_of(lines, ("b", "c d", "e")) == 3
    assert line_of(lines, ("f", 0, "g", "h")) == 5
    assert line_of(lines, ("f", 1, "i", "j[x=y]")) == 8
    assert line_of(lines, ("f", 1, "k")) == 6
    assert line_of(lines, ("z",)) is None
    assert named(("f", 1, "i", "j")) == "f 2, i.j"
