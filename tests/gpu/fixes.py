#!/usr/bin/env python3
"""The fixes of failures, on a real GPU: each program fails, the first edit of its report is made, and it is run again.

usage: CUBLAME=/path/to/cublame OUT=folder fixes.py

A program is fixed when it ends well after the edit, or, where the edit is a check, when it raises the check's own IndexError
or ValueError, and no CUDA error, at the line of the check. The table says which; each row's texts are in OUT. About a minute.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

CUBLAME = os.environ["CUBLAME"]
OUT = Path(os.environ.get("OUT", "fixes-out")).resolve()

# What the program does, the outcome after the first edit (`ends well`, or the exception's name), and its text.
PROGRAMS = {
    "embedding": ("IndexError", """
import torch
from torch import nn
emb = nn.Embedding(10, 4).cuda()
tok = torch.tensor([3, 12], device="cuda")
y = emb(tok)
print(y.sum().item())
"""),
    "gather": ("IndexError", """
import torch
logits = torch.randn(4, 5, device="cuda")
ids = torch.tensor([[1], [2], [7], [0]], device="cuda")
picked = logits.gather(1, ids)
print(picked.sum().item())
"""),
    "indexing": ("IndexError", """
import torch
x = torch.randn(8, device="cuda")
idx = torch.tensor([1, 9], device="cuda")
y = x[idx]
print(y.sum().item())
"""),
    "padding": ("ends well", """
import torch
import torch.nn.functional as F
pad_id = 10
logits = torch.randn(6, 10, device="cuda")
target = torch.tensor([1, 2, 3, 10, 10, 10], device="cuda")
loss = F.cross_entropy(logits, target)
print(loss.item())
"""),
    "labels": ("IndexError", """
import torch
import torch.nn.functional as F
logits = torch.randn(3, 10, device="cuda")
target = torch.tensor([1, 2, 11], device="cuda")
loss = F.cross_entropy(logits, target)
print(loss.item())
"""),
    "no sigmoid": ("ends well", """
import torch
import torch.nn.functional as F
logits = 4 * torch.randn(64, device="cuda")
target = torch.ones(64, device="cuda")
loss = F.binary_cross_entropy(logits, target)
print(loss.item())
"""),
    "draw": ("ValueError", """
import torch
probs = torch.full((2, 4), float("nan"), device="cuda")
drawn = torch.multinomial(probs, 1)
print(drawn.sum().item())
"""),
    "two devices": ("ends well", """
import torch
def f(x, mask):
    return x * mask
x = torch.randn(4, 4, device="cuda")
mask = torch.ones(4, 4)
print(f(x, mask).sum().item())
"""),
    "checkpoint": ("ends well", """
import os
import subprocess
import sys
import torch
if torch.cuda.is_available():
    torch.save(torch.ones(3, device="cuda"), "best.pt")
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    sys.exit(subprocess.run([sys.executable, __file__], env=env).returncode)
state = torch.load("best.pt")
print(state.sum().item())
"""),
}


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
    return done.returncode, done.stdout + done.stderr


def outcome(code, printed):
    if code == 0:
        return "ends well"
    named = [line for line in printed.splitlines() if line and not line[0].isspace() and ("Error" in line.split(":")[0])]
    return named[-1].split(":")[0].split(".")[-1] if named else f"exit code {code}"


def applied(text, diff):
    """The text after a unified diff, which must fit it line by line."""
    lines, after, at = text.splitlines(keepends=True), [], 0
    for line in diff.splitlines(keepends=True):
        if line.startswith(("--- ", "+++ ", "\\")):
            continue
        if line.startswith("@@"):
            start = int(line.split()[1].split(",")[0].lstrip("-")) - 1
            after += lines[at:start]
            at = start
        elif line.startswith("+"):
            after.append(line[1:])
        else:
            if lines[at] != line[1:]:
                raise ValueError(f"the edit is for another text: {line!r} where {lines[at]!r} is")
            after += [lines[at]] if line.startswith(" ") else []
            at += 1
    return "".join(after + lines[at:])


def try_one(name, text):
    folder = OUT / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "program.py"
    program.write_text(text.lstrip("\n"))
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    code, printed = run([CUBLAME, "run", "--report", str(report), "--", sys.executable, str(program)], folder)
    (folder / "first.txt").write_text(printed)
    if not report.exists():
        return outcome(code, printed), None, None, "no report was written"
    verdicts = json.loads(report.read_text())["verdicts"]
    edits = [(it["id"], it["edit"]) for verdict in verdicts for it in verdict["advice"] if it["edit"]]
    if not edits:
        return outcome(code, printed), None, None, "no advice has an edit"
    advice, diff = edits[0]
    (folder / "edit.diff").write_text(diff)
    program.write_text(applied(program.read_text(), diff))
    after, reprinted = run([sys.executable, str(program)], folder)
    (folder / "second.txt").write_text(reprinted)
    note = "a CUDA error is left" if "CUDA error" in reprinted else ""
    return outcome(code, printed), advice, outcome(after, reprinted), note


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    right = 0
    print(f"{'program':12} {'fails with':22} {'advice':22} {'after the edit':14} {'wanted':12} ")
    for name, (wanted, text) in PROGRAMS.items():
        before, advice, after, note = try_one(name, text)
        good = after == wanted and not note
        right += good
        verdict = "ok" if good else f"WRONG {note}"
        print(f"{name:12} {before:22} {advice or '-':22} {after or '-':14} {wanted:12} {verdict}")
    print(f"{right} of {len(PROGRAMS)} programs are fixed by the first edit of their report")
    sys.exit(0 if right == len(PROGRAMS) else 1)


if __name__ == "__main__":
    main()
