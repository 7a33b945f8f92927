"""The ground: keys and paths, atomic JSON files, journals, locks, format migrations.

What lies here knows bytes and names, never what a memory means. Nothing outside of this room opens a file of the
data folder.
"""
