"""Random programs with one fault at a random place, each run traced: what is called exact must be the fault's own line.

usage: run.py CUBLAME HOW_MANY SEED [HOW_MANY_AT_ONCE]
"""
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).parent
cublame, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
at_once = int(sys.argv[4]) if len(sys.argv) > 4 else 8


def program(random):
    """The text of a program, and the number of the line at fault."""
    streams, threads = random.randint(1, 3), random.randint(1, 3)
    kernels = ["fuzz_first", "fuzz_second", "fuzz_third"][: random.randint(1, 3)]
    bad = random.choice([1, 2])

    def statement():
        stream, event = random.randrange(streams), random.randrange(3)
        launch = f"launch({random.choice(kernels)!r}, {stream}, spin={random.choice([1000, 20000, 400000])})"
        return random.choices(
            [launch, f"for _ in range({random.randint(2, 30)}): {launch}", f"wait({stream})", "wait_for_all()", "copy_back()",
             f"ask({stream})", f"record({event}, {stream})", f"follow({stream}, {event})", f"wait_event({event})"],
            [40, 10, 8, 3, 3, 6, 10, 8, 8],
        )[0]

    bodies = [[statement() for _ in range(random.randint(3, 25))] for _ in range(threads)]
    body = random.choice(bodies)
    fault = f"launch({random.choice(kernels)!r}, {random.randrange(streams)}, bad={bad})  # @fault"
    body.insert(random.randrange(len(body) + 1), fault)
    lines = ["import threading", "from gpu_fuzz import *", f"begin({streams})"]
    for number, body in enumerate(bodies):
        lines += [f"def work{number}():", "    enter()"] + ["    " + line for line in body]
    if threads == 1:
        lines.append("work0()")
    else:
        lines += [f"threads = [threading.Thread(target=work) for work in ({', '.join(f'work{n}' for n in range(threads))})]",
                  "for thread in threads: thread.start()", "for thread in threads: thread.join()"]
    lines.append("wait_for_all()")
    return "\n".join(lines) + "\n", 1 + next(index for index, line in enumerate(lines) if line.endswith("# @fault"))


def run(number):
    text, line = program(random.Random(seed * 1_000_003 + number))
    if time.monotonic() > limit:
        return "not run", line, None, text
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "program.py")
        path.write_text(text)
        report = pathlib.Path(folder, "report.json")
        variables = dict(os.environ, CUBLAME_DIR=folder, PYTHONPATH=str(here / "site-packages"))
        command = [cublame, "run", "--mode", "trace", "--report", str(report), "--", sys.executable, str(path)]
        try:
            subprocess.run(command, env=variables, capture_output=True, timeout=60)
            verdicts = json.loads(report.read_text())["verdicts"]
        except (subprocess.TimeoutExpired, OSError, ValueError) as error:
            return "failed", line, str(error)[:200], text
    if not verdicts:
        return "no verdict", line, None, text
    place = verdicts[0]["place"] or {}
    own = place.get("file", "").endswith("program.py") and place.get("line") == line
    return f"{verdicts[0]['certainty']} {'right' if own else 'WRONG'}", line, verdicts[0], text


totals = {}
wrong = []
limit = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "inf"))
with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
    for number, (outcome, line, verdict, text) in enumerate(pool.map(run, range(count))):
        totals[outcome] = totals.get(outcome, 0) + 1
        if outcome == "exact WRONG" or (outcome in ("failed", "no verdict") and len(wrong) < 5):
            wrong.append({"number": number, "outcome": outcome, "line": line, "verdict": verdict, "program": text})
print(json.dumps({"seed": seed, "programs": count, "outcomes": totals}))
if wrong:
    print(json.dumps(wrong[:5], indent=1))
sys.exit(any(entry["outcome"] == "exact WRONG" for entry in wrong))
