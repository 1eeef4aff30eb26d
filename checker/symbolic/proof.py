"""The strategy of a proof: bounded search and k-induction in turn, depth by depth, until all is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from stagewright.checker.symbolic.bounded import BoundedSearch
from stagewright.checker.symbolic.certificates import Certificate, Script, scripts
from stagewright.checker.symbolic.claims import Claim
from stagewright.checker.symbolic.induction import InductionStep
from stagewright.checker.symbolic.limits import Progress
from stagewright.checker.symbolic.replay import Breach, Path, Replay
from stagewright.checker.symbolic.unrolling import Unrolling
from stagewright.checker.symbolic.z3_terms import Answer, Clock, OutOfTimeError
from stagewright.spec.definition import Definition
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.initial import no_initial_state
from stagewright.spec.text.counting import counted
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, PropertyVerdict

BOUNDED = "bounded search"
INDUCTION = "k-induction"
NOT_REACHABLE = "the run shown starts in a state that is not reachable as far as is known"


class Stop(Enum):
    """Why a proof ended before all was decided; its value is said to the user."""

    BOUNDS = "k and depth were reached"
    TIME = "time ran out"
    INTERRUPTED = "interrupted"
    GAVE_UP = "the solver gave up within its limit of work"


class Proof:
    """One attempt to decide some claims about one ground model."""

    def __init__(
        self,
        definition: Definition,
        model: GroundModel,
        claims: Sequence[Claim],
        clock: Clock,
        *,
        simple: bool,
        progress: Callable[[Progress], None],
    ) -> None:
        self._replay = Replay(definition, model)
        self._claims = list(claims)
        self._simple = simple
        self._progress = progress
        self._clock = clock
        self._model = model
        self._unrolling = unrolling = Unrolling(model, claims)
        self._base = BoundedSearch(unrolling, self._clock)
        self._step = InductionStep(unrolling, claims, self._clock)
        self._open = list(claims)
        self._verdicts: dict[str, PropertyVerdict] = {}
        self._certificates: dict[str, Certificate] = {}
        # Of claims by name: the largest k at which it is known not to be inductive; a run that shows it;
        # whether it is inductive over simple paths; whether some induction query had no answer.
        self._tried: dict[str, int] = {}
        self._hints: dict[str, Breach] = {}
        self._simply: set[str] = set()
        self._gave_up: set[str] = set()
        self.cleared = -1  # no open claim is broken at this depth or before
        self.stopped: Stop | None = None

    def decide(self, max_k: int, depth: int) -> tuple[PropertyVerdict, ...]:
        """A verdict for every claim, in order; whatever stops the proof, what was found is kept."""
        try:
            self.stopped = self._run(max_k, max(depth, max_k - 1))
        except OutOfTimeError:
            self.stopped = Stop.TIME
        except KeyboardInterrupt:
            self.stopped = Stop.INTERRUPTED
        for claim in self._open:
            self._verdicts[claim.name] = self._undecided(claim)
        return tuple(self._verdicts[c.name] for c in self._claims)

    def _run(self, max_k: int, depth: int) -> Stop | None:
        for now in range(depth + 1):
            if not self._open:
                return None
            self._report(now, now + 1 if now < max_k else 0)
            self._base.deepen()
            if self._base.exhausted:
                self._all_runs_end(now)
                return None
            answer, found = self._base.violations(self._open)
            for claim, path in found:
                self._violated(claim, path)
            if answer is Answer.UNKNOWN:
                self._look_for_hints()
                return Stop.GAVE_UP
            self.cleared = now
            if now < max_k:
                self._step.deepen()
                self._induction()
            if now == max_k - 1:
                self._look_for_hints()
        return Stop.BOUNDS if self._open else None

    def scripts(self) -> Iterator[Script]:
        """The verification conditions behind every answer, for another solver to check."""
        for claim in self._claims:
            certificate = self._certificates.get(claim.name)
            if certificate is None:
                k = self._tried.get(claim.name)
                certificate = Certificate(
                    claim,
                    range(k or 0),
                    k=k,
                    hypotheses=(claim,),
                    simple=self._simple,
                )
            yield from scripts(certificate, self._unrolling)

    def _report(self, depth: int, k: int) -> None:
        outcomes = [v.outcome for v in self._verdicts.values()]
        proved, violated = outcomes.count(Outcome.HOLDS), outcomes.count(Outcome.VIOLATED)
        self._progress(Progress(depth, k, proved, violated, len(self._open), self._clock.elapsed()))

    def _close(self, claim: Claim, verdict: PropertyVerdict) -> None:
        self._verdicts[claim.name] = verdict
        self._open.remove(claim)

    def _holds(self, claim: Claim, method: str, note: str) -> None:
        seconds = self._clock.elapsed()
        self._close(
            claim, PropertyVerdict(claim.name, Outcome.HOLDS, method, note, seconds=seconds)
        )

    def _all_runs_end(self, depth: int) -> None:
        if not depth:
            raise no_initial_state(self._model.definition.name, str(self._model.scope))
        note = f"proved: no run has more than {counted(depth - 1, 'step')}"
        for claim in list(self._open):
            self._certificates[claim.name] = Certificate(claim, range(depth), no_run_of=depth)
            self._holds(claim, BOUNDED, note)

    def _violated(self, claim: Claim, path: Path) -> None:
        breach = self._replay.confirm(claim, path, initial=True)
        depth = len(path.steps)
        self._certificates[claim.name] = Certificate(claim, range(depth), broken_at=depth)
        note = "no shorter run violates it"
        self._close(
            claim,
            PropertyVerdict(
                claim.name,
                Outcome.VIOLATED,
                BOUNDED,
                f"{note}; {breach.detail}" if breach.detail else note,
                breach.run,
                breach.arguments,
                self._clock.elapsed(),
            ),
        )

    def _induction(self) -> None:
        """Whatever can be proved at this k: again while something was, for that helps the others."""
        before = None
        while self._open and before != len(self._open):
            before = len(self._open)
            self._each_alone()
            if len(self._open) > 1:
                self._together()

    def _each_alone(self) -> None:
        """Each open claim by itself, and what is proved already."""
        for claim in list(self._open):
            match self._step.can_break([claim], [claim], simple=self._simple):
                case Answer.UNSAT:
                    self._proved(claim, *self._step.needed())
                    self._step.accept(claim)
                case Answer.SAT:
                    self._tried[claim.name] = self._step.k
                case Answer.UNKNOWN:
                    self._gave_up.add(claim.name)

    def _together(self) -> None:
        """As many of the open claims as prove each other."""
        rest = list(self._open)
        answer, together = self._step.inductive_subset(rest, simple=self._simple)
        if answer is Answer.UNKNOWN:
            self._gave_up.update(c.name for c in rest)
        if together:
            hypotheses, lemmas = self._step.needed()
            for claim in together:
                self._proved(claim, hypotheses, lemmas)
            for claim in together:
                self._step.accept(claim)

    def _proved(self, claim: Claim, hypotheses: Sequence[Claim], lemmas: Sequence[Claim]) -> None:
        k = self._step.k
        how = f"{k}-induction" + (" over simple paths" if self._simple and k > 1 else "")
        helpers = [c.name for c in self._claims if c is not claim and c in (*hypotheses, *lemmas)]
        if helpers and len(helpers) == len(self._claims) - 1:
            given = " (with all other properties)"
        else:
            given = f" (with {', '.join(helpers)})" if helpers else ""
        self._certificates[claim.name] = Certificate(
            claim,
            range(k),
            k=k,
            inductive=True,
            hypotheses=tuple(hypotheses),
            lemmas=tuple(lemmas),
            simple=self._simple,
        )
        self._holds(claim, INDUCTION, f"proved by {how}{given}")

    def _look_for_hints(self) -> None:
        """For each open claim a run that shows why it is not inductive.

        The most telling runs come first: all open claims hold until the end and no state comes twice.
        """
        for claim in self._open if self._step.k else ():
            assumed = [c for c in self._open if c is not claim]
            choices = [([claim, *assumed], True), ([claim], True), ([claim], self._simple)]
            for helpers, simple in choices:
                answer = self._step.can_break([claim], helpers, simple=simple)
                if answer is Answer.SAT:
                    path = self._step.path()
                    self._hints[claim.name] = self._replay.confirm(claim, path, initial=False)
                    break
                if answer is Answer.UNSAT and helpers == [claim] and simple:
                    self._simply.add(claim.name)

    def _undecided(self, claim: Claim) -> PropertyVerdict:
        parts = [
            f"no violation up to depth {self.cleared}"
            if self.cleared >= 0
            else "nothing was searched"
        ]
        if (k := self._tried.get(claim.name)) is not None:
            parts.append(f"not inductive up to k = {k}")
        if claim.name in self._simply:
            parts.append("but inductive over simple paths (--simple-paths)")
        if claim.name in self._gave_up:
            parts.append("an induction query was given up within its limit of work")
        if self.stopped is not Stop.BOUNDS and self.stopped is not None:
            parts.append(self.stopped.value)
        hint = self._hints.get(claim.name)
        if hint is not None:
            parts.append(NOT_REACHABLE)
        return PropertyVerdict(
            claim.name,
            Outcome.UNDECIDED,
            INDUCTION,
            "; ".join(parts),
            hint.run if hint else None,
            hint.arguments if hint else FrozenMap({}),
            self._clock.elapsed(),
        )
