"""usage: test_debuggers.py CUBLAME TORCH_PYTHON"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

import dotenv
import nbformat

import pycharm
import vscode

HERE = pathlib.Path(__file__).resolve().parent
CUBLAME, TORCH = sys.argv[1:]
PYTHON = sys.executable
# The DataLoader's worker is part of the check where torch has been installed by tests/torch.
INTERPRETER = TORCH if os.path.exists(TORCH) else PYTHON
WORKERS = ["main", "spawn", "fork"] + (["loader"] if INTERPRETER == TORCH else [])
for name in ("CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE"):
    os.environ.pop(name, None)


def configure(project, *words):
    subprocess.run([CUBLAME, "configure", *words], cwd=project, check=True, capture_output=True, text=True, timeout=60)


def require_seen(output, mode="blocking", blocking="1", workers=WORKERS):
    for who in workers:
        for line in (f"{who}: CUBLAME_MODE={mode}", f"{who}: CUDA_LAUNCH_BLOCKING={blocking}"):
            assert line in output.splitlines(), (line, output)


def vscode_program(project):
    configure(project, "vscode", "--program", "program.py", "--mode", "blocking")
    editor = vscode.Editor(PYTHON, project)
    require_seen(editor.run("cublame: program.py (blocking)", INTERPRETER))
    assert len(editor.children) >= 2, editor.children


def vscode_module(project):
    configure(project, "vscode", "--module", "program", "--mode", "trace")
    require_seen(vscode.Editor(PYTHON, project).run("cublame: module program (trace)", PYTHON), "trace", "None", WORKERS[:3])


def vscode_pytest(project):
    configure(project, "vscode", "--pytest", "program.py", "--mode", "blocking")
    launch = project / ".vscode/launch.json"
    launch.write_text(launch.read_text().replace('"args": [', '"args": ["-s",'))
    require_seen(vscode.Editor(PYTHON, project).run("cublame: pytest program.py (blocking)", PYTHON), workers=WORKERS[:3])


def vscode_switched(project):
    (project / ".vscode").mkdir()
    theirs = """{
  // ours
  "configurations": [
    {
      "name": "train", "type": "debugpy", "request": "launch", "program": "program.py", "args": ["--epochs", "a b"],
      "console": "integratedTerminal", "env": { "CUDA_LAUNCH_BLOCKING": "0" }
    }
  ]
}
"""
    launch = project / ".vscode/launch.json"
    launch.write_text(theirs)
    configure(project, "vscode", "--switch", "train", "--mode", "blocking")
    output = vscode.Editor(PYTHON, project).run("train", INTERPRETER)
    require_seen(output)
    assert "arguments: ['--epochs', 'a b']" in output, output
    configure(project, "vscode", "--switch-back", "train")
    assert launch.read_text() == theirs
    configure(project, "vscode", "--twin", "train", "--mode", "blocking")
    require_seen(vscode.Editor(PYTHON, project).run("train (cublame: blocking)", INTERPRETER))


def pydevd():
    # debugpy has a pydevd of its own inside; the one at the top is PyCharm's.
    found = subprocess.check_output([PYTHON, "-c", "import pydevd; print(pydevd.__file__)"], text=True).strip()
    assert "debugpy" not in found, found
    return found


def pycharm_script(project):
    configure(project, "pycharm", "--program", "program.py", "--mode", "blocking")
    output, processes = pycharm.run(INTERPRETER, pydevd(), project / ".run/cublame_ program.py (blocking).run.xml", project)
    require_seen(output)
    assert processes >= 2, processes


def pycharm_copy(project):
    theirs = HERE.parent / "fixtures/configs/run_xml/script.run.xml"
    (project / ".run").mkdir()
    (project / "train.py").write_text((project / "program.py").read_text())
    shutil.copy(theirs, project / ".run/train.run.xml")
    configure(project, "pycharm", "--twin", "train", "--mode", "blocking")
    output, _ = pycharm.run(PYTHON, pydevd(), project / ".run/cublame_ train (blocking).run.xml", project)
    require_seen(output, workers=WORKERS[:3])
    assert "arguments: ['--epochs', '70', '--name', 'a b']" in output, output


def pycharm_module_and_pytest(project):
    configure(project, "pycharm", "--module", "program", "--pytest", "program.py", "--mode", "blocking")
    for name in ("module program", "pytest program.py"):
        output, _ = pycharm.run(PYTHON, pydevd(), project / f".run/cublame_ {name} (blocking).run.xml", project)
        require_seen(output, workers=WORKERS[:3])


def notebooks_stay_valid(project):
    for fixture in sorted((HERE.parent / "fixtures/configs/notebook").iterdir()):
        notebook = project / fixture.name
        shutil.copy(fixture, notebook)
        configure(project, "notebook", "--program", notebook.name)
        parsed = nbformat.read(notebook, nbformat.NO_CONVERT)
        nbformat.validate(parsed)
        code = parsed.cells[0].source
        program = f"{code}\nprint(os.environ['CUDA_LAUNCH_BLOCKING'], os.environ['CUBLAME_MODE'])"
        assert subprocess.check_output([PYTHON, "-c", program], text=True).split() == ["1", "blocking"]


def dotenv_is_read(project):
    command = [CUBLAME, "env", "--mode", "blocking", "--format", "dotenv"]
    refused = 0
    for value in ("plain", "two  blanks", "it's", 'a "b"', "$HOME", "${HOME}", "a#b #c", "C:\\new", "\\\\server\\x", "it's $5", "Größe 训练", "a\nb"):
        printed = subprocess.run(command, env=os.environ | {"PYTHONPATH": value}, capture_output=True, text=True, timeout=60)
        if printed.returncode == 3:
            refused += 1
            continue
        (project / ".env").write_text(printed.stdout)
        values = dotenv.dotenv_values(project / ".env")
        assert values["CUDA_LAUNCH_BLOCKING"] == "1" and values["CUBLAME_MODE"] == "blocking", values
        hook, _, theirs = values["PYTHONPATH"].partition(":")
        assert os.path.isfile(f"{hook}/sitecustomize.py") and theirs == value, (value, printed.stdout, values)
    assert refused == 4, refused


def other_lines(project):
    text = subprocess.check_output([CUBLAME, "configure", "other", "--program", "program.py"], text=True)
    _, _, editors = text.partition("-- Neovim, nvim-dap\n")
    neovim, _, emacs = editors.partition(";; Emacs, dape\n")
    (project / "entry.lua").write_text(neovim)
    (project / "entry.el").write_text(emacs)
    return project


def neovim_reads_its_entry(project):
    other_lines(project)
    (project / "check.lua").write_text("""
