"""Plays PyCharm: reads a run configuration as its classes do and starts its debugger, children included.

The protocol is a line of command, sequence number and text between tabs (pydevd, "pydevd_comm.py"); the IDE listens.
"""

import json
import operator
import os
import shlex
import socket
import subprocess
import threading
import xml.etree.ElementTree as ElementTree

TIMEOUT = 60
VERSION, RUN = 501, 101


def read(path, project):
    """Command line after the interpreter, environment and working directory of a shared configuration."""
    root = ElementTree.parse(path).getroot()
    assert (root.tag, root.get("name")) == ("component", "ProjectRunConfigurationManager")
    [configuration] = root.findall("configuration")

    def expanded(text):
        return text.replace("$PROJECT_DIR$", str(project))

    options = {option.get("name"): expanded(option.get("value")) for option in configuration.findall("option")}
    environment = {env.get("name"): expanded(env.get("value")) for env in configuration.findall("envs/env")}
    assert options["PARENT_ENVS"] == "true"
    if configuration.get("type") == "tests":
        target, kind = json.loads(options["_new_target"]), json.loads(options["_new_targetType"])
        assert kind == "PATH", kind
        return ["--module", "--file", "pytest", "-s", target], environment, options["WORKING_DIRECTORY"]
    words = shlex.split(options["PARAMETERS"])
    if options["MODULE_MODE"] == "true":
        return ["--module", "--file", options["SCRIPT_NAME"], *words], environment, options["WORKING_DIRECTORY"]
    return ["--file", options["SCRIPT_NAME"], *words], environment, options["WORKING_DIRECTORY"]


def run(python, pydevd, configuration, project, launched=operator.or_, status=0):
    """Debugs the configuration without a breakpoint and returns its output and the number of debugged processes.

    `launched` makes the environment of the launch out of what is inherited and the configuration's own, as a plugin may.
    """
    words, environment, folder = read(configuration, project)
    connections = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        def serve(connection):
            with connection, connection.makefile("rw", newline="\n") as stream:
                stream.write(f"{VERSION}\t1\t0.1\tUNIX\tLINE\n{RUN}\t3\t\n")
                stream.flush()
                for _ in stream:
                    pass

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connections.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        command = [python, pydevd, "--multiprocess", "--qt-support=auto", "--client", "127.0.0.1", "--port", str(port), *words]
        process = subprocess.Popen(command, cwd=folder, env=launched(dict(os.environ), environment), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            listener.shutdown(socket.SHUT_RDWR)
    assert process.returncode == status, (process.returncode, output)
    return output, len(connections)
