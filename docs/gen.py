"""Fills the pages of docs/ from test files and from what the tools print.

    docs/gen.py [--build BUILD] [--check] [--skip REGEX]

A page says what belongs somewhere, and this program writes it below:

    <!-- {{example FILE#NAME}} -->    the lines of FILE between `// [NAME]` and
                                      `// [/NAME]`; without #NAME the whole file
    <!-- {{output COMMAND}} -->       what COMMAND prints, run in the root of the
                                      checkout with BUILD/bin first on PATH,
                                      then BUILD/test/bin and .venv/bin; long lines of IR (after
                                      --emit=mlir) are broken

What follows such a line is its fenced block, replaced at each run. In the
descriptions of .td files `{{example FILE#NAME}}` stands alone; the reference
pages that mlir-tblgen makes of them go to docs/reference with it filled in.

With --check nothing is written: differences are printed, and links to files
that don't exist; the exit status says whether there were any.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LANGUAGES = {".mlir": "mlir", ".cpp": "c++", ".h": "c++", ".py": "python",
             ".td": "tablegen", ".json": "json"}
MARKER = re.compile(r"^<!-- \{\{(example|output) (.+?)\}\} -->\n"
                    r"(?:(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)\n)?",
                    re.MULTILINE | re.DOTALL)
TOKEN = re.compile(r'(?:"[^"]*"|[^\s"])+')
LINE_WIDTH = 90
PLAIN = re.compile(r"^[ ]*\{\{example (.+?)\}\}$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Problem(Exception):
    """A page asks for what isn't there."""


def fenced(language, text):
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def example(spec):
    """The fenced block of FILE#NAME or FILE."""
    name, _, region = spec.partition("#")
    path = ROOT / name
    if not path.is_file():
        raise Problem(f"no file '{name}'")
    text = path.read_text()
    if region:
        found = re.search(rf"^ *// \[{re.escape(region)}\]\n(.*?)"
                          rf"^ *// \[/{re.escape(region)}\]$",
                          text, re.MULTILINE | re.DOTALL)
        if not found:
            raise Problem(f"'{name}' has no region '{region}'")
        text = textwrap.dedent(found.group(1))
    return fenced(LANGUAGES.get(path.suffix, ""), text)


def broken(line):
    """A line of IR in lines of at most LINE_WIDTH, where its tokens allow it."""
    if len(line) <= LINE_WIDTH:
        return line
    indent = line[:len(line) - len(line.lstrip())]
    lines = [indent]
    for token in TOKEN.findall(line):
        if lines[-1].strip() and len(lines[-1]) + len(token) >= LINE_WIDTH:
            lines.append(f"{indent}    ")
        space = "" if lines[-1].isspace() or not lines[-1] else " "
        lines[-1] += f"{space}{token}"
    return "\n".join(lines)


def tidy(name, text):
    """What mlir-tblgen wrote, as a page with a title; constraints are a list."""
    text = text.replace("[TOC]\n\n", "")
    if name.startswith("passes"):
        phase = name.partition("-")[2]
        title = f"Passes of phase {phase}" if phase else "Passes"
        text = re.sub(r"^### ", f"# {title}\n\n### ", text, count=1,
                      flags=re.MULTILINE)
    text = re.sub(r"^\(C1\) ", "\n(C1) ", text, flags=re.MULTILINE)
    text = re.sub(r"^\((C\d+)\) ", r"* (\1) ", text, flags=re.MULTILINE)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return text.strip() + "\n"


class Generator:
    def __init__(self, build, skip):
        self.build = build
        self.skip = re.compile(skip) if skip else None
        self.skipped = []

    def output(self, command, old):
        """The fenced block of a command; `old` if the command is skipped."""
        bin_dir = self.build / "bin"
        if self.skip and self.skip.search(command):
            self.skipped.append(command)
            return old
        paths = [str(bin_dir), str(self.build / "test" / "bin"),
                 str(ROOT / ".venv" / "bin"), os.environ["PATH"]]
        env = dict(os.environ, PATH=os.pathsep.join(paths))
        # Commands write what they build there, whatever --build is.
        (ROOT / "build").mkdir(exist_ok=True)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command],
                              cwd=ROOT, env=env,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300)
        if done.returncode != 0:
            raise Problem(f"'{command}' ended with {done.returncode}:\n"
                          f"{done.stdout}{done.stderr}")
        text = (done.stdout + done.stderr).replace(f"{ROOT}/", "")
        if "--emit=mlir" in command:
            text = "\n".join(broken(line) for line in text.splitlines())
        return fenced("", f"$ {command}\n{text}")

    def page(self, text):
        """A page written by hand, with its blocks filled in."""
        def fill(match):
            head, _, old = match.group(0).partition("\n")
            kind, spec = match.group(1), match.group(2)
            return f"{head}\n" + (example(spec) if kind == "example"
                                  else self.output(spec, old))
        return MARKER.sub(fill, text)

    def pages(self):
        """Yields (path, wanted text) of every page."""
        generated = self.build / "docs" / "reference"
        for path in sorted(generated.glob("*.md")):
            text = PLAIN.sub(lambda m: example(m.group(1)).rstrip("\n"),
                             path.read_text())
            page = ROOT / "docs" / "reference" / path.name
            yield page, tidy(path.stem, text)
        by_hand = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
                   ROOT / "runtime" / "README.md",
                   ROOT / "test" / "oracle" / "README.md",
                   *(ROOT / "docs").rglob("*.md"),
                   *(ROOT / "examples").rglob("*.md")]
        for path in sorted(by_hand):
            if path.exists() and path.parent.name != "reference":
                yield path, self.page(path.read_text())


def broken_links(path, text):
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        if not (path.parent / target).exists():
            yield f"{path.relative_to(ROOT)}: link to '{target}', which doesn't exist"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--skip", help="commands that match aren't run; their "
                        "blocks stay as they are")
    options = parser.parse_args()

    generator = Generator(options.build.resolve(), options.skip)
    problems = []
    written = set()
    pages = generator.pages()
    while True:
        try:
            path, wanted = next(pages)
        except StopIteration:
            break
        except Problem as problem:
            sys.exit(f"docs: {problem}")
        name = path.relative_to(ROOT)
        written.add(path)
        if path.parent.name != "reference":
            problems += broken_links(path, wanted)
        old = path.read_text() if path.exists() else ""
        if old == wanted:
            continue
        if options.check:
            problems.append("".join(difflib.unified_diff(
                old.splitlines(True), wanted.splitlines(True),
                f"{name} as committed", f"{name} as generated")))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted)
            print(f"wrote {name}")
    for path in (ROOT / "docs" / "reference").glob("*.md"):
        if path not in written:
            problems.append(f"{path.relative_to(ROOT)}: nothing generates it")
    for command in generator.skipped:
        print(f"skipped: {command}")
    for problem in problems:
        print(problem)
    if problems:
        print("docs: not as they should be; 'cmake --build build --target docs' "
              "writes them again")
        return 1
    print(f"docs: {len(written)} pages are up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
