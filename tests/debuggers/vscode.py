"""Plays VS Code: runs a configuration of a launch.json through debugpy's adapter, children included.

The Debug Adapter Protocol is JSON with a Content-Length header. A child process comes as the event `debugpyAttach`, whose body
is the configuration of a session of its own (debugpy wiki, "Subprocess debugging").
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import threading

TIMEOUT = 60


class Session:
    """One connection to an adapter. Requests of the adapter and events are answered on the reading thread."""

    def __init__(self, reader, writer, editor):
        self.reader, self.writer, self.editor = reader, writer, editor
        self.sequence, self.lock, self.answers = 0, threading.Lock(), {}
        self.initialized, self.ended = threading.Event(), threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, message):
        with self.lock:
            self.sequence += 1
            body = json.dumps({"seq": self.sequence, **message}).encode()
            self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.writer.flush()
            return self.sequence

    def request(self, command, arguments=None):
        answer = {"event": threading.Event()}
        with self.lock:
            self.answers[self.sequence + 1] = answer
        sequence = self.send({"type": "request", "command": command, "arguments": arguments or {}})
        return command, self.answers[sequence]

    def wait(self, asked):
        command, answer = asked
        assert answer["event"].wait(TIMEOUT), f"no answer to {command}"
        assert answer["message"]["success"], answer["message"]
        return answer["message"].get("body", {})

    def read(self):
        try:
            while True:
                length = None
                while (line := self.reader.readline().strip()) or length is None:
                    if not line:
                        return
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                self.handle(json.loads(self.reader.read(length)))
        except (OSError, ValueError):
            pass
        finally:
            self.ended.set()

    def handle(self, message):
        if message["type"] == "response":
            answer = self.answers[message["request_seq"]]
            answer["message"] = message
            answer["event"].set()
        elif message["type"] == "event":
            if message["event"] == "initialized":
                self.initialized.set()
            elif message["event"] == "terminated":
                self.ended.set()
            elif message["event"] == "debugpyAttach":
                self.editor.attach(message["body"])
        elif message["command"] == "runInTerminal":
            body = self.editor.run_in_terminal(message["arguments"])
            self.send({"type": "response", "request_seq": message["seq"], "success": True, "command": "runInTerminal", "body": body})

    def start(self, request, configuration):
        self.wait(self.request("initialize", {
            "clientID": "vscode", "adapterID": "debugpy", "pathFormat": "path", "linesStartAt1": True, "columnsStartAt1": True,
            "supportsRunInTerminalRequest": True, "supportsStartDebuggingRequest": False,
        }))
        asked = self.request(request, configuration)
        assert self.initialized.wait(TIMEOUT), "the adapter did not initialize"
        self.wait(self.request("setExceptionBreakpoints", {"filters": ["uncaught"]}))
        self.wait(self.request("configurationDone"))
        self.wait(asked)


class Editor:
    def __init__(self, python, workspace):
        self.python, self.workspace = python, workspace
        self.terminals, self.children, self.failures = [], [], []

    def run(self, name, interpreter):
        """Runs the configuration and returns what its terminal showed."""
        configuration = self.configuration(name) | {"python": interpreter, "cwd": str(self.workspace)}
        adapter = pathlib.Path(subprocess.check_output([self.python, "-c", "import debugpy; print(debugpy.__file__)"], text=True).strip()).parent / "adapter"
        process = subprocess.Popen([self.python, str(adapter)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            session = Session(process.stdout, process.stdin, self)
            session.start("launch", configuration)
            assert session.ended.wait(TIMEOUT), "the session did not end"
            [terminal] = self.terminals
            output, _ = terminal.communicate(timeout=TIMEOUT)
            assert terminal.returncode == 0, (terminal.returncode, output)
            assert not self.failures, self.failures
            return output
        finally:
            for started in [process, *self.terminals]:
                if started.poll() is None:
                    started.kill()
                started.wait()
            process.stdin.close()
            process.stdout.close()

    def configuration(self, name):
        text = (self.workspace / ".vscode/launch.json").read_text()
        configurations = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))["configurations"]
        [found] = [entry for entry in configurations if entry["name"] == name]
        resolved = json.dumps(found).replace("${workspaceFolder}", str(self.workspace))
        assert "${" not in resolved, resolved
        return json.loads(resolved)

    def run_in_terminal(self, arguments):
        environment = os.environ | {name: value for name, value in arguments.get("env", {}).items() if value is not None}
        terminal = subprocess.Popen(arguments["args"], cwd=arguments["cwd"], env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.terminals.append(terminal)
        return {"processId": terminal.pid}

    def attach(self, configuration):
        def session():
            try:
                connect = configuration["connect"]
                with socket.create_connection((connect["host"], connect["port"]), TIMEOUT) as connection:
                    connection.settimeout(None)
                    stream = connection.makefile("rwb")
                    child = Session(stream, stream, self)
                    child.start("attach", configuration)
                    self.children.append(configuration["name"])
                    child.ended.wait(TIMEOUT)
            except Exception as failure:
                self.failures.append(repr(failure))

        threading.Thread(target=session, daemon=True).start()
