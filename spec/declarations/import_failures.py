"""Why a user's module fails when it is imported, with the place in it and what to write instead."""

from __future__ import annotations

import inspect
import re

from stagewright.spec.declarations.mends import mend_of_name, usage_of
from stagewright.spec.errors import DecoratorError, InputError, StagewrightError, did_you_mean
from stagewright.spec.source import Source, of_traceback

_UNKNOWN_OPTION = re.compile(r"(\w+)(?:\.\w+)*\(\) got an unexpected keyword argument '(\w+)'")
_MEANT = {
    "budget": "spends",
    "fairness": "fair",
    "actor": "by",
    "initial": "init",
    "default": "init",
}


def import_failure(place: str, file: str, error: BaseException) -> StagewrightError:
    """The error to show; `place` is what the user named, `file` the module's own file."""
    where = of_traceback(error.__traceback__, file)
    option = _UNKNOWN_OPTION.search(str(error)) if isinstance(error, TypeError) else None
    if option is not None and (unknown := _unknown_option(option[1], option[2], where)) is not None:
        return unknown
    return InputError(
        f"{place} fails when it is imported: {type(error).__name__}: {error}",
        where=where,
        help=usage_of(error) or mend_of_name(error) or "correct this line",
    )


def _unknown_option(function: str, option: str, where: Source | None) -> DecoratorError | None:
    """The error for an option that a word of the language does not have."""
    import stagewright.spec

    word: object = getattr(stagewright.spec, function, None)
    if word is None and function == "step":
        from stagewright.spec.declarations.variables import Var

        word = vars(Var)["step"]
    if word is None or not callable(word):
        return None
    known = [
        name
        for name, parameter in inspect.signature(word).parameters.items()
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY and name not in ("self", "body")
    ]
    meant = _MEANT.get(option, "")
    hint = f"did you mean `{meant}`? " if meant in known else did_you_mean(option, known)
    return DecoratorError(
        f"`{function}` takes no `{option}`",
        where=where,
        help=f"{hint}it takes {', '.join(f'`{name}`' for name in known) or 'nothing'}",
    )
