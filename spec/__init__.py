"""The specification language: what a machine definition is written with, and what it means.

A definition imports from here alone; backends import from the modules they need.
"""

from stagewright.spec.declarations.actions import (
    accepts as accepts,
    action as action,
    allowed as allowed,
    always_reachable as always_reachable,
    constraint as constraint,
    final as final,
    initially as initially,
    invariant as invariant,
    lemma as lemma,
    liveness as liveness,
    sometimes as sometimes,
    step_property as step_property,
    wording as wording,
)
from stagewright.spec.declarations.budgets import (
    BudgetName as BudgetName,
    budget as budget,
    fault_budget as fault_budget,
)
from stagewright.spec.declarations.equivalents import (
    equivalent_disabled as equivalent_disabled,
    equivalent_drop as equivalent_drop,
    equivalent_helper as equivalent_helper,
    equivalent_loss as equivalent_loss,
    equivalent_replacement as equivalent_replacement,
    equivalent_step as equivalent_step,
    equivalent_value as equivalent_value,
    equivalent_weakening as equivalent_weakening,
    equivalent_without as equivalent_without,
    equivalents as equivalents,
)
from stagewright.spec.declarations.exercised import scopes as scopes
from stagewright.spec.declarations.fairness import (
    SharedFairness as SharedFairness,
    fairness as fairness,
)
from stagewright.spec.declarations.messages import bag as bag, queue as queue
from stagewright.spec.declarations.parameters import between as between
from stagewright.spec.declarations.records import Record as Record
from stagewright.spec.declarations.restrictions import (
    independent as independent,
    restricted as restricted,
)
from stagewright.spec.declarations.unexercised import (
    never_happens as never_happens,
    unexercised as unexercised,
    vacuous as vacuous,
)
from stagewright.spec.declarations.variables import (
    ANY as ANY,
    BagVar as BagVar,
    FlagVar as FlagVar,
    NumberVar as NumberVar,
    OneVar as OneVar,
    OptionalVar as OptionalVar,
    QueueVar as QueueVar,
    RecordSetVar as RecordSetVar,
    SetVar as SetVar,
    Var as Var,
    constant as constant,
    flag as flag,
    history as history,
    number as number,
    observed as observed,
    one_of as one_of,
    optional as optional,
    per as per,
    record as record,
    set_of as set_of,
    volatile as volatile,
)
from stagewright.spec.declarations.violations import (
    known_violations as known_violations,
    violated as violated,
)
from stagewright.spec.define import define as define
from stagewright.spec.definition import (
    NO_DEADLOCK as NO_DEADLOCK,
    Actor as Actor,
    Fairness as Fairness,
)
from stagewright.spec.entities import (
    Entity as Entity,
    EntityType as _EntityType,
    States as States,
    named as named,
)
from stagewright.spec.errors import (
    DefinitionError as DefinitionError,
    DomainError as DomainError,
    RefusedError as RefusedError,
    ScopeError as ScopeError,
    StagewrightError as StagewrightError,
    SymbolicBoolError as SymbolicBoolError,
)
from stagewright.spec.known_bugs import known_bug as known_bug, released_bug as released_bug
from stagewright.spec.machine import (
    Machine as Machine,
    Profile as Profile,
    Profiles as Profiles,
    checked_alone as checked_alone,
    many as many,
    part as part,
    profiles as profiles,
)
from stagewright.spec.refinement import (
    Refinement as Refinement,
    alike as alike,
    projection as projection,
    refinement as refinement,
)
from stagewright.spec.scope import Scope as Scope, scope_of as scope_of
from stagewright.spec.terms.arithmetic import greatest as greatest, least as least, total as total
from stagewright.spec.terms.binding import (
    count as count,
    each as each,
    every as every,
    numbers as numbers,
    some as some,
)
from stagewright.spec.terms.choices import choose as choose, first_where as first_where
from stagewright.spec.terms.conditions_and_numbers import Bool as Bool, Number as Number
from stagewright.spec.terms.guards import (
    assume as assume,
    bounded as bounded,
    only_when as only_when,
    require as require,
)
from stagewright.spec.terms.messages import (
    BagOf as BagOf,
    QueueOf as QueueOf,
    RecordSet as RecordSet,
)
from stagewright.spec.terms.order import NOTATION as _NOTATION
from stagewright.spec.terms.temporal import (
    Eventually as Eventually,
    LeadsTo as LeadsTo,
    eventually as eventually,
    leads_to as leads_to,
)
from stagewright.spec.terms.terms import (
    MapOf as MapOf,
    Maybe as Maybe,
    SetOf as SetOf,
    TableOf as TableOf,
    Term as Term,
)

_EntityType.notation = _NOTATION  # bodies write members as terms, of which entities know nothing

__all__ = [
    "ANY",
    "NO_DEADLOCK",
    "Actor",
    "BagOf",
    "BagVar",
    "Bool",
    "BudgetName",
    "DefinitionError",
    "DomainError",
    "Entity",
    "Eventually",
    "Fairness",
    "FlagVar",
    "LeadsTo",
    "Machine",
    "MapOf",
    "Maybe",
    "Number",
    "NumberVar",
    "OneVar",
    "OptionalVar",
    "Profile",
    "Profiles",
    "QueueOf",
    "QueueVar",
    "Record",
    "RecordSet",
    "RecordSetVar",
    "Refinement",
    "RefusedError",
    "Scope",
    "ScopeError",
    "SetOf",
    "SetVar",
    "SharedFairness",
    "StagewrightError",
    "States",
    "SymbolicBoolError",
    "TableOf",
    "Term",
    "Var",
    "accepts",
    "action",
    "alike",
    "allowed",
    "always_reachable",
    "assume",
    "bag",
    "between",
    "bounded",
    "budget",
    "checked_alone",
    "choose",
    "constant",
    "constraint",
    "count",
    "define",
    "each",
    "equivalent_disabled",
    "equivalent_drop",
    "equivalent_helper",
    "equivalent_loss",
    "equivalent_replacement",
    "equivalent_step",
    "equivalent_value",
    "equivalent_weakening",
    "equivalent_without",
    "equivalents",
    "eventually",
    "every",
    "fairness",
    "fault_budget",
    "final",
    "first_where",
    "flag",
    "greatest",
    "history",
    "independent",
    "initially",
    "invariant",
    "known_bug",
    "known_violations",
    "leads_to",
    "least",
    "lemma",
    "liveness",
    "many",
    "named",
    "never_happens",
    "number",
    "numbers",
    "observed",
    "one_of",
    "only_when",
    "optional",
    "part",
    "per",
    "profiles",
    "projection",
    "queue",
    "record",
    "refinement",
    "released_bug",
    "require",
    "restricted",
    "scope_of",
    "scopes",
    "set_of",
    "some",
    "sometimes",
    "step_property",
    "total",
    "unexercised",
    "vacuous",
    "violated",
    "volatile",
    "wording",
]
