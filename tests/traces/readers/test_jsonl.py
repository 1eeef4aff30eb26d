"""Cutting lines at marks gives the events that parsing each line by itself gives."""

import gzip
import json
import random
from pathlib import Path

import pytest

from stagewright.compiled import interpreted
from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event
from stagewright.traces.events.event_block import Block, place_of
from stagewright.traces.readers import text_lines
from stagewright.traces.readers.generic import jsonl
from stagewright.traces.readers.generic.jsonl_line import parse_line
from stagewright.traces.readers.protocol import UNPARSED_DETAILS_MAX, Part, Tally

TRAPS = (
    b"",
    b"   ",
    b"garbage",
    b"[1]",
    b'{"v":1,"entity":"a","seq":0}',
    b'{"v":1,"entity":"a","seq":0,"node":null}',
    b'{"v":1,"entity":"","seq":0,"node":"n"}',
    b'{"v":1,"entity":"a","seq":01,"node":"n"}',
    b'{"v":1,"entity":"a","seq":-1,"node":"n"}',
    b'{"v":1,"entity":"a","seq":1.0,"node":"n"}',
    b'{"v":1,"entity":"a","seq":12345678901234567890,"node":"n"}',
    b'{"v":2,"entity":"a","seq":1,"node":"n"}',
    b'{"v":true,"entity":"a","seq":1,"node":"n"}',
    b'{"v":1,"entity":"a","seq":1,"node":"n","end":1}',
    b'{"v":1,"entity":"a","seq":1,"node":"n","obsrved":{}}',
    b'{"v":1,"entity":"a","seq":1,"node":"n","params":null}',
    b'{"v":1,"entity":"a","seq":1,"node":"n","params":{},"observed":null,"trace":null}',
    b'{"entity":"a","seq":1,"node":"n","end":null}',
    b'{"v":null,"entity":"a","seq":1,"node":"n"}',
    b'{"v":1,"entity":null,"seq":1,"node":"n"}',
    b'{"v":1,"entity":"a","entity":"b","seq":1,"node":"n"}',
    b'{"v":1,"entity":"a\\u0041","seq":1,"node":"n"}',
    b'{"v":1,"entity":"a","seq":1,"node":"n\\""}',
    b'{"v":1,"entity":"a","seq":1,"node":"n\\x"}',
    b'{"v":1,"entity":"a\xff","seq":1,"node":"n"}',
    b'{"v":1,"entity":"a","seq":1,"node":"\xff"}',
    b'{"v":1,"entity":"\xc3\xa4","seq":1,"node":"n"}',
    b'{"v":1,"trace":"\\"entity\\":\\"x","entity":"a","seq":1,"node":"n"}',
    b'{"v":1,"params":{"entity":"x","seq":3,"node":"m"},"entity":"a","seq":1,"node":"n"}',
    b'{"v":1,"params":{"entity":"one","seq":1,"node":"m"},"entity":"one","seq":1,"node":"n"}',
    b'{"v": 1, "entity": "a", "seq": 1, "node": "n"}',
    b'{"node":"n","seq":1,"entity":"a","v":1}',
    b'{"v":1,"entity":"a","seq":1,"node":"n","observed":{"x":NaN}}',
    b'{"v":1,"entity":"a","seq":1,"node":"n"}{}',
    b'{"v":1,"entity":"a","seq":1,"node":"n"} \r',
    b'{"v":1,"entity":"a","seq":1,"node":"n',
    b'{"v":1,"entity":"a","seq":',
    b'{"v":1,"entity":"',
    b"\x00\x00\x00",
)


def read(path: Path) -> tuple[list[Block], list[Tally]]:
    blocks, tallies = [], []
    for number, (start, stop) in enumerate(jsonl.parts(path)):
        tally = Tally()
        blocks += list(jsonl.read(Part(number, str(path), "jsonl", start, stop), tally))
        tallies.append(tally)
    return blocks, tallies


def rows(blocks: list[Block]) -> set[tuple[object, ...]]:
    return {
        (b.key(e), q, b.symbols[s], *place_of(place))
        for b in blocks
        for e, q, s, place in zip(
            b.entity.tolist(),
            b.sequence.tolist(),
            b.symbol.tolist(),
            b.place.tolist(),
            strict=True,
        )
    }


def event_line(rng: random.Random) -> bytes:
    return (
        Event(
            rng.choice(["t", "u"]),
            "M",
            "",
            "",
            f"e{rng.randrange(5)}",
            rng.randrange(200),
            node=rng.choice(["n1", "n2"]),
            action=rng.choice([None, "go", "stop"]),
            parameters={"k": rng.randrange(3)},
            observed={"x": rng.choice([None, True, 1, "1", ["b", "a"]])},
            end=rng.random() < 0.1,
        )
        .to_json()
        .encode()
    )


