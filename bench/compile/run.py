#!/usr/bin/env python3
"""Measures what compiling costs, phase by phase, against upstream.

  bench/compile/run.py [--layers 1,2,4,...] [--forms flat,called,loop]
                       [--meshes 8,64,512,4096] [--build-layers 80]
                       [--repeat N] [--json FILE]

For each number of layers, transformers written by gen.py are compiled in three
forms to the level after `comm`; the flat one also by mlir-opt-22 with upstream's
sharding-propagation and shard-partition, in turn with ours, so that both see
the same machine. Seconds are of the passes (user CPU time of the process beside
them), the least of N runs. Parsing and printing are not counted.
Then one layer on meshes of 8 to 4096 ranks, and whole builds (to an executable,
with an empty cache) of one and of 80 equal layers.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gen

ROOT = Path(__file__).resolve().parents[2]
PHASES = ["model", "propagate", "partition", "comm"]
OURS = [f"--cleave-{phase}-pipeline" for phase in PHASES]
UPSTREAM = (
    "builtin.module(func.func("
    "sharding-propagation{traversal=forward-backward},shard-partition))"
)
# The passes of each phase, as --mlir-timing names them.
PASSES = {
    "CheckModel": "model",
    "NameEdges": "model",
    "NormalizeModel": "model",
    "PropagateShardings": "propagate",
    "VerifyPlaced": "propagate",
    "PartitionTensors": "partition",
    "VerifyLocal": "partition",
    "ShareCollectives": "comm",
    "SimplifyComm": "comm",
    "DelayReductions": "comm",
    "HoistInvariants": "comm",
    "CombineCollectives": "comm",
    "VerifyComm": "comm",
    # Stands at the end of partition too; the report lists it once.
    "TidyProgram": "comm",
}
# What is no pass: read, written, or the sum of all.
# An analysis counts within its pass.
OUTSIDE = {
    "root",
    "Parser",
    "Output",
    "Total",
    "Rest",
    "DominanceInfo",
    "(anonymous namespace)::IsTidy",
    "IsTidy",
}
LINE = re.compile(r"^\s*(\d+\.\d+) \(\s*[\d.]+%\)\s+(?:\(A\) )?(.+?)\s*$")


def run_once(command):
    """The passes' seconds by name, and the process's user CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True)
    user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[:2000]}")
    passes = {}
    for line in done.stderr.splitlines():
        if (found := LINE.match(line)) and found[2] not in OUTSIDE:
            # A pipeline's line repeats its passes.
            if "Pipeline" in found[2] or found[2].startswith("'"):
                continue
            passes[found[2]] = passes.get(found[2], 0) + float(found[1])
    return passes, user


def least(runs):
    """The run with the least sum, so that its parts belong together."""
    passes, _ = min(runs, key=lambda run: sum(run[0].values()))
    return passes, min(user for _, user in runs)


class Bench:
    def __init__(self, options):
        self.o = options
        self.dir = tempfile.TemporaryDirectory()
        self.timing = [
            "--mlir-disable-threading",
            "--mlir-timing",
            "--mlir-timing-display=list",
            "-o",
            os.devnull,
        ]

    def write(self, **settings):
        options = gen.parser().parse_args([])
        for name, value in settings.items():
            setattr(options, name, value)
        name = "-".join(
            str(settings.get(k, "")) for k in ("form", "layers", "dialect")
        )
        ranks = "x".join(str(n) for _, n in settings["mesh"])
        path = Path(self.dir.name) / f"{name}-{ranks}.mlir"
        path.write_text(gen.generate(options))
        return str(path)

    def command(self, path, upstream=False):
        if upstream:
            return [self.o.upstream, path, f"--pass-pipeline={UPSTREAM}"] + self.timing
        return [self.o.cleave_opt, path] + OURS + self.timing

    def measure(self, commands):
        """Several commands in turn, so that all meet the same load."""
        runs = [[] for _ in commands]
        for _ in range(self.o.repeat):
            for to, command in zip(runs, commands):
                to.append(run_once(command))
        return [least(r) for r in runs]


def by_phase(passes):
    phases = dict.fromkeys(PHASES, 0.0)
    for name, seconds in passes.items():
        phase = PASSES.get(name)
        if phase is None:
            sys.exit(f"the pass {name} belongs to no phase; add it to PASSES")
        phases[phase] += seconds
    return phases


def row(label, passes, user):
    phases = by_phase(passes)
    cells = " ".join(f"{1000 * phases[p]:10.2f}" for p in PHASES)
    total = sum(phases.values())
    print(f"{label:18} {cells} {1000 * total:10.2f} {1000 * user:10.1f}", end="")
    return {"phases": phases, "total": total, "user": user, "passes": passes}


def header(title):
    print(f"\n{title}: milliseconds")
    names = " ".join(f"{p:>10}" for p in PHASES + ["sum", "user CPU"])
    print(f"{'':18} {names}")


