"""The parts of ../capture.sh. Each says what it wants to see, and what it saw."""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(os.path.dirname(HERE), "programs")
CUBLAME, WORK = os.environ["CUBLAME"], os.environ["WORK"]
failures = []


def expect(what, seen):
    print("  %-7s %s" % ("ok" if seen else "WRONG", what))
    if not seen:
        failures.append(what)


def run(program, *options, mode="off", watch=None, env=()):
    """Runs a program under cublame, and gives its report, its own output and how long it took."""
    folder = os.path.join(WORK, "runs", "%d" % time.time_ns())
    changed = dict(os.environ, CUBLAME_DIR=folder, **dict(env))
    started = time.time()
    command = [CUBLAME, "run", "--mode", mode, *options, "--", sys.executable, program]
    process = subprocess.Popen(command, env=changed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    watched = watch(process) if watch else None
    try:
        out, err = process.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    found = [os.path.join(where, "report.json") for where, _, names in os.walk(folder) if "report.json" in names]
    report = json.load(open(found[0])) if found else {"verdicts": [], "telemetry": []}
    return report, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), time.time() - started, watched


def first(report):
    return report["verdicts"][0] if report["verdicts"] else {}


def where(verdict):
    place = verdict.get("place") or {}
    return "%s:%s %s" % (os.path.basename(place.get("file") or "?"), place.get("line"), verdict.get("certainty"))


def marked(program, marker):
    return [number for number, line in enumerate(open(program), 1) if marker in line]


def words(tensor):
    return "%s: %s%s %s" % (tensor["name"], tensor["dtype"], tensor["shape"], tensor["device"])


def tensors():
    print("\n== tensors of the failing frames, after a GPU fault")
    for name, wanted in (
        ("embedding_oob", "tok: int64[32, 128] cuda:0"),
        ("index_oob", None),
        ("ce_label_oob", None),
        ("mismatch", None),
        ("cupy_illegal", None),
        ("triton_oob", None),
        ("jax_oom", None),
    ):
        report, _, err, took, _ = run(os.path.join(PROGRAMS, name + ".py"), mode="blocking")
        verdict = first(report)
        told = [words(tensor) for tensor in verdict.get("tensors", [])]
        objects = ["%s: %s" % (it["name"], it["class"]) for it in verdict.get("objects", [])]
        print("%s: %s, %s; %s" % (name, verdict.get("kind"), where(verdict), "%.1f s" % took))
        print("    " + "; ".join(told[:8] + objects[:4]))
        expect("%s: its tensors are told" % name, wanted in told if wanted else bool(told))


def telemetry():
    print("\n== telemetry")

    def cpu_of_sampling(process):
        """Nanoseconds on the CPU of the supervisor's own thread, over twelve samples."""
        time.sleep(4)
        path = None
        for task in os.listdir("/proc/%d/task" % process.pid):
            if open("/proc/%d/task/%s/comm" % (process.pid, task)).read().strip() == "telemetry":
                path = "/proc/%d/task/%s/schedstat" % (process.pid, task)
        if path is None:
            return None
        before = int(open(path).read().split()[0])
        time.sleep(6)
        return (int(open(path).read().split()[0]) - before) / 12

    program = os.path.join(HERE, "busy.py")
    report, _, err, took, nanoseconds = run(program, watch=cpu_of_sampling)
    records = report["telemetry"]
    samples = [record for record in records if record["record"] == "sample"]
    for record in [it for it in records if it["record"] != "sample"] + samples[:1] + samples[-3:]:
        print("    " + json.dumps(record))
    print("    %d samples; a sample costs %s us of the supervisor's CPU" % (len(samples), nanoseconds and round(nanoseconds / 1000)))
    expect("samples reach the report", len(samples) > 20)
    expect("the GPU is seen to be busy", any((sample["utilisation"] or 0) > 50 for sample in samples))
    expect("a sample costs less than half a millisecond", bool(nanoseconds) and nanoseconds < 500000)
    print("    Xid records: %s (none where the container may not read them)" % [r for r in records if r["record"] == "xid"])
    report, _, _, _, _ = run(program, env=[("CUDA_VISIBLE_DEVICES", "")])
    expect("no GPU is sampled that the program does not see", not report["telemetry"])


