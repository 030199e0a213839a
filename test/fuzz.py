"""Feeds mutated models to a tool, which must answer with diagnostics.

A tool that dies by a signal, hangs, or says nothing about an input that it
refuses has a bug. Many mutants share one process (the tool splits its input at
lines of dashes); when that process dies, each of them runs alone, and the
culprits are printed.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

SEPARATOR = "// -----\n"
# MLIR 22.1's own parsers of these ops read an attribute that failed to parse.
KNOWN = re.compile(r"mlir::linalg::(TransposeOp|ReduceOp|BroadcastOp)::parse")
NUMBERS = ["0", "1", "-1", "2", "3", "7", "8", "64", "2147483648",
           "9223372036854775807", "-9223372036854775808",
           "99999999999999999999"]
WORDS = ["?", "{", "}", "[", "]", "<", ">", "(", ")", ",", ":", "=", "%x", "@m",
         '"a"', '""', '"tp"', "tensor<", "tensor<?xf32>", "tensor<*xf32>",
         "tuple<>", "memref<8xf32>", "i1", "bf16", "index", "p1", "sum", "max",
         "partial=sum", "replicated=", "#cleave.sharding", "->", "unit"]


def tokens(text):
    """Splits into words, numbers, strings, spaces and single characters."""
    result, current, kind = [], "", None
    for char in text:
        new = ("word" if char.isalpha() or char in "_." else
               "number" if char.isdigit() else
               "space" if char.isspace() else None)
        if new is None or new != kind:
            if current:
                result.append(current)
            current = ""
        current += char
        kind = new
    return result + [current]


DIM = re.compile(r'\{(?:"\w+"(?::\(\d+\)\d+)?(?:, )?)*\??\}')
SIZE = re.compile(r'"(\w+)"=\d+')


def recut(rng, text):
    """Other cuts and mesh sizes: most of these models are still legal."""
    axes = SIZE.findall(text) or ["a"]

    def dim(match):
        if rng.random() < 0.6:
            return match.group(0)
        axis = rng.choice(axes)
        return rng.choice(["{}", "{?}", f'{{"{axis}"}}', f'{{"{axis}", ?}}',
                           f'{{"{axis}":(1)2}}', f'{{"{axis}":(2)2, ?}}'])

    text = DIM.sub(dim, text)
    return SIZE.sub(lambda m: f'"{m.group(1)}"={rng.randrange(1, 9)}', text)


def mutate(rng, text, words):
    if rng.random() < 0.4:
        return recut(rng, text)
    parts = tokens(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(parts))
        numbers = [i for i, part in enumerate(parts) if part.isdigit()]
        action = rng.randrange(7)
        if action == 0:
            del parts[at]
        elif action == 1:
            parts.insert(at, rng.choice(words))
        elif action == 2:
            parts[at] = rng.choice(words)
        elif action == 3 and numbers:
            parts[rng.choice(numbers)] = rng.choice(NUMBERS)
        elif action == 4:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif action == 5:
            parts[at:at] = parts[at:at + rng.randrange(1, 12)]
        else:
            del parts[at:at + rng.randrange(1, 12)]
        if not parts:
            return "\n"
    return "".join(parts).replace("// ---", "// - -")


def seeds(folders):
    """Cases of all test files, without the comments that expect messages."""
    cases = []
    for folder in folders:
        path = pathlib.Path(folder)
        for file in sorted(path.rglob("*.mlir")) if path.is_dir() else [path]:
            for case in file.read_text().split(SEPARATOR):
                lines = [line for line in case.splitlines(keepends=True)
                         if not line.lstrip().startswith("//")]
                if any(line.strip() for line in lines):
                    cases.append("".join(lines))
    return cases


def run(tool, args, text, timeout):
    """The finished process, or None if it did not end in time."""
    try:
        return subprocess.run([tool, *args], input=text, text=True,
                              capture_output=True, timeout=timeout,
                              errors="replace")
    except subprocess.TimeoutExpired:
        return None


def problem_of(tool, args, mutant, timeout):
    """None if the tool behaved, else what it did."""
    done = run(tool, args, mutant, timeout)
    if done is None:
        return f"did not end within {timeout} s"
    if done.returncode < 0 and KNOWN.search(done.stderr):
        return None
    if done.returncode not in (0, 1):
        return f"ended with status {done.returncode}\n{done.stderr[-3000:]}"
    if done.returncode == 1 and "error:" not in done.stderr:
        return f"refused its input without a message\n{done.stderr[-3000:]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--args", default="--allow-unregistered-dialect",
                        help="options of the tool, separated by spaces")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=400)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--alone", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("inputs", nargs="+")
    options = parser.parse_args()

    rng = random.Random(options.seed)
    cases = seeds(options.inputs)
    words = WORDS + sorted({t for c in cases for t in tokens(c)})
    args = options.args.split()
    mutants = [mutate(rng, rng.choice(cases), words)
               for _ in range(options.mutants)]
    print(f"seed {options.seed}: {len(mutants)} mutants of {len(cases)} cases")
    failures = 0
    # The first ones run alone: together, a missing message isn't seen.
    suspects = mutants[:options.alone]
    for start in range(options.alone, len(mutants), options.batch):
        batch = mutants[start:start + options.batch]
        text = SEPARATOR.join(mutant.rstrip("\n") + "\n" for mutant in batch)
        together = run(options.tool, [*args, "-split-input-file"], text,
                       options.timeout)
        if together is None or together.returncode not in (0, 1):
            suspects += batch
    for mutant in suspects:
        problem = problem_of(options.tool, args, mutant, options.timeout)
        if problem:
            failures += 1
            print(f"the tool {problem}\non this input:\n{mutant}\n")
    print(f"{failures} of {len(mutants)} mutants broke the tool")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
