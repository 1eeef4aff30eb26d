"""Lines as YugabyteDB's masters write them."""

from __future__ import annotations

TABLE = "0a1b2c3d4e5f40718293a4b5c6d7e8f9"
INDEX, OTHER = "5d0f1e7a9b3c4d2e8f60718293a4b5c6", "77770000999911112222333344445555"
TABLETS = ("0a221742a2c24c848c2fbe78c44721a6", "e0412d4ab0d14bb287299ae4a7d8fab1")
SENT = "vlog1: Sending alter table request with updated permissions"
LOST = "Could not update index permissions. Possible that the master-leader has changed"
COMPLETED = f"orders [id={TABLE}] - Alter table completed version=7, state: RUNNING"


def line(
    second: int, message: str, *, thread: int = 7, date: str = "0910", level: str = "I"
) -> str:
    clock = f"18:{second // 60:02}:{second % 60:02}.000001"
    return f"{level}{date} {clock} {thread:5} backfill_index.cc:539] {message}"


def updating(index: str, permission: int) -> str:
    pair = f"{{{index}, {permission}}}"
    return f"vlog1: Updating index permissions for [{pair}] on orders [id={TABLE}]"


def launched(*indexes: str, permission: str = "DO_BACKFILL") -> str:
    infos = ", ".join(
        f'table_id: "{i}" version: 0 indexed_table_id: "{TABLE}" index_permissions: INDEX_PERM_{permission}'
        for i in indexes
    )
    return f"vlog0: StartBackfillingData starting backfill on orders [id={TABLE}] for [{infos}]"


def safe_time(names: str = "by_day") -> str:
    return (
        f"Backfill Index Table(s) {{ {names} }}  Completed fetching SafeTime for the table "
        f"0x3a1c2d0 -> orders [id={TABLE}] will be using {{ physical: 1640995194000000 }}"
    )


def chunk(key: str, tablet: int = 0, names: str = "by_day") -> str:
    return (
        f"Started BackfillChunk : Backfilling indexes {{ {names} }} for tablet {TABLETS[tablet]} "
        f"from key '{key}'"
    )


def tablet_done(tablet: int = 0) -> str:
    return f"Done backfilling the tablet 0x42e6a10 -> {TABLETS[tablet]} (table orders [id={TABLE}])"


def all_done(names: str = "by_day") -> str:
    return f"Backfill Index Table(s) {{ {names} }}  Completed backfilling the index table."


def failed(index: str, names: str = "by_day") -> str:
    return (
        f"Backfill Index Table(s) {{ {names} }}  failed to backfill the index: [{index}] due to "
        "Internal error (yb/x.cc:1): duplicate key"
    )


def done(*pairs: tuple[str, int]) -> str:
    text = ", ".join(f"{{{index}, {permission}}}" for index, permission in pairs)
    return f"Done backfill on orders [id={TABLE}] setting permissions to [{text}]"


def tablet_failed(tablet: int = 0) -> str:
    return f"Failed to backfill the tablet 0x42e6a10 -> {TABLETS[tablet]} (table orders [id={TABLE}]): x"


def begin_scan(physical: int, *indexes: str, tablet: int = 0) -> str:
    return (
        f"T {TABLETS[tablet]} P 0123456789abcdef0123456789abcdef: Begin BackfillIndexesForYsql at "
        f"{{ physical: {physical} }} from <start-of-the-tablet> for [{', '.join(indexes)}]"
    )