def memory():
    print("\n== --memory")
    for name, marker, leaks in (("leak.py", "# @holds", True), ("../programs/oom_leak.py", "# @fault", None)):
        program = os.path.normpath(os.path.join(HERE, name))
        report, _, err, took, _ = run(program, "--memory")
        verdict = first(report)
        held = verdict.get("memory") or {}
        print("%s: %s, %s; %.1f s" % (name, verdict.get("kind"), where(verdict), took))
        for site in held.get("sites", []):
            place = site["place"]
            print("    %8.1f MiB in %4d blocks at %s:%d" % (site["bytes"] / 2**20, site["blocks"], os.path.basename(place["file"]), place["line"]))
        print("    elsewhere %s, rise %s" % (held.get("elsewhere"), held.get("rise")))
        print("    " + " | ".join(verdict.get("because", [])))
        lines = [site["place"]["line"] for site in held.get("sites", [])]
        expect("%s: the line that holds the most is the one that keeps it" % name, bool(lines) and lines[0] in marked(program, marker))
        if leaks is not None:
            rise = held.get("rise") or {}
            expect("%s: it is called a leak, by what is allocated" % name, rise.get("allocated") is leaks)
    report, _, _, _, _ = run(os.path.join(HERE, "leak.py"))
    rise = (first(report).get("memory") or {}).get("rise")
    expect("without --memory the same rise is a suspicion only: %s" % rise, bool(rise) and not rise["allocated"])


def anomaly():
    print("\n== --anomaly")
    program = os.path.join(HERE, "inplace.py")
    report, _, _, _, _ = run(program)
    verdict = first(report)
    print("plain:     %s %s" % (where(verdict), verdict.get("missing")))
    expect("placed at backward(), likely at most", verdict["place"]["line"] in marked(program, "# @backward") and verdict["certainty"] != "exact")
    offered = [advice for advice in verdict.get("advice", []) if advice["id"] == "rerun-anomaly"]
    print("offered:   %s" % [advice["command"] for advice in offered])
    expect("the rerun is offered", bool(offered))
    report, _, _, _, _ = run(program, "--anomaly")
    verdict = first(report)
    print("--anomaly: %s %s" % (where(verdict), verdict.get("because")))
    expect("placed at its forward line", verdict["place"]["line"] in marked(program, "# @forward"))
    program = os.path.join(HERE, "steps.py")
    for options in ((), ("--anomaly",), ("--memory",)):
        _, out, err, took, _ = run(program, *options)
        print("%-10s %s" % (" ".join(options) or "plain", out.strip() or err[-300:]))


def cost():
    print("\n== cost, one run after another: bare, and under cublame run --mode off (hook, locals, telemetry), with --memory")
    workloads = os.path.join(os.path.dirname(HERE), "workloads.py")

    def bare():
        done = subprocess.run([sys.executable, workloads], env=dict(os.environ, TAG="bare"), capture_output=True, timeout=100)
        return done.stdout.decode()

    def of(text):
        line = text.strip().splitlines()[-1]
        return json.loads(line[line.index("{") :])

    rounds = [("bare", of(bare()))]
    rounds += [("off", of(run(workloads)[1])), ("bare", of(bare())), ("off", of(run(workloads)[1]))]
    rounds += [("--memory", of(run(workloads, "--memory")[1]))]
    names = list(rounds[0][1])
    print("| | " + " | ".join(names) + " |\n|---" * 1 + "|---" * len(names) + "|")
    for name, values in rounds:
        print("| %s | %s |" % (name, " | ".join("%.3f" % values[it] for it in names)))
    least = {kind: {it: min(values[it] for name, values in rounds if name == kind) for it in names} for kind, _ in rounds}
    for kind in ("off", "--memory"):
        print("| %s / bare (least of each) | %s |" % (kind, " | ".join("%.3f" % (least[kind][it] / least["bare"][it]) for it in names)))


PARTS = {"tensors": tensors, "telemetry": telemetry, "memory": memory, "anomaly": anomaly, "cost": cost}
wanted = list(PARTS) if sys.argv[1:] in ([], ["all"]) else sys.argv[1:]
for part in wanted:
    try:
        PARTS[part]()
    except Exception as error:
        failures.append(part)
        print("  WRONG   %s ended with %r" % (part, error))
print("\n%s" % ("all as wanted" if not failures else "not as wanted: " + "; ".join(failures)))
sys.exit(bool(failures))
