"""PyTorch's images per second on one GPU, for the networks of the suite.

Writes CSV rows to standard output: model,minibatch,precision,pass,mode,ms,images_per_s and, with --samples, every
iteration in milliseconds, separated by spaces. A configuration that fails has "error" for ms and the reason for
images_per_s. The first line is a comment with the GPU and the versions as JSON.

pass       forward (inference) or forward_backward (training: loss and every gradient, no update)
precision  f32 (no TF32), tf32, bf16, f16; in training the halves are autocast over f32 weights
mode       eager (NCHW), channels_last, graph (channels_last, replayed as a CUDA graph), compile (torch.compile with
           mode "reduce-overhead" over channels_last)

Rows come in the order of their importance, the quick modes before torch.compile, so that a time limit costs the least.
Needs PyTorch with CUDA or ROCm, and torchvision.
"""
import argparse
import fnmatch
import gc
import itertools
import json
import sys
import time

MODELS = ["resnet50", "alexnet", "vgg16", "googlenet", "overfeat", "vgg_a", "resnet101", "resnet152"]
MODES = ["graph", "channels_last", "eager", "compile"]
# Passes and precisions by importance: a group is measured in every mode before the next one is begun.
GROUPS = [
    ("forward", "bf16"), ("forward_backward", "bf16"),
    ("forward", "tf32"), ("forward_backward", "tf32"),
    ("forward", "f32"), ("forward_backward", "f32"),
    ("forward", "f16"), ("forward_backward", "f16"),
]
# Measured at minibatch 1, too: where launching costs more than computing.
LATENCY_ROW = ("resnet50", 1, "bf16", "forward")
# Factor on the loss in f16, as the suite has it, so that small gradients survive; a power of two.
LOSS_SCALE = 1024.0


class NotSupported(Exception):
    """The GPU does not compute in a precision."""


def configurations(models, modes, minibatch):
    """Every configuration, the most important first: (model, minibatch, precision, pass, mode)."""
    for number, (which, precision) in enumerate(GROUPS):
        rows = [(model, minibatch, precision, which) for model in MODELS if model in models]
        if number == 0 and LATENCY_ROW[0] in models:
            rows.insert(1, LATENCY_ROW)
        quick = [mode for mode in modes if mode != "compile"]
        slow = [mode for mode in modes if mode == "compile"]
        for group in (quick, slow):
            yield from (row + (mode,) for row, mode in itertools.product(rows, group))


def selected(configuration, patterns):
    """Whether a configuration is named by a pattern model/pass/precision/minibatch, where parts may be left out."""
    model, minibatch, precision, which, _ = configuration
    name = f"{model}/{which}/{precision}/{minibatch}"
    return not patterns or any(fnmatch.fnmatch(name, pattern + "*") for pattern in patterns)


def overfeat():
    """OverFeat's fast model: 3 x 231 x 231.

    Source: Sermanet et al., "OverFeat", 2014, table 1, as the published convnet-benchmarks has it.
    """
    from torch import nn

    def conv(c, k, size, stride, pad):
        return [nn.Conv2d(c, k, size, stride, pad), nn.ReLU(inplace=True)]

    features = conv(3, 96, 11, 4, 0) + [nn.MaxPool2d(2)] + conv(96, 256, 5, 1, 0) + [nn.MaxPool2d(2)]
    features += conv(256, 512, 3, 1, 1) + conv(512, 1024, 3, 1, 1) + conv(1024, 1024, 3, 1, 1) + [nn.MaxPool2d(2)]
    classifier = [nn.Flatten(), nn.Dropout(), nn.Linear(1024 * 6 * 6, 3072), nn.ReLU(inplace=True)]
    classifier += [nn.Dropout(), nn.Linear(3072, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000)]
    return nn.Sequential(*features, *classifier)


def googlenet():
    """GoogLeNet v1 without local response normalization and auxiliary heads.

    Source: Szegedy et al., "Going deeper with convolutions", 2014, table 1.
    """
    import torch
    from torch import nn

    def conv(c, k, size, stride=1):
        return nn.Sequential(nn.Conv2d(c, k, size, stride, size // 2), nn.ReLU(inplace=True))

    class Inception(nn.Module):
        """Four branches, concatenated along channels; the numbers are the table's."""

        def __init__(self, c, direct, reduce3, out3, reduce5, out5, pooled):
            super().__init__()
            self.branches = nn.ModuleList([
                conv(c, direct, 1),
                nn.Sequential(conv(c, reduce3, 1), conv(reduce3, out3, 3)),
                nn.Sequential(conv(c, reduce5, 1), conv(reduce5, out5, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(c, pooled, 1)),
            ])

        def forward(self, x):
            return torch.cat([branch(x) for branch in self.branches], 1)

    def halve():
        return nn.MaxPool2d(3, 2, 1)

    return nn.Sequential(
        conv(3, 64, 7, 2), halve(), conv(64, 64, 1), conv(64, 192, 3), halve(),
        Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), halve(),
        Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128), halve(),
        Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
        nn.AvgPool2d(7), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000),
    )


