"""Runs a command and fails unless it exits with the status that is wanted.

  exits.py STATUS COMMAND ...

What the command writes goes on to stdout and stderr.
"""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
got = subprocess.run(command).returncode
if got != wanted:
    sys.exit(f"{' '.join(command)} exited with {got}, expected {wanted}")
