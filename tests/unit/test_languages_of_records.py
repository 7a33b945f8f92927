"""Records are found in every script, in the form in which somebody types their words."""

import pytest
from record_samples import House, owner, record

from sidecar.memory.record_filter import RecordFilter
from sidecar.search.recall import Query
from sidecar.settings import SearchSettings
from sidecar.storage.session_disk import SessionDisk

NPC = owner("npc")
OTHERS = [
    "the bear sleeps",
    "市场里的铁矿价格上涨",
    "魚市場で買い物",
    "시장에서 물건을 샀다",
    "рынок закрыт",
    "pazar kapalı",
]


def found(tmp_path, text: str, query: str, language: str = "english") -> bool:
    house = House(SessionDisk(tmp_path), search_limits=SearchSettings(language=language))
    texts = [text, *(other for other in OTHERS if other != text)]
    house.store.add("session", [(NPC, record(f"m{n}", one)) for n, one in enumerate(texts)])
    hits = house.recall.run(Query(NPC, [NPC], query, RecordFilter(), 3)).hits
    return bool(hits) and hits[0].stored.entry.head.record_id == "m0"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("一只小猫正在看门", "小猫"),
        ("一只小猫正在看门", "猫"),
        ("用户喜欢苹果", "用户"),
        ("設備が壊れた", "設備"),
        ("重跑gen-itgc后完成", "itgc"),
        ("サンドボックスで遊ぶ", "サンドボックス"),
        ("ｻﾝﾄﾞﾎﾞｯｸｽで遊ぶ", "サンドボックス"),
        ("猫が門を見ている", "門"),
        ("마을을 지키는 늑대", "마을"),
        ("마을을 지키는 늑대", "늑대가"),
        ("หมู่บ้านอยู่ริมน้ำ", "หมู่บ้าน"),
        ("волки напали ночью", "волк"),
        ("Сергей спас волка", "СЕРГЕЙ"),
        ("Müller grüßte den Wolf", "müller"),
        ("Müller grüßte den Wolf", "muller"),
        ("Müller grüßte den Wolf", "Mu\u0308ller"),
        ("Mu\u0308ller hello", "Müller"),
        ("the ＡＰＰＬＥ tree", "apple"),
        ("a db backup", "db"),
        ("the party was fun 🎉🐺", "🐺"),
        ("she waved 👋🏽", "👋"),
        ("𠮷野家で食べた", "𠮷野"),
    ],
)
def test_a_word_of_any_script_is_found(tmp_path, text, query):
    assert found(tmp_path, text, query)


@pytest.mark.parametrize(
    ("text", "query"), [("İstanbul güzel", "istanbul"), ("IŞIK söndü", "ışık"), ("kapıyı açtı", "kapı")]
)
def test_turkish_knows_its_two_letters_i(tmp_path, text, query):
    assert found(tmp_path, text, query, language="tr")


def test_words_that_mean_something_else_are_not_found(tmp_path):
    assert not found(tmp_path, "the wolf", "Сергей")
    assert not found(tmp_path, "一只小猫", "狗")
