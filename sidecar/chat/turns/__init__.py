"""Turns: the player says a line, a model answers, tools run in between, and everything is remembered.

    Send, Converse ──> Turn ──> prompt ──> backend ──> reasoning and text calls filtered ──> events to the game
                         │                    │
                         └── history <── ToolLoop <── calls

Rules are plain and tested alone; what waits for a model, a game or a disk is in ``turn.py`` and ``conversation.py``.
"""
