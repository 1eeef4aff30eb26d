"""What logs and tables show of a CDC generation, as views of the machines that say how it is used and published."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc import cdc_publication as publication
from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration, Life
from stagewright.machines.scylladb.cdc.cdc_generations import CdcGenerations, Generation
from stagewright.machines.scylladb.cdc.cdc_publication import CdcPublication
from stagewright.spec import Bool, Term, alike, choose, refinement, some


@refinement(profiles={"scylla-2026.2": ""}, from_start=False)
def a_generation_that_is_used(it: CdcGenerations, seen: CdcGeneration, g: Term[Generation]) -> None:
    """A generation in group0, from its data to their deletion; nodes may forget that they have used it."""
    introduced, later = it.introduced.has(g), it.introduced - it.unpublished
    waits = choose(it.unpublished.has(g), Life.committed, Term.of(Life.published))
    committed = choose(it.stored.has(g), waits, Life.cleared)
    made = choose(it.on_its_way == g, Life.written, Term.of(Life.absent))
    seen.life = choose(introduced, committed, made)
    seen.superseded = introduced & some(it.introduced.has(h) & it.follows(h, g) for h in Generation)
    seen.overtaken = introduced & some(later.has(h) & it.follows(h, g) for h in Generation)


@refinement(
    profiles={"seed": "", "scylla-2026.2": ""},
    steps={
        CdcPublication.fail_barrier: (CdcGeneration.abandon, None),
    },
    anew=(CdcPublication.begin,),
    from_start=False,
)
def a_generation_that_is_published(
    it: CdcPublication, seen: CdcGeneration, g: Term[publication.Generation]
) -> None:
    """A generation as it is committed and published; nobody deletes it here. A join that was rolled back leaves
    its number to the next one.
    """
    committed, published = it.committed.has(g), _published(it, g)
    alike(seen.life == Life.written, (it.new_generation == g) & ~committed & ~_rolled_back(it))
    alike(seen.life == Life.committed, committed & ~published)
    alike(seen.life == Life.published, published)
    later = list(publication.Generation)
    seen.superseded = committed & some(_follows(h, g) & it.committed.has(h) for h in later)
    seen.overtaken = committed & some(_follows(h, g) & _published(it, Term.of(h)) for h in later)


def _published(it: CdcPublication, g: Term[publication.Generation]) -> Bool:
    """Clients see it, and it does not wait to be published: from the gossip's days it may be there already."""
    return it.committed.has(g) & it.described.has(g) & ~it.unpublished.has(g)


def _rolled_back(it: CdcPublication) -> Bool:
    return it.transition == publication.Transition.left_token_ring


def _follows(h: publication.Generation, g: Term[publication.Generation]) -> Bool:
    return g.number_column(lambda generation: generation.number) < h.number
