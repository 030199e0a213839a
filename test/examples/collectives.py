"""Compares the collectives of a plan with what a test expects.

Reads `cleave plan --json` from stdin. Each argument is "KIND AXES WIRE_BYTES",
or "KIND AXES WIRE_BYTES xCOUNT"; axes are joined by commas. Order is free.
Local slices move nothing and are not listed.
"""

import json
import sys

plan = json.load(sys.stdin)
got = []
for collective in plan["collectives"]:
    if collective["kind"] == "slice":
        continue
    axes = ",".join(collective["axes"])
    line = f"{collective['kind']} {axes} {collective['wire_bytes']}"
    got += [line] * collective["count"]
expected = []
for argument in sys.argv[1:]:
    words = argument.split()
    count = int(words.pop()[1:]) if len(words) == 4 else 1
    expected += [" ".join(words)] * count
if sorted(got) != sorted(expected):
    print("expected:", *(sorted(expected) or ["nothing"]), sep="\n  ")
    print("got:", *(sorted(got) or ["nothing"]), sep="\n  ")
    sys.exit(1)
