"""Feeds mutated models to a tool, which must answer with diagnostics.

A tool that dies by a signal, hangs, or says nothing about an input that it
refuses has a bug. Many mutants share one process (the tool splits its input at
lines of dashes); when that process dies, each mutant runs alone, and the
culprit is printed.
"""

import argparse
import pathlib
import random
import subprocess
import sys

SEPARATOR = "// -----\n"
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


def mutate(rng, text, words):
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
    """None if the tool behaved, else what it did."""
    try:
        done = subprocess.run([tool, *args], input=text, text=True,
                              capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"did not end within {timeout} s"
    if done.returncode < 0 or done.returncode > 1:
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
    for start in range(0, len(mutants), options.batch):
        batch = mutants[start:start + options.batch]
        text = SEPARATOR.join(mutant.rstrip("\n") + "\n" for mutant in batch)
        if not run(options.tool, [*args, "-split-input-file"], text,
                   options.timeout):
            continue
        for mutant in batch:
            problem = run(options.tool, args, mutant, options.timeout)
            if problem:
                failures += 1
                print(f"the tool {problem}\non this input:\n{mutant}\n")
    print(f"{failures} of {len(mutants)} mutants broke the tool")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
