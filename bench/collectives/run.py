#!/usr/bin/env python3
"""Compares the local collectives with OpenMPI's on the same ranks.

Runs both programs in turn, several times, keeps the best time of each case,
prints a table of ratios (OpenMPI's time over ours) and writes JSON.
"""

import argparse
import json
import os
import platform
import subprocess
import sys


def measure(command, times):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    result = subprocess.run(command, env=environment, text=True,
                            stdout=subprocess.PIPE)
    if result.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {result.returncode}")
    for line in result.stdout.splitlines():
        kind, dtype, ranks, size, seconds = line.split()
        key = (kind, dtype, int(ranks), int(size))
        times[key] = min(float(seconds), times.get(key, float("inf")))


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def cpu_name():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", default="collectives.json")
    parser.add_argument("--prefix", default="",
                        help="put before both commands, for example 'chrt -r "
                             "50' where other programs run too")
    options, rest = parser.parse_known_args()
    prefix = options.prefix.split()
    ours, theirs = {}, {}
    for ranks in options.ranks.split(","):
        for _ in range(options.rounds):
            measure(prefix + [f"{options.bin}/bench_collectives_local", ranks]
                    + rest,
                    ours)
            measure(prefix + ["mpirun", "-n", ranks, "--oversubscribe",
                     f"{options.bin}/bench_collectives_mpi"] + rest, theirs)
    rows = [{"kind": k[0], "dtype": k[1], "ranks": k[2], "bytes": k[3],
             "seconds": ours[k], "openmpi_seconds": theirs[k],
             "ratio": theirs[k] / ours[k]} for k in ours]
    sizes = sorted({row["bytes"] for row in rows})
    print(f"{cpu_name()}, {os.cpu_count()} CPUs; OpenMPI's time / ours "
          "(above 1: ours is faster), ours in microseconds")
    print("| collective | type | ranks | "
          + " | ".join(size_text(s) for s in sizes) + " |")
    print("|---|---|---|" + "---|" * len(sizes))
    cases = list(dict.fromkeys((r["kind"], r["dtype"], r["ranks"])
                               for r in rows))
    for case in cases:
        cells = [f"{r['ratio']:.1f}x ({r['seconds'] * 1e6:.3g})" for r in rows
                 if (r["kind"], r["dtype"], r["ranks"]) == case]
        print(f"| {case[0]} | {case[1]} | {case[2]} | " + " | ".join(cells)
              + " |")
    slowest = min(rows, key=lambda row: row["ratio"])
    print(f"lowest ratio: {slowest['ratio']:.2f} ({slowest['kind']} "
          f"{slowest['dtype']}, {slowest['ranks']} ranks, "
          f"{size_text(slowest['bytes'])})")
    with open(options.json, "w") as file:
        json.dump({"cpu": cpu_name(), "cpus": os.cpu_count(), "rows": rows},
                  file, indent=1)


if __name__ == "__main__":
    main()
