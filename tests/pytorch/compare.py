"""Puts Batchmark's CUDA engine beside PyTorch on the same GPU, in one go, and says which targets are met.

Runs `batchmark run` for the networks of the suite, then baseline.py, and writes into --out:
  ours.json        the results of Batchmark
  pytorch.csv      every row of baseline.py
  pytorch.json     PyTorch's best mode of each row as a result file, which `batchmark show` and the window load
  comparison.csv   the table
The table is printed as Markdown. Needs Python 3 alone; baseline.py needs PyTorch.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["alexnet", "overfeat", "vgg_a", "vgg16", "googlenet", "resnet50", "resnet101", "resnet152"]
PASSES = ["forward", "forward_backward"]
PRECISIONS = ["bf16", "f16", "tf32", "f32"]
MODES = ["eager", "channels_last", "graph", "compile"]
MINIBATCH = 64
# Where launching costs more than computing.
LATENCY_ROW = ("resnet50", "forward", "bf16", 1)

# What is asked of a pass in a precision: the factor on PyTorch's best mode, or the share of the roofline, whichever is
# lower. Training in f16 has no target.
TARGETS = {
    ("forward", "bf16"): (1.25, 0.75), ("forward", "f16"): (1.25, 0.75),
    ("forward_backward", "bf16"): (1.1, 0.70),
    ("forward", "tf32"): (1.1, 0.75), ("forward_backward", "tf32"): (1.1, 0.75),
    ("forward", "f32"): (1.0, None), ("forward_backward", "f32"): (1.0, None),
}
LATENCY_TARGET = (1.25, None)

# Images a second at minibatch 64 that perfectly fused layers could not beat: forward and forward_backward.
# Source: per layer max(FLOPs / peak, bytes / bandwidth), input, weights and output moved once, with an NVIDIA H200's
# measured GEMM (750 TFLOP/s in bf16 and f16, 387 in tf32), its data sheet's 67 TFLOP/s in f32, and its measured copy
# (4.27 TB/s); November 2026.
ROOFLINE_DEVICE = "H200"
ROOFLINE = {
    "bf16": {
        "alexnet": (417264, 138417), "overfeat": (118368, 38978), "vgg_a": (38740, 13664), "vgg16": (21378, 7349),
        "googlenet": (145030, 52301), "resnet50": (57796, 18451), "resnet101": (35087, 11356),
        "resnet152": (24430, 7940),
    },
    "tf32": {
        "alexnet": (213460, 70744), "overfeat": (60773, 19999), "vgg_a": (19840, 7008), "vgg16": (10985, 3780),
        "googlenet": (73503, 26535), "resnet50": (29257, 9328), "resnet101": (17823, 5753), "resnet152": (12417, 4024),
    },
    "f32": {
        "alexnet": (46014, 15952), "overfeat": (11859, 4016), "vgg_a": (4258, 1440), "vgg16": (2130, 715),
        "googlenet": (20099, 6970), "resnet50": (8098, 2727), "resnet101": (4268, 1430), "resnet152": (2898, 969),
    },
}
ROOFLINE["f16"] = ROOFLINE["bf16"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def choice(kind, known):
    """Parser of an argument that lists some of what is known."""
    def parse(text):
        names = [part for part in text.split(",") if part]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown {kind} {unknown[0]!r}, expected some of: {', '.join(known)}")
        return names
    return parse


def run_ours(arguments, remaining):
    """Measures with Batchmark; the result file is whole after every run, so that a time limit costs the rest alone."""
    path = os.path.join(arguments.out, "ours.json")
    if os.path.exists(path):
        os.remove(path)
    common = [arguments.batchmark, "run", "--engine", arguments.engine, "--out", path]
    common += ["--device", arguments.device] if arguments.device else []
    common += ["--max-seconds", str(arguments.max_seconds), "--iterations", str(arguments.iterations)]
    plans = []
    if is_wanted(LATENCY_ROW, arguments):
        plans.append(["--model", "resnet50", "--minibatch", "1", "--precision", "bf16", "--pass", "forward"])
    # The important precisions first, each with every network.
    for precision in arguments.precisions:
        plans.append(["--model", ",".join(arguments.models), "--minibatch", str(MINIBATCH), "--precision", precision,
                      "--pass", ",".join(arguments.passes)])
    for plan in plans:
        try:
            # What is measured is said on standard error; the table would be repeated here.
            subprocess.run(common + plan, stdout=subprocess.DEVNULL, timeout=max(1.0, remaining()), check=False)
        except subprocess.TimeoutExpired:
            say("time limit: the rest is not measured with Batchmark")
            break
    return path


def run_pytorch(arguments, remaining):
    """Measures with PyTorch; returns the rows' file."""
    path = os.path.join(arguments.out, "pytorch.csv")
    rows = [f"*/{which}/{precision}/" for which in arguments.passes for precision in arguments.precisions]
    command = [arguments.python, os.path.join(HERE, "baseline.py"), "--models", ",".join(arguments.models),
               "--modes", ",".join(arguments.modes), "--rows", ",".join(rows), "--samples",
               "--minibatch", str(arguments.minibatch), "--limit", f"{max(1.0, remaining() - 60.0):.0f}"]
    with open(path, "w", encoding="utf-8") as out:
        try:
            if subprocess.run(command, stdout=out, timeout=max(1.0, remaining()), check=False).returncode != 0:
                say("PyTorch could not be measured, or not to the end; its rows so far are used")
        except subprocess.TimeoutExpired:
            say("time limit: the rest is not measured with PyTorch")
    return path


