#!/usr/bin/env python3
"""Every index, label and probability program of the GPU set: run by `cublame run`, then `cublame repro --minimal`.

usage: CUBLAME=cublame [OUT=folder] repro.py [NAME...]      (about three minutes; Python with torch, on a GPU)

Prints a table: the kind of the failure, whether the call alone failed in the same way, its size, what is kept of its values.
Where it did not work, OUT has what was said, and the small programs lie there as well.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CUBLAME = os.path.abspath(os.environ["CUBLAME"])
OUT = os.path.abspath(os.environ.get("OUT", "."))

SET = ["embedding_oob", "ce_label_oob", "index_oob", "gather_oob", "scatter_oob", "multinomial_nan", "deep_stack",
       "two_streams", "threads_same_kernel", "dist_rank", "compiled_oob"]

# The other operations that assert on the device, a line each.
MORE = {
    "index_select": 'torch.randn(9, 4, device="cuda").index_select(0, torch.tensor([1, 9], device="cuda"))',
    "index_put": 'torch.zeros(9, device="cuda")[torch.tensor([2, 11], device="cuda")] = 1.0',
    "index_add": 'torch.zeros(9, 4, device="cuda").index_add_(0, torch.tensor([3, 9], device="cuda"), torch.ones(2, 4, device="cuda"))',
    "take": 'torch.randn(9, device="cuda").take(torch.tensor([0, 40], device="cuda"))',
    "embedding_bag": 'F.embedding_bag(torch.tensor([1, 12], device="cuda"), torch.randn(10, 4, device="cuda"), torch.tensor([0], device="cuda"))',
    "nll_2d": 'F.nll_loss(torch.randn(2, 5, 4, 4, device="cuda"), torch.full((2, 4, 4), 5, device="cuda"))',
    "multi_margin": 'F.multi_margin_loss(torch.randn(3, 5, device="cuda"), torch.tensor([0, 5, 1], device="cuda"))',
    "bce": 'F.binary_cross_entropy(torch.tensor([0.5, 1.5], device="cuda"), torch.ones(2, device="cuda"))',
    "bernoulli": 'torch.bernoulli(torch.tensor([0.5, 1.5], device="cuda"))',
    "one_hot": 'F.one_hot(torch.tensor([1, 7], device="cuda"), 5)',
}
BACKWARD = '''import torch, torch.nn.functional as F
class Rows(torch.autograd.Function):
    @staticmethod
    def forward(context, weight, index):
        context.save_for_backward(index)
        return weight[index.clamp(max=19)]
    @staticmethod
    def backward(context, gradient):
        (index,) = context.saved_tensors
        return torch.zeros(20, 4, device="cuda").index_add(0, index, gradient), None
weight = torch.randn(20, 4, device="cuda", requires_grad=True)
loss = Rows.apply(weight, torch.tensor([1, 2, 25], device="cuda")).sum()
loss.backward()
torch.cuda.synchronize()
'''


def main():
    chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        programs = {name: open(os.path.join(HERE, "programs", name + ".py")).read() for name in SET}
        head = "import torch, torch.nn.functional as F\n"
        programs.update((name, head + line + "\ntorch.cuda.synchronize()\n") for name, line in MORE.items())
        programs["backward"] = BACKWARD
        programs = {name: re.sub(r" *# @[\w-]+", "", text) for name, text in programs.items() if not chosen or name in chosen}
        say("| program | kind | reproduced | call | size | values kept | tries | seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            rows = list(pool.map(lambda it: one(work, *it), programs.items()))
    say("%d of %d reproduced" % (sum(rows), len(rows)))


def one(work, name, text):
    started = time.monotonic()
    folder = os.path.join(work, name)
    os.makedirs(os.path.join(folder, ".cublame"))
    with open(os.path.join(folder, name + ".py"), "w") as file:
        file.write(text)
    launch = re.search(r"^# launch: (.+)$", text, re.M)
    env = dict(os.environ, XDG_STATE_HOME=os.path.join(folder, "state"))
    command = launch[1].split() if launch else [sys.executable]
    ran = call([CUBLAME, "run", "--", *command, name + ".py"], folder, env)
    kind = re.search(r"^(?:error|warning)\[([\w-]+)\]", ran.stderr, re.M)
    made = call([CUBLAME, "repro", "--minimal", "--yes"], folder, env)
    said = re.search(r"cublame: (\S+) alone, (.+), after (\d+) tries:\n((?:  .*\n)*)", made.stderr)
    program = made.stdout.strip().splitlines()[-1:] or [""]
    if os.path.isfile(program[0]):
        shutil.copy(program[0], os.path.join(OUT, "repro-%s.py" % name))
    good = made.returncode == 0 and "cublame: reproduced: " in made.stderr
    if not good:
        with open(os.path.join(OUT, "repro-%s.txt" % name), "w") as file:
            file.write(ran.stderr[-6000:] + "\n---- repro\n" + made.stderr[-12000:])
    why = "" if good else " (%s)" % (made.stderr.strip().splitlines() or ["silent"])[-2 if "hint:" in made.stderr[-300:] else -1][:110]
    kept = "; ".join(line.strip() for line in said[4].splitlines()) if said else ""
    say("| %s | %s | %s | %s | %s | %s | %s | %.0f |" % (
        name, kind[1] if kind else "none (exit %s)" % ran.returncode, "yes" if good else "NO" + why, said[1] if said else "",
        said[2] if said else "", kept[:160], said[3] if said else "", time.monotonic() - started))
    return good


def call(command, folder, env):
    try:
        return subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=400)
    except subprocess.TimeoutExpired as expired:
        return subprocess.CompletedProcess(command, 124, "", "timed out: %s" % (expired.stderr or b"")[-3000:])


def say(text):
    print(text, flush=True)
    with open(os.path.join(OUT, "repro.md"), "a") as table:
        table.write(text + "\n")


if __name__ == "__main__":
    main()
