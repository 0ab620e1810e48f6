"""Makes result files of the published figures: python3 datasets/published/make.py

Reads figures/published_results.csv (one published figure a row, unconverted) and figures/sources.csv, and writes
  <source>.json           a result file of each source, one record a line
  README.md               the table of the sources, between its marks
  ../published.json.gz    all result files in one, which the program embeds
The result depends on nothing but these tables and ../gpus.csv. Needs Python 3 alone.
"""
import csv
import gzip
import io
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# When the figures were collected.
COLLECTED = "2026-11-30T00:00:00Z"

# The definitions of the suite's networks. After a change, from the top of the tree:
#   batchmark models --json | python3 -c 'import json, sys
#   for m in json.load(sys.stdin): print(f"""    "{m["name"]}": "{m["definition"]} {m["hash"]}",""")'
# A test of the program says when they are not its own.
DEFINITIONS = {
    "alexnet": "alexnet/1 a16016b438fd229e",
    "overfeat": "overfeat/1 3da1e2a0512c3027",
    "vgg_a": "vgg_a/1 5ccce546ea63d3bb",
    "vgg16": "vgg16/1 795f44599b5c5a09",
    "googlenet": "googlenet/1 2b3760c39833964f",
    "resnet50": "resnet50/1 e33affa31afc58c7",
    "resnet101": "resnet101/1 65a28147caab1a4d",
    "resnet152": "resnet152/1 4354b3bfff379aef",
}

# Sources whose ResNets have the stride on the 3x3 convolution (v1.5), as the suite's, and how that is known.
RESNET_V15 = {
    "timm_results": "timm's ResNets have the stride on the 3x3 (v1.5)",
    "nvidia_dle": "published as v1.5",
    "lambda_dlbench": "published as v1.5",
    "pytorch_gpu_benchmark": "torchvision's ResNets have the stride on the 3x3 (v1.5)",
    "cnn_benchmarks": "fb.resnet.torch has the stride on the 3x3 (v1.5), which is general knowledge and was not read there",
}

# What other sources call a network that is not, or not surely, the suite's.
OWN_NAMES = {
    "tensorflow_org_benchmarks": ("tf_cnn_benchmarks", "v1: the stride is on the first 1x1"),
    "lambda_tf": ("tf_cnn_benchmarks", "v1: the stride is on the first 1x1"),
    "lambda_tf_logs": ("tf_cnn_benchmarks", "v1: the stride is on the first 1x1"),
    "mxnet_perf_1_2": ("MXNet", "v1 or v2: the stride is not known to be on the 3x3"),
    "mxnet_perf_0_9": ("MXNet", "v1 or v2: the stride is not known to be on the 3x3"),
    "dlinfbench": ("DLInfBench", "v1 or v2: the stride is not known to be on the 3x3"),
}

# Why a network of convnet-benchmarks is the suite's.
CONVNET = {
    "AlexNet-OWT": ("alexnet", "one tower with the same filters; dropout is left out"),
    "OverFeat-fast": ("overfeat", "the same layers; dropout is left out"),
    "VGG-A": ("vgg_a", "the same 11 layers; dropout is left out"),
    "GoogLeNet-v1": ("googlenet", "real 5x5 branches, no response normalization, batch norm or auxiliary heads, as there; "
                                  "dropout is left out"),
}

PRECISIONS = {"fp32": "f32", "tf32": "tf32", "fp16": "f16", "amp": "f16", "bf16": "bf16", "amp (bf16)": "bf16", "": "f32"}
PASSES = {"inference": "forward", "forward": "forward", "forward_backward": "forward_backward",
          "train_step": "forward_backward", "backward": "forward_backward"}


def model(row):
    """Name of the network in the program, and a remark on it."""
    source, name, size = row["source_id"], row["model"], row["input_size"]
    taken = lambda ours, why: (ours, f"taken to be {ours} of the suite: {why}")
    if source == "convnet_benchmarks" and name in CONVNET:
        ours, why = CONVNET[name]
        if name == "AlexNet-OWT" and row["framework"] == "TensorFlow":
            why += "; the input is 227x227 without padding, with the same maps behind it"
        return taken(ours, why)
    if name == "VGG-16" and size == "224x224":
        return taken("vgg16", "configuration D on 224x224, which is the same network in every benchmark")
    if name == "VGG-11 (VGG-A)" and size == "224x224":
        return taken("vgg_a", "configuration A on 224x224, which is the same network in every benchmark")
    resnet = re.fullmatch(r"ResNet-(50|101|152)( v1\.5)?", name)
    if resnet and source in RESNET_V15:
        ours = f"resnet{resnet[1]}"
        return taken(ours, RESNET_V15[source]) if size == "224x224" else (f"{ours} {size}", None)
    if source in OWN_NAMES and (resnet or name == "AlexNet"):
        whose, kind = OWN_NAMES[source]
        if resnet:
            version = ", v1" if kind.startswith("v1:") else ""
            return f"{name} ({whose}{version})", f"not resnet{resnet[1]} of the suite, which is v1.5; this one is {kind}"
        return f"{name} ({whose})", "not alexnet of the suite: other filters, or not known to have the same"
    if name == "VGG":
        whose = {"addfor_2017": "Add-For", "mxnet_perf_0_9": "MXNet"}[source]
        return f"VGG ({whose}, depth not stated)", "the source does not state the depth; it is probably configuration A"
    return name, None


