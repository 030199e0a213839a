#!/usr/bin/env python3
"""Compares how two ranks get their halves of a weight with what Python does.

Each case is a program of one weight, cut by rows or by columns. Measured is
what the slower rank takes from the opened files to weights that are ready to be
read: for ours what --verbose reports, for the peers the same in two processes
at a time, without the start of Python. What is used where it lies in a file is
read later: the time with the first call counts that, though a lookup reads one
row only. All files are in the page cache; rounds
alternate, and the best time counts.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

RANKS = 2

LOOKUP = """
#id = affine_map<(i, j) -> (i)>
#out = affine_map<(i, j) -> (i, j)>
cleave.mesh @m = <["tp"={ranks}]>
func.func @forward(
    %ids: tensor<1xi32> loc("x"),
    %w: tensor<{n}x{n}xf32> {{cleave.weight = "w",
      cleave.sharding = #cleave.sharding<@m, [{cut}]>}})
    -> tensor<1x{n}xf32> {{
  %e = tensor.empty() : tensor<1x{n}xf32>
  %r = linalg.generic {{indexing_maps = [#id, #out],
      iterator_types = ["parallel", "parallel"]}}
    ins(%ids : tensor<1xi32>) outs(%e : tensor<1x{n}xf32>) {{
  ^bb0(%id: i32, %old: f32):
    %row = arith.index_cast %id : i32 to index
    %col = linalg.index 1 : index
    %v = tensor.extract %w[%row, %col] : tensor<{n}x{n}xf32>
    linalg.yield %v : f32
  }} -> tensor<1x{n}xf32>
  return %r : tensor<1x{n}xf32>
}}
"""
PRODUCT = """
cleave.mesh @m = <["tp"={ranks}]>
func.func @forward(
    %x: tensor<1x{n}xf32> loc("x"),
    %w: tensor<{n}x{n}xf32> {{cleave.weight = "w",
      cleave.sharding = #cleave.sharding<@m, [{cut}]>}})
    -> tensor<1x{n}xf32> {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x{n}xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x{n}xf32>)
    -> tensor<1x{n}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x{n}xf32>, tensor<{n}x{n}xf32>)
    outs(%i : tensor<1x{n}xf32>) -> tensor<1x{n}xf32>
  return %y : tensor<1x{n}xf32>
}}
"""
ROWS, COLUMNS = '{"tp"}, {}', '{}, {"tp"}'


# ---------------------------------------------------------------------------
# Peers: one rank's half, as an array that owns its memory
# ---------------------------------------------------------------------------

def part(by, rank, n):
    half = slice(rank * n // RANKS, (rank + 1) * n // RANKS)
    return (half, slice(None)) if by == "rows" else (slice(None), half)


def peer_slice(path, cut, n):
    """safetensors' own way to read a part."""
    with safe_open(path, framework="numpy") as file:
        return file.get_slice("w")[cut]


def peer_whole(path, cut, n):
    """Reads the whole file, then cuts."""
    return load_file(path)["w"][cut]


def peer_mapped(path, cut, n):
    """numpy over a mapped file: the best that Python can do."""
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
    item = (os.path.getsize(path) - start) // n ** 2
    array = np.memmap(path, {2: np.float16, 4: np.float32}[item], "r", start,
                      (n, n))
    return array[cut]


PEERS = {"slice": peer_slice, "whole": peer_whole, "numpy": peer_mapped}


def serve_peer(name, path, by, rank, n):
    """In a process of its own: waits for a line, so that both start at once. The
    result is f32, and the other way round where the file has it transposed.
    """
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    turned = by == "turned"
    cut = part("rows" if turned else by, int(rank), int(n))
    got = PEERS[name](path, cut, int(n))
    got = np.array(got.T if turned else got, np.float32, order="C")
    seconds = time.perf_counter() - start
    assert got.shape[0] * got.shape[1] * RANKS == int(n) ** 2
    print(seconds, flush=True)


def measure_peer(name, path, by, n):
    ranks = [subprocess.Popen(
        [sys.executable, __file__, "--peer", name, path, by, str(rank), str(n)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for rank in range(RANKS)]
    for rank in ranks:
        rank.stdout.readline()
    for rank in ranks:
        rank.stdin.write("go\n")
        rank.stdin.flush()
    seconds = max(float(rank.stdout.readline()) for rank in ranks)
    assert all(rank.wait() == 0 for rank in ranks)
    return seconds


# ---------------------------------------------------------------------------
# Ours
# ---------------------------------------------------------------------------

def build(cleave, folder, name, text, n, cut):
    model = os.path.join(folder, name + ".mlir")
    with open(model, "w") as file:
        file.write(text.format(ranks=RANKS, n=n, cut=cut))
    program = os.path.join(folder, name)
    subprocess.check_call([cleave, "build", model, "-o", program])
    return program


def measure_ours(program, x, arguments):
    done = subprocess.run([program, "--verbose", "--input", "x=" + x,
                           *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {program} ended with {done.returncode}: "
                 + done.stderr)
    slowest = [max(float(s) for s in re.findall(pattern, done.stderr))
               for pattern in (r"more in place, in ([\d.]+) s",
                               r"call 0 took ([\d.]+) s")]
    return slowest[0], sum(slowest)


def prepare(cleave, folder, n):
    """The files and programs. Returns the cases: a name, our command, and the
    file and cut of the peers.
    """
    os.makedirs(folder)
    path = lambda name: os.path.join(folder, name)
    w = np.random.default_rng(0).standard_normal((n, n), np.float32)
    np.save(path("ids.npy"), np.zeros(1, np.int32))
    np.save(path("row.npy"), np.ones((1, n), np.float32))
    save_file({"w": w}, path("w.safetensors"))
    save_file({"w": w.astype(np.float16)}, path("half.safetensors"))
    save_file({"w": np.ascontiguousarray(w.T)}, path("t.safetensors"))
    with open(path("map.json"), "w") as file:
        json.dump({"weights": {"w": {"from": "w", "dims": "a b -> b a"}}}, file)
    rows = build(cleave, folder, "rows", LOOKUP, n, ROWS)
    columns = build(cleave, folder, "columns", LOOKUP, n, COLUMNS)
    product = build(cleave, folder, "product", PRODUCT, n, COLUMNS)
    weights = ["--weights", path("w.safetensors")]
    turned = ["--weights", path("t.safetensors"), "--weights-map",
              path("map.json")]
    packs = path("packs")
    subprocess.check_call([product, "--pack", packs, *weights])
    ids, row = path("ids.npy"), path("row.npy")
    file = path("w.safetensors")
    return [
        ("rows in place", (rows, ids, weights), (file, "rows")),
        ("rows, f16 to f32",
         (rows, ids, ["--weights", path("half.safetensors")]),
         (path("half.safetensors"), "rows")),
        ("columns", (columns, ids, weights), (file, "columns")),
        ("columns, stored transposed", (columns, ids, turned),
         (path("t.safetensors"), "turned")),
        ("columns, packed for products", (product, row, weights),
         (file, "columns")),
        ("a pack", (product, row, ["--packed", packs]), (file, "columns"))]


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--peer":
        return serve_peer(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cleave", required=True)
    parser.add_argument("--folder", required=True,
                        help="for files of 1 GB, which are removed at the end")
    parser.add_argument("--size", type=int, default=8192,
                        help="rows and columns of the weight")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", default="weights.json")
    options = parser.parse_args()
    n = options.size
    try:
        measure(options, n)
    finally:
        shutil.rmtree(options.folder)


def measure(options, n):
    cases = prepare(options.cleave, options.folder, n)
    ours, called, peers = {}, {}, {}
    for _ in range(options.rounds):
        for name, command, theirs in cases:
            load, both = measure_ours(*command)
            ours[name] = min(load, ours.get(name, 1e9))
            called[name] = min(both, called.get(name, 1e9))
            for peer in PEERS:
                key = (peer, *theirs)
                peers[key] = min(measure_peer(peer, *theirs, n),
                                 peers.get(key, 1e9))
    print(f"a weight of {n}x{n} f32 over {RANKS} ranks; ours in milliseconds, "
          "and the peer's time / ours")
    print("| what a rank gets | ours | with the first call | numpy, mapped | "
          "safetensors, sliced | safetensors, whole |")
    print("|---|---|---|---|---|---|")
    table = []
    for name, _, theirs in cases:
        ratios = {peer: peers[(peer, *theirs)] / ours[name] for peer in PEERS}
        table.append({"case": name, "seconds": ours[name],
                      "seconds_with_call": called[name], "ratios": ratios})
        print(f"| {name} | {ours[name] * 1e3:.3g} | {called[name] * 1e3:.3g} | "
              + " | ".join(f"{ratios[peer]:.3g}x"
                           for peer in ("numpy", "slice", "whole")) + " |")
    with open(options.json, "w") as file:
        json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
