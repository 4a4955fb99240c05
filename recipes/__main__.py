"""`python -m redraft.recipes` is the command `redraft`."""

from redraft.recipes.cli import main

main()
