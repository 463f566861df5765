"""`python -m playground`: the command line."""

from __future__ import annotations

from playground.cli.main import main

if __name__ == "__main__":
    main()