def engine(row):
    """The framework with its version, and what else tells two figures of one source apart."""
    source, note, library = row["source_id"], row["note"], row["library"]
    named = re.fullmatch(r"(.+?) \((timm|tf_cnn_benchmarks)\)", row["framework"])
    framework, script = (named[1], f" ({named[2]})") if named else (row["framework"], "")
    version = row["framework_version"]
    if source in ("nvidia_dle", "lambda_dlbench") and not version:
        container = re.search(r"\(NGC pytorch (\S+) per the guide\)", note)
        version = f"NGC {container[1]}" if container else "NGC"
    text = f"{framework} {version}".strip() + script
    further = []
    # One framework with several libraries.
    if source in ("convnet_benchmarks", "cnn_benchmarks") or library == "ROCm":
        if library.startswith(row["framework"]):
            text = library
        else:
            further.append(library)
    if "second-generation run;" in note:
        further.append("second generation")
    # What the notes quote is the name of a machine or file.
    said = note if source == "lambda_dlbench" or source == "lambda_tf" else re.sub(r"'[^']*'", "", note)
    for words, short in [
        ("channels-last", "channels-last"), ("torch.compile", "torch.compile"), ("Paddle-TRT", "TensorRT"),
        ("XLA", "XLA"), ("real ImageNet data", "real data"), ("Google Compute Engine", "Google Cloud"),
        ("Amazon EC2", "Amazon EC2"), ("Lambda Cloud", "Lambda Cloud"), ("'LambdaCloud ", "Lambda Cloud"),
    ]:
        if words in said:
            further.append(short)
    beam = re.search(r"beam width \d+", note)
    further += [beam[0]] if beam else []
    if source == "timm_results" and row["precision"].startswith("amp"):
        further.append("AMP")
    return ", ".join([text.strip()] + further)


def libraries(row):
    """Versions by lower-case name, as far as the row has them."""
    found = {}
    framework = re.sub(r" \(.*\)$", "", row["framework"])
    if row["framework_version"]:
        found[framework.lower()] = row["framework_version"]
    for name, version in re.findall(r"\b(CUDA|cuDNN) (R?\d[\w.]*)", f"{row['library']}; {row['note']}"):
        found.setdefault(name.lower(), version)
    return dict(sorted(found.items()))


def number(text):
    return int(text) if re.fullmatch(r"\d+", text) else float(text)


def throughput(row, n_devices):
    """Samples a second of all devices together, where the figure says so."""
    value = float(row["value"])
    if row["metric"] in ("images_per_s", "samples_per_s"):
        return value
    if row["metric"] == "million_samples_per_s":
        return value * 1e6
    if row["metric"] == "ms_per_batch" and row["batch"] and row["phase"] != "backward":
        return int(row["batch"]) * n_devices / (value / 1000)
    return None


def doubt(row):
    """Why the figure can't be true; known cases only."""
    is_convnet = row["source_id"] == "convnet_benchmarks"
    if is_convnet and row["library"] == "clnn (OpenCL)" and row["model"] == "OverFeat-fast":
        return "it repeats AlexNet's row of the same table, so it was probably copied by mistake at the source"
    if is_convnet and row["model"] == "conv-L1..L5 sum" and row["value"] == "1265" and "'Torch-7'" in row["note"]:
        return "it is not the sum of forward and backward in the same table, 418 + 877 = 1295 ms"
    return None


def notes(row, remark):
    found = [row["note"]] if row["note"] else []
    if row["phase"] == "train_step":
        found.append("the time includes the parameter update")
    if row["phase"] == "backward":
        found.append("the time is that of backward alone, so there is no throughput")
    if row["precision"].startswith("amp"):
        found.append("automatic mixed precision")
    if not row["precision"]:
        found.append("the source does not state the precision; f32 is assumed")
    if row["metric"] == "percent_faster_than_mxnet":
        found.append("the figure is relative to MXNet, so there is no throughput")
    if int(row["gpu_count"]) > 1 and row["batch"]:
        found.append(f"the minibatch is that of each of the {row['gpu_count']} GPUs, the throughput that of all")
    if row["source_id"] == "lambda_dlbench" and row["model"] == "ResNet-50 v1.5" and row["precision"] == "amp":
        if row["gpu"] in ("B200", "H200 SXM 141 GB"):
            found.append("B200 and H200 are equal here, so something other than the GPU limits them")
    return found + ([remark] if remark else [])


