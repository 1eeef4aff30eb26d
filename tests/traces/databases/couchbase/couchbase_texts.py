"""Records as Couchbase's view engine writes them."""

from __future__ import annotations

GROUP = "`default`, main (prod) group `_design/d`"
NAMES: tuple[str, ...] = (
    "active",
    "passive",
    "cleanup",
    "unindexable",
    "pending active",
    "pending passive",
    "paused",
)


def record(second: int, message: str, *, pid: str = "<0.12.0>", zone: str = "Z") -> str:
    time = f"2017-07-18T12:{second // 60:02}:{second % 60:02}.000{zone}"
    return f"[couchdb:info,{time},ns_1@10.0.0.1:{pid}:couch_log:info:41]{message}\n"


def updated(before: str, after: str) -> str:
    """Of states such as `active [0-3], pending active [5]`; what is not said is empty."""
    old, new = _lists(before), _lists(after)
    body = [f"Set view {GROUP}, partition states updated"]
    for name in ("active", "passive", "cleanup"):
        body += [
            f"{name} partitions before:   {old[name]}",
            f"{name} partitions after:    {new[name]}",
        ]
    body += [f"unindexable partitions:      {old['unindexable']}"]
    body += [f"replica partitions {when}:    []" for when in ("before", "after")]
    for when, which in (("before", old), ("after", new)):
        body += [f"pending transition {when}:", f"  active:      {which['pending active']}"]
        body += [f"  passive:     {which['pending passive']}", f"  unindexable: {which['paused']}"]
    return "\n".join(body)


def _lists(text: str) -> dict[str, str]:
    found = dict.fromkeys(NAMES, "[]")
    for part in filter(None, text.replace("; ", ", ").split(", ")):
        name, _, ids = part.rpartition(" ")
        assert name in found
        found[name] = ids
    return found


def marked(
    before: str, after: str, *, pending: tuple[str, str] = ("[]", "[]"), how: str = "added"
) -> str:
    return (
        f"Set view {GROUP}, unindexable partitions {how}.\nPrevious set:         {before}\n"
        f"New set:              {after}\nPrevious pending set: {pending[0]}\n"
        f"New pending set:      {pending[1]}\n"
    )


def applying(active: str = "[]", passive: str = "[]", unindexable: str = "[]") -> str:
    return (
        f"Set view {GROUP}, applying state transitions from pending transition:\n"
        f"  Active partitions:  {active}\n  Passive partitions: {passive}\n"
        f"  Unindexable:        {unindexable}\n"
    )


def cleaned(before: str, after: str) -> str:
    """The cleaner is done."""
    old, new = _lists(before), _lists(after)
    body = [
        f"Cleanup finished for set view {GROUP}",
        "Removed 7 values from the index in 0.1 seconds",
    ]
    for name in ("active", "passive", "cleanup"):
        body += [
            f"{name} partitions before:  {old[name]}",
            f"{name} partitions after:   {new[name]}",
        ]
    return "\n".join(body)
