"""What the built program runs."""

from sidecar.cli import main

main()
