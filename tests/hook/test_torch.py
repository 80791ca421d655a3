"""What the hook asks of torch where the command line wishes it: the memory's history, and anomaly mode.

The stand-in has the shape of torch's own, which tests/gpu/capture.sh reads on a GPU.
"""

from harness import Case, marked

TORCH = '''
import sys
calls = []
class OutOfMemoryError(RuntimeError):
    __module__ = "torch"
class TensorBase: pass
class Tensor(TensorBase): pass
class Space:
    def __init__(self, **names): self.__dict__.update(names)
class autograd:
    def set_detect_anomaly(mode, check_nan=True): calls.append(("anomaly", mode, check_nan))
started, observers, blocks = [], [], []
_C = Space(
    _cuda_attach_out_of_memory_observer=observers.append,
    _cuda_isHistoryEnabled=lambda: RECORDED,
    _cuda_getDeviceCount=lambda: 2,
    _cuda_memoryStats=lambda device: {"allocated_bytes": {"all": {"current": 100 + device}}},
)
def block(size, frames, state="active_allocated"):
    blocks.append({"size": size, "state": state, "frames": frames})
def record(**how): calls.append(("record", how))
memory = Space(
    _record_memory_history=record,
    _snapshot=lambda: {"segments": [{"device": 1, "blocks": blocks}, {"device": 0, "blocks": [{"size": 9, "state": "active_allocated"}]}]},
)
cuda = Space(memory=memory, _lazy_call=started.append)
def use_gpu():
    for call in started: call()
def run_out():
    for observer in observers: observer(1, 4096, 0, 0)
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 KiB.")
RECORDED = False
'''

PROGRAM = """
import torch
def frame(line, name="step", file=__file__): return {"filename": file, "line": line, "name": name}
library = frame(8, "linear", "/v/lib/python3/site-packages/torch/nn/functional.py")
native = {"filename": "??", "line": 0, "name": "at::empty"}
torch.use_gpu()
torch.block(1000, [native, library, frame(3), frame(9, "main")])
torch.block(500, [library, frame(3)])
torch.block(600, [frame(4)])
torch.block(70, [library])
torch.block(7, [])
torch.block(10 ** 6, [frame(5)], "inactive")
torch.run_out()  # @fault
"""


class Memory(Case):
    def outcome(self, program, torch=TORCH, **env):
        self.write("torch.py", torch)
        self.write("program.py", program)
        return self.python("program.py", env={"CUBLAME_MEMORY": "1", **env})

    def test_what_is_held_is_summed_up_by_line(self):
        event = self.outcome(PROGRAM).exception()
        self.assertEqual(event["chain"][-1]["frames"][0]["line"], marked(PROGRAM)[0])
        held = event["memory"]
        sites = [(site["path"], site["line"], site["function"], site["bytes"], site["blocks"]) for site in held["sites"]]
        program = self.folder + "/program.py"
        self.assertEqual(sites, [(program, 3, "step", 1500, 2), (program, 4, "step", 600, 1)])
        self.assertEqual((held["device"], held["allocated"], held["elsewhere"]), (1, 2177, 77))
        self.assertEqual(held["history"][-1][1], 2177)

    def test_the_ten_largest_are_told(self):
        program = PROGRAM.replace("torch.run_out", "[torch.block(at, [frame(at)]) for at in range(20, 50)]\ntorch.run_out")
        sites = self.outcome(program).exception()["memory"]["sites"]
        self.assertEqual([site["bytes"] for site in sites], [1500, 600, 49, 48, 47, 46, 45, 44, 43, 42])

    def test_it_is_recorded_from_the_first_use_of_a_gpu_and_once(self):
        program = "import torch\nprint(torch.calls)\ntorch.use_gpu()\nprint(torch.calls)\n"
        self.assertEqual(
            self.outcome(program).stdout.decode().split("\n")[:2],
            ["[]", "[('record', {'enabled': 'state', 'stacks': 'python'})]"],
        )
        recorded = TORCH.replace("RECORDED = False", "RECORDED = True")
        self.assertEqual(self.outcome(program, recorded).stdout, b"[]\n[]\n")

    def test_another_failure_has_no_memory(self):
        program = PROGRAM.replace("torch.run_out()", "1 / 0")
        self.assertNotIn("memory", self.outcome(program).exception())

    def test_one_that_the_program_survived_is_not_told_of_another(self):
        program = PROGRAM.replace("torch.run_out()", "try:\n    torch.run_out()\nexcept torch.OutOfMemoryError:\n    1 / 0")
        outcome = self.outcome(program)
        # The chain holds the first one, and it is what the memory was summed up for.
        self.assertIn("memory", outcome.exception())

    def test_a_torch_that_cannot_do_it_runs_on(self):
        outcome = self.outcome("import torch\ntorch.use_gpu()\nprint('on')\n", TORCH.replace("_cuda_attach", "_no_such"))
        self.assertEqual((outcome.code, outcome.stdout), (0, b"on\n"))
        self.assertIn(b"who holds the memory is not recorded", outcome.stderr)


class Anomaly(Case):
    def test_it_is_in_force_without_the_check_for_nan(self):
        self.write("torch.py", TORCH)
        self.write("program.py", "import torch\nprint(torch.calls)\n")
        outcome = self.python("program.py", env={"CUBLAME_ANOMALY": "1"})
        self.assertEqual(outcome.stdout, b"[('anomaly', True, False)]\n")
        self.assertEqual(self.unchanged("program.py").stdout, b"[]\n")
