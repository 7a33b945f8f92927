"""The views of owners that were searched lately, within bounds of owners and of records."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from threading import Lock

from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.search.owner_view import OwnerView
from sidecar.search.words import WordSource
from sidecar.settings import SearchSettings
from sidecar.storage.keys import ActorId


class Views:
    """Thread-safe. A view belongs to the opened owner and to the way of cutting words that it was made with: when the
    journal is opened anew, or the save has another language, so is the view."""

    def __init__(self, words: WordSource, limits: SearchSettings) -> None:
        self._words = words
        self._limits = limits
        self._views: OrderedDict[ActorId, tuple[OpenOwner, OwnerView, str]] = OrderedDict()
        self._rows = 0
        self._lock = Lock()

    def of(self, owner: OpenOwner) -> tuple[OwnerView, bool]:
        """The view of a locked owner, up to date, and whether it was there already. Raises Corrupt."""
        version = self._words.version(owner.who.save)
        known = self._known(owner, version)
        view = known if known and not known.mostly_gone else OwnerView()
        before = len(view.entries)
        view.follow(owner.records(), lambda entries: self._words.words_of(owner, entries))
        if len(view.entries) != before or known is not view:
            self._keep(owner, view, version)
        return view, before > 0

    def behind(self, owner: OpenOwner) -> Collection[Entry]:
        """The records that the view of a locked owner has still to take in."""
        known = self._known(owner, self._words.version(owner.who.save))
        return owner.records().after(known.seen) if known else owner.records().entries.values()

    def forget(self, save: str) -> None:
        """Drop the views of a save."""
        with self._lock:
            for who in [who for who in self._views if who.save == save]:
                self._drop(who)

    def _known(self, owner: OpenOwner, version: str) -> OwnerView | None:
        with self._lock:
            known = self._views.get(owner.who)
        if known is None or known[0] is not owner or known[2] != version:
            return None
        return known[1]

    def _keep(self, owner: OpenOwner, view: OwnerView, version: str) -> None:
        with self._lock:
            self._drop(owner.who)
            self._views[owner.who] = (owner, view, version)
            view.counted = len(view.entries)
            self._rows += view.counted
            while len(self._views) > 1 and self._over():
                self._drop(next(iter(self._views)))

    def _drop(self, who: ActorId) -> None:
        known = self._views.pop(who, None)
        if known is not None:
            self._rows -= known[1].counted

    def _over(self) -> bool:
        return len(self._views) > self._limits.max_cached_views or self._rows > self._limits.max_cached_rows
