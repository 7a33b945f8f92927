"""Each save has its own languages, side by side in one daemon: they decide on endings and on words that say nothing."""

from __future__ import annotations

import pytest
from client import failure
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2

# language: a text, a word of it in another form, and a word of it that says nothing
TEXTS = {
    "en": ("The wolves were geese once.", "goose", "the"),
    "de": ("Zwei Häuser stehen und brennen.", "Haus", "und"),
    "tr": ("Eski evler ve bir kale.", "ev", "ve"),
    "ru": ("Он встретил волков и людей.", "волк", "и"),
}


class Save:
    """A save of one language with a record of each text."""

    def __init__(self, daemon, name, *languages):
        self.client, self.name = daemon.client, name
        self.records = Records(daemon.client, common_pb2.Actor(save_id=name, actor_id="mira"))
        if languages:
            self.put(*languages)

    def put(self, *languages):
        settings = save_pb2.SaveSettings(languages=languages)
        request = save_pb2.PutSaveSettingsRequest(save_id=self.name, settings=settings)
        return self.client.saves.PutSaveSettings(request).effective

    def filled(self):
        self.records.add(*(m(language, text, payload_json="{}") for language, (text, _, _) in TEXTS.items()))
        return self

    def finds(self, language):
        """Whether another form of a word is found, and a word that says nothing is not."""
        _, form, nothing = TEXTS[language]
        return self.records.found(form) == [language] and self.records.found(nothing) == []

    @property
    def version(self):
        return self.records.status().tokenizer_version


def test_saves_of_several_languages_live_side_by_side(shared_daemon):
    saves = {language: Save(shared_daemon, f"side {language}", language).filled() for language in TEXTS}
    for language, save in saves.items():
        assert save.finds(language)
    assert not saves["en"].finds("de")
    assert not saves["de"].finds("tr")
    assert not saves["tr"].finds("en")
    assert len({save.version for save in saves.values()}) == 3  # a save in English knows Russian endings


def test_a_save_may_have_a_language_for_each_script(shared_daemon):
    save = Save(shared_daemon, "two scripts", "de", "ru").filled()
    assert save.finds("de")
    assert save.finds("ru")


def test_of_two_languages_of_one_script_the_first_holds(shared_daemon):
    first, second = (
        Save(shared_daemon, "first", "de", "tr").filled(),
        Save(shared_daemon, "second", "tr", "de").filled(),
    )
    assert (first.finds("de"), first.finds("tr")) == (True, False)
    assert (second.finds("de"), second.finds("tr")) == (False, True)


def test_another_language_holds_at_once_for_old_and_new_records(shared_daemon):
    save = Save(shared_daemon, "changed", "en").filled()
    assert not save.finds("de")
    save.put("de")
    assert save.finds("de")
    save.records.add(m("later", "Kleine Häuser."))
    assert save.records.found("Haus") == ["later", "de"]
    save.put("en")
    assert save.records.found("Haus") == []
    assert save.finds("en")


def test_another_language_builds_the_terms_again(shared_daemon):
    save = Save(shared_daemon, "rebuilt", "en")
    save.records.add(*(m(f"m{n}", f"Zwei Häuser und {n}.", payload_json="{}") for n in range(100)))
    save.records.rebuild()
    before = save.version
    save.put("de")
    (*_, done) = save.records.rebuild()
    status = save.records.status()
    assert (status.total, status.terms_ready, done.failed, status.damaged) == (100, 100, 0, 0)
    assert status.tokenizer_version != before
    assert len(save.records.found("Haus", limit=100)) == 100


def test_other_settings_leave_the_terms_alone(shared_daemon):
    save = Save(shared_daemon, "alone", "de").filled()
    save.records.rebuild()
    settings = save_pb2.SaveSettings(languages=["de"], name="The long road")
    shared_daemon.client.saves.PutSaveSettings(save_pb2.PutSaveSettingsRequest(save_id=save.name, settings=settings))
    (*_, done) = save.records.rebuild()
    assert done.skipped == done.total == len(TEXTS)


def test_the_language_of_a_save_outlives_stop_and_kill(daemon):
    german, english = Save(daemon, "german", "de").filled(), Save(daemon, "english").filled()
    german.records.rebuild()
    assert german.finds("de")
    for end in (daemon.stop, daemon.kill):
        end()
        daemon.start()
        german, english = Save(daemon, "german"), Save(daemon, "english")
        assert german.finds("de")
        assert not german.finds("tr")
        assert english.finds("en")


def test_a_language_that_was_put_just_before_a_kill_holds_after_it(daemon):
    save = Save(daemon, "slot", "en").filled()
    save.records.rebuild()
    save.put("tr")
    daemon.kill()
    daemon.start()
    save = Save(daemon, "slot")
    assert save.finds("tr")
    assert not save.finds("en")


def test_a_restore_brings_the_language_of_its_time_back(shared_daemon):
    save, saves = Save(shared_daemon, "restored", "de").filled(), shared_daemon.client.saves
    made = saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save.name)).checkpoint
    save.put("tr")
    assert save.finds("tr")
    saves.RestoreCheckpoint(save_pb2.RestoreCheckpointRequest(save_id=save.name, checkpoint_id=made.checkpoint_id))
    assert save.finds("de")
    assert not save.finds("tr")


def test_a_fork_has_the_language_of_its_save(shared_daemon):
    save = Save(shared_daemon, "forked", "de").filled()
    shared_daemon.client.saves.ForkSave(save_pb2.ForkSaveRequest(save_id=save.name, new_save_id="its fork"))
    assert Save(shared_daemon, "its fork").finds("de")


def test_a_save_that_names_no_language_has_that_of_the_daemon(start_daemon):
    daemon = start_daemon("--set", "search.language=german")
    save = Save(daemon, "slot").filled()
    assert save.finds("de")
    assert list(save.put().languages) == ["de"]
    assert list(save.put("en").languages) == ["en"]
    assert save.finds("en")


@pytest.mark.parametrize("code", ["xx", "EN", "german"])
def test_a_language_that_nobody_knows_is_refused(shared_daemon, code):
    error = failure(lambda: Save(shared_daemon, "refused").put("en", code))
    assert error.kind == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert error.fields == ("settings.languages[1]",)


def test_a_save_whose_settings_are_damaged_still_remembers(daemon):
    save = Save(daemon, "slot", "de").filled()
    daemon.stop()
    (file,) = daemon.folder.rglob("settings.json")
    file.write_bytes(b"{broken")
    daemon.start()
    save = Save(daemon, "slot")
    save.records.add(m("new", "Wolves."))
    assert save.records.listed(filter=memory_pb2.RecordFilter()) == ["de", "en", "new", "ru", "tr"]
    assert failure(lambda: save.records.found("wolf")).kind == ("DATA_LOSS", "STORAGE_CORRUPT")


def test_a_retry_hears_the_language_that_the_daemon_has(start_daemon):
    daemon = start_daemon("--set", "search.language=german")
    request = save_pb2.PutSaveSettingsRequest(
        save_id="slot", settings=save_pb2.SaveSettings(name="Slot"), idempotency_key="k"
    )
    first, again = daemon.client.saves.PutSaveSettings(request), daemon.client.saves.PutSaveSettings(request)
    assert list(first.effective.languages) == ["de"]
    assert again == first