def test_every_line_is_read_as_if_it_were_alone(tmp_path: Path) -> None:
    rng = random.Random(3)
    texts = [rng.choice(TRAPS) if rng.random() < 0.3 else event_line(rng) for _ in range(3000)]
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join(texts))
    blocks, (tally,) = read(path)
    parsed = [parse_line(t.rstrip(b"\r\n")) for t in texts]
    expected = {
        ((p.stream, p.entity), p.sequence, p.symbol, 0, i)
        for i, p in enumerate(parsed, start=1)
        if not isinstance(p, str)
    }
    assert rows(blocks) == expected
    blank = sum(not t.strip() for t in texts)
    assert (tally.lines, tally.blank, tally.events) == (len(texts), blank, len(expected))
    assert tally.unparsed == len(texts) - blank - len(expected)
    reasons = {
        i: p for i, p in enumerate(parsed, start=1) if isinstance(p, str) and texts[i - 1].strip()
    }
    assert tally.reasons == list(reasons.items())[:UNPARSED_DETAILS_MAX]


@pytest.mark.parametrize("plain_python", [True, False])
def test_numbers_of_any_width_are_read(plain_python: bool, tmp_path: Path) -> None:
    numbers = [0, 9, 255, 256, 65_536, 10**8]
    times = [1_600_000_000_000 + number for number in numbers]
    path = tmp_path / "t.jsonl"
    events = [
        Event("t", "M", "", "", "a", number, node="n", time=time)
        for number, time in zip(numbers, times, strict=True)
    ]
    path.write_text("".join(event.to_json() + "\n" for event in events))
    with interpreted(plain_python):
        (block,), _ = read(path)
    assert (block.sequence.tolist(), block.time.tolist()) == (numbers, times)


def test_a_gigantic_line_is_refused_without_being_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "_CHUNK", 1 << 18)
    good = event_line(random.Random(1))
    path = tmp_path / "t.jsonl"
    giant = b'{"v":1,"entity":"' + b"x" * (3 << 20)
    path.write_bytes(b"\n".join([good, giant, good, giant]))
    blocks, (tally,) = read(path)
    assert (tally.lines, tally.events) == (4, 2)
    assert [(line, "more than" in why) for line, why in tally.reasons] == [(2, True), (4, True)]
    assert sorted(place_of(p).line for b in blocks for p in b.place.tolist()) == [1, 3]


def test_a_file_is_cut_into_parts_of_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "PART_SIZE", 1000)
    rng = random.Random(2)
    texts = [event_line(rng) for _ in range(100)]
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join(texts) + b"\n")
    blocks, tallies = read(path)
    assert len(tallies) > 5
    assert sum(t.lines for t in tallies) == sum(len(b) for b in blocks) == 100


def test_compressed_lines_are_read_and_a_truncated_file_is_refused(tmp_path: Path) -> None:
    content = b"".join(event_line(random.Random(i)) + b"\n" for i in range(50))
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    assert read(path)[1][0].events == 50
    path.write_bytes(gzip.compress(content)[:-20])
    with pytest.raises(InputError, match=r"t\.jsonl\.gz cannot be read to its end"):
        read(path)


def test_equal_events_have_equal_symbols_however_they_are_written() -> None:
    one = {"v": 1, "entity": "e", "seq": 1, "action": "a", "params": {"p": 1, "q": 2}}
    other = {
        "params": {"q": 2, "p": 1},
        "action": "a",
        "seq": 1,
        "entity": "e",
        "v": 1,
        "node": "n",
    }
    assert parse_line(json.dumps(one).encode()) == parse_line(json.dumps(other).encode())
    assert parse_line(json.dumps({**one, "params": {"p": True, "q": 2}}).encode()) != parse_line(
        json.dumps(one).encode()
    )


def test_null_and_an_absent_version_mean_what_they_mean_in_parquet() -> None:
    plain = parse_line(b'{"v":1,"entity":"a","seq":1}')
    nulls = b'{"entity":"a","seq":1,"v":null,"trace":null,"params":null,"observed":null,"end":null}'
    assert parse_line(nulls) == plain == parse_line(b'{"entity":"a","seq":1}')
    assert parse_line(b'{"entity":"a","seq":null}') == "field `seq` is null, not an integer"
    assert parse_line(b'{"entity":"a"}') == "field `seq` is missing"


def test_a_byte_order_mark_is_none_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    text = b'\xef\xbb\xbf{"entity":"a","seq":0}\n{"entity":"a","seq":1}\n'
    for name, content in (("t.jsonl", text), ("t.jsonl.gz", gzip.compress(text))):
        path = tmp_path / name
        path.write_bytes(content)
        _, (tally,) = read(path)
        assert (tally.lines, tally.events, tally.unparsed) == (2, 2, 0)
        assert text_lines.beginning(path, 2) == b'{"'
    path.write_bytes(b'{"entity":"a","seq":0}\n' + text)
    _, (tally,) = read(path)
    assert (tally.events, tally.unparsed) == (2, 1)