def bench_layers(bench, results):
    header("By layers")
    for layers in bench.o.layers:
        commands, labels = [], []
        for form in bench.o.forms:
            settings = dict(layers=layers, form=form, mesh=[("dp", 2), ("tp", 4)])
            commands.append(bench.command(bench.write(**settings)))
            labels.append(form)
        settings = dict(layers=layers, mesh=[("dp", 2), ("tp", 4)], dialect="shard")
        commands.append(bench.command(bench.write(**settings), upstream=True))
        measured = bench.measure(commands)
        passes, user = measured.pop()
        theirs = sum(passes.values())
        for form, (ours, own) in zip(labels, measured):
            got = row(f"{form} x{layers}", ours, own)
            got["upstream"] = theirs
            ratio = got["total"] / theirs if theirs else float("nan")
            print(f"   {ratio:6.2f} x upstream" if form == "flat" else "")
            results.append({"form": form, "layers": layers, **got})
        parts = ", ".join(f"{n} {1000 * s:.2f}" for n, s in passes.items())
        print(
            f"{'upstream x' + str(layers):18} {'':43} "
            f"{1000 * theirs:10.2f} {1000 * user:10.1f}   {parts}"
        )


def bench_meshes(bench, results):
    header("By ranks, one layer")
    commands, sizes = [], bench.o.meshes
    for ranks in sizes:
        mesh = [("dp", ranks // 4), ("tp", 4)]
        batch = max(4, ranks // 4)
        commands.append(
            bench.command(bench.write(layers=1, form="flat", mesh=mesh, batch=batch))
        )
    for ranks, (passes, user) in zip(sizes, bench.measure(commands)):
        got = row(f"{ranks} ranks", passes, user)
        print()
        results.append({"ranks": ranks, **got})


def bench_builds(bench, results):
    """The user CPU seconds of `cleave build`, the least of the runs."""
    cleave = str(Path(bench.o.cleave_opt).parent / "cleave")
    out = str(Path(bench.dir.name) / "out")
    print("\nWhole builds: user CPU seconds")
    for form in ("called", "loop"):
        for layers in (1, bench.o.build_layers):
            path = bench.write(layers=layers, form=form, mesh=[("dp", 2), ("tp", 4)])
            seconds = []
            for _ in range(bench.o.repeat):
                with tempfile.TemporaryDirectory() as cache:
                    os.environ["CLEAVE_CACHE_DIR"] = cache
                    seconds.append(run_once([cleave, "build", path, "-o", out])[1])
            print(f"{form + ' x' + str(layers):18} {min(seconds):10.2f}")
            results.append({"form": form, "layers": layers, "user": min(seconds)})


def growth(rows, key, limit, what):
    """The last row against the first, per unit where `key` says so."""
    if len(rows) < 2:
        return True
    first = rows[0]
    worst = max(r[key] for r in rows)
    ratio = worst / first[key] if first[key] else float("nan")
    ok = ratio <= limit
    print(f"{'ok ' if ok else 'NO '} {what}: {ratio:.2f} (at most {limit})")
    return ok


def summary(layer_rows, mesh_rows, build_rows):
    print()
    ok = True
    flat = [r for r in layer_rows if r["form"] == "flat"]
    for r in flat:
        ratio = r["total"] / r["upstream"]
        good = ratio <= 1
        ok &= good
        print(
            f"{'ok ' if good else 'NO '} ours / upstream, {r['layers']} layers: "
            f"{ratio:.2f} (at most 1)"
        )
    # One layer pays what is not the layers'; the last rows say how cost grows.
    for r in flat:
        r["per_layer"] = r["total"] / r["layers"]
    ok &= growth(flat[-4:], "per_layer", 1.25, "flat, a layer's cost as L grows")
    for phase in PHASES:
        for r in flat:
            r[phase] = r["phases"][phase] / r["layers"]
        growth(flat[-4:], phase, 1.25, f"  {phase}")
    for form in ("called", "loop"):
        rows = [r for r in layer_rows if r["form"] == form]
        limit = 1.1 if form == "loop" else 1.5
        ok &= growth(rows, "total", limit, f"{form}, cost as L grows")
    ok &= growth(mesh_rows, "total", 1.1, "cost as the mesh grows")
    for form in ("called", "loop"):
        rows = [r for r in build_rows if r["form"] == form]
        ok &= growth(rows, "user", 1.5, f"{form}, whole build as L grows")
    return ok


def numbers(text):
    return [int(n) for n in text.split(",")]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--layers", type=numbers, default="1,2,4,8,16,32,64,128")
    p.add_argument(
        "--forms", type=lambda t: t.split(","), default="flat,called,loop"
    )
    p.add_argument("--meshes", type=numbers, default="8,64,512,4096")
    p.add_argument("--build-layers", type=int, default=80, help="0: no builds")
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--json", help="write all numbers to this file")
    p.add_argument(
        "--cleave-opt", default=str(ROOT / "build" / "bin" / "cleave-opt")
    )
    p.add_argument("--upstream", default="mlir-opt-22")
    options = p.parse_args()
    for tool in (options.cleave_opt, options.upstream):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing; build it, or name another one")
    bench = Bench(options)
    layer_rows, mesh_rows, build_rows = [], [], []
    bench_layers(bench, layer_rows)
    bench_meshes(bench, mesh_rows)
    if options.build_layers:
        bench_builds(bench, build_rows)
    ok = summary(layer_rows, mesh_rows, build_rows)
    if options.json:
        Path(options.json).write_text(
            json.dumps(
                {"layers": layer_rows, "meshes": mesh_rows, "builds": build_rows},
                indent=1,
            )
        )
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
