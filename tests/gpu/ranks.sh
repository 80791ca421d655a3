#!/usr/bin/env bash
# Two ranks of torchrun on one GPU (gloo): rank 1 fails with a device assertion, rank 0 waits for it in a collective.
# In each mode the verdict must name rank 1 and the marked line. usage: CUBLAME=... OUT=... ranks.sh   (about a minute)
set -uo pipefail
cublame=${CUBLAME:?the binary} out=${OUT:-$(mktemp -d)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/two_ranks.py" <<'PY'
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
table = torch.nn.Embedding(10, 4).cuda()
index = torch.tensor([3, 12 if rank == 1 else 7], device="cuda")
row = table(index)  # @fault
total = row.sum()
host = total.cpu()
dist.all_reduce(host)
PY
python3 - "$cublame" "$work" "$out" <<'PY'
import glob, json, os, subprocess, sys

cublame, work, out = sys.argv[1:]
program = os.path.join(work, "two_ranks.py")
line = next(n for n, text in enumerate(open(program), 1) if "# @fault" in text)
wrong = 0
print("| mode | kind | rank | line (want %d) | certainty | rank 0 | verdict |" % line)
print("| --- | --- | --- | --- | --- | --- | --- |")
for mode in ("off", "trace", "blocking", "core"):
    runs = os.path.join(work, mode)
    env = dict(os.environ, CUBLAME_DIR=runs, XDG_STATE_HOME=runs + "-state", OMP_NUM_THREADS="1")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", program]
    with open(os.path.join(out, "ranks-%s.txt" % mode), "w") as log:
        try:
            subprocess.run([cublame, "run", "--mode", mode, "--", *command], env=env, stdout=log, stderr=log, timeout=150)
        except subprocess.TimeoutExpired:
            print("| %s | timed out | | | | | WRONG |" % mode)
            wrong += 1
            continue
    reports = glob.glob(os.path.join(runs, "runs/*/report.json"))
    verdicts = json.load(open(reports[0]))["verdicts"] if len(reports) == 1 else []
    if not verdicts:
        print("| %s | %d reports, no verdict | | | | | WRONG |" % (mode, len(reports)))
        wrong += 1
        continue
    verdict = verdicts[0]
    place = verdict["place"] or {}
    peers = [other["summary"] for other in verdict["collateral"] if other["rank"] == 0]
    right = (verdict["kind"], verdict["rank"], place.get("line")) == ("device-assert", 1, line)
    wrong += not right
    cells = (mode, verdict["kind"], verdict["rank"], place.get("line"), verdict["certainty"], "; ".join(peers), "right" if right else "WRONG")
    print("| %s | %s | %s | %s | %s | %s | %s |" % cells)
    with open(os.path.join(out, "ranks-%s.json" % mode), "w") as copy:
        json.dump(verdicts, copy, indent=1)
print("%d wrong; logs and verdicts in %s" % (wrong, out))
sys.exit(wrong > 0)
PY
