"""What is answered on the event loop comes from memory: the disk may stand still for somebody at that moment."""

from __future__ import annotations

import pytest
from record_samples import house_on, owner, record

from sidecar.memory.record_filter import RecordFilter
from sidecar.search.at_hand import AtHand, NotAtHand, is_quick
from sidecar.search.options import Options
from sidecar.search.recall import Query
from sidecar.search.rerank import RerankOptions


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


@pytest.mark.parametrize(("weight", "quick"), [(1_000_000, True), (0, False)])
def test_a_search_that_puts_all_it_finds_in_order_one_by_one_is_not_answered_at_once(weight, quick):
    options = Options(order=RerankOptions(source_order_weight=weight))
    assert is_quick(Query(owner(), [owner()], "wolf", RecordFilter(), 10, options=options)) is quick
