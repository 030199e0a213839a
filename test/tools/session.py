"""Runs the commands of a file, one a line, and shows what they say.

  session.py FILE

A line is "STATUS COMMAND ..."; the commands run in the file's folder. Shown on
stdout are the line and what the command writes to stderr. Fails if a command
exits with another status, or fails and still writes to stdout: a script could
take that for a result.
"""

import shlex
import subprocess
import sys
from pathlib import Path

wrong = []
for line in Path(sys.argv[1]).read_text().splitlines():
    if not line.strip():
        continue
    status, *command = shlex.split(line)
    done = subprocess.run(
        command,
        cwd=Path(sys.argv[1]).parent,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    print(f"$ {line}\n{done.stderr}", flush=True)
    if done.returncode != int(status):
        wrong.append(f"'{line}' exited with {done.returncode}")
    if done.returncode and done.stdout:
        wrong.append(f"'{line}' failed and wrote {done.stdout[:200]!r}")
sys.exit("\n".join(wrong) or 0)
