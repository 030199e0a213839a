"""make DIR writes x.npy and w.npy; compare DIR compares y.npy with x w.

The numbers are small integers, so that the product is exact in any order of
adding, and the comparison is for equality.
"""

import pathlib
import sys

import numpy

if len(sys.argv) != 3 or sys.argv[1] not in ("make", "compare"):
    sys.exit("usage: data.py make|compare DIR")
folder = pathlib.Path(sys.argv[2])
x = (numpy.arange(32) % 7 - 3).astype(numpy.float32).reshape(4, 8)
w = (numpy.arange(48) % 5 - 2).astype(numpy.float32).reshape(8, 6)
if sys.argv[1] == "make":
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "w.npy", w)
    print(f"wrote x {list(x.shape)} and w {list(w.shape)}")
else:
    y = numpy.load(folder / "y.npy")
    if y.shape != (4, 6) or y.dtype != numpy.float32:
        sys.exit(f"y is {y.dtype} {list(y.shape)}, expected float32 [4, 6]")
    wrong = int((y != x @ w).sum())
    if wrong:
        sys.exit(f"{wrong} of {y.size} numbers differ from numpy's")
    print(f"all {y.size} numbers of y equal numpy's")