def is_wanted(row, arguments):
    model, which, precision, _ = row
    return model in arguments.models and which in arguments.passes and precision in arguments.precisions


def read_pytorch(path):
    """The environment of a file of baseline.py, and its rows: {(model, pass, precision, minibatch): {mode: …}}."""
    environment, rows = {}, {}
    names = {"fp32": "f32", "fp16": "f16"}
    with open(path, encoding="utf-8-sig") as lines:
        for text in map(str.strip, lines):
            cells = text.split(",")
            if text.startswith("# {") and not environment:
                environment = json.loads(text[2:])
            elif text.startswith("# ") and " torch " in text and not environment:
                # As in "# NVIDIA H200 torch 2.11.0+cu130 cudnn 91900".
                words = text[2:].split()
                at = words.index("torch")
                environment = {"device": " ".join(words[:at]), "torch": words[at + 1], "cudnn": words[-1]}
            if len(cells) < 7 or text.startswith("#") or cells[0] in ("model", "ceiling"):
                continue
            model, minibatch, precision, which, mode, ms, rate = cells[:7]
            key = (model, which, names.get(precision, precision), int(minibatch))
            samples = [float(sample) for sample in cells[7].split()] if len(cells) > 7 else []
            row = {"error": rate} if ms == "error" else {"ms": float(ms), "rate": float(rate), "samples": samples}
            rows.setdefault(key, {})[mode] = row
    return environment, rows


def read_ours(path, engine):
    """A result file and the latest record of each row."""
    try:
        with open(path, encoding="utf-8-sig") as text:
            file = json.load(text)
    except FileNotFoundError:
        say(f"there is no {path}: nothing was measured with Batchmark")
        return {}, {}
    if not str(file.get("schema", "")).startswith("batchmark/"):
        raise SystemExit(f"{path} is not a result file of Batchmark")
    rows = {}
    for record in file.get("records", []):
        if record.get("engine") == engine:
            key = (record["model"], record["pass"], record["precision"], record["minibatch"])
            if key not in rows or record["started"] >= rows[key]["started"]:
                rows[key] = record
    return file, rows


def best_mode(modes, allowed):
    """Name and row of PyTorch's fastest mode."""
    good = [(row["rate"], mode) for mode, row in modes.items() if "rate" in row and mode in allowed]
    if not good:
        return None, None
    mode = max(good)[1]
    return mode, modes[mode]


def target_of(key, best, device):
    """Images a second that are asked for, and where they come from; nothing where there is no target."""
    model, which, precision, minibatch = key
    if key == LATENCY_ROW:
        factor, share = LATENCY_TARGET
    elif minibatch == MINIBATCH and (which, precision) in TARGETS:
        factor, share = TARGETS[(which, precision)]
    else:
        return None, ""
    asked, source = factor * best, f"{factor:g} x"
    # The roofline is that of one card.
    if share and model in ROOFLINE[precision] and ROOFLINE_DEVICE in device:
        bound = share * ROOFLINE[precision][model][PASSES.index(which)]
        if bound < asked:
            asked, source = bound, f"{share:.0%} of roofline"
    return asked, source


