"""Cells in a real ipykernel. usage: test_notebooks.py CUBLAME TORCH_PYTHON

A GPU's errors are raised with their real words by the cells themselves; torch's own failure on a machine without a driver
is there too, where torch is installed.
"""

import glob
import hashlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import unittest

from jupyter_client.manager import KernelManager

CUBLAME, TORCH_PYTHON = sys.argv[1:3]
PACKAGE = os.path.join(os.path.dirname(__file__), "..", "..", "server", "python")
PATIENCE = 60

ASSERT = """
class AcceleratorError(RuntimeError):
    pass

def forward(index):
    raise AcceleratorError("CUDA error: device-side assert triggered\\nCUDA kernel errors might be asynchronously reported")  # @raise
"""
CALL = "\n\nx = 1\nforward(x)  # @call\n"


class Shown:
    def __init__(self, reply):
        self.status = reply["content"]["status"]
        self.error = None
        self.stderr = ""
        self.stdout = ""


class Kernel:
    """A kernel with a home of its own, in a project folder with a notebook."""

    def __init__(self, case, extension=True, env=(), torch=False):
        scratch = tempfile.TemporaryDirectory(prefix="cublame-notebooks-")
        case.addCleanup(scratch.cleanup)
        self.folder = os.path.realpath(scratch.name)
        self.notebook = os.path.join(self.folder, "train.ipynb")
        os.mkdir(os.path.join(self.folder, ".cublame"))
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("CUBLAME", "LC_", "LANG"))}
        paths = [PACKAGE] if extension else []
        if torch:
            paths += [subprocess.check_output([TORCH_PYTHON, "-c", "import torch, os; print(os.path.dirname(torch.__path__[0]))"], text=True).strip()]
        self.env.update(
            HOME=self.folder,
            IPYTHONDIR=os.path.join(self.folder, ".ipython"),
            XDG_STATE_HOME=os.path.join(self.folder, "state"),
            XDG_CACHE_HOME=os.path.join(self.folder, "cache"),
            JUPYTER_RUNTIME_DIR=os.path.join(self.folder, "runtime"),
            JPY_SESSION_NAME=self.notebook,
            CUBLAME=CUBLAME,
            LANG="C.UTF-8",
        )
        self.env["PYTHONPATH"] = os.pathsep.join(paths)
        self.env.update(env)
        self.manager = None
        case.addCleanup(self.stop)

    def start(self):
        self.manager = KernelManager(kernel_name="python3")
        self.manager.kernel_spec.argv[0] = sys.executable
        self.manager.start_kernel(cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        return self

    def run(self, source, cell_id=None):
        """As a front end runs a cell: with its id in the metadata of the request."""
        session = self.client.session
        content = {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
        metadata = {} if cell_id is None else {"cellId": cell_id}
        message = session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        reply = self.client.get_shell_msg(timeout=PATIENCE)
        while reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
        shown = Shown(reply)
        while True:
            try:
                said = self.client.get_iopub_msg(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError("the kernel fell silent") from None
            if said["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            content = said["content"]
            if said["msg_type"] == "stream":
                setattr(shown, content["name"], getattr(shown, content["name"]) + content["text"])
            elif said["msg_type"] == "error":
                shown.error = content
            elif said["msg_type"] == "status" and content["execution_state"] == "idle":
                return shown

    def stop(self):
        if self.manager is not None:
            self.client.stop_channels()
            self.manager.shutdown_kernel(now=False)
            self.manager.cleanup_resources()
            self.manager = None

    def runs(self):
        return sorted(glob.glob(os.path.join(self.folder, ".cublame/runs/*")))

    def events(self, kind):
        (run,) = self.runs()
        found = []
        for path in glob.glob(os.path.join(run, "events/*.jsonl")):
            with open(path, encoding="utf-8") as file:
                found += [json.loads(line) for line in file]
        return [event for event in found if event["event"] == kind]


def plain(error):
    """A traceback without what differs between two kernels: colours and the process's number."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))
    return re.sub(r"ipykernel_\d+", "ipykernel_N", text)


class Notebooks(unittest.TestCase):
    maxDiff = None

    def test_a_failing_cell_is_told_of_and_its_traceback_stays(self):
        kernel = Kernel(self).start()
        self.assertEqual(kernel.run("%load_ext cublame", "load").stderr, "")
        kernel.run(ASSERT, "cell-a")
        shown = kernel.run(CALL, "cell-b")
        self.assertEqual(
            shown.stderr.splitlines(),
            [
                "cublame: a kernel's own check found a bad index, label or probability (device-assert)",
                "  suspect, the cause may be earlier: Cell In[2], line 6",
                "    " + ASSERT.splitlines()[5].strip(),
                "  The CUDA context of this kernel is dead: restart the kernel before you run another cell on the GPU.",
            ],
        )
        without = Kernel(self, extension=False).start()
        without.run("0")
        without.run(ASSERT)
        self.assertEqual(plain(shown.error), plain(without.run(CALL).error))

        (event,) = kernel.events("exception")
        self.assertEqual(event["hook"], "ipython")
        by_id = {cell["id"]: cell for cell in event["cells"].values()}
        self.assertEqual(sorted(by_id), ["cell-a", "cell-b"])
        self.assertEqual([by_id["cell-b"][key] for key in ("count", "first_line", "notebook", "source")], [3, 3, kernel.notebook, CALL])
        self.assertEqual(by_id["cell-b"]["sha256"], hashlib.sha256(CALL.encode()).hexdigest())
        self.assertEqual(by_id["cell-a"]["count"], 2)
        done = kernel.events("cell")
        self.assertEqual([(cell["id"], cell["source"]) for cell in done], [("load", "%load_ext cublame"), ("cell-a", ASSERT)])
        # Its code has the same name in the trace of the failure, and would have in the launch journal.
        self.assertIn(done[1]["file"], event["cells"])
        kernel.run(ASSERT, "cell-a")
        self.assertEqual([(cell["count"], cell["source"]) for cell in kernel.events("cell")][2:], [(4, None)])

        # What fails after the death of the context only follows.
        later = kernel.run("forward(2)", "cell-c")
        self.assertIn("The CUDA context of this kernel died in cell [3], so this failure may only follow", later.stderr)

    def test_everyday_mistakes_are_not_spoken_of(self):
        kernel = Kernel(self).start()
        kernel.run("%load_ext cublame", "load")
        for source in ("undefined_name", "1 / 0", "this is no Python", "raise KeyboardInterrupt", "%nosuchmagic", "%%time\n1 / 0"):
            shown = kernel.run(source, "cell")
            self.assertEqual((shown.status, shown.stderr), ("error", "UsageError: Line magic function `%nosuchmagic` not found.\n" if source == "%nosuchmagic" else ""), source)

    def test_the_words_are_of_the_users_language(self):
        kernel = Kernel(self, env={"LANG": "zh_CN.UTF-8"}).start()
        kernel.run("%load_ext cublame")
        kernel.run(ASSERT)
        shown = kernel.run(CALL)
        self.assertIn("此内核的 CUDA 上下文已失效", shown.stderr)
        self.assertIn("第 6 行", shown.stderr)

    def test_lines_below_a_magic_are_lines_of_the_cell(self):
        kernel = Kernel(self).start()
        kernel.run("%load_ext cublame")
        shown = kernel.run("\n%%time\n" + ASSERT.replace("forward(index)", "forward(index=0)") + "forward()\n")
        self.assertIn("Cell In[2], line 8\n    raise AcceleratorError", shown.stderr)

    def test_a_mended_cell_is_no_failure_any_more(self):
        kernel = Kernel(self).start()
        kernel.run("%load_ext cublame", "load")
        out_of_memory = 'raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 15.89 GiB of which 9.38 GiB is free.")'
        shown = kernel.run(out_of_memory, "cell-a")
        self.assertIn("(oom)", shown.stderr)
        self.assertIn("Cell In[2], line 1", shown.stderr)
        self.assertNotIn("restart the kernel before", shown.stderr)
        self.assertEqual(kernel.run("1", "cell-a").stderr, "")
        self.assertEqual([cell["id"] for cell in kernel.events("cell")], ["load", "cell-a"])

    def test_a_kernel_that_was_started_with_the_hook_keeps_its_run(self):
        env = {"CUBLAME_MODE": "off"}
        kernel = Kernel(self, env=env)
        block = json.loads(subprocess.check_output([CUBLAME, "env", "--mode", "off", "--format", "json"], env=kernel.env))
        kernel.env["PYTHONPATH"] = os.pathsep.join([block["PYTHONPATH"].split(os.pathsep)[0], PACKAGE])
        kernel.start()
        self.assertEqual(len(kernel.runs()), 1)
        kernel.run("%load_ext cublame")
        kernel.run(ASSERT)
        self.assertIn("(device-assert)", kernel.run(CALL).stderr)
        self.assertEqual(len(kernel.events("exception")), 1)
        self.assertEqual(len(kernel.events("start")), 1)

    def test_loading_twice_and_unloading(self):
        kernel = Kernel(self).start()
        kernel.run("%load_ext cublame")
        kernel.run("%reload_ext cublame")
        kernel.run(ASSERT)
        self.assertEqual(kernel.run(CALL).stderr.count("(device-assert)"), 1)
        kernel.run("%unload_ext cublame")
        self.assertEqual(kernel.run(CALL).stderr, "")

    def test_without_the_program_it_says_how_to_get_it(self):
        kernel = Kernel(self, env={"CUBLAME": "/nonexistent", "PATH": "/usr/bin:/bin"}).start()
        shown = kernel.run("%load_ext cublame")
        self.assertIn("the program is not installed\n  hint: `pip install cublame`", shown.stderr)
        self.assertEqual(shown.status, "ok")

    def test_every_notebook_has_it_once_it_is_enabled(self):
        kernel = Kernel(self, extension=False)
        command = [CUBLAME, "notebook", "enable"]
        call = lambda *more: subprocess.run([*command, *more], env=kernel.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True)
        shown = call("--dry-run")
        self.assertIn("+++ b" + kernel.env["IPYTHONDIR"], shown.stdout)
        self.assertFalse(os.path.exists(kernel.env["IPYTHONDIR"]))
        self.assertIn("wrote", call().stderr)
        self.assertEqual(call().stderr, "cublame: nothing to change\n")
        del kernel.env["CUBLAME"]
        kernel.start()
        kernel.run(ASSERT)
        self.assertIn("(device-assert)", kernel.run(CALL).stderr)
        self.assertEqual(kernel.run("[name for name in dir() if 'cublame' in name]").status, "ok")
        kernel.stop()
        call("--disable")
        left = [os.path.join(folder, name) for folder, _, names in os.walk(kernel.env["IPYTHONDIR"]) for name in names]
        self.assertEqual([path for path in left if "/cublame" in path[len(kernel.folder) :] or path.endswith(".py")], [])
        self.assertEqual(call("--disable").stderr, "cublame: nothing to change\n")

    @unittest.skipUnless(os.path.exists(TORCH_PYTHON), "torch is not installed")
    def test_torch_without_a_driver(self):
        kernel = Kernel(self, torch=True).start()
        kernel.run("%load_ext cublame")
        shown = kernel.run("import torch\n\ntorch.zeros(3).cuda()  # @fault\n")
        self.assertIn("(no-driver)", shown.stderr)
        self.assertIn("exact: Cell In[2], line 3\n    torch.zeros(3).cuda()", shown.stderr)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Notebooks)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for _, why in result.skipped:
        print("skipped: notebooks,", why)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed - len(result.skipped), failed))
    sys.exit(failed > 0)
