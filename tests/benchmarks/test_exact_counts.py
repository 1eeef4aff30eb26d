"""Each contestant finds exactly as many states as there are: its model is the same model."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.benchmarks.cases import CASES, Case, Size, tablet_barrier_states
from tests.benchmarks.measuring.interleave import interleaved
from tests.benchmarks.models import records, tuples
from tests.benchmarks.peers.gcc_reference import GccReference
from tests.benchmarks.peers.peer import MODELS, Peer
from tests.benchmarks.peers.python_checkers import MINICHECK, MUSIL
from tests.benchmarks.peers.spin import Spin
from tests.benchmarks.peers.stagewright import ONE_WORKER
from tests.benchmarks.peers.tlc import Tlc
from tests.thorough import some_of

CASE = {case.name: case for case in CASES}
SMALL = [("two_phase_commit", (3,)), ("ewd840", (3,)), ("tablet_barrier", (2, 2))]
MIDDLE = [("two_phase_commit", (7,)), ("ewd840", (6,)), ("tablet_barrier", (3, 3))]


def run_once(peer: Peer, name: str, size: Size, folder: Path) -> dict[str, object]:
    """The details of a run that counted right."""
    if reason := peer.missing():
        pytest.skip(reason)
    job = peer.job(CASE[name], size, folder)
    outcomes, errors = interleaved([job], 1, lambda _: None)
    assert errors == {}
    (run,) = outcomes[job.name].runs
    return dict(run.answer.details)


@pytest.mark.parametrize(("name", "size"), some_of([*MIDDLE, ("tablet_barrier", (3, 4))]))
def test_c_reference_counts_exactly(name: str, size: Size, tmp_path: Path) -> None:
    assert run_once(GccReference(), name, size, tmp_path)


@pytest.mark.parametrize("peer", [Spin(), Tlc(), MINICHECK, MUSIL], ids=lambda p: p.name)
@pytest.mark.parametrize(("name", "size"), some_of(SMALL))
def test_peer_counts_exactly(peer: Peer, name: str, size: Size, tmp_path: Path) -> None:
    run_once(peer, name, size, tmp_path)


@pytest.mark.parametrize(
    ("name", "size", "transitions"),
    some_of(
        [
            ("two_phase_commit", (5,), None),
            ("ewd840", (3,), 1_625),
            ("tablet_barrier", (2, 2), None),
        ]
    ),
)
def test_definition_and_c_reference_are_one_model(
    name: str, size: Size, transitions: int | None, tmp_path: Path
) -> None:
    ours = run_once(ONE_WORKER, name, size, tmp_path)
    reference = run_once(GccReference(), name, size, tmp_path)
    assert ours["transitions"] == reference["transitions"]
    assert ours["depth"] == int(str(reference["levels"])) - 1
    assert transitions in (None, ours["transitions"])


@pytest.mark.parametrize(("name", "size"), [("two_phase_commit", (5,)), *SMALL[1:]])
def test_models_in_python_have_the_exact_count(name: str, size: Size) -> None:
    states = CASE[name].states(size)
    model = tuples.tuple_model(name, size)
    found = [s for s in tuples.reachable(model) if name != "ewd840" or s != model.initial]
    assert len(found) == states
    named = (dict(zip(model.fields, s, strict=True)) for s in found)
    assert all(map(model.invariant, named))
    assert records.count_reachable(name, size) == states


def test_closed_form_gives_the_counts_found_by_other_checkers() -> None:
    known = {(3, 3): 171_458, (3, 4): 1_486_150, (4, 3): 7_024_760}
    assert {size: tablet_barrier_states(size) for size in known} == known


SPREAD = """
enum {{ BITS = {bits}, MOST = 2 }};
#define MANY {many}ULL
#define SPREAD 0x9E3779B97F4A7C15ULL /* odd, so that spreading can be undone */
INLINE u64 spread(u64 i) {{ return i * SPREAD & (BITS == 64 ? ~0ULL : (1ULL << BITS % 64) - 1); }}
INLINE u64 gathered(u64 s) {{
    u64 inverse = SPREAD;
    for (int i = 0; i < 5; i++) inverse *= 2 - SPREAD * inverse;
    return s * inverse & (BITS == 64 ? ~0ULL : (1ULL << BITS % 64) - 1);
}}
INLINE int initial(u64 i, u64 *s) {{ *s = spread(0); return i == 0; }}
INLINE u64 expand(const u64 s, u64 *restrict out) {{
    u64 i = gathered(s);
    out[0] = spread((2 * i) % MANY), out[1] = spread((2 * i + 1) % MANY);
    return 2;
}}
INLINE int holds(const u64 s) {{ return gathered(s) != {wrong}; }}
"""


def spread_search(bits: int, many: int, folder: Path, wrong: int = -1) -> dict[str, object]:
    """Search `many` states that are spread over all words of that many bits."""
    if reason := GccReference().missing():
        pytest.skip(reason)
    header, program = folder / "spread.h", folder / "search"
    header.write_text(SPREAD.format(bits=bits, many=many, wrong=f"{wrong}ULL"))
    flags = ["-O2", "-march=native", "-std=gnu11", f'-DMODEL="{header}"']
    source = str(MODELS / "c" / "search.c")
    subprocess.run(["gcc", *flags, source, "-o", str(program)], check=True)
    found = subprocess.run([program], capture_output=True, text=True, check=False)
    answer: dict[str, object] = json.loads(found.stdout)
    return answer


@pytest.mark.parametrize(
    ("bits", "many", "slot_bits"),
    [(11, 2_000, 32), (44, 300_000, 32), (64, 300_000, 64)],
)
def test_storage_of_the_c_reference_is_exact_for_any_width(
    bits: int, many: int, slot_bits: int, tmp_path: Path
) -> None:
    found = spread_search(bits, many, tmp_path)
    assert (found["states"], found["transitions"]) == (many, 2 * many)
    assert found["slot_bits"] == slot_bits
    assert found["holds"] is True


def test_c_reference_looks_at_the_invariant_in_every_state(tmp_path: Path) -> None:
    assert spread_search(24, 5_000, tmp_path, wrong=4_999)["holds"] is False


def test_each_case_has_a_smallest_size_for_all_contestants() -> None:
    def total(case: Case) -> int:
        return case.states(case.smallest)

    assert {case.name: total(case) for case in CASES} == {
        "two_phase_commit": 288,
        "ewd840": 302,
        "tablet_barrier": 20,
    }