local dap = { configurations = { python = {} } }
package.loaded.dap = dap
dofile("entry.lua")
local entry = dap.configurations.python[1]
assert(entry.env.CUDA_LAUNCH_BLOCKING == "1" and entry.program == "${workspaceFolder}/program.py", vim.inspect(entry))
""")
    check = """lua local fine, what = pcall(dofile, "check.lua")
      if not fine then io.stderr:write(what) end
      vim.cmd(fine and "qall!" or "cquit 1")"""
    command = ["nvim", "--headless", "-u", "NONE", "-c", " ".join(check.split())]
    subprocess.run(command, cwd=project, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def emacs_reads_its_entry(project):
    other_lines(project)
    check = """(progn (defvar dape-configs nil) (provide 'dape) (load-file "entry.el")
      (let ((entry (cdr (assq 'cublame-blocking dape-configs))))
        (unless (and (equal (plist-get (plist-get entry :env) :CUDA_LAUNCH_BLOCKING) "1")
                     (equal (plist-get entry :program) "program.py"))
          (error "%S" entry))))"""
    subprocess.run(["emacs", "--batch", "--eval", check], cwd=project, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


TESTS = [vscode_program, vscode_module, vscode_pytest, vscode_switched, pycharm_script, pycharm_copy, pycharm_module_and_pytest,
         notebooks_stay_valid, dotenv_is_read]
for editor, test in (("nvim", neovim_reads_its_entry), ("emacs", emacs_reads_its_entry)):
    if shutil.which(editor):
        TESTS.append(test)
    else:
        print(f"skipped: {editor} is not installed")
if INTERPRETER != TORCH:
    print("skipped: the DataLoader's worker under a debugger (tests/torch has not installed torch)")

passed = failed = 0
for test in TESTS:
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder).resolve()
        shutil.copy(HERE / "program.py", project)
        try:
            test(project)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            failed += 1
            print(f"FAILED  {test.__name__}: {failure}\n{failure.stdout}\n{failure.stderr}")
        except Exception:
            failed += 1
            print(f"FAILED  {test.__name__}\n{traceback.format_exc()}")
        else:
            passed += 1
            print(f"ok      {test.__name__}", flush=True)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
