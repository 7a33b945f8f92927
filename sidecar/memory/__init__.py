"""What an actor knows explicitly: its document with the versions and the tool that a model edits it with; its records,
the groups that share them, and how long they are kept.
"""