def network(model):
    """A network of the suite and the side of its input."""
    import torchvision.models

    if model == "overfeat":
        return overfeat(), 231
    if model == "googlenet":
        return googlenet(), 224
    # One tower, VGG-11 and -16, and ResNets with the stride on the 3x3: the suite's definitions.
    names = {"vgg_a": "vgg11"}
    return getattr(torchvision.models, names.get(model, model))(), 224


def iteration(model, minibatch, precision, which, mode):
    """What computes one iteration on the GPU."""
    import torch

    # Elsewhere the switch is without effect, and f32 would be measured under another name.
    if precision == "tf32" and (torch.version.hip or torch.cuda.get_device_capability(0) < (8, 0)):
        raise NotSupported("TF32 needs an NVIDIA GPU of compute capability 8.0 or higher")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "f32"
    torch.backends.cudnn.benchmark = True
    half = {"bf16": torch.bfloat16, "f16": torch.float16}.get(precision)
    # Parameters are drawn on the GPU: large networks would take seconds on the host.
    with torch.device("cuda"):
        net, side = network(model)
    x = torch.randn(minibatch, 3, side, side, device="cuda")
    labels = torch.randint(0, 1000, (minibatch,), device="cuda")
    if mode != "eager":
        net = net.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    is_training = which == "forward_backward"
    net.train(is_training)
    if half and not is_training:
        net, x = net.to(half), x.to(half)
    run = torch.compile(net, mode="reduce-overhead") if mode == "compile" else net

    def infer():
        if mode == "compile":
            torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            run(x)

    parameters = list(net.parameters())
    loss_of = torch.nn.CrossEntropyLoss()
    scale = LOSS_SCALE if precision == "f16" else 1.0

    def train():
        if mode == "compile":
            torch.compiler.cudagraph_mark_step_begin()
        for parameter in parameters:
            parameter.grad = None
        # Casts cached outside of a graph would be missing inside.
        autocast = torch.autocast("cuda", dtype=half or torch.bfloat16, enabled=half is not None,
                                  cache_enabled=mode != "graph")
        with autocast:
            loss = loss_of(run(x), labels)
        (loss * scale if scale != 1.0 else loss).backward()

    step = train if is_training else infer
    if mode != "graph":
        return step
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def samples_ms(step, seconds):
    """Times of iterations that follow each other without a pause, on the GPU's clock."""
    import torch

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    step()
    torch.cuda.synchronize()
    one = time.perf_counter() - begun
    n = max(10, min(200, int(seconds / max(one, 1e-5))))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in zip(events, events[1:])]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def environment():
    """The GPU and the versions, for the first line."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    uuid = getattr(properties, "uuid", None)
    # On ROCm the same call gives MIOpen's version.
    convolutions = "miopen" if torch.version.hip else "cudnn"
    return {
        "device": properties.name, "memory_bytes": properties.total_memory,
        "integrated": bool(getattr(properties, "is_integrated", False)), "uuid": f"GPU-{uuid}" if uuid else None,
        "torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip,
        convolutions: str(torch.backends.cudnn.version()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: [part for part in text.split(",") if part]
    parser.add_argument("--models", type=listed, default=MODELS, help="networks, separated by commas")
    parser.add_argument("--modes", type=listed, default=MODES, help="modes, separated by commas")
    parser.add_argument("--rows", type=listed, default=[], metavar="PATTERN,…",
                        help="only these: model/pass/precision/minibatch with *, such as resnet*/forward/bf16")
    parser.add_argument("--minibatch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.4, help="time of the iterations of one row")
    parser.add_argument("--limit", type=float, default=540.0, metavar="SECONDS", help="begin no row after this time")
    parser.add_argument("--samples", action="store_true", help="write every iteration behind its row")
    parser.add_argument("--list", action="store_true", help="only list the rows, without a GPU")
    arguments = parser.parse_args()
    for kind, given, known in (("model", arguments.models, MODELS), ("mode", arguments.modes, MODES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"unknown {kind} {unknown[0]!r}, expected some of: {', '.join(known)}")
    rows = configurations(arguments.models, arguments.modes, arguments.minibatch)
    rows = [row for row in rows if selected(row, arguments.rows)]
    if arguments.list:
        print("\n".join(",".join(map(str, row)) for row in rows))
        return
    begun = time.monotonic()
    import torch

    print("# " + json.dumps(environment()), flush=True)
    for place, row in enumerate(rows):
        if time.monotonic() - begun > arguments.limit:
            print(f"# time limit, {len(rows) - place} rows not measured", flush=True)
            break
        name = ",".join(map(str, row))
        try:
            samples = samples_ms(iteration(*row), arguments.seconds)
            ms = median(samples)
            every = "," + " ".join(f"{sample:.3f}" for sample in samples) if arguments.samples else ""
            print(f"{name},{ms:.4f},{row[1] / ms * 1e3:.1f}{every}", flush=True)
        except Exception as error:  # A configuration that PyTorch can't do costs its row alone.
            reason = " ".join(f"{type(error).__name__}: {error}".split()).replace(",", ";")[:160]
            print(f"{name},error,{reason}", flush=True)
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
