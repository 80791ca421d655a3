#!/usr/bin/env python3
"""How fast `cublame lsp` is, against `ruff server` in the same run.

usage: lsp.py CUBLAME [--ruff RUFF] [--small]

Both servers are driven by the same client, in turns, and each figure is the median of the rounds:
start to the answer to initialize; 2,000 edits, each with a hover that is waited for at the end; resident memory with
200 open files of 500 lines. Of cublame alone: from a report on disk to the published diagnostic; hovers while a run
prints a million lines; how long it takes to leave in each way.
--small divides the amounts by ten, to see that the program runs.
"""
import argparse
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROUNDS = 5
LINES = 5000
# Nothing in it to complain of: a server that publishes thousands of diagnostics would measure this client's JSON.
PROGRAM = "def compute(x):\n    return x\n\n\n" + "".join(f"value_{n} = compute({n})\n" for n in range(LINES - 4))
VERDICT = json.loads((Path(__file__).parent.parent / "fixtures/verdicts/device-assert.json").read_text())


class Client:
    """A language server and what it says; `seen` gets a queue for each method or id."""

    def __init__(self, command, root, env=None):
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=root, env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.root = root
        self.seen = {}
        self.lock = threading.Lock()
        self.last_id = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        output = self.process.stdout
        while True:
            length = 0
            while (line := output.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not line:
                return
            message = json.loads(output.read(length))
            at = time.perf_counter()
            if "id" in message and "method" in message:
                # Nothing that a server asks matters here, so that the answer is the same for both.
                result = [None] * len(message.get("params", {}).get("items", [])) or None
                self.write({"jsonrpc": "2.0", "id": message["id"], "result": result})
                continue
            self.queue(message.get("method", message.get("id"))).put((at, message))

    def queue(self, key):
        with self.lock:
            return self.seen.setdefault(key, queue.Queue())

    def write(self, message):
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def send(self, method, params):
        self.last_id += 1
        self.write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        return self.last_id

    def answer(self, identity):
        at, message = self.queue(identity).get(timeout=120)
        return at, message

    def notify(self, method, params):
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, pull=True):
        # A client that pulls diagnostics, and asks for none: what is measured is edits and hovers, not linting.
        capabilities = {"general": {"positionEncodings": ["utf-8", "utf-16"]},
                        "textDocument": {"hover": {"contentFormat": ["markdown"]}, "publishDiagnostics": {"dataSupport": True},
                                         **({"diagnostic": {}} if pull else {})}}
        params = {"processId": os.getpid(), "capabilities": capabilities,
                  "workspaceFolders": [{"uri": self.root.as_uri(), "name": "bench"}]}
        at, _ = self.answer(self.send("initialize", params))
        self.notify("initialized", {})
        return at - self.started

    def open(self, path, text):
        document = {"uri": path.as_uri(), "languageId": "python", "version": 0, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def hover(self, path, line, character=0):
        position = {"line": line, "character": character}
        return self.send("textDocument/hover", {"textDocument": {"uri": path.as_uri()}, "position": position})

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def leave(self):
        self.answer(self.send("shutdown", None))
        self.notify("exit", None)
        self.process.wait(timeout=20)


def start_time(command, root, env):
    client = Client(command, root, env)
    seconds = client.initialize()
    client.leave()
    return seconds * 1000


def edits_and_hovers(command, root, env, pairs):
    client = Client(command, root, env)
    client.initialize()
    path = root / "train.py"
    client.open(path, PROGRAM)
    client.answer(client.hover(path, 0))
    start = time.perf_counter()
    hovers = []
    for version in range(1, pairs + 1):
        at = {"line": 4 + version % (LINES - 4), "character": 0}
        change = {"range": {"start": at, "end": at}, "text": "x"}
        client.notify("textDocument/didChange",
                      {"textDocument": {"uri": path.as_uri(), "version": version}, "contentChanges": [change]})
        hovers.append(client.hover(path, version % LINES, 1))
    for hover in hovers:
        client.answer(hover)
    seconds = time.perf_counter() - start
    client.leave()
    return seconds


def memory_with_open_files(command, root, env, files):
    client = Client(command, root, env)
    client.initialize()
    text = "".join(PROGRAM.splitlines(keepends=True)[:500])
    for number in range(files):
        client.open(root / f"file_{number}.py", text)
    client.answer(client.hover(root / "file_0.py", 0))
    time.sleep(1)
    megabytes = client.memory()
    client.leave()
    return megabytes


def write_run(root, number, line):
    """A run folder without its report, and the report that is to be renamed into it."""
    now = time.time()
    millis = int(now * 1000) % 1000
    name = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)) + f".{millis:03d}Z-{number:08x}"
    folder = root / ".cublame/runs" / name
    (folder / "events").mkdir(parents=True)
    path = str(root / "train.py")
    run = {"schema": 1, "id": name, "watch": "supervised", "mode": "off", "argv": ["python3", "train.py"],
           "cwd": str(root), "entry": path, "started": now, "host": os.uname().nodename, "runner": None, "child": None,
           "blocking": False, "env": {}}
    (folder / "run.json").write_text(json.dumps(run))
    place = {**VERDICT["place"], "path": path, "line": line, "column": None, "end_column": None}
    verdict = {**VERDICT, "place": place, "reported": None, "frames": [], "summary": f"failure {number}"}
    report = {"schema": 1, "run": name, "finished": now + 1, "exit": {"code": 1, "signal": None}, "partial": [],
              "verdicts": [verdict]}
    aside = folder / ".report.json.new"
    aside.write_text(json.dumps(report))
    return aside, folder / "report.json"


