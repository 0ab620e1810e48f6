"""Measures PyTorch on this machine's GPU and writes a result file that Batchmark loads.

The eight networks of the suite, forward and forward+backward without an update, in f32, tf32, f16 and bf16, on random
images that are on the GPU already; the median of the iterations, timed by the GPU. Each row is measured eager,
channels_last, as a CUDA graph and with torch.compile: the record is that of the fastest, its note has the others.

  python3 datasets/pytorch/run.py                      everything at minibatch 64; torch.compile takes half a minute a row
  python3 datasets/pytorch/run.py --modes graph,channels_last,eager --limit 600
  python3 datasets/pytorch/run.py --csv pytorch.csv    only converts rows that were measured before

Writes pytorch.csv, every row as measured, and pytorch.json, the result file, into --out. A row that fails, such as for
want of memory, is a record with its reason. Needs Python 3, torchvision, and PyTorch with CUDA or ROCm; the networks and
the timing are those of tests/pytorch/baseline.py, the conversion that of tests/pytorch/compare.py.
"""
import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../tests/pytorch"), os.path.join(HERE, "../published")]

import compare  # noqa: E402
import make  # noqa: E402


def engine(environment):
    """Name of the engine in the records, such as "PyTorch 2.11.0"; the build is among the libraries."""
    return "PyTorch " + environment.get("torch", "").split("+")[0] if environment.get("torch") else "PyTorch"


def convert(path, modes):
    """The result file of the rows that baseline.py wrote."""
    environment, rows = compare.read_pytorch(path)
    if not rows:
        raise SystemExit(f"{path} has no rows: see above why PyTorch could not be measured")
    return compare.result_file(environment, rows, modes, {}, make.DEFINITIONS, engine(environment),
                               "datasets/pytorch/run.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, known in (("model", compare.MODELS), ("precision", compare.PRECISIONS), ("mode", compare.MODES)):
        parser.add_argument(f"--{name}s", type=compare.choice(name, known), default=known, help=", ".join(known))
    parser.add_argument("--passes", type=compare.choice("pass", compare.PASSES), default=compare.PASSES,
                        help=", ".join(compare.PASSES))
    parser.add_argument("--minibatch", type=int, default=compare.MINIBATCH)
    parser.add_argument("--limit", type=float, default=7200.0, metavar="SECONDS",
                        help="end after about this time, the important rows first")
    parser.add_argument("--csv", metavar="FILE", help="convert these rows of baseline.py instead of measuring")
    parser.add_argument("--out", default="pytorch", metavar="DIR", help="folder of what is written")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    begun = time.monotonic()
    rows = arguments.csv or compare.run_pytorch(arguments, lambda: arguments.limit - (time.monotonic() - begun))
    file = convert(rows, arguments.modes)
    path = os.path.join(arguments.out, "pytorch.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(file, out, indent=1, allow_nan=False)
    n_ok = sum(record["status"] == "ok" for record in file["records"])
    print(f"{path}: {n_ok} of {len(file['records'])} rows measured, {file['devices'][0]['name']}")


if __name__ == "__main__":
    sys.exit(main())
