#!/usr/bin/env python3
"""Guard mode on a GPU: the value, its position and the line of each bad argument, a living context after it, torch.compile and
CUDA graphs under the guard, and what it costs.

usage: CUBLAME=path/to/cublame [OUT=folder] python3 tests/gpu/guard.py [programs|cases|compiled|costs]...

Needs a CUDA GPU and python3 with torch (torchvision for ResNet-50; without it that row is left out). No network.
It prints a table for each part and ends with `PASSED` or `FAILED`; with OUT the same text is in OUT/guard.txt. Under 3 minutes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "server", "python")
CASES = os.path.join(HERE, "..", "torch")
WAYS = ("strict", "deferred")
PARTS = ("programs", "cases", "compiled", "costs")

# A program of tests/gpu/programs, and what the exception has to say.
PROGRAMS = {
    "embedding_oob": "embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)",
    "ce_label_oob": "nll_loss target label: value 10 at [5] is outside [0, 10) (1 of 16)",
    "gather_oob": "gather index: value 6 at [0, 0] is outside [0, 6) (64 of 64)",
    "index_oob": "index for dimension 1: value 16 at [0] is outside [-16, 16) (8 of 8)",
    "scatter_oob": "scatter_add index: value 77 at [10] is outside [0, 50) (",
    "multinomial_nan": "multinomial probability: value nan at [1, 0] is outside [0, inf) (100 of 400)",
    "graph_replay_oob": "index: value 100 at [5] is outside [-100, 100) (1 of 64)",
    "dist_rank": "embedding index: value 100 at [0] is outside [0, 100) (1 of 1)",
}

failed = []
printed = []


def main():
    parts = sys.argv[1:] or PARTS
    for part in parts:
        say("", "## " + part)
        try:
            globals()["check_" + part]()
        except Exception:
            failed.append(part)
            say(traceback.format_exc())
    say("", "FAILED: " + ", ".join(failed) if failed else "PASSED")
    if os.environ.get("OUT"):
        with open(os.path.join(os.environ["OUT"], "guard.txt"), "w") as file:
            file.write("\n".join(printed) + "\n")
    sys.exit(bool(failed))


def say(*lines):
    printed.extend(lines)
    print("\n".join(lines), flush=True)


def expect(name, right, detail=""):
    if not right:
        failed.append(name)
    return "ok" if right else "WRONG " + detail


def python(code, *arguments, **env):
    """Runs code in an interpreter of its own, the package and the cases on its path; a line `{...}` of it is its result."""
    path = os.pathsep.join([PACKAGE, CASES])
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, **env}, capture_output=True, text=True, timeout=300,
    )
    results = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return results[-1] if results else {}, process.stdout[-600:] + process.stderr[-1500:]


# Programs under `cublame run`.


ALIVE = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except BaseException:
    import torch
    try:
        print("CONTEXT", "alive" if torch.ones(3, device="cuda").sum().item() == 3 else "lies", flush=True)
    except Exception:
        print("CONTEXT", "dead", flush=True)
    raise
"""


def check_programs():
    cublame = os.path.abspath(os.environ["CUBLAME"])
    say("| program | way | value and position | line | kind, certainty | context |", "| --- | --- | --- | --- | --- | --- |")
    pairs = [(name, way) for name in PROGRAMS for way in WAYS]
    with ThreadPoolExecutor(6) as pool:
        rows = pool.map(lambda pair: run_program(cublame, pair[0], PROGRAMS[pair[0]], pair[1]), pairs)
        for (name, way), row in zip(pairs, rows):
            say("| %s | %s | %s |" % (name, way, " | ".join(row)))


