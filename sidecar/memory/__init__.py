"""What an actor knows explicitly: its document, the document's versions, and the tool that a model edits it with."""