def compare(ours, pytorch, device, modes):
    """The table, one dictionary a row."""
    place = lambda name, names: names.index(name) if name in names else len(names)
    order = lambda key: (place(key[2], PRECISIONS), key[1], key[3], place(key[0], MODELS))
    # Other minibatches are shown where both have them.
    shown = [key for key in set(ours) | set(pytorch)
             if key[3] == MINIBATCH or key == LATENCY_ROW or (key in ours and key in pytorch)]
    table = []
    for key in sorted(shown, key=order):
        mode, best = best_mode(pytorch.get(key, {}), modes)
        record = ours.get(key)
        rate = record.get("throughput_per_sec") if record else None
        row = dict(zip(("model", "pass", "precision", "minibatch"), key))
        row.update(pytorch_mode=mode, pytorch_per_s=best and best["rate"], ours_per_s=rate,
                   status=record["status"] if record else "not measured", ratio=None, target_per_s=None, target="",
                   verdict="")
        if best:
            row["target_per_s"], row["target"] = target_of(key, best["rate"], device)
            row["ratio"] = rate / best["rate"] if rate else None
        roofline = ROOFLINE.get(key[2], {}).get(key[0]) if key[3] == MINIBATCH and ROOFLINE_DEVICE in device else None
        row["roofline_share"] = rate / roofline[PASSES.index(key[1])] if rate and roofline else None
        if row["target_per_s"] and rate:
            missing = 1.0 - rate / row["target_per_s"]
            row["verdict"] = "met" if missing <= 0.0 else f"missed by {missing:.1%}"
        elif row["target_per_s"]:
            row["verdict"] = "not measured" if not record else record["status"].replace("_", " ")
        table.append(row)
    return table


def markdown(table):
    number = lambda value, digits=0: "" if value is None else f"{value:,.{digits}f}"
    lines = ["| model | pass | precision | minibatch | PyTorch's best mode | PyTorch (images/s) | ours (images/s) "
             "| ratio | of roofline | target | asked (images/s) | verdict |",
             "| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | --- |"]
    for row in table:
        ours = number(row["ours_per_s"]) or row["status"].replace("_", " ")
        share = "" if row["roofline_share"] is None else f"{row['roofline_share']:.0%}"
        cells = [row["model"], row["pass"], row["precision"], str(row["minibatch"]), row["pytorch_mode"] or "none",
                 number(row["pytorch_per_s"]), ours, number(row["ratio"], 2), share, row["target"],
                 number(row["target_per_s"]), row["verdict"]]
        lines.append("| " + " | ".join(cells) + " |")
    asked = [row for row in table if row["target_per_s"]]
    met = sum(row["verdict"] == "met" for row in asked)
    return "\n".join(lines) + f"\n\n{met} of {len(asked)} targets met.\n"


