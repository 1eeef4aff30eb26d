"""A machine of a user's own: a lease that nodes take, keep and lose. One file, nothing else."""

from typing import Self

from stagewright import spec as sw


class Node(sw.Entity, scope=3):
    """A node that may hold the lease."""


class Lease(sw.States):
    """What a lease is, and whether writes are let through."""

    free = False
    held = True
    expiring = False

    def __init__(self, writes: bool) -> None:
        self.writes = writes


class LeaseTable(sw.Machine):
    """One lease: at most one holder, and a new epoch for every holder."""

    lease: sw.OneVar[Lease] = sw.one_of(Lease, init=Lease.free)
    holder: sw.OptionalVar[Node] = sw.optional(Node)
    epoch: sw.NumberVar = sw.number(0, 4)

    @lease.step(Lease.free, Lease.held)
    def acquire(self, n: sw.Term[Node]) -> None:
        """Node `n` takes the free lease, under an epoch of its own."""
        sw.require(self.epoch < 4, "an epoch is left")
        self.holder = n
        self.epoch = self.epoch + 1

    @lease.step(Lease.held, Lease.expiring)
    def go_silent(self) -> None:
        """The holder does not renew its lease."""

    @lease.step(Lease.expiring, Lease.free, fair=sw.Fairness.WEAK)
    def expire(self) -> None:
        """The lease is free again."""
        self.holder = None

    @sw.invariant
    def writes_have_a_holder(self) -> sw.Bool:
        return self.lease.column(lambda lease: lease.writes).implies(self.holder.is_some())

    @sw.step_property
    def epochs_grow(self, after: Self) -> sw.Bool:
        return after.epoch >= self.epoch

    @sw.liveness
    def leases_expire(self) -> sw.LeadsTo:
        return sw.leads_to(self.lease == Lease.expiring, self.lease == Lease.free)

    @sw.final
    def no_epoch_is_left(self) -> sw.Bool:
        return self.epoch == 4
