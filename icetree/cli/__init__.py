"""The command line: a thin face. Command modules import little; what a command needs, it imports when run."""
