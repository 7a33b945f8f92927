"""What is answered on the event loop comes from memory: the disk may stand still for somebody at that moment."""

from __future__ import annotations

import pytest
from record_samples import house_on, owner, record

from sidecar.search.at_hand import AtHand, NotAtHand


def test_an_owner_whose_records_would_have_to_be_read_is_not_at_hand(tmp_path):
    house = house_on(tmp_path)
    house.store.add("session", [(owner(), record("one", "wolf"))])
    house = house.again()
    at_hand = AtHand(house.store, house.groups, house.saves, house.views)
    with house.store.opened(owner()), pytest.raises(NotAtHand), at_hand.opened(owner()):
        pass
    with house.store.opened(owner()) as opened:
        house.views.of(opened)
    with at_hand.opened(owner()) as opened:
        assert opened.who == owner()
    house.close()
