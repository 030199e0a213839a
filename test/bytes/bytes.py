"""Compares what a plan moves with the table at the head of a model.

  cleave plan MODEL --json | bytes.py MODEL

Lines of the table, anywhere in the model's comments:

  // MOVES: @entry KIND AXES WIRE_BYTES [xCOUNT]   exactly these, in any order
  // MOVES: @entry nothing
  // AT MOST: @entry WIRE_BYTES                    all of the entry together

Each public function of MODEL has its lines (a file without functions is a
table alone); each collective of an entry with MOVES is in the table. Axes are
joined by commas. Local slices move nothing.
"""

import json
import re
import sys
from collections import defaultdict


def read_table(path):
    exact, limits, entries = defaultdict(list), {}, []
    for line in open(path):
        if found := re.match(r"\s*// MOVES: @(\w+) (.+)", line):
            words = found[2].split()
            count = int(words.pop()[1:]) if words[-1][0] == "x" else 1
            wanted = exact[found[1]]
            if words != ["nothing"]:
                wanted += [" ".join(words)] * count
        elif found := re.match(r"\s*// AT MOST: @(\w+) (\d+)", line):
            limits[found[1]] = int(found[2])
        elif found := re.match(r"\s*func\.func @(\w+)", line):
            entries.append(found[1])
    return exact, limits, entries


def main():
    exact, limits, entries = read_table(sys.argv[1])
    got = defaultdict(list)
    total = defaultdict(int)
    for c in json.load(sys.stdin)["collectives"]:
        if c["kind"] == "slice":
            continue
        line = f"{c['kind']} {','.join(c['axes'])} {c['wire_bytes']}"
        got[c["entry"]] += [line] * c["count"]
        total[c["entry"]] += c["wire_bytes"] * c["count"]
    wrong = []
    for entry in set(entries) - exact.keys() - limits.keys():
        wrong.append(f"@{entry} has no line in the table")
    for entry in (exact.keys() | limits.keys()) - set(entries):
        if entries:
            wrong.append(f"the table names @{entry}, which is no entry")
    for entry, lines in exact.items():
        if sorted(lines) != sorted(got[entry]):
            wrong.append(f"@{entry} moves {sorted(got[entry]) or 'nothing'}, "
                         f"expected {sorted(lines) or 'nothing'}")
    for entry, limit in limits.items():
        if total[entry] > limit:
            wrong.append(f"@{entry} moves {total[entry]} bytes, allowed are "
                         f"{limit}: {sorted(got[entry])}")
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()