def device(name, n_devices, gpus):
    full = f"{n_devices} x {name}" if n_devices > 1 else name
    found = {"id": full, "name": full, "kind": "discrete"}
    if name.startswith("CPU "):
        return {**found, "kind": "cpu"}
    found["vendor"] = gpus[name]["vendor"]
    if gpus[name]["memory_gb"]:
        found["memory_bytes"] = n_devices * int(gpus[name]["memory_gb"]) << 30
    return found


def record(row, source, place):
    n_devices = max(1, int(row["gpu_count"]))
    name, remark = model(row)
    figure = {key: row[key] for key in ("model", "phase", "precision", "metric")}
    figure["value"] = number(row["value"])
    if row["input_size"]:
        figure["input"] = row["input_size"]
    if n_devices > 1:
        figure["n_devices"] = n_devices
    origin = {
        "kind": "published", "source": source["source_id"], "title": source["title"], "authors": source["authors"],
        "date": source["date"], "url": source["url"].split(" ")[0], "licence": source["licence"],
        "obtained": source["how_obtained"], "figure": figure,
    }
    if doubt(row):
        origin["doubt"] = doubt(row)
    made = {
        "model": name, "definition": DEFINITIONS.get(name, ""), "pass": PASSES[row["phase"]],
        "precision": PRECISIONS[row["precision"]], "minibatch": int(row["batch"] or 0), "engine": engine(row),
        "device": place, "started": "", "status": "ok",
    }
    rate = throughput(row, n_devices)
    if rate is not None:
        made["throughput_per_sec"] = rate
    made.update({key: value for key, value in (("libraries", libraries(row)), ("notes", notes(row, remark))) if value})
    return {**made, "origin": origin}


def result_file(source, rows, gpus):
    """The result file of one source, and how many of its rows were left out."""
    devices, records, n_left_out, seen = [], [], 0, set()
    for row in rows:
        # The program knows no such precision.
        if row["precision"] == "int8":
            n_left_out += 1
            continue
        described = device(row["gpu"], max(1, int(row["gpu_count"])), gpus)
        if described not in devices:
            devices.append(described)
        made = record(row, source, devices.index(described))
        figure = made["origin"]["figure"]
        key = tuple(made[part] for part in ("device", "engine", "precision", "model", "pass", "minibatch"))
        key += (figure["phase"], figure.get("input"))
        if key in seen:
            raise SystemExit(f"two figures of {source['source_id']} can't be told apart: {key}")
        seen.add(key)
        records.append(made)
    file = {"schema": "batchmark/1", "created": COLLECTED, "program": "datasets/published/make.py", "host": {},
            "devices": devices, "records": records}
    return file, n_left_out


def compact(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def text_of(file):
    """A file as text, one device or record a line."""
    lines = [f'{compact(key)}:{compact(file[key])}' for key in ("schema", "created", "program", "host")]
    for key in ("devices", "records"):
        lines.append(f'"{key}":[\n' + ",\n".join(map(compact, file[key])) + "\n]")
    return "{" + ",\n".join(lines) + "}\n"


def table(sets):
    lines = ["| set | title | date | licence | rows | records | left out | how it was obtained |",
             "| --- | --- | --- | --- | ---: | ---: | --- | --- |"]
    for source, file, n_left_out in sets:
        left_out = f"{n_left_out} in int8" if n_left_out else ""
        url = source["url"].split(" ")[0]
        cells = [f"`{source['source_id']}`", f"[{source['title']}]({url})", source["date"], source["licence"],
                 str(len(file["records"]) + n_left_out), str(len(file["records"])), left_out, source["how_obtained"]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    total = sum(len(file["records"]) for _, file, _ in sets)
    left_out = sum(n for _, _, n in sets)
    lines.append(f"| **all** |  |  |  | {total + left_out} | {total} | {left_out} |  |")
    return "\n".join(lines)


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def main():
    gpus = {row["name"]: row for row in read("../gpus.csv")}
    rows = read("figures/published_results.csv")
    sets = []
    for source in read("figures/sources.csv"):
        own = [row for row in rows if row["source_id"] == source["source_id"]]
        file, n_left_out = result_file(source, own, gpus)
        sets.append((source, file, n_left_out))
        with open(os.path.join(HERE, f"{source['source_id']}.json"), "w", encoding="utf-8", newline="\n") as out:
            out.write(text_of(file))
    everything = compact([{"id": source["source_id"], "file": file} for source, file, _ in sets]).encode()
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as out:
        out.write(everything)
    with open(os.path.join(HERE, "../published.json.gz"), "wb") as out:
        out.write(packed.getvalue())
    path = os.path.join(HERE, "README.md")
    begin, end = "<!-- written by make.py -->\n", "<!-- to here -->\n"
    with open(path, encoding="utf-8") as text:
        before, rest = text.read().split(begin)
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(before + begin + table(sets) + "\n" + end + rest.split(end)[1])
    print(f"{sum(len(file['records']) for _, file, _ in sets)} records of {len(sets)} sources, "
          f"{len(packed.getvalue())} bytes packed")


if __name__ == "__main__":
    sys.exit(main())
