"""Compaction: keeping a long conversation within a token budget, with nothing lost in silence.

It must never drop a message that no summary holds, never cut without saying so as a ``Cut``, and never show the
fold marker to a model.
"""
