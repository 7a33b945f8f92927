"""What every turn works with, handed down once by the composition root."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.chat.backends.client import BackendClient
from sidecar.chat.backends.counting import BackendCounting
from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.retries import Waits
from sidecar.chat.backends.store import BackendStore
from sidecar.chat.compactions import Compactions
from sidecar.chat.conversations import Conversations
from sidecar.chat.history_store import HistoryStore
from sidecar.chat.memory_snapshots import MemorySnapshots
from sidecar.chat.prompts import Prompts
from sidecar.chat.recall import Recall
from sidecar.chat.role_store import RoleStore
from sidecar.chat.turns.background import Background
from sidecar.chat.turns.claims import Claims
from sidecar.diagnostics import Report
from sidecar.memory.document_store import DocumentStore
from sidecar.memory.toolbox import Toolbox
from sidecar.settings import TurnSettings
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import Workers


@dataclass(frozen=True)
class TurnParts:
    """``workers`` run disk work, one call at a time for an actor; ``models`` run what waits for a summariser."""

    roles: RoleStore
    prompts: Prompts
    conversations: Conversations
    histories: HistoryStore
    documents: DocumentStore
    snapshots: MemorySnapshots
    claims: Claims
    toolbox: Toolbox
    counting: BackendCounting
    compactions: Compactions
    saves: SaveStates
    workers: Workers
    models: Workers
    backends: BackendStore
    client: BackendClient
    known: KnownBackends
    waits: Waits
    limits: TurnSettings
    background: Background
    report: Report
    recall: Recall | None = None
