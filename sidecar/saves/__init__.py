"""Memory that follows the player's save: checkpoint, restore, fork, export, import, erase.

This room handles the files of a save's folder and never asks what a memory means. What keeps something of a save in
its own memory or outside of that folder is a :class:`~sidecar.saves.parts.SavePart`. Nothing here embeds anything.
"""
