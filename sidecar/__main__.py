"""``python -m sidecar`` is the ``lorekeeper`` command."""

from sidecar.cli import main

main()
