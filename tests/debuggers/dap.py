"""A small client of the Debug Adapter Protocol, for a session through `cublame dap`. It keeps every message it gets."""

import json
import os
import queue
import socket
import subprocess
import threading
import time

TIMEOUT = 60


class Client:
    """One connection to an adapter: over the streams of a process, or a socket."""

    def __init__(self, reader, writer, on_request=None):
        self.reader, self.writer, self.on_request = reader, writer, on_request
        self.sequence, self.lock = 0, threading.Lock()
        self.messages, self.raw, self.arrived = [], b"", threading.Condition()
        self.over = False
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, message):
        with self.lock:
            self.sequence += 1
            self.send_bytes(frame({"seq": self.sequence, **message}))
            return self.sequence

    def send_bytes(self, data):
        self.writer.write(data)
        self.writer.flush()

    def ask(self, command, **arguments):
        """Sends a request; `answer` waits for its response."""
        return self.send({"type": "request", "command": command, "arguments": arguments})

    def answer(self, sequence, success=True):
        response = self.wait(lambda it: it["type"] == "response" and it["request_seq"] == sequence)
        assert response["success"] == success, response
        return response.get("body", {}) if success else response

    def request(self, command, success=True, **arguments):
        return self.answer(self.ask(command, **arguments), success)

    def event(self, name, where=lambda body: True):
        return self.wait(lambda it: it["type"] == "event" and it["event"] == name and where(it.get("body", {}))).get("body", {})

    def output(self, text):
        """The program's output may come in pieces of any size."""
        def so_far():
            events = [it["body"] for it in self.messages if it["type"] == "event" and it["event"] == "output"]
            return "".join(body["output"] for body in events if body.get("category") != "telemetry")

        with self.arrived:
            assert self.arrived.wait_for(lambda: text in so_far() or self.over, TIMEOUT) and text in so_far(), (text, so_far())

    def wait(self, wanted):
        """The first message, come or to come, that is wanted."""
        deadline = time.monotonic() + TIMEOUT
        with self.arrived:
            at = 0
            while True:
                for message in self.messages[at:]:
                    if wanted(message):
                        return message
                at = len(self.messages)
                assert not self.over, f"the adapter is gone: {self.messages[-3:]}"
                left = deadline - time.monotonic()
                assert left > 0, f"it did not come: {self.messages[-3:]}"
                self.arrived.wait(left)

    def wait_for_the_end(self):
        with self.arrived:
            assert self.arrived.wait_for(lambda: self.over, TIMEOUT), "the adapter stays"

    def read(self):
        try:
            while True:
                length, head = None, b""
                while (line := self.reader.readline()) not in (b"\r\n", b"\n"):
                    if not line:
                        return
                    head += line
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                body = self.reader.read(length)
                message = json.loads(body)
                with self.arrived:
                    self.messages.append(message)
                    self.arrived.notify_all()
                if message["type"] == "request":
                    answer = self.on_request(message)
                    self.send({"type": "response", "request_seq": message["seq"], "success": True, "command": message["command"], "body": answer})
        except (OSError, ValueError):
            pass
        finally:
            with self.arrived:
                self.over = True
                self.arrived.notify_all()

    def start(self, request, configuration, filters=("uncaught",), breakpoints=None):
        """Initializes, launches or attaches, and configures; returns when the program may run."""
        self.request("initialize", clientID="test", adapterID="debugpy", pathFormat="path", linesStartAt1=True, columnsStartAt1=True,
                     supportsRunInTerminalRequest=self.on_request is not None, supportsStartDebuggingRequest=False)
        started = self.ask(request, **configuration)
        self.event("initialized")
        if breakpoints:
            path, lines = breakpoints
            self.request("setBreakpoints", source={"path": str(path)}, breakpoints=[{"line": line} for line in lines])
        self.request("setExceptionBreakpoints", filters=list(filters))
        self.request("configurationDone")
        self.answer(started)


class Session(Client):
    """A session through an adapter that this starts; children of the program are attached to as editors do."""

    def __init__(self, command, cwd, **environment):
        self.children, self.terminals = queue.Queue(), []
        self.process = subprocess.Popen(command, cwd=cwd, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        super().__init__(self.process.stdout, self.process.stdin, self.run_in_terminal)
        self.errors = b""
        self.drain = threading.Thread(target=self.read_errors, daemon=True)
        self.drain.start()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def run_in_terminal(self, message):
        arguments = message["arguments"]
        environment = os.environ | {name: value for name, value in arguments.get("env", {}).items() if value is not None}
        terminal = subprocess.Popen(arguments["args"], cwd=arguments["cwd"], env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.terminals.append(terminal)
        return {"processId": terminal.pid}

    def child(self):
        """A session with the next child process of the program."""
        body = self.event("debugpyAttach")
        connection = socket.create_connection((body["connect"]["host"], body["connect"]["port"]), TIMEOUT)
        connection.settimeout(None)
        stream = connection.makefile("rwb")
        client = Client(stream, stream)
        client.start("attach", body)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(TIMEOUT)
        finally:
            for started in [self.process, *self.terminals]:
                if started.poll() is None:
                    started.kill()
                    started.wait()
            for terminal in self.terminals:
                terminal.stdout.close()
            self.drain.join()
            self.process.stdout.close()
            self.process.stderr.close()


def frame(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
