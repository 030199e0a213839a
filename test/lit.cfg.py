# Configuration of lit: which files are tests, and what their RUN lines see.
import os
import subprocess

import lit.formats

config.name = "Cleave"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
# Models that other tests read.
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.cleave_build_dir, "test")

# The tools under test come first, then programs of tests, then FileCheck, not,
# count, split-file.
config.environment["PATH"] = os.pathsep.join(
    [config.cleave_tools_dir,
     os.path.join(config.cleave_build_dir, "test", "bin"),
     config.llvm_tools_dir, os.environ["PATH"]]
)
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "CI"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    ("%python", config.python),
    ("%examples", os.path.join(config.cleave_source_dir, "examples")),
    ("%lib", os.path.join(config.cleave_build_dir, "lib")),
    ("%docs", os.path.join(config.cleave_source_dir, "docs")),
]
config.available_features.update(config.cleave_features)
# ./quickstart and ./check install it; a build by hand may do without.
if subprocess.run([config.python, "-c", "import numpy"],
                  capture_output=True).returncode == 0:
    config.available_features.add("numpy")
