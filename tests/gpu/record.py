#!/usr/bin/env python3
"""Runs the failing programs of tests/fixtures/gpu on a GPU under `cublame run` and compares place with culprit.

usage: record.py CUBLAME OUT [--modes blocking,off] [--only NAME,NAME]

Needs: a CUDA GPU, python3 with torch, triton, cupy and jax, nvcc and ninja for the extension programs.
Writes OUT/table.md and OUT/table.json (program, mode, place, culprit, kind, certainty, exit code) and OUT/runs.tar.gz: the run
folders, with the machine's paths replaced by neutral ones so that they can be committed. Each program has two minutes.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures", "gpu")
PROJECT = "/home/dev/proj"
LIMIT = 120
# Programs that run at a time, and those that take the whole GPU's memory for themselves.
TOGETHER = 6
ALONE = {"cublas_alloc.py"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("cublame")
    arguments.add_argument("out")
    arguments.add_argument("--modes", default="blocking,off")
    arguments.add_argument("--only", default="")
    arguments = arguments.parse_args()
    cublame, out = os.path.abspath(arguments.cublame), os.path.abspath(arguments.out)
    culprits = {os.path.basename(row["program"]): row for row in json.load(open(os.path.join(FIXTURES, "index.json")))}
    only = set(filter(None, arguments.only.split(",")))

    shutil.rmtree(PROJECT, ignore_errors=True)
    shutil.copytree(os.path.join(FIXTURES, "programs"), PROJECT)
    for name in os.listdir(PROJECT):
        strip_answers(os.path.join(PROJECT, name))
    extension = build_extension()
    with tempfile.TemporaryDirectory() as folder:
        def one(name, mode):
            row = record(cublame, os.path.join(folder, mode, name.removesuffix(".py")), name, mode, culprits[name], extension)
            print(json.dumps(row), flush=True)
            return row

        wanted = [(name, mode) for name in sorted(culprits) if not only or name.removesuffix(".py") in only
                  for mode in arguments.modes.split(",")]
        with ThreadPoolExecutor(TOGETHER) as pool:
            rows = list(pool.map(lambda pair: one(*pair), [pair for pair in wanted if pair[0] not in ALONE]))
        rows += [one(*pair) for pair in wanted if pair[0] in ALONE]
        pack(folder, os.path.join(out, "runs.tar.gz"))
    with open(os.path.join(out, "table.json"), "w") as table:
        json.dump({"machine": machine(), "rows": rows}, table, indent=1)
    with open(os.path.join(out, "table.md"), "w") as table:
        table.write(markdown(rows))


def strip_answers(path):
    """The programs mark their culprit in a comment; the product must not see it."""
    text = open(path).read()
    open(path, "w").write(re.sub(r" *# (FORWARD-)?CULPRIT", "", text))


def build_extension():
    folder = tempfile.mkdtemp(prefix="ext-")
    for name in ("ext.cu", "nok.cu"):
        shutil.copy(os.path.join(PROJECT, name), folder)
    os.mkdir(os.path.join(folder, "nok"))
    env = dict(os.environ, EXT_DIR=folder)
    built = subprocess.run([sys.executable, "-c", "import extlib"], cwd=PROJECT, env=env, capture_output=True, text=True, timeout=400)
    print("extension:", "built" if built.returncode == 0 else built.stderr[-800:], flush=True)
    return folder


def record(cublame, folder, name, mode, row, extension):
    program = os.path.join(PROJECT, name)
    head = open(program).read()
    env = dict(os.environ, EXT_DIR=extension, CUBLAME_DIR=folder, XDG_STATE_HOME=folder + "-state")
    env.update(line.split("=", 1) for line in re.findall(r"^# env: (\S+)$", head, re.M))
    launch = re.search(r"^# launch: (.+)$", head, re.M)
    command = launch[1].split() if launch else ["python3"]
    os.makedirs(folder)
    started = time.monotonic()
    try:
        child = subprocess.run([cublame, "run", "--mode", mode, "--", *command, program], cwd=PROJECT, env=env,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        code, stderr = child.returncode, child.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        code, stderr = None, (expired.stderr or b"").decode(errors="replace")
    seconds = time.monotonic() - started
    verdict = first_verdict(folder)
    place = verdict.get("place") or {}
    with open(os.path.join(folder, "stderr.txt"), "w") as said:
        said.write(stderr[-200000:])
    return {
        "program": name, "mode": mode, "kind": verdict.get("kind"), "expected_kind": row["kind"],
        "place": place.get("line") if os.path.basename(place.get("file") or "") == name else f"{place.get('file')}:{place.get('line')}",
        "culprit": row["culprit_lines"], "right": os.path.basename(place.get("file") or "") == name and place.get("line") in row["culprit_lines"],
        "certainty": verdict.get("certainty"), "exit": code, "seconds": round(seconds, 1),
    }


def first_verdict(folder):
    for where, _, names in os.walk(folder):
        if "report.json" in names:
            verdicts = json.load(open(os.path.join(where, "report.json")))["verdicts"]
            return verdicts[0] if verdicts else {}
    return {}


def pack(folder, archive):
    """The run folders, with every path of this machine made neutral."""
    site = sysconfig.get_paths()["purelib"]
    stdlib = sysconfig.get_paths()["stdlib"]
    swaps = [(site, "/home/dev/.venv/lib/python3.12/site-packages"), (stdlib, "/usr/lib/python3.12"),
             (os.path.dirname(os.path.dirname(sys.executable)), "/home/dev/.venv"), (tempfile.gettempdir(), "/tmp"), (os.uname().nodename, "gpu-box")]
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            text = open(path, encoding="utf-8", errors="surrogateescape").read()
            for old, new in swaps:
                text = text.replace(old, new)
            open(path, "w", encoding="utf-8", errors="surrogateescape").write(text)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="runs")


def machine():
    import torch
    driver = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    versions = {"date": datetime.date.today().isoformat(), "gpu": driver.stdout.strip(), "python": sys.version.split()[0],
                "torch": torch.__version__, "cuda": torch.version.cuda}
    for module in ("triton", "cupy", "jax"):
        try:
            versions[module] = __import__(module).__version__
        except Exception as error:
            versions[module] = f"absent ({type(error).__name__})"
    return versions


def markdown(rows):
    facts = "\n".join(f"- {key}: {value}" for key, value in machine().items())
    head = "| program | mode | kind | place | culprit | right | certainty | exit |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    body = "".join(f"| {r['program']} | {r['mode']} | {r['kind']} | {r['place']} | {', '.join(map(str, r['culprit']))} | "
                   f"{'yes' if r['right'] else 'no'} | {r['certainty']} | {r['exit']} |\n" for r in rows)
    score = "".join(f"- {mode}: {sum(r['right'] for r in rows if r['mode'] == mode)} of {sum(r['mode'] == mode for r in rows)} places right\n"
                    for mode in dict.fromkeys(r["mode"] for r in rows))
    return f"# Place against culprit\n\n{facts}\n\n{score}\n{head}{body}"


if __name__ == "__main__":
    main()