def run_program(cublame, name, sentence, way):
    program = os.path.join(HERE, "programs", name + ".py")
    source = open(program).read()
    fault = next(number for number, line in enumerate(source.splitlines(), 1) if "# @fault" in line)
    torchrun = re.search(r"^# launch: torchrun (.+)$", source, re.M)
    with tempfile.TemporaryDirectory() as folder:
        alive = os.path.join(folder, "alive.py")
        open(alive, "w").write(ALIVE)
        launch = ["-m", "torch.distributed.run", *torchrun[1].split(), program] if torchrun else [alive, program]
        report = os.path.join(folder, "report.json")
        env = {**os.environ, "CUBLAME_GUARD": way, "CUBLAME_DIR": os.path.join(folder, "runs"), "XDG_STATE_HOME": folder}
        process = subprocess.run(
            [cublame, "run", "--mode", "guard", "--report", report, "--", sys.executable, *launch],
            env=env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
        )
        text = process.stdout + process.stderr
        verdicts = json.load(open(report))["verdicts"] if os.path.exists(report) else []
    first = verdicts[0] if verdicts else {}
    place = first.get("place") or {}
    message = (first.get("exception") or {}).get("message", "")
    label = name + " " + way
    in_place = (os.path.basename(place.get("file", "")), place.get("line")) == (name + ".py", fault)
    proved = (first.get("kind"), first.get("certainty")) == ("device-assert", "exact")
    living = "CONTEXT alive" in text or bool(torchrun)
    row = [
        expect(label, sentence in message, message.split("\n")[0] or text[-300:]),
        expect(label, in_place, "%s:%s instead of %d" % (place.get("file"), place.get("line"), fault)),
        expect(label, proved, "%s %s" % (first.get("kind"), first.get("certainty"))),
        ("not asked" if torchrun else "alive") if living else expect(label, False, "dead"),
    ]
    if any(cell.startswith("WRONG") for cell in row):
        print(text[-3000:], file=sys.stderr)
    return row


# Every guarded op.


CASES_CODE = """
import json, sys, torch, guard_cases
from cublame import guarding
way = sys.argv[1]
wrong, dead = [], None
guarding.install(way)
torch.zeros(1, device="cuda")
def sentence_of(call):
    try:
        call()
        torch.cuda.synchronize()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
def check(name, call, wanted):
    global dead
    if dead:
        return
    found = sentence_of(call)
    if found != wanted:
        wrong.append("%s: %s" % (name, found))
    try:
        assert torch.ones(3, device="cuda").sum().cpu().tolist() == 3
    except Exception as error:
        dead = name
for name, call, kind, sentence in guard_cases.WRONG:
    check(name, lambda: call("cuda"), (kind, sentence))
for name, call in guard_cases.RIGHT:
    check(name, lambda: call("cuda"), None)
for name, call, sentence in guard_cases.backward_cases("cuda"):
    check("backward of " + name, call, ("GuardIndexError", sentence))
fused = guarding._installed.lookers.get(0) is not None
print(json.dumps({"cases": len(guard_cases.WRONG) + len(guard_cases.RIGHT) + 5, "wrong": wrong, "dead": dead, "fused": fused}))
"""


def check_cases():
    say("| way | cases | wrong | context | fused kernel |", "| --- | --- | --- | --- | --- |")
    for way in WAYS:
        result, text = python(CASES_CODE, way)
        right = bool(result) and not result["wrong"] and not result["dead"] and result["fused"]
        expect("cases " + way, right)
        if not result:
            say(text)
            continue
        dead = "dead after " + result["dead"] if result["dead"] else "alive"
        say("| %s | %d | %d | %s | %s |" % (way, result["cases"], len(result["wrong"]), dead, "yes" if result["fused"] else "NO"))
        say(*["  " + line for line in result["wrong"]])
        if not right:
            print(text, file=sys.stderr)


# torch.compile, captured graphs, autocast, vmap, streams and threads.


