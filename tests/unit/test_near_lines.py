"""The lines that a failed edit tells, so that the next try can be right."""

from __future__ import annotations

from sidecar.memory.nearest import MAX_NEAREST, NearLine, nearest_lines


def test_the_nearest_line_comes_first_with_its_number():
    text = "The smith is called Bran.\n\nThe inn is called The Owl.\nRain."
    assert nearest_lines(text, "The inn is called the Owl")[0] == NearLine(3, "The inn is called The Owl.")


def test_nothing_alike_gives_nothing():
    assert nearest_lines("alpha\nbeta", "Ωμέγα 1234567") == []


def test_at_most_three_lines_are_told_the_earlier_first_among_equals():
    near = nearest_lines("\n".join(["same line"] * 10), "same lime")
    assert [line.number for line in near] == [1, 2, 3]
    assert len(near) == MAX_NEAREST


def test_a_text_of_several_lines_is_looked_for_by_its_first_line_with_text():
    assert nearest_lines("alpha line\nbeta line", "\n  \nbeta lime\nmore")[0].number == 2


def test_a_long_line_is_cut_and_says_by_how_much():
    near = nearest_lines("x" * 500, "x" * 499)
    assert near == [NearLine(1, "x" * 200 + "…[+300 chars]")]


def test_an_empty_document_has_no_near_lines():
    assert nearest_lines("", "anything") == []
