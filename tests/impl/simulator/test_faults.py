"""What `--faults` understands, and what it says to what it does not."""

import pytest

from stagewright.impl.simulator.faults import Fault, FaultKind, parse_faults
from stagewright.impl.simulator.options import Options
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.errors import InputError


def test_kinds_stages_and_rates_are_understood() -> None:
    assert parse_faults("loss, crash@streaming,delay=0.25 ,dead@every=0.5") == (
        Fault(FaultKind.loss, 0.05),
        Fault(FaultKind.crash, 1.0, Stage.streaming),
        Fault(FaultKind.delay, 0.25),
        Fault(FaultKind.dead, 0.5),
    )


def test_all_and_none_are_understood() -> None:
    assert {f.kind for f in parse_faults("all")} == set(FaultKind)
    assert {f.stage for f in parse_faults("all@use_new")} == {Stage.use_new}
    assert parse_faults("none") == parse_faults("") == ()


@pytest.mark.parametrize(
    ("text", "problem", "mend"),
    [
        ("crsh", "there is no fault `crsh`", "did you mean `crash`?"),
        ("crash@stream", "there is no stage `stream`", "did you mean `streaming`?"),
        ("crash@none", "there is no stage `none`", "known: allow_write_both_read_old"),
        ("loss=2", "`2` is not a rate", "from 0 to 1"),
        ("loss=nan", "`nan` is not a rate", "from 0 to 1"),
        ("loss=lots", "`lots` is not a rate", "from 0 to 1"),
        ("none,loss", "`none` cannot be combined", "leave `none` out"),
    ],
)
def test_what_is_not_understood_is_told(text: str, problem: str, mend: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_faults(text)
    assert problem in str(caught.value)
    assert mend in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"nodes": 2}, {"tablets": 0}, {"migrations": -1}, {"writes": 10**9}, {"nodes": 1000}]
)
def test_numbers_out_of_bounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="out of bounds"):
        Options(**wrong)  # type: ignore[arg-type]