def timing(samples):
    """A record's statistics, as Batchmark computes them."""
    ordered = sorted(samples)
    n = len(ordered)

    def percentile(share):
        at = share * (n - 1)
        low = int(at)
        high = min(low + 1, n - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

    # Ranks of the median's interval, by the normal approximation of the binomial distribution.
    spread = 1.96 * n ** 0.5 / 2
    low, high = max(0, int(n / 2 - spread) - 1), min(n - 1, int(n / 2 + spread))
    return {
        "clock": "device", "iterations": n, "median_ms": statistics.median(ordered), "mean_ms": statistics.fmean(ordered),
        "stddev_ms": statistics.stdev(ordered) if n > 1 else 0.0, "p5_ms": percentile(0.05),
        "p95_ms": percentile(0.95), "ci95_ms": [ordered[low], ordered[high]],
        "samples_ms": [round(sample, 3) for sample in samples],
    }


def definitions(batchmark, ours):
    """Identity of each network's definition, which PyTorch's networks share: from our records, else asked for."""
    known = {record["model"]: record["definition"] for record in ours.values()}
    if batchmark and any(model not in known for model in MODELS):
        asked = subprocess.run([batchmark, "models", "--json"], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            for model in json.loads(asked.stdout):
                known.setdefault(model["name"], f"{model['definition']} {model['hash']}")
    return known


def result_file(environment, pytorch, modes, ours_file, known, engine="pytorch", program="tests/pytorch/compare.py"):
    """PyTorch's figures as a result file: the best mode of each row, the others in its notes."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = environment.get("device", "unknown GPU")
    # The device as our own file describes it, so that charts know it is the same.
    device = next((dict(other) for other in ours_file.get("devices", []) if other.get("name") == name), None)
    if device is None:
        kind = "integrated" if environment.get("integrated") else "discrete"
        device = {"id": environment.get("uuid") or "pytorch-0", "name": name, "kind": kind}
        device.update({key: environment[key] for key in ("uuid", "memory_bytes") if environment.get(key)})
    host = ours_file.get("host") or {"os": platform.platform(), "cpu": platform.processor() or "unknown"}
    libraries = {key: environment[key] for key in ("cuda", "cudnn", "hip", "miopen") if environment.get(key)}
    libraries["pytorch"] = environment.get("torch", "unknown")
    records = []
    for (model, which, precision, minibatch), rows in pytorch.items():
        record = {"model": model, "definition": known.get(model, f"{model}/1"), "pass": which, "precision": precision,
                  "minibatch": minibatch, "engine": engine, "device": 0, "started": now}
        mode, best = best_mode(rows, modes)
        figures = [f"{other}: " + (f"{row['rate']:.0f} images/s" if "rate" in row else row["error"])
                   for other, row in rows.items()]
        if best:
            record.update(status="ok", throughput_per_sec=minibatch / best["ms"] * 1e3)
            if best["samples"]:
                record["timing"] = timing(best["samples"])
                record["throughput_per_sec"] = minibatch / record["timing"]["median_ms"] * 1e3
            note = f"the fastest mode, {mode}, of: " + ", ".join(figures)
            record.update(kernels=[f"PyTorch, {mode}"], libraries=libraries, notes=[note])
        else:
            errors = [row.get("error", "") for row in rows.values()]
            status = "out_of_memory" if any("OutOfMemory" in error for error in errors) else "failed"
            status = "not_supported" if all(error.startswith("NotSupported") for error in errors) else status
            record.update(status=status, reason="; ".join(figures), libraries=libraries)
        records.append(record)
    return {"schema": "batchmark/1", "created": now, "program": program, "host": host,
            "devices": [device], "records": records}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batchmark", nargs="?", help="the program; not needed with --only-ours")
    parser.add_argument("--models", type=choice("model", MODELS), default=MODELS)
    parser.add_argument("--passes", type=choice("pass", PASSES), default=PASSES)
    parser.add_argument("--precisions", type=choice("precision", PRECISIONS), default=PRECISIONS)
    parser.add_argument("--modes", type=choice("mode", MODES), default=MODES, help="modes of PyTorch")
    parser.add_argument("--engine", default="cuda", help="engine of Batchmark")
    parser.add_argument("--device", help="device of Batchmark, which must be the first that PyTorch sees")
    parser.add_argument("--only-ours", metavar="FILE", help="take Batchmark's figures from this result file")
    parser.add_argument("--baseline", metavar="CSV", help="take PyTorch's figures from this output of baseline.py")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="SECONDS", help="end after about this time")
    parser.add_argument("--max-seconds", type=float, default=3.0, help="bound of each run of Batchmark")
    parser.add_argument("--iterations", type=int, default=100, help="iterations of each run of Batchmark")
    parser.add_argument("--out", default="comparison", metavar="DIR", help="folder of what is written")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch")
    parser.set_defaults(minibatch=MINIBATCH)
    arguments = parser.parse_args()
    if not arguments.batchmark and not arguments.only_ours:
        parser.error("name the batchmark program, or a result file with --only-ours")
    os.makedirs(arguments.out, exist_ok=True)
    begun = time.monotonic()
    remaining = lambda: arguments.limit - (time.monotonic() - begun)
    # Half of the time at most for each, where both are measured.
    ours_limit = remaining if arguments.baseline else lambda: remaining() - arguments.limit / 2
    ours_path = arguments.only_ours or run_ours(arguments, ours_limit)
    baseline_path = arguments.baseline or run_pytorch(arguments, remaining)
    environment, pytorch = read_pytorch(baseline_path)
    ours_file, ours = read_ours(ours_path, arguments.engine)
    pytorch = {key: rows for key, rows in pytorch.items() if is_wanted(key, arguments)}
    ours = {key: record for key, record in ours.items() if is_wanted(key, arguments)}
    device = environment.get("device", "")
    table = compare(ours, pytorch, device, arguments.modes)
    with open(os.path.join(arguments.out, "comparison.csv"), "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=list(table[0]) if table else ["model"])
        writer.writeheader()
        writer.writerows(table)
    foreign = result_file(environment, pytorch, arguments.modes, ours_file, definitions(arguments.batchmark, ours))
    with open(os.path.join(arguments.out, "pytorch.json"), "w", encoding="utf-8") as out:
        json.dump(foreign, out, indent=1, allow_nan=False)
    print(f"{device or 'unknown GPU'}, PyTorch {environment.get('torch', 'unknown')}, cuDNN "
          f"{environment.get('cudnn', 'unknown')}, Batchmark {ours_file.get('program', 'unknown')}\n")
    print(markdown(table), end="")


if __name__ == "__main__":
    sys.exit(main())
