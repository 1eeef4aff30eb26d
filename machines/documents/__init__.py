"""The five design documents: which promises state what their sections say."""

from stagewright.machines.documents.cdc import CDC
from stagewright.machines.documents.index_backfill import INDEX_BACKFILL
from stagewright.machines.documents.topology import TOPOLOGY
from stagewright.machines.documents.view_building import VIEW_BUILDING
from stagewright.machines.documents.view_engine import VIEW_ENGINE

DOCUMENTS = (VIEW_BUILDING, TOPOLOGY, INDEX_BACKFILL, CDC, VIEW_ENGINE)
"""In the order of their numbers."""
