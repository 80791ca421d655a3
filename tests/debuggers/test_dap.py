"""`cublame dap` before a real debugpy. usage: test_dap.py CUBLAME [NAME...]

The program fails as it was recorded on a GPU: a stand-in for torch prints and raises what was printed and raised there.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import dap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CUBLAME = os.path.abspath(sys.argv[1])
PYTHON = sys.executable
PROGRAM = ROOT / "tests/gpu/programs/embedding_oob.py"
TORCH = ROOT / "vscode-extension/test/recorded/site-packages"
RECORDED = ROOT / "tests/fixtures/gpu/logs"
for name in ("CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE", "CUBLAME_RUN", "CUBLAME_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
    os.environ.pop(name, None)


class Project:
    """A folder with the failing program, and a home of its own beside it."""

    def __init__(self, folder):
        self.home = pathlib.Path(folder).resolve()
        self.root = self.home / "proj ä"
        (self.root / ".git").mkdir(parents=True)
        shutil.copy(PROGRAM, self.root / "train.py")
        self.environment = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"), "XDG_CACHE_HOME": str(self.home / "cache"),
                            "VIRTUAL_ENV": str(pathlib.Path(PYTHON).parent.parent)}

    def write(self, name, text):
        (self.root / name).write_text(text)
        return self.root / name

    def session(self, *words, **environment):
        return dap.Session([CUBLAME, "dap", *words], self.root, **(self.environment | environment))

    def launch(self, program="train.py", mode="blocking", **more):
        env = {"PYTHONPATH": str(TORCH), "RECORDED": str(RECORDED), "CUBLAME_MODE": mode} | more.pop("env", {})
        return {"program": str(self.root / program), "cwd": str(self.root), "console": "internalConsole", "env": env} | more

    def runs(self):
        return sorted((self.root / ".cublame/runs").glob("2*"))

    def run(self):
        [run] = self.runs()
        return run

    def fault(self, program="train.py"):
        lines = (self.root / program).read_text().splitlines()
        [line] = [number for number, line in enumerate(lines, 1) if line.endswith("# @fault")]
        return line


def report(run):
    return json.loads((run / "report.json").read_text())


def verdict_of(client):
    return client.event("output", lambda body: "error[" in body["output"])


def verdicts_said(client):
    return [it for it in client.messages if it.get("event") == "output" and "error[" in it["body"]["output"]]


def require_nothing_leaked(client):
    """Every response is to a request that this client has sent."""
    answered = [it["request_seq"] for it in client.messages if it["type"] == "response"]
    assert len(set(answered)) == len(answered) and all(1 <= number <= client.sequence for number in answered), answered


def wait_until(condition, what):
    deadline = time.monotonic() + dap.TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def require_gone(pid):
    wait_until(lambda: not alive(pid), f"process {pid} stays")


def stand(project, client, **launch):
    """Launches the program and returns the process and the stopped event, once it stands at its exception."""
    client.start("launch", project.launch(**launch))
    pid = client.event("process")["systemProcessId"]
    stopped = client.event("stopped")
    assert stopped["reason"] == "exception", stopped
    return pid, stopped["threadId"]


def the_verdict_is_there_while_the_program_stands(project):
    with project.session() as client:
        pid, thread = stand(project, client)
        said = verdict_of(client)
        assert said["category"] == "stderr" and "error[device-assert]" in said["output"], said
        assert (said["line"], said["source"]["path"]) == (project.fault(), str(project.root / "train.py")), said
        assert alive(pid)
        # Every language server sees it.
        assert (project.run() / f"debugger-{pid}.jsonl").is_file() and not (project.run() / "report.json").exists()
        described = json.loads((project.run() / "run.json").read_text())
        assert described["child"]["pid"] == pid and described["mode"] == "blocking" and described["blocking"], described
        assert described["argv"] == [PYTHON, str(project.root / "train.py")], described
        client.request("continue", threadId=thread)
        assert client.event("exited")["exitCode"] == 1
        client.event("terminated")
        assert not (project.run() / f"debugger-{pid}.jsonl").exists()
        [verdict] = report(project.run())["verdicts"]
        assert (verdict["place"]["line"], verdict["certainty"]) == (project.fault(), "exact"), verdict
        assert report(project.run())["exit"] == {"code": 1, "signal": None}
        assert len(verdicts_said(client)) == 1, verdicts_said(client)
        client.request("disconnect")
        require_nothing_leaked(client)
    assert client.process.returncode == 0


def without_a_stop_the_verdict_comes_at_the_end(project):
    with project.session() as client:
        client.start("launch", project.launch(mode="off"), filters=())
        verdict_of(client)
        names = [it.get("event") for it in client.messages + [client.event("exited")]]
        client.event("terminated")
        said = client.messages.index(verdicts_said(client)[0])
        exited = [it.get("event") for it in client.messages].index("exited")
        assert said < exited, names
        assert report(project.run())["verdicts"][0]["kind"] == "device-assert"


def the_workspaces_mode_is_taken_and_the_entrys_own_wins(project):
    program = project.write("seen.py", "import os\nprint(*(os.environ.get(name) for name in ('CUBLAME_MODE', 'CUDA_LAUNCH_BLOCKING', 'A')), flush=True)\n")
    (project.root / ".cublame").mkdir()
    (project.root / ".cublame/mode").write_text("blocking\n")
    for env, more, expected in (({"A": "ü \"'"}, {}, "blocking 1 ü \"'"), ({"CUBLAME_MODE": "off"}, {}, "off None None"),
                                ({"A": None}, {"cublameMode": "off"}, "off None None")):
        with project.session(A="inherited") as client:
            client.start("launch", {"program": str(program), "cwd": str(project.root), "env": env | ({} if "A" in env else {"A": None})} | more)
            client.output(expected)
            client.event("terminated")


def a_breakpoint_is_no_failure(project):
    program = project.write("steps.py", "x = 1\ny = x + 1  # here\nprint('y is', y, flush=True)\n")
    with project.session() as client:
        client.start("launch", project.launch("steps.py"), breakpoints=(program, [2]))
        stopped = client.event("stopped")
        assert stopped["reason"] == "breakpoint", stopped
        frames = client.request("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        assert frames[0]["line"] == 2, frames
        assert client.request("evaluate", expression="x", frameId=frames[0]["id"])["result"] == "1"
        client.request("continue", threadId=stopped["threadId"])
        client.output("y is 2")
        assert client.event("exited")["exitCode"] == 0
        client.event("terminated")
        require_nothing_leaked(client)
        assert verdicts_said(client) == [] and report(project.run())["verdicts"] == []


def an_exception_of_another_kind_is_not_spoken_of(project):
    project.write("plain.py", "raise ValueError('nothing of a GPU')\n")
    with project.session() as client:
        pid, thread = stand(project, client, program="plain.py")
        assert client.request("exceptionInfo", threadId=thread)["breakMode"] == "unhandled"
        client.request("continue", threadId=thread)
        client.event("terminated")
        assert verdicts_said(client) == [] and not list(project.run().glob("debugger-*"))


def a_child_process_has_a_session_of_its_own(project):
    project.write("parent.py", "import subprocess, sys\nprint('child:', subprocess.call([sys.executable, 'train.py']), flush=True)\n")
    with project.session() as client:
        client.start("launch", project.launch("parent.py"))
        child = client.child()
        stopped = child.event("stopped")
        assert stopped["reason"] == "exception", stopped
        child.request("continue", threadId=stopped["threadId"])
        client.output("child: 1")
        client.event("terminated")
        [verdict] = report(project.run())["verdicts"]
        assert verdict["place"]["line"] == project.fault(), verdict


def stopping_at_the_failure_keeps_the_verdict(project):
    for command in ("terminate", "disconnect"):
        with project.session() as client:
            pid, _ = stand(project, client)
            verdict_of(client)
            client.request(command)
            require_gone(pid)
        run = project.runs()[-1]
        [verdict] = report(run)["verdicts"]
        assert verdict["place"]["line"] == project.fault() and verdict["fatal"], verdict


def a_session_can_be_started_again(project):
    for again in (True, False):
        with project.session() as client:
            stand(project, client)
            verdict_of(client)
            client.request("disconnect", restart=again)
    assert len(project.runs()) == 2, project.runs()


def in_the_editors_terminal(project):
    with project.session() as client:
        _, thread = stand(project, client, console="integratedTerminal", mode="off")
        said = verdict_of(client)
        client.request("continue", threadId=thread)
        client.event("terminated")
        [terminal] = client.terminals
        output, _ = terminal.communicate(timeout=dap.TIMEOUT)
        assert "CUBLAS_STATUS_INTERNAL_ERROR" in output, output
        # The debugger has not seen the assertion, which names the kernel.
        assert "cublas" in said["output"] and "vectorized_gather_kernel" not in said["output"], said


def attached_to_a_program_that_somebody_else_started(project):
    environment = os.environ | project.environment | {"PYTHONPATH": str(TORCH), "RECORDED": str(RECORDED), "CUDA_LAUNCH_BLOCKING": "1"}
    with free_port() as port, project.session() as client:
        client.request("initialize", adapterID="debugpy")
        attached = client.ask("attach", listen={"host": "127.0.0.1", "port": port})
        client.event("debugpyWaitingForServer")
        command = [PYTHON, "-m", "debugpy", "--connect", f"127.0.0.1:{port}", "--wait-for-client", "train.py"]
        program = subprocess.Popen(command, cwd=project.root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client.event("initialized")
            client.request("setExceptionBreakpoints", filters=["uncaught"])
            client.request("configurationDone")
            client.answer(attached)
            assert client.event("stopped")["reason"] == "exception"
            assert "error[device-assert]" in verdict_of(client)["output"]
            assert len(list(project.run().glob("debugger-*.jsonl"))) == 1
            client.request("disconnect", terminateDebuggee=False)
            client.process.stdin.close()
            client.process.wait(dap.TIMEOUT)
            # It was not this session that started it: it goes on, and fails by itself.
            assert program.wait(dap.TIMEOUT) == 1
        finally:
            program.kill()
            program.wait()


@contextlib.contextmanager
def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    yield port


def damage_costs_an_answer_and_not_the_session(project):
    with project.session() as client:
        for damage, words in ((b"rubbish\r\n\r\n", "does not say how long"), (b"Content-Length: 5\r\n\r\n{oops", "no JSON object"),
                              (b"Content-Length: 2\r\n\r\n[]", "no JSON object"), (b"Content-Length: 99999999999\r\n\r\n", "99999999999 bytes")):
            client.send_bytes(damage)
            refused = client.wait(lambda it, words=words: it["type"] == "response" and words in it.get("message", ""))
            assert not refused["success"], refused
        unknown = client.request("nobodyKnowsThis", success=False, x=1)
        assert "nobodyKnowsThis" in json.dumps(unknown), unknown
        stand(project, client)
        verdict_of(client)


def what_passes_is_what_came(project):
    """An adapter that sends back what it gets: no byte of any message is changed, and none overtakes another."""
    adapter = project.home / "echo/debugpy/adapter"
    adapter.mkdir(parents=True)
    (adapter.parent / "__init__.py").touch()
    (adapter / "__main__.py").write_text("import os\nwhile piece := os.read(0, 65536):\n    while piece:\n        piece = piece[os.write(1, piece):]\n")
    bodies = ['{"seq":1,"type":"event" , "event":"x","body":{"a":1e400,"b":"\\u00fc","ü":[]}}', '{"type":"nothing known"}',
              '{"seq":3,"type":"response","request_seq":7,"success":true,"command":"initialize"}', json.dumps({"type": "event", "event": "y", "body": "z" * 5_000_000}),
              '{"seq":9007199254740993,"type":"request","command":"attach","arguments":{"env":{"A":"b"}}}']
    sent = b"".join(b"Content-Type: application/vscode-jsonrpc\r\nContent-Length: %d\r\n\r\n%s" % (len(body.encode()), body.encode()) for body in bodies * 3)
    found = subprocess.run([CUBLAME, "dap"], cwd=project.root, env=os.environ | project.environment | {"PYTHONPATH": str(adapter.parent.parent)}, input=sent,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=dap.TIMEOUT)
    at = next((at for at in range(len(sent)) if found.stdout[at:at + 1] != sent[at:at + 1]), len(sent))
    assert found.stdout == sent, (found.stdout[max(at - 80, 0):at + 120], sent[max(at - 80, 0):at + 120], found.stderr)


def without_debugpy_it_says_what_to_do(project):
    bare = project.home / "bare"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", bare], check=True)
    with project.session(VIRTUAL_ENV=str(bare), PATH=str(bare / "bin")) as client:
        refused = client.request("initialize", success=False, adapterID="debugpy")
        assert "pip install debugpy" in refused["message"] and refused["body"]["error"]["showUser"], refused
        client.request("launch", success=False)
        client.request("disconnect")
        client.wait_for_the_end()
    assert client.process.returncode == 3, client.process.returncode


def an_editors_debugpy_serves_an_interpreter_without_one(project):
    bare = project.home / "bare"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", bare], check=True)
    import debugpy

    libs = project.home / ".vscode/extensions/ms-python.debugpy-2026.2.0-linux-x64/bundled/libs"
    libs.mkdir(parents=True)
    (libs / "debugpy").symlink_to(pathlib.Path(debugpy.__file__).parent)
    with project.session(VIRTUAL_ENV=str(bare), PATH=str(bare / "bin")) as client:
        stand(project, client)
        assert "error[device-assert]" in verdict_of(client)["output"]
        assert json.loads((project.run() / "run.json").read_text())["argv"][0] == str(bare / "bin/python")


def an_adapter_that_dies_is_said(project):
    with project.session() as client:
        pid, thread = stand(project, client)
        verdict_of(client)
        children = pathlib.Path(f"/proc/{client.process.pid}/task/{client.process.pid}/children").read_text().split()
        [adapter] = [child for child in children if b"adapter" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes()]
        os.kill(int(adapter), signal.SIGKILL)
        client.output("adapter has ended before the session")
        client.event("terminated")
        client.wait_for_the_end()
        require_gone(pid)
    assert client.process.returncode == 3, client.process.returncode
    assert report(project.run())["verdicts"][0]["place"]["line"] == project.fault()


def a_client_that_vanishes_leaves_no_orphan(project):
    project.write("long.py", "import time\nprint('it runs', flush=True)\nwhile True:\n    time.sleep(0.1)\n")
    for how in ("closes its stream", "is killed with the proxy"):
        with project.session() as client:
            client.start("launch", project.launch("long.py"))
            pid = client.event("process")["systemProcessId"]
            client.output("it runs")
            if how == "closes its stream":
                client.process.stdin.close()
                client.process.wait(dap.TIMEOUT)
            else:
                client.process.kill()
            require_gone(pid)


TESTS = [the_verdict_is_there_while_the_program_stands, without_a_stop_the_verdict_comes_at_the_end,
         the_workspaces_mode_is_taken_and_the_entrys_own_wins, a_breakpoint_is_no_failure, an_exception_of_another_kind_is_not_spoken_of,
         a_child_process_has_a_session_of_its_own, stopping_at_the_failure_keeps_the_verdict, a_session_can_be_started_again,
         in_the_editors_terminal, attached_to_a_program_that_somebody_else_started, damage_costs_an_answer_and_not_the_session, what_passes_is_what_came,
         without_debugpy_it_says_what_to_do, an_editors_debugpy_serves_an_interpreter_without_one, an_adapter_that_dies_is_said,
         a_client_that_vanishes_leaves_no_orphan]


def main(tests, names):
    passed = failed = 0
    for test in [test for test in tests if not names or test.__name__ in names]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(Project(folder))
            except Exception:
                failed += 1
                print(f"FAILED  {test.__name__}\n{traceback.format_exc()}", flush=True)
            else:
                passed += 1
                print(f"ok      {test.__name__}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main(TESTS, sys.argv[2:])
