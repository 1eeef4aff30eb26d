"""`pytest --stagewright` on real files: what it collects, what it says, and how it fails."""

import pytest
from tests.models.lease import LeaseTable
from tests.testing.machines import RIGHT, SERVICE, WRONG

from stagewright.testing import assert_holds

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "stagewright.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What a check imports: pytester forgets modules that its runs import, and NumPy bears no second import."""
    assert_holds(LeaseTable)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*PLUGIN, *arguments)


def test_each_property_of_a_machine_is_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(lock=RIGHT)
    result = run(pytester, "--stagewright", "-v")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "*lock.py::Lock::the_holder_was_served PASSED*",
            "*lock.py::Lock::who_was_served_holds_it PASSED*",
            "*lock.py::Lock::it_can_be_free PASSED*",
            "*lock.py::Lock::no deadlock PASSED*",
            "*lock.py::Lock::assigned values stay in bounds PASSED*",
        ]
    )


def test_a_failure_is_the_counterexample(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(lock=WRONG)
    result = run(pytester, "--stagewright", "lock.py")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*Lock.who_was_served_holds_it*",
            "*2  client0: crash*",
            "*holder: client0 → none*",
            "*who_was_served_holds_it*",
            "*A client that was served holds the lock.*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_nothing_is_collected_unless_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(lock=WRONG)
    assert run(pytester).ret is pytest.ExitCode.NO_TESTS_COLLECTED


def test_tests_and_machines_are_collected_side_by_side(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_lock=RIGHT + "\n\ndef test_of_its_own():\n    pass\n", other="x = 1\n")
    run(pytester, "--stagewright").assert_outcomes(passed=6)


def test_one_property_can_be_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(lock=WRONG)
    result = run(pytester, "--stagewright", "lock.py::Lock::it_can_be_free")
    result.assert_outcomes(passed=1)


def test_sizes_and_budgets_reach_the_machines_that_have_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(lock=WRONG)
    run(pytester, "--stagewright", "--stagewright-budget", "crashes=0").assert_outcomes(passed=5)
    wrong = run(pytester, "--stagewright", "--stagewright-size", "client=none")
    wrong.assert_outcomes(errors=1)
    wrong.stdout.fnmatch_lines(["*--stagewright-size client=none: this is not NAME=N*"])


def test_a_definition_that_is_wrong_is_an_error_of_the_collection(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(lock=RIGHT.replace("self.holder == c,", "self.holder == c and True,"))
    result = run(pytester, "--stagewright")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*lock.py:*", "*help: *"])


def test_the_newest_profile_is_checked_or_all(pytester: pytest.Pytester) -> None:
    profiles = 'version = profiles(Profile("old"), Profile("new"))\n    crashes ='
    source = RIGHT.replace("crashes =", profiles, 1).replace("Machine,", "Machine, Profile,", 1)
    pytester.makepyfile(lock=source.replace("budget,", "budget, profiles,", 1))
    result = run(pytester, "--stagewright", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["lock.py::Lock[[]new]::it_can_be_free"])
    result.stdout.no_fnmatch_line("*[[]old]*")
    run(pytester, "--stagewright", "--stagewright-all-profiles").assert_outcomes(passed=10)


def test_the_fixture_drives_an_implementation(pytester: pytest.Pytester) -> None:
    pytester.syspathinsert()
    pytester.makepyfile(
        lock=RIGHT,
        service=SERVICE,
        test_service="""
            import service
            from lock import Lock

            def test_it_conforms(conforms):
                conforms(Lock, service.Adapter)

            def test_a_careless_one_does_not(conforms):
                conforms(Lock, service.Careless, suites=["refusals"])
        """,
    )
    result = run(pytester, "--stagewright-examples", "5")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the implementation accepts what must be refused*"])
    result.stdout.no_fnmatch_line("*testing/conformance.py:*")  # our own frames are left out
