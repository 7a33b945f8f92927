"""One actor's conversation as a whole: history, summary and archive kept in step.

    append ──> what the cap pushes out is folded first ──> then stored
    compact ─> the folded messages go whole into the archive ──> then the summary is saved

Every message is in exactly one place: verbatim in the prompt, in the summary, or archived and told. The order of the
writes keeps that true through a crash: what is written twice is recognised by its number, what is lost was never told.

Calls for one actor are made one at a time by the caller; a compaction by a model runs between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sidecar.chat.archive import Archive
from sidecar.chat.history import Added
from sidecar.chat.history_store import HistoryStore
from sidecar.chat.roles import Role
from sidecar.chat.rows import Row, message_of
from sidecar.compaction.cuts import Cut, cut_told
from sidecar.compaction.folding import Folded, fold_as_bullets, lost_marker_cut
from sidecar.compaction.marker import StoredSummary, fold_start
from sidecar.compaction.messages import Message
from sidecar.compaction.pending import Pending
from sidecar.compaction.rollup import Policy, Snapshot
from sidecar.compaction.summaries import Summary, SummaryStore
from sidecar.compaction.summariser import Summariser
from sidecar.compaction.tokens import TokenCounter
from sidecar.diagnostics import Report
from sidecar.storage.keys import ActorId


@dataclass(frozen=True)
class Wiped:
    """What clearing a conversation removed."""

    messages: int = 0
    rows: int = 0
    summary: bool = False
    archived: int = 0


class Conversations:
    """Appends, clears and compacts; success is returned after the bytes are safe."""

    def __init__(
        self,
        *,
        histories: HistoryStore,
        summaries: SummaryStore,
        archive: Archive,
        epoch: Callable[[str], int],
        cleared: Callable[[ActorId], None],
        report: Report,
    ) -> None:
        """``epoch`` tells how often a save was restored; ``cleared`` hears of each conversation that is cleared."""
        self._histories = histories
        self._summaries = summaries
        self._archive = archive
        self._epoch = epoch
        self._cleared = cleared
        self._report = report

    def append(
        self,
        who: ActorId,
        drafts: Sequence[Row],
        *,
        role: Role,
        counter: TokenCounter,
        request: Sequence[Any] = (),
        key: str = "",
    ) -> Added:
        """Adds messages. Raises Corrupt, LimitReached, AlreadyExists, and what the disk raises."""
        known = self._histories.known_answer(who, request, key)
        if known is not None:
            return known
        leaving = self._histories.read(who).leaving(len(drafts))
        folded = self._let_go(who, self._in_reach(who, leaving, drafts), leaving, role, counter) if leaving else ()
        return self._histories.append(who, drafts, messages=True, folded=folded, request=request, key=key)

    def append_transcript(
        self, who: ActorId, drafts: Sequence[Row], *, request: Sequence[Any] = (), key: str = ""
    ) -> Added:
        """Adds rows that are no messages. Raises as :meth:`append` does."""
        known = self._histories.known_answer(who, request, key)
        if known is not None:
            return known
        return self._histories.append(who, drafts, messages=False, request=request, key=key)

    def clear(self, who: ActorId, *, archive: bool, key: str = "") -> Wiped:
        """Removes history, transcript and summary, with ``archive`` the archived messages too.

        The summary goes before its history: without it, it would leak into the next conversation. Raises Corrupt where
        the archive is meant and the actor's records cannot be read; nothing is removed then.
        """
        request = ["clear", archive]
        known = self._histories.known_clear(who, request, key)
        if known is not None:
            return Wiped(**known)
        archived = self._archive.clear(who) if archive else 0
        wiped = Wiped(*self._histories.sizes(who), summary=self._summaries.clear(who), archived=archived)
        self._histories.clear(who, request=request, key=key, told=asdict(wiped))
        self._cleared(who)
        return wiped

    def rows(self, who: ActorId) -> Sequence[Row]:
        """The messages of the history, oldest first. Raises Corrupt."""
        return self._histories.read(who).chat

    def begin(
        self,
        who: ActorId,
        policy: Policy,
        counter: TokenCounter,
        *,
        summariser: Summariser | None = None,
        trace_id: str = "",
        through: int | None = None,
    ) -> Pending:
        """A compaction of the conversation as it is now, up to the message ``through``. Raises Corrupt."""
        messages = self._histories.read(who).messages()
        return Pending(
            who,
            tuple(message for message in messages if through is None or message.number <= through),
            self._summaries.read(who),
            policy,
            counter,
            self._epoch(who.save),
            summariser,
            trace_id,
        )

    def commit(self, pending: Pending, snapshot: Snapshot, *, archive: bool) -> Summary | None:
        """Stores what a compaction made; ``None`` where the conversation or its save has moved on meanwhile."""
        who = pending.who
        if not snapshot.folded:
            if archive and self._epoch(who.save) == pending.epoch:
                self._archive.add(who, self._rows(who, pending.messages[: snapshot.left_out]))
            return pending.base
        rows = self._rows(who, snapshot.folded)
        moved = self._epoch(who.save) != pending.epoch or self._summaries.read(who) != pending.base
        if moved or len(rows) != len(snapshot.folded):
            return None
        if archive:
            self._archive.add(who, rows)
        return self._summaries.save(who, snapshot.stored, persist=self._may_persist(who, rows))

    def _in_reach(self, who: ActorId, leaving: int, drafts: Sequence[Row]) -> list[Row]:
        """The messages of the history, and those of the drafts that leave it at once: more come than it may hold."""
        chat = self._histories.read(who).chat
        if leaving <= len(chat):
            return chat
        return [*chat, *self._histories.prepared(who, drafts[: leaving - len(chat)], messages=True)]

    def _let_go(
        self, who: ActorId, chat: list[Row], leaving: int, role: Role, counter: TokenCounter
    ) -> tuple[Cut, ...]:
        """Archives and folds the messages that the cap is about to push out, and some more, so that not every append
        has to; what folding cut."""
        ahead = min(leaving + len(chat) // 10, len(chat) - role.max_history_messages)
        end = max(leaving, ahead)
        if role.archive and not self._archive.holds(who, chat[:leaving]):
            self._archive.add(who, chat[:end])
        if not role.summary.enabled:
            return ()
        cuts = self._fold_before_loss(who, chat, leaving, end, role.summary.max_summary_tokens, counter)
        for cut in cuts:
            self._report(cut_told(cut))
        return cuts

    def _fold_before_loss(
        self, who: ActorId, chat: list[Row], leaving: int, end: int, cap: int, counter: TokenCounter
    ) -> tuple[Cut, ...]:
        known = self._histories.read(who).messages()
        messages = (*known, *map(message_of, chat[len(known) :]))
        present = self._summaries.read(who)
        folded = _folded(present.stored, messages, leaving, end, cap, counter)
        if folded is not None:
            present = self._summaries.save(who, folded.summary, persist=self._may_persist(who, chat[:end]))
        if not present.persisted:
            self._fold_beneath(who, chat, leaving, end, cap, counter)
        return folded.cuts if folded else ()

    def _fold_beneath(
        self, who: ActorId, chat: list[Row], leaving: int, end: int, cap: int, counter: TokenCounter
    ) -> None:
        """The same for the stored summary beneath one of this process, as far as messages may be stored."""
        beneath = self._summaries.read_stored(who).stored
        durable = [message_of(row) for row in chat if row.persisted]
        leaving, end = (sum(row.persisted for row in chat[:count]) for count in (leaving, end))
        folded = _folded(beneath, durable, leaving, end, cap, counter)
        if folded is not None:
            self._summaries.save_stored(who, folded.summary)

    def _may_persist(self, who: ActorId, rows: Sequence[Row]) -> bool:
        """Whether a summary of these rows, on top of the present one, may reach the disk."""
        return self._summaries.read(who).persisted and all(row.persisted for row in rows)

    def _rows(self, who: ActorId, messages: Sequence[Message]) -> list[Row]:
        """The rows of these messages, as far as the history still has them word for word."""
        wanted = {message.number: message for message in messages}
        chat = self._histories.read(who).chat
        return [row for row in chat if row.number in wanted and message_of(row) == wanted[row.number]]


def _folded(
    stored: StoredSummary, messages: Sequence[Message], leaving: int, end: int, cap: int, counter: TokenCounter
) -> Folded | None:
    """The summary with the messages up to ``end``; ``None`` where it holds those that are ``leaving`` already."""
    start = fold_start(messages, stored)
    if start.index >= leaving:
        return None
    folded = fold_as_bullets(stored, messages[start.index : end], cap=cap, counter=counter)
    return replace(folded, cuts=(*lost_marker_cut(end if start.lost else 0), *folded.cuts))
