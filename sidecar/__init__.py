"""Lorekeeper: an explicit, searchable, versioned memory for the NPCs of a game."""

__version__ = "0.1.0"
