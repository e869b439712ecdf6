"""`python -m icetree` is the command line."""

from icetree.cli.main import main

if __name__ == "__main__":
    main()
