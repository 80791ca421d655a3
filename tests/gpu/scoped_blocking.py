#!/usr/bin/env python3
"""`cublame.blocking()` on a GPU: failing programs run inside the block after CUDA was initialised, where the variable is
too late, and the line where the exception surfaces is compared with the marked one. Then what it costs.

usage: [OUT=folder] scoped_blocking.py      (two to three minutes; Python with torch, Triton and CuPy, and nvcc)
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "server", "python")
OUT = os.environ.get("OUT", ".")

# Where blocking itself can only name another line: a graph's replay, and a backward's start. What is compiled runs
# operation by operation in the block, so the line inside is named.
PROGRAMS = {name: "@fault" for name in (
    "embedding_oob ce_label_oob index_oob gather_oob scatter_oob multinomial_nan deep_stack two_streams alone_illegal "
    "ext_illegal ext_misaligned ext_trap loop_then_illegal cupy_illegal triton_oob backward_ext").split()}
PROGRAMS.update(compiled_oob="@inner-fault", graph_replay_oob="g.replay()", cupy_operator="@fault")

CUPY_OPERATOR = '''import cupy as cp
bad = cp.ElementwiseKernel("float32 x", "float32 y", "(&y)[(size_t)1 << 40] = x", "bad")
class Table:
    def __getitem__(self, index):
        return index
    def __matmul__(self, other):
        return bad(other)
x = cp.zeros(16, dtype=cp.float32)
y = Table() @ x      # @fault
print(float(y.sum()))
'''

INSIDE = '''import runpy, sys
if "cupy" in sys.argv[1]:
    import cupy; cupy.zeros(1)
else:
    import torch; torch.zeros(1, device="cuda")
import cublame
with cublame.blocking():
    runpy.run_path(sys.argv[1], run_name="__main__")
'''

COST = '''import contextlib, sys, time, torch, torch.nn as nn
import cublame
way = {"bare": contextlib.nullcontext, "variable": contextlib.nullcontext, "torch alone": lambda: cublame.blocking(calls=False), "whole": cublame.blocking}[sys.argv[1]]
x = torch.zeros(1024, device="cuda")
def tiny():
    for _ in range(2000): x.add_(1)
layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True).cuda()
model = nn.TransformerEncoder(layer, 12).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(16, 512, 1024, device="cuda")
def step():
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = model(batch).float().pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
def python():
    total = 0
    for i in range(20000): total += len((i,))
for name, work, count, unit in (("tiny operation, us", tiny, 2000, 1e6), ("transformer step, ms", step, 1, 1e3), ("loop of Python, us", python, 20000, 1e6)):
    best = 1e9
    with way():
        for _ in range(4):
            torch.cuda.synchronize(); start = time.perf_counter(); work(); torch.cuda.synchronize()
            best = min(best, time.perf_counter() - start)
    print(name, "%.2f" % (best / count * unit), sep="\\t", flush=True)
'''


def main():
    with tempfile.TemporaryDirectory() as work:
        programs = os.path.join(work, "programs")
        shutil.copytree(os.path.join(HERE, "programs"), programs)
        write(os.path.join(programs, "cupy_operator.py"), CUPY_OPERATOR)
        write(os.path.join(work, "inside.py"), INSIDE)
        write(os.path.join(work, "cost.py"), COST)
        extension = os.path.join(work, "ext")
        os.makedirs(os.path.join(extension, "nok"))
        for name in ("ext.cu", "nok.cu"):
            shutil.copy(os.path.join(programs, name), extension)
        env = dict(os.environ, PYTHONPATH=os.pathsep.join((PACKAGE, programs)), EXT_DIR=extension)
        built = subprocess.run([sys.executable, "-c", "import extlib"], env=env, cwd=work, capture_output=True, text=True)
        say("extension: " + ("built" if built.returncode == 0 else built.stderr[-500:]))
        say("| program | wanted line | surfaced at | right | note |\n| --- | --- | --- | --- | --- |")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            rows = list(pool.map(lambda name: judge(name, programs, work, env), PROGRAMS))
        say("%d of %d right" % (sum(rows), len(rows)))
        say("\n| cost | " + " | ".join(("bare", "variable", "torch alone", "whole")) + " |\n| --- | --- | --- | --- | --- |")
        columns = [cost(way, work, env) for way in ("bare", "variable", "torch alone", "whole")]
        for name in columns[0]:
            say("| %s | " % name + " | ".join(column.get(name, "failed") for column in columns) + " |")


def judge(name, programs, work, env):
    path = os.path.join(programs, name + ".py")
    lines = open(path).read().splitlines()
    wanted = [number for number, line in enumerate(lines, 1) if PROGRAMS[name] in line]
    if name == "backward_ext":
        # The call of the extension is in a Python frame of the backward, so it is seen.
        wanted = wanted[:1]
    try:
        done = subprocess.run([sys.executable, os.path.join(work, "inside.py"), path], env=env, cwd=work, capture_output=True,
                              text=True, errors="replace", timeout=150, stdin=subprocess.DEVNULL)
        errors = done.stderr
    except subprocess.TimeoutExpired:
        errors = "timed out"
    surfaced = re.findall(r'%s\.py", line (\d+)' % name, errors)
    line = int(surfaced[-1]) if surfaced else None
    notes = re.findall(r"cublame: (raised .*)", errors)
    last = [text for text in errors.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", text)][-1:]
    right = line in wanted
    say("| %s | %s | %s | %s | %s |" % (name, wanted, line, "yes" if right else "NO", (notes or last or [errors[-200:]])[0][:160]))
    if not right:
        write(os.path.join(OUT, "scoped-%s.txt" % name), errors)
    return right


def cost(way, work, env):
    if way == "variable":
        env = dict(env, CUDA_LAUNCH_BLOCKING="1")
    done = subprocess.run([sys.executable, os.path.join(work, "cost.py"), way], env=env, capture_output=True, text=True, timeout=150)
    if done.returncode:
        say("cost, %s: %s" % (way, done.stderr[-400:]))
    return dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)


def say(text):
    print(text, flush=True)
    with open(os.path.join(OUT, "scoped_blocking.md"), "a") as table:
        table.write(text + "\n")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
