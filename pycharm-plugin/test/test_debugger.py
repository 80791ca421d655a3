"""PyCharm's own debugger runs programs with the environment that the plugin's core computes, and the hook's events arrive.

usage: test_debugger.py CUBLAME CLASSPATH
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path.insert(0, str(REPOSITORY / "tests/debuggers"))

import pycharm  # noqa: E402
import pydevd  # noqa: E402

CUBLAME, CLASSPATH = sys.argv[1:]
FAULT = next(number for number, line in enumerate((HERE / "programs/train.py").read_text().splitlines(), 1) if "# @fault" in line)


def plugin(project):
    """What the plugin does to the environment of a launch. PyCharm has put a folder of its own into PYTHONPATH by then."""

    def launched(inherited, own):
        before = inherited | own | {"PYTHONPATH": "/opt/pycharm/helpers"}
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", CLASSPATH, "dev.cublame.core.LaunchToolKt", CUBLAME, str(project)]
        given = json.dumps({"before": before, "own": own})
        return json.loads(subprocess.run(command, input=given, check=True, capture_output=True, text=True, timeout=60).stdout)

    return launched


def events(project):
    found = [json.loads(line) for file in project.glob(".cublame/runs/*/events/*.jsonl") for line in file.read_text().splitlines()]
    return {kind: [event for event in found if event["event"] == kind] for kind in ("start", "exception", "exit")}


def check(project, configuration, mode, blocking, hook, status=1):
    output, _ = pycharm.run(sys.executable, pydevd.__file__, configuration, project, plugin(project), status)
    [run] = project.glob(".cublame/runs/*/run.json")
    assert json.loads(run.read_text())["mode"] == mode, run.read_text()
    arrived = events(project)
    assert arrived["start"] and all(event["launch_blocking"] == blocking for event in arrived["start"]), arrived
    [exception] = [event for event in arrived["exception"] if event["hook"] == hook]
    innermost = exception["chain"][-1]["frames"][-1]
    assert (os.path.basename(innermost["path"]), innermost["line"]) == ("train.py", FAULT), innermost
    return output


def a_configuration_of_the_user_runs_in_the_mode_of_the_project(project):
    (project / ".run").mkdir()
    shutil.copy(REPOSITORY / "tests/fixtures/configs/run_xml/script.run.xml", project / ".run/train.run.xml")
    (project / ".cublame").mkdir()
    (project / ".cublame/mode").write_text("trace\n")
    output = check(project, project / ".run/train.run.xml", "trace", None, "excepthook")
    assert "arguments: ['--epochs', '70', '--name', 'a b']" in output, output
    assert "helpers: ['/opt/pycharm/helpers'" in output, output


def a_configuration_that_names_its_mode_keeps_it(project):
    configure(project, "--program", "train.py", "--mode", "blocking")
    (project / ".cublame").mkdir()
    (project / ".cublame/mode").write_text("trace\n")
    check(project, project / ".run/cublame_ train.py (blocking).run.xml", "blocking", "1", "excepthook")


def pytest_runs_in_the_mode_too(project):
    configure(project, "--pytest", "train.py", "--mode", "blocking")
    check(project, project / ".run/cublame_ pytest train.py (blocking).run.xml", "blocking", "1", "pytest")


def configure(project, *words):
    subprocess.run([CUBLAME, "configure", "pycharm", *words], cwd=project, check=True, capture_output=True, text=True, timeout=60)


passed = failed = 0
for name in ("CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE", "CUBLAME_DIR", "CUBLAME_RUN", "PYTHONPATH"):
    os.environ.pop(name, None)
for test in (a_configuration_of_the_user_runs_in_the_mode_of_the_project, a_configuration_that_names_its_mode_keeps_it, pytest_runs_in_the_mode_too):
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder).resolve() / "proj"
        project.mkdir()
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        shutil.copy(HERE / "programs/train.py", project)
        try:
            test(project)
        except Exception as failure:
            failed += 1
            print(f"FAILED  {test.__name__}\n{traceback.format_exc()}{getattr(failure, 'stderr', None) or ''}")
        else:
            passed += 1
            print(f"ok      {test.__name__}", flush=True)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
