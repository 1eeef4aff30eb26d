"""The specification language: what a machine definition is written with, and what it means.

A definition imports from here alone; backends import from the modules they need.
"""

from stagewright.spec.actions import (
    BudgetName as BudgetName,
    Eventually as Eventually,
    LeadsTo as LeadsTo,
    action as action,
    allowed as allowed,
    bounded as bounded,
    budget as budget,
    constraint as constraint,
    eventually as eventually,
    final as final,
    initially as initially,
    invariant as invariant,
    leads_to as leads_to,
    liveness as liveness,
    only_when as only_when,
    reachable as reachable,
    require as require,
    step_property as step_property,
)
from stagewright.spec.arithmetic import greatest as greatest, least as least, total as total
from stagewright.spec.binding import count as count, every as every, some as some
from stagewright.spec.choices import choose as choose, first_where as first_where
from stagewright.spec.conditions_and_numbers import Bool as Bool, Number as Number
from stagewright.spec.define import define as define
from stagewright.spec.definition import Actor as Actor, Fairness as Fairness
from stagewright.spec.entities import Entity as Entity, States as States, named as named
from stagewright.spec.equivalents import (
    equivalent_drop as equivalent_drop,
    equivalent_loss as equivalent_loss,
    equivalent_step as equivalent_step,
    equivalent_value as equivalent_value,
    equivalent_weakening as equivalent_weakening,
    equivalent_without as equivalent_without,
    equivalents as equivalents,
)
from stagewright.spec.errors import (
    DefinitionError as DefinitionError,
    DomainError as DomainError,
    RefusedError as RefusedError,
    ScopeError as ScopeError,
    StagewrightError as StagewrightError,
    SymbolicBoolError as SymbolicBoolError,
)
from stagewright.spec.exercised import judged_alone as judged_alone, scopes as scopes
from stagewright.spec.fairness import SharedFairness as SharedFairness, fairness as fairness
from stagewright.spec.machine import (
    Machine as Machine,
    Profile as Profile,
    Profiles as Profiles,
    Record as Record,
    many as many,
    part as part,
    profiles as profiles,
)
from stagewright.spec.parameters import between as between
from stagewright.spec.refinement import (
    Refinement as Refinement,
    alike as alike,
    projection as projection,
    refinement as refinement,
)
from stagewright.spec.scope import Scope as Scope, scope_of as scope_of
from stagewright.spec.terms import (
    MapOf as MapOf,
    Maybe as Maybe,
    SetOf as SetOf,
    Term as Term,
)
from stagewright.spec.variables import (
    ANY as ANY,
    FlagVar as FlagVar,
    NumberVar as NumberVar,
    OneVar as OneVar,
    OptionalVar as OptionalVar,
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