COMPILED_CODE = """
import json, sys, threading, torch, torch.nn as nn, torch.nn.functional as F
from cublame import guarding
from cublame.guard_errors import GuardIndexError
way = sys.argv[1]
done = {}
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 10)).cuda()
tokens = torch.randint(0, 100, (8, 4), device="cuda")
labels = torch.randint(0, 10, (32,), device="cuda")
def loss_of(net, tokens):
    return F.cross_entropy(net(tokens).flatten(0, 1), labels)
def gradient(net, loss):
    net.zero_grad(); loss.backward(); return net[0].weight.grad.clone()
bare = model()
wanted = gradient(bare, loss_of(bare, tokens))
guarding.install(way)
def attempt(name, call):
    try:
        done[name] = call() or "ok"
    except Exception as error:
        done[name] = "%s: %s" % (type(error).__name__, str(error).splitlines()[0])
def same_gradient():
    net = model()
    assert torch.allclose(gradient(net, loss_of(net, tokens)), wanted, atol=1e-6)
def compiled():
    net = model()
    step = torch.compile(loss_of, fullgraph=True)
    assert torch.allclose(gradient(net, step(net, tokens)), wanted, atol=1e-5)
def reduce_overhead():
    net = model()
    step = torch.compile(net, mode="reduce-overhead", fullgraph=True)
    with torch.no_grad():
        for _ in range(4):
            out = step(tokens).clone()
        assert torch.allclose(out, net(tokens), atol=1e-5)
def captured():
    net = model()
    static = tokens.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3): net(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        out = net(static)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(out, net(tokens), atol=1e-5)
    static[2, 1] = 100
    graph.replay()
    try:
        torch.cuda.synchronize()
    except GuardIndexError as error:
        assert "value 100 at [2, 1]" in str(error), error
    else:
        return "the bad index of a replay was not told of"
    static[2, 1] = 5
    graph.replay()
    torch.cuda.synchronize()
def autocast():
    net = model()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss_of(net, tokens).backward()
        bad = tokens.clone(); bad[1, 1] = -1
        try:
            net(bad).sum().item()
        except GuardIndexError as error:
            assert "value -1 at [1, 1]" in str(error), error
        else:
            return "a bad index was not told of"
def vmapped():
    rows = torch.arange(12.0, device="cuda").reshape(3, 4)
    picks = torch.tensor([[0], [3], [4]], device="cuda")
    try:
        torch.vmap(lambda row, pick: row.gather(0, pick))(rows, picks); torch.cuda.synchronize()
    except GuardIndexError as error:
        assert "value 4" in str(error), error
    else:
        return "a bad index was not told of"
def streams_and_threads():
    found = []
    def work(bad):
        stream = torch.cuda.Stream()
        try:
            with torch.cuda.stream(stream):
                for i in range(200):
                    F.embedding(torch.tensor([i % 100], device="cuda"), bare[0].weight.detach())
                if bad:
                    F.embedding(torch.tensor([100], device="cuda"), bare[0].weight.detach())
                stream.synchronize(); torch.cuda.synchronize()
        except GuardIndexError as error:
            found.append(str(error).splitlines()[0])
    threads = [threading.Thread(target=work, args=(number == 2,)) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    try: torch.cuda.synchronize()
    except GuardIndexError as error: found.append(str(error).splitlines()[0])
    assert found == ["embedding index: value 100 at [0] is outside [0, 100) (1 of 1)"], found
for call in (same_gradient, compiled, reduce_overhead, captured, autocast, vmapped, streams_and_threads):
    attempt(call.__name__, call)
attempt("alive", lambda: None if torch.ones(3, device="cuda").sum().item() == 3 else "dead")
print(json.dumps(done))
"""


def check_compiled():
    say("| what | " + " | ".join(WAYS) + " |", "| --- | --- | --- |")
    results = {}
    with ThreadPoolExecutor(len(WAYS)) as pool:
        for way, (result, text) in zip(WAYS, pool.map(lambda way: python(COMPILED_CODE, way), WAYS)):
            results[way] = result
            if not result:
                expect("compiled " + way, False)
                say(text)
    for what in results[WAYS[0]] or results[WAYS[1]]:
        cells = [results[way].get(what, "not reached") for way in WAYS]
        for way, cell in zip(WAYS, cells):
            expect("%s %s" % (what, way), cell == "ok")
        say("| %s | %s |" % (what, " | ".join(cells)))


