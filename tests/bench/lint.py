#!/usr/bin/env python3
"""How fast the lint is, against ruff over the same files in the same run.

usage: lint.py CUBLAME --ruff RUFF FOLDER... [--small]

Whole tree: `cublame lint` with its sixteen rules and `ruff check` without its cache with as many, over every Python file of
the folders, in turns; the median of the rounds.
As typed: a program of 5,000 lines in which every edit changes what is found; from the edit to the published diagnostics,
in `cublame lsp` and in `ruff server` with the same sixteen rules, in turns.
--small takes fewer rounds and edits, to see that the program runs.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from lsp import Client, percentile  # noqa: E402

# As many rules as cublame has, each of which has to look at the syntax tree or at what names are bound to.
RUFF_RULES = ("F401,F811,F821,F841,B006,B007,B008,B023,B904,E711,E712,E722,UP008,SIM102,PERF401,RUF005")
ROUNDS = 7
LINES = 5000


def seconds(command, folder):
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # 1: there are findings.
    if done.returncode not in (0, 1):
        sys.exit(f"{command[0]} failed: {done.stderr.decode()}")
    return time.perf_counter() - start


def whole_tree(cublame, ruff, folders, rounds):
    """Both get the files by name: which folders count as a project's own is another question."""
    files = sorted(str(file) for folder in folders for file in Path(folder).resolve().rglob("*.py"))
    size = sum(Path(file).stat().st_size for file in files)
    print(f"{len(files)} files, {size / 1e6:.1f} MB")
    commands = {
        "cublame lint": [cublame, "lint", *files],
        "ruff check": [ruff, "check", "--isolated", "--no-cache", "--select", RUFF_RULES, "--quiet", *files],
    }
    values = {name: [] for name in commands}
    with tempfile.TemporaryDirectory(prefix="cublame-bench-") as folder:
        for _ in range(rounds + 1):
            for name, command in commands.items():
                values[name].append(seconds(command, folder))
    # The first round reads the files from the disk.
    return {name: times[1:] for name, times in values.items()}


def program():
    """Functions and a class as people write them, every one of them about the GPU."""
    head = "import os\nimport torch\nfrom torch import nn\n\n"
    body = ""
    number = 0
    while (head + body).count("\n") < LINES - 20:
        number += 1
        body += (
            f"class Block{number}(nn.Module):\n"
            "    def __init__(self, width):\n"
            "        super().__init__()\n"
            "        self.norm = nn.LayerNorm(width)\n"
            "        self.up = nn.Linear(width, 4 * width)\n"
            "        self.down = nn.Linear(4 * width, width)\n\n"
            "    def forward(self, x):\n"
            "        return x + self.down(torch.relu(self.up(self.norm(x))))\n\n\n"
            f"def step_{number}(model, batch, optimizer):\n"
            "    images, labels = (tensor.cuda(non_blocking=True) for tensor in batch)\n"
            "    optimizer.zero_grad(set_to_none=True)\n"
            "    loss = nn.functional.cross_entropy(model(images), labels)\n"
            "    loss.backward()\n"
            "    optimizer.step()\n"
            "    return loss.item()\n\n\n"
        )
    return head + body


def as_typed(command, edits, root, env, line, finding):
    """Alternately types a character into the last line and takes it out, so that a finding comes and goes.

    `line` is that line with the character; `finding` is the code of the diagnostic that it has.
    """
    text = program() + line.replace("¦", "")
    last = text.count("\n") - 1
    column = line.index("¦")
    client = Client(command, root, env)
    client.initialize(pull=False)
    path = root / "train.py"
    published = client.queue("textDocument/publishDiagnostics")
    client.open(path, text)

    def wait(there):
        while True:
            at, message = published.get(timeout=60)
            if any(it.get("code") == finding for it in message["params"]["diagnostics"]) == there:
                return at

    wait(True)
    times = []
    for version in range(1, edits + 1):
        typed = version % 2 == 1
        start = {"line": last, "character": column}
        end = start if typed else {"line": last, "character": column + 1}
        change = {"range": {"start": start, "end": end}, "text": "#" if typed else ""}
        began = time.perf_counter()
        client.notify("textDocument/didChange",
                      {"textDocument": {"uri": path.as_uri(), "version": version}, "contentChanges": [change]})
        times.append((wait(not typed) - began) * 1000)
        time.sleep(0.02)
    client.leave()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cublame")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--ruff", required=True)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_intermixed_args()
    cublame, ruff = (str(Path(it).resolve()) for it in (arguments.cublame, arguments.ruff))
    if arguments.folders:
        times = whole_tree(cublame, ruff, arguments.folders, 2 if arguments.small else ROUNDS)
        medians = {name: statistics.median(values) for name, values in times.items()}
        for name, values in times.items():
            print(f"{name:14} median {medians[name]:.3f} s, from {min(values):.3f} to {max(values):.3f}")
        print(f"ratio          {medians['cublame lint'] / medians['ruff check']:.2f}")
    edits = 20 if arguments.small else 200
    with tempfile.TemporaryDirectory(prefix="cublame-bench-") as folder:
        root = Path(folder) / "proj"
        root.mkdir()
        (root / "ruff.toml").write_text("lint.select = [" + ", ".join(f'"{it}"' for it in RUFF_RULES.split(",")) + "]\n")
        env = {"XDG_STATE_HOME": str(Path(folder) / "state"), "RUFF_NO_CACHE": "1"}
        servers = {
            "cublame lsp": ([cublame, "lsp"], '¦os.environ["TORCH_USE_CUDA_DSA"] = "1"\n', "dsa-env"),
            "ruff server": ([ruff, "server"], "¦unused = undefined_name\n", "F821"),
        }
        times = {name: [] for name in servers}
        for _ in range(1 if arguments.small else 3):
            for name, (command, line, finding) in servers.items():
                times[name] += as_typed(command, edits, root, env, line, finding)
        for name, values in times.items():
            print(f"{name:14} edit to diagnostics, ms: median {statistics.median(values):.2f}, "
                  f"p95 {percentile(values, 0.95):.2f}, largest {max(values):.2f}, {len(values)} edits")


if __name__ == "__main__":
    main()