def report_to_diagnostic(cublame, root, env, reports):
    (root / "train.py").write_text(PROGRAM)
    client = Client([cublame, "lsp"], root, env)
    client.initialize()
    client.open(root / "train.py", PROGRAM)
    published = client.queue("textDocument/publishDiagnostics")
    milliseconds = []
    for number in range(reports):
        aside, report = write_run(root, number, 1 + number)
        time.sleep(0.1)
        start = time.perf_counter()
        aside.rename(report)
        while True:
            at, message = published.get(timeout=20)
            if any(f"ailure {number}." in it["message"] for it in message["params"]["diagnostics"]):
                break
        milliseconds.append((at - start) * 1000)
    client.leave()
    return milliseconds


def hovers_during_a_run(cublame, root, env, lines):
    """A supervised run floods while hovers are asked, one after the other."""
    client = Client([cublame, "lsp"], root, env)
    client.initialize()
    client.open(root / "train.py", PROGRAM)
    flood = f"import sys\nfor n in range({lines}): sys.stdout.write('step %d loss 0.123456 and some more words\\n' % n)\n"
    run = subprocess.Popen([cublame, "run", "--mode", "off", "--", sys.executable, "-c", flood], cwd=root,
                           env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    milliseconds = []
    while run.poll() is None:
        start = time.perf_counter()
        at, _ = client.answer(client.hover(root / "train.py", 1))
        milliseconds.append((at - start) * 1000)
        time.sleep(0.002)
    client.leave()
    return milliseconds


def leaving(cublame, root, env):
    times = {}

    def measure(name, act, **extra):
        client = Client([cublame, "lsp"], root, env)
        client.initialize()
        start = time.perf_counter()
        act(client)
        client.process.wait(timeout=20)
        times[name] = (time.perf_counter() - start) * 1000

    measure("end of file", lambda client: client.process.stdin.close())
    measure("exit, input held open", lambda client: client.notify("exit", None))

    editor = subprocess.Popen(["sleep", "600"])
    client = Client([cublame, "lsp"], root, env)
    params = {"processId": editor.pid, "capabilities": {}, "rootUri": root.as_uri()}
    client.answer(client.send("initialize", params))
    time.sleep(1)
    start = time.perf_counter()
    os.kill(editor.pid, signal.SIGKILL)
    client.process.wait(timeout=20)
    times["the editor killed"] = (time.perf_counter() - start) * 1000
    editor.wait()
    return times


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cublame")
    parser.add_argument("--ruff")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    cublame = str(Path(arguments.cublame).resolve())
    divide = 10 if arguments.small else 1
    with tempfile.TemporaryDirectory(prefix="cublame-bench-") as folder:
        root = Path(folder) / "proj"
        (root / ".cublame/runs").mkdir(parents=True)
        (root / "train.py").write_text(PROGRAM)
        env = {"XDG_STATE_HOME": str(Path(folder) / "state")}
        servers = {"cublame lsp": [cublame, "lsp"]}
        if arguments.ruff:
            servers["ruff server"] = [str(Path(arguments.ruff).resolve()), "server"]
        figures = [
            ("start to initialize, ms", lambda command: start_time(command, root, env)),
            (f"{2000 // divide} edits with hovers, s", lambda command: edits_and_hovers(command, root, env, 2000 // divide)),
            (f"memory with {200 // divide} open files, MB",
             lambda command: memory_with_open_files(command, root, env, 200 // divide)),
        ]
        print(f"{'':36}" + "".join(f"{name:>14}" for name in servers) + f"{'ratio':>8}")
        for name, measure in figures:
            values = {server: [] for server in servers}
            for _ in range(ROUNDS):
                for server, command in servers.items():
                    values[server].append(measure(command))
            medians = [statistics.median(values[server]) for server in servers]
            ratio = f"{medians[0] / medians[1]:8.2f}" if len(medians) == 2 else ""
            print(f"{name:36}" + "".join(f"{median:14.2f}" for median in medians) + ratio)
        latencies = report_to_diagnostic(cublame, root, env, 50 // divide)
        print(f"report on disk to diagnostic, ms: median {statistics.median(latencies):.1f}, largest {max(latencies):.1f}")
        latencies = hovers_during_a_run(cublame, root, env, 1_000_000 // divide)
        print(f"hover while a run prints, ms: median {statistics.median(latencies):.2f}, "
              f"p99 {percentile(latencies, 0.99):.2f}, {len(latencies)} hovers")
        for name, milliseconds in leaving(cublame, root, env).items():
            print(f"leaves on {name}, ms: {milliseconds:.0f}")


if __name__ == "__main__":
    main()