# What it costs.


COSTS_CODE = """
import json, os, statistics, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
from cublame import guarding
dev = "cuda"
def once(step, n):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n): step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n * 1e3
def gpt(d=1024, layers=12, heads=16, batch=16, length=1024, words=8192):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)
            self.q, self.p = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.u, self.v = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        def forward(self, x):
            q, k, v = self.q(self.a(x)).view(batch, length, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            x = x + self.p(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, d))
            return x + self.v(F.gelu(self.u(self.b(x))))
    net = nn.Sequential(nn.Embedding(words, d), *[Block() for _ in range(layers)], nn.Linear(d, words)).to(dev)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    tokens = torch.randint(0, words, (batch, length), device=dev)
    def step():
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(tokens).flatten(0, 1).float(), tokens.flatten())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    return step
def resnet50():
    import torchvision
    net = torchvision.models.resnet50().to(dev, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=.01, momentum=.9)
    images = torch.randn(128, 3, 224, 224, device=dev).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (128,), device=dev)
    def step():
        with torch.autocast(dev, dtype=torch.bfloat16): loss = F.cross_entropy(net(images), labels)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    return step
def unguarded_op():
    x = torch.zeros(1024, device=dev)
    return lambda: x.add_(1)
def embedding_op():
    weight, tokens = torch.randn(1000, 64, device=dev), torch.randint(0, 1000, (512,), device=dev)
    return lambda: torch.embedding(weight, tokens)
workloads = {"GPT, a step": (gpt, 10), "GPT small, a step": (lambda: gpt(256, 6, 4, 4, 128), 40), "ResNet-50, a step": (resnet50, 10),
             "tiny unguarded op": (unguarded_op, 20000), "embedding of 512": (embedding_op, 2000)}
ways = ("bare",) if sys.argv[1] == "blocking" else ("bare", "deferred", "strict")
result = {}
for name, (make, n) in workloads.items():
    try:
        step = make()
    except ImportError as error:
        print(name, "is left out:", error); continue
    times = {way: [] for way in ways}
    for _ in range(5): once(step, max(1, n // 5))
    for _ in range(5):
        for way in ways:
            if way != "bare": guarding.install(way)
            once(step, max(1, n // 5))
            times[way].append(once(step, n))
            if way != "bare": guarding.uninstall()
    result[name] = {way: statistics.median(found) for way, found in times.items()}
    del step
    torch.cuda.empty_cache()
print(json.dumps(result))
"""


def check_costs():
    figures, text = python(COSTS_CODE, "guard")
    blocking, more = python(COSTS_CODE, "blocking", CUDA_LAUNCH_BLOCKING="1")
    if not figures:
        expect("costs", False)
        say(text, more)
        return
    say("Medians of five interleaved rounds, in one process; blocking in a process of its own, just after.", "")
    say("| workload | bare | deferred | strict | blocking | targets |", "| --- | --- | --- | --- | --- | --- |")
    for name, found in figures.items():
        bare = found["bare"]
        slow = blocking.get(name, {}).get("bare")
        targets = ""
        if name.endswith("a step") and "small" not in name:
            met = found["deferred"] <= 1.02 * bare, found["strict"] <= 1.15 * bare
            targets = "deferred %s 1.02, strict %s 1.15" % tuple("within" if yes else "OVER" for yes in met)
        ratios = [bare, found["deferred"] / bare, found["strict"] / bare, slow / bare if slow else float("nan")]
        say("| %s | %.4f ms | %.3f | %.3f | %.2f | %s |" % (name, *ratios, targets))


main()
