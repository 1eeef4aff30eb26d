"""Hosts what lives in one process: carries messages, timers and syncs out, and takes tablets that nobody leads.

Nothing is sent before all that its sender has synced until then is on the disk; of a master, what it has decided.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from stagewright.impl.indexes.bulk.share import Share
from stagewright.impl.indexes.catalog import Catalog
from stagewright.impl.indexes.client import KnownSchema
from stagewright.impl.indexes.defects import Defects
from stagewright.impl.indexes.index_tablet import IndexTablet
from stagewright.impl.indexes.master import Master
from stagewright.impl.indexes.messages import Message
from stagewright.impl.indexes.port import NewTablet
from stagewright.impl.indexes.processes.admission import admit
from stagewright.impl.indexes.processes.builder import BuilderProcess
from stagewright.impl.indexes.processes.layout import MASTER, IndexLayout
from stagewright.impl.indexes.processes.lives import Led, Life, MadeTablet, SyncedStore
from stagewright.impl.indexes.processes.log import Log
from stagewright.impl.indexes.processes.places import Places
from stagewright.impl.indexes.processes.session import Session
from stagewright.impl.indexes.processes.stored_catalog import StoredCatalog
from stagewright.impl.indexes.processes.turns import Turns
from stagewright.impl.indexes.processes.wire import (
    QUESTIONS,
    AskServer,
    Delivery,
    Leads,
    inner_codec,
    outer_codec,
)
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.records.server_lines import MasterLines, TabletServerLines
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.tablet_map import TABLE, TabletMaps, index_table
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.indexes.times import COUNTS
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS
from stagewright.impl.processes.errors import WireError
from stagewright.impl.processes.handshake import Calling
from stagewright.impl.processes.links import Accepted, Link
from stagewright.impl.storage.spares import Spares
from stagewright.impl.storage.syncs import Syncs
from stagewright.machines.yugabytedb.indexes.index_states import Permission

LOOK = 0.1  # seconds between looks for tablets that nobody leads
LEEWAY = 100  # milliseconds that the time of a read may be ahead
_LOG = logging.getLogger("stagewright.indexes")


class Host:
    """One process of a cluster, a master or a tablet server; `run` returns when `end` is called."""

    def __init__(self, layout: IndexLayout, name: str, defects: Defects) -> None:
        self.name = name
        self.address = ""
        self._file = layout.file()
        self._layout = layout
        self._settings = replace(self._file.settings, defects=defects)
        self.slots = self._settings.slots
        self.turns = Turns()
        self.syncs = Syncs()
        self._share = Share(self._settings.builder_share)
        self.builder = BuilderProcess(self._share)
        self._secret = layout.layout.secret()
        self._places = Places(layout, name, self._file.servers)
        each = -(-self._settings.tablets // len(self._file.servers))
        count = each if name in self._file.servers else 0
        self._spares = Spares(layout.stores, name, count, layout.rows_of_all())
        self._lives: dict[str, Life] = {}
        self._schema = KnownSchema(TabletMaps(self._settings.tablets))  # of all its sessions
        self._log = Log(name, "master" if name in self._file.masters else "tablet server")
        self._lines = TabletServerLines(self._log.say, name)
        self._catalog: StoredCatalog | None = None
        self._of_master: list[
            Callable[[], None]
        ] = []  # to be sent and said when the catalog is saved
        self._giving: set[asyncio.Task[None]] = set()
        self._links: dict[str, Link] = {}
        self._connections: set[Accepted] = set()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, listens: Callable[[str], None]) -> None:
        """Listen and live, until `end` is called; `listens` is called with the address.

        Raises:
            StagewrightError: a disk has failed for good.
        """
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"
        listens(self.address)
        looking = loop.create_task(self._look_again_and_again())
        try:
            await self._over
        finally:
            looking.cancel()
            server.close()
            await self._close()

    def end(self) -> None:
        """Let `run` return."""
        if not self._over.done():
            self._over.set_result(None)

    async def _close(self) -> None:
        for life in self._lives.values():
            life.end()
        self.builder.close()
        led = [life for life in self._lives.values() if isinstance(life, Led)]
        await asyncio.gather(*(task for life in led for task in life.busy()), *self._giving)
        for link in self._links.values():
            link.close()
        for connection in list(self._connections):
            connection.close()
        for life in led:
            life.close()
            life.release()
        self._spares.close()
        if self._catalog is not None:
            self._catalog.close()

    def fail(self, error: BaseException) -> None:
        """A process whose disk has failed, or that is wrong, does not go on."""
        if not self._over.done():
            self._over.set_exception(error)

    # -- calls, and what they cause ----------------------------------------------------------------------------

    def act(self, life: Life, action: Callable[..., None], *arguments: Any) -> None:
        """Call something of a life, unless it is over; a master's decisions are kept before they are sent."""
        if life.is_over or self._over.done():
            return
        try:
            action(*arguments)
            if life.address == MASTER:
                self._keep_catalog()
        except Exception as error:  # noqa: BLE001 - half a change must not be lived with
            self.fail(error)

    def is_led(self, address: str) -> bool:
        """Whether a tablet has had a leader, here or elsewhere."""
        return address in self._lives or bool(self._places.server_of(address))

    def make_tablet(self, life: Life, address: str) -> NewTablet | None:
        """Begin to make a tablet of what a life has written; None: it is there. May be called from any thread."""
        assert isinstance(life, Led)
        return None if self._layout.has_tablet(address) else MadeTablet(life, self._layout, address)

    def deliver(self, life: Life, to: str, at: int, message: Message, *, early: bool) -> None:
        """Send what a life says at a hybrid time: when all that it has synced before is on the disk, or `early`."""
        post = partial(self._post, life.address, to, at, message)
        if life.address == MASTER:
            self._of_master.append(post)
        elif isinstance(life, Led) and life.has_unsynced:
            if early:
                post()
            life.post_when_synced(_nothing if early else post)
        else:
            post()

    def _post(self, sender: str, to: str, at: int, message: Message) -> None:
        if to in self._lives:
            asyncio.get_running_loop().call_soon(self._receive, sender, to, at, message)
            return
        server = self._places.server_of(to)
        if server and server != self.name:
            link = self._link(server)
            if link is not None:
                link.send(Delivery(sender, to, at, inner_codec().encode(message)))

    def _receive(self, sender: str, to: str, at: int, message: Message) -> None:
        self._share.hear(message)
        life = self._lives.get(to)
        if life is None or life.process is None:
            return
        again = partial(self._receive, sender, to, at, message)
        if not (isinstance(life, Led) and life.puts_off(message, again)):
            life.process.clock.observe(at)
            self.act(life, life.process.receive, sender, message)

    # -- connections -------------------------------------------------------------------------------------------

    def _link(self, peer: str) -> Link | None:
        link, address = self._links.get(peer), self._places.address_of(peer)
        if link is not None and link.address != address:
            link.close()
            del self._links[peer]
            link = None
        if link is None and address:
            link = Link(outer_codec(), peer, address, self._greeting, _unasked, _seen)
            self._links[peer] = link
        return link

    def _greeting(self) -> Calling:
        return Calling(self._secret, self.name, self.address)

    def _accept(self) -> Accepted:
        return Accepted(
            outer_codec(), self._secret, self.name, self._greeted, self._heard, self._hung_up
        )

    def _greeted(self, connection: Accepted) -> None:
        self._connections.add(connection)
        if not connection.address:
            connection.name = f"client/{self.name}/{uuid4().hex}"

    def _heard(self, connection: Accepted, said: Any) -> None:
        match said:
            case Delivery(sender, to, at, message) if connection.address:
                self._receive(sender, to, at, inner_codec().decode(message))
            case AskServer(number):
                led = [
                    p for p, life in self._lives.items() if not isinstance(life.process, Session)
                ]
                connection.send(Leads(number, tuple(sorted(led))))
            case _ if isinstance(said, QUESTIONS) and not connection.address:
                admit(said, (time.time_ns() // 1_000_000 + LEEWAY) * COUNTS)
                life = self._session_of(connection)
                assert isinstance(life.process, Session)
                self.act(life, life.process.ask, said)
            case _:
                raise WireError(
                    f"a {type(said).__name__} is not for clients to send",
                    help="see `docs/language/online-indexes.md`",
                )

    def _session_of(self, connection: Accepted) -> Life:
        if connection.name not in self._lives:
            life = Life(self, connection.name)
            life.process = Session(life, self._settings, connection.send, self._schema)
            self._lives[connection.name] = life
        return self._lives[connection.name]

    def _hung_up(self, connection: Accepted) -> None:
        self._connections.discard(connection)
        life = self._lives.get(connection.name)
        if life is not None and isinstance(life.process, Session):
            life.end()
            del self._lives[connection.name]

    # -- what this process leads -------------------------------------------------------------------------------

    async def _look_again_and_again(self) -> None:
        while True:
            try:
                if self.name in self._file.masters:
                    self._lead_all()
                else:
                    self._lead_tablets()
            except Exception as error:  # noqa: BLE001 - see above
                self.fail(error)
                return
            await asyncio.sleep(LOOK)

    def _lead_tablets(self) -> None:
        self._places.look()
        self._take_tablets()
        if not any(t.is_building for t in self._table_tablets()):
            self._spares.open_another()  # those that are served wait
        led = {p: life for p, life in self._lives.items() if isinstance(life, Led)}
        for place, life in led.items():
            if isinstance(life.process, IndexTablet) and self._layout.is_deleted(place):
                self._give(life, self._layout.remove_tablet)
        for place in self._places.to_be_given(led):
            if place in self._lives:
                self._give(led[place])
                break  # one after the other

    def _table_tablets(self) -> Iterator[TableTablet]:
        processes = (life.process for life in self._lives.values())
        return (p for p in processes if isinstance(p, TableTablet))

    def _take_tablets(self) -> None:
        for place in self._places.to_be_led(self._lives):
            handle = self._places.claim(place)
            if handle is None:
                continue
            store = SyncedStore(self._spares.store_at(self._layout.rows(place)))
            life = Led(self, place, store, handle, lambda note, _: self._lines.hear(note))
            self._lives[place] = life
            life.open(self._settings)
            _LOG.info("%s leads %s", self.name, place)

    def _give(self, life: Led, remove: Callable[[str], None] | None = None) -> None:
        """Lead a tablet no more, or remove it; after the sync that may be going on."""

        async def give() -> None:
            await asyncio.gather(*life.busy())
            try:
                life.close()
                if remove is not None:
                    remove(life.address)
                life.release()
            except Exception as error:  # noqa: BLE001 - nobody else may lead what is half given
                self.fail(error)
            _LOG.info("%s %s %s", self.name, "has removed" if remove else "gives", life.address)

        life.end()
        del self._lives[life.address]
        task = asyncio.get_running_loop().create_task(give())
        self._giving.add(task)
        task.add_done_callback(self._giving.discard)

    def _lead_all(self) -> None:
        """Become the master leader, if there is none."""
        if MASTER in self._lives or self._places.claim(MASTER) is None:
            return
        _LOG.info("%s is the master leader", self.name)
        self._catalog = stored = StoredCatalog(self._layout.directory / "catalog.sqlite")
        lines = MasterLines(self._say_when_kept, lambda: stored.catalog)

        def hear(note: Note, at: int) -> None:
            stored.note(note, at)
            lines.hear(note)

        life = Life(self, MASTER, hear)
        self._lives[MASTER] = life
        life.process = Master(life, self._catalog.catalog, self._settings)
        self._keep_catalog()
        self._places.grow((RECORDS, *map(table_tablet, range(self._settings.tablets))))

    def _keep_catalog(self) -> None:
        """Before anything is sent of it, what the master has decided is on the disk; tablets come and go with it."""
        assert self._catalog is not None
        if self._catalog.save():
            self._place_tablets(self._catalog.catalog)
        posts, self._of_master = self._of_master, []
        for post in posts:
            post()

    def _say_when_kept(self, message: str) -> None:
        """Who ends before that has decided nothing."""
        self._of_master.append(partial(self._log.say, message))

    def _place_tablets(self, catalog: Catalog) -> None:
        there, gone = list(catalog.map_of(TABLE).places), list[str]()
        for index in catalog.indexes:
            tablets = catalog.map_of(index_table(index.number))
            if index.permission is Permission.absent:
                gone += tablets.ever
            else:
                there += tablets.places
        self._places.grow(there)
        self._places.shrink(gone)


def _nothing() -> None:
    """The sync begins while others do what was sent before it."""


def _unasked(peer: str, said: Any) -> None:
    raise WireError(
        f"{peer} answers {type(said).__name__}", help="let all processes run one version"
    )


def _seen(peer: str, up: bool) -> None:
    _LOG.info("%s is %s", peer, "up" if up else "down")
