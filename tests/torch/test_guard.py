"""The guard on the CPU's kernels: what it says of each bad argument, what it leaves alone, and the verdict of a guarded run.

usage: test_guard.py CUBLAME   (with the interpreter of a venv that has torch)
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "server", "python")
CUBLAME = os.path.abspath(sys.argv.pop()) if __name__ == "__main__" else ""
sys.path[:0] = [PACKAGE, HERE]

import torch
import torch.nn as nn
import torch.nn.functional as F

import guard_cases
from cublame import GuardError, GuardIndexError, GuardValueError, guarding
from cublame.guard_check import PlainCheck
from cublame.guard_late import Late
from cublame.guard_rules import index

warnings.simplefilter("ignore")
WAYS = ("strict", "deferred")
BAD = torch.tensor([[1, 2], [12, 3]])
WEIGHT = torch.arange(20.0).reshape(10, 2)
BAD_SENTENCE = "embedding index: value 12 at [1, 0] is outside [0, 10) (1 of 4)"


class on_the_cpu:
    """A guard of the CPU's kernels."""

    def __init__(self, way):
        self.way = way

    def __enter__(self):
        guarding.install(self.way, keys=("CPU",))
        return guarding._installed.late

    def __exit__(self, *of_exception):
        guarding.uninstall()


def told(late, call):
    """The type and the first line of what the guard says, at the call or when it is asked."""
    try:
        call()
        late.wait_and_tell()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
    return None


class Sentences(unittest.TestCase):
    def test_each_bad_argument(self):
        for way in WAYS:
            with on_the_cpu(way) as late:
                for name, call, kind, sentence in guard_cases.WRONG:
                    with self.subTest(way=way, op=name):
                        self.assertEqual(told(late, lambda: call("cpu")), (kind, sentence))

    def test_the_backward_of_each(self):
        for way in WAYS:
            with on_the_cpu(way) as late:
                for name, call, sentence in guard_cases.backward_cases("cpu"):
                    with self.subTest(way=way, op=name):
                        self.assertEqual(told(late, call), ("GuardIndexError", sentence))

    def test_what_no_kernel_minds(self):
        for way in WAYS:
            with on_the_cpu(way) as late:
                for name, call in guard_cases.RIGHT:
                    with self.subTest(way=way, op=name):
                        self.assertIsNone(told(late, lambda: call("cpu")))

    def test_the_exception_has_its_parts(self):
        with on_the_cpu("strict"), self.assertRaises(IndexError) as raised:
            F.embedding(BAD, WEIGHT)
        error = raised.exception
        self.assertIsInstance(error, GuardError)
        self.assertIsInstance(error, GuardIndexError)
        self.assertEqual((error.op, error.argument, error.value, error.position), ("embedding", "index", 12, [1, 0]))
        self.assertEqual((error.low, error.high, error.count, error.total), (0, 9, 1, 4))
        self.assertEqual(type(error).__module__, "cublame")
        with on_the_cpu("strict"), self.assertRaises(ValueError) as raised:
            torch.bernoulli(torch.tensor([2.0]))
        self.assertIsInstance(raised.exception, GuardValueError)

    def test_torch_says_itself_what_else_is_wrong(self):
        calls = [
            lambda: torch.ones(3, 5).gather(7, torch.tensor([[0]])),
            lambda: F.embedding(torch.tensor([0.5]), WEIGHT),
            lambda: F.nll_loss(torch.ones(3, 5), torch.tensor([1, 2])),
            lambda: torch.ones(3)[torch.tensor(0), torch.tensor(0)],
        ]
        for call in calls:
            with self.assertRaises(Exception) as bare:
                call()
            with on_the_cpu("strict"), self.assertRaises(type(bare.exception)) as guarded:
                call()
            self.assertEqual(str(guarded.exception), str(bare.exception))


class Deferred(unittest.TestCase):
    """The op runs on a copy without offenders, and a later moment tells of the call's own line."""

    def leave_behind(self):
        out = F.embedding(BAD, WEIGHT)  # the call
        self.assertEqual(out[1, 0].tolist(), WEIGHT[9].tolist())
        self.assertEqual(BAD[1, 0].item(), 12)

    def assert_told(self, moment):
        """Nothing but the moment itself may tell."""
        guarding.install("deferred", keys=("CPU",))
        late = guarding._installed.late
        try:
            late.tell, tell = lambda: None, late.tell
            self.leave_behind()
            late.tell = tell
            with self.assertRaises(GuardIndexError) as raised:
                moment()
        finally:
            guarding.uninstall()
        lines = str(raised.exception).splitlines()
        self.assertEqual(lines[0], BAD_SENTENCE)
        self.assertIn("    out = F.embedding(BAD, WEIGHT)  # the call", lines)
        self.assertFalse(any("guard_ops" in line for line in lines), lines)

    def test_at_the_next_guarded_op(self):
        self.assert_told(lambda: WEIGHT.gather(1, torch.tensor([[0]])))

    def test_at_item(self):
        self.assert_told(lambda: torch.ones(1).item())

    def test_at_a_save(self):
        self.assert_told(lambda: torch.save(WEIGHT, io.BytesIO()))

    def test_at_a_step_of_an_optimizer(self):
        parameter = torch.ones(1, requires_grad=True)
        parameter.grad = torch.ones(1)
        optimizer = torch.optim.SGD([parameter], lr=1.0)
        self.assert_told(optimizer.step)
        self.assertEqual(parameter.tolist(), [1.0])

    def test_at_the_end_of_the_block(self):
        with self.assertRaises(GuardIndexError), guarding.Guard("deferred"):
            # The block guards the GPU's kernels; a look is left behind as one of them would.
            with on_the_cpu("deferred"):
                late = guarding._installed.late
                late.add("embedding", look_of(BAD))

    def test_the_first_is_told_and_once(self):
        first, second = look_of(BAD), look_of(BAD)
        with on_the_cpu("deferred") as late:
            late.add("first", first)
            late.add("second", second)
            with self.assertRaisesRegex(GuardIndexError, "^first"):
                late.wait_and_tell()
            late.wait_and_tell()

    def test_what_a_replay_finds_is_told_once_for_each_alarm(self):
        """The answers of looks inside a captured graph, which there is no GPU to capture here."""
        looker = Graph()
        late = Late()
        for op, found in (("right", None), ("wrong", (12, 2, 1))):
            late.add(op, GraphLook(looker, found), captured=True)
        late.tell()
        looker.rings = 2
        for _ in range(2):
            with self.assertRaisesRegex(
                GuardIndexError, r"^wrong index: value 12 at \[1, 0\] is outside \[0, 10\) \(1 of 4\)"
            ):
                late.tell()
        late.tell()

    def test_moments_are_taken_back(self):
        before = torch.save, torch.Tensor.cpu, torch.Tensor.to, torch.cuda.synchronize
        with on_the_cpu("deferred"):
            self.assertIsNot(torch.save, before[0])
        self.assertEqual((torch.save, torch.Tensor.cpu, torch.Tensor.to, torch.cuda.synchronize), before)


class Graph:
    """A GPU on which a graph is replayed."""

    rings = 0

    def alarmed(self):
        self.rings -= 1
        return self.rings >= 0


class GraphLook:
    def __init__(self, looker, found):
        self.looker, self.found, self.requirement = looker, found, index(1, BAD, 10)

    def take(self):
        return self.found


def look_of(indices):
    return PlainCheck(index(1, indices, 10))


class Beside(unittest.TestCase):
    """What torch does above the guarded kernels goes on."""

    def each_way(self, check):
        for way in WAYS:
            with self.subTest(way=way), on_the_cpu(way) as late:
                check()
                late.wait_and_tell()

    def test_gradients(self):
        def step():
            torch.manual_seed(0)
            net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 5))
            scores = net(torch.tensor([1, 2, 9]))
            picked = scores.gather(1, torch.tensor([[0], [1], [4]])).sum() + scores[torch.tensor([-1])].sum()
            (F.cross_entropy(scores, torch.tensor([0, -100, 4])) + picked).backward()
            return [parameter.grad for parameter in net.parameters()]

        bare = step()
        self.each_way(lambda: self.assertTrue(all(map(torch.equal, step(), bare))))

    def test_a_forward_in_order_is_not_looked_at_again(self):
        labels = torch.tensor([0, 1])
        scores = torch.ones(2, 3, requires_grad=True)
        with on_the_cpu("strict"):
            loss = F.nll_loss(scores, labels)
            # Behind torch's back, as nothing but a test does it: what torch itself says shows that the guard did not look.
            labels.numpy()[0] = 7
            with self.assertRaises(IndexError) as raised:
                loss.backward()
            self.assertNotIsInstance(raised.exception, GuardError)
            loss = F.nll_loss(scores, labels.zero_())
            with torch.no_grad():
                labels.add_(7)
            with self.assertRaises(RuntimeError):
                loss.backward()

    def test_autocast(self):
        def check():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = F.linear(torch.ones(3, 4), torch.ones(5, 4))
                self.assertEqual(scores.dtype, torch.bfloat16)
                F.cross_entropy(scores, torch.tensor([0, 1, 4]))
                self.assertEqual(
                    told(guarding._installed.late, lambda: F.cross_entropy(scores, torch.tensor([0, 1, 5]))),
                    ("GuardIndexError", "nll_loss target label: value 5 at [2] is outside [0, 5) (1 of 3)"),
                )

        self.each_way(check)

    def test_inference_mode(self):
        def check():
            with torch.inference_mode():
                F.embedding(torch.tensor([1]), WEIGHT)
                self.assertEqual(told(guarding._installed.late, lambda: F.embedding(BAD, WEIGHT))[1], BAD_SENTENCE)

        self.each_way(check)

    def test_vmap(self):
        rows, picks = torch.arange(12.0).reshape(3, 4), torch.tensor([[0], [3], [4]])
        gather = torch.vmap(lambda row, pick: row.gather(0, pick))

        def check():
            self.assertEqual(gather(rows, picks.clamp(max=3)).tolist(), [[0.0], [7.0], [11.0]])
            found = told(guarding._installed.late, lambda: gather(rows, picks))
            self.assertEqual(found, ("GuardIndexError", "gather index: value 4 at [2, 0] is outside [0, 4) (1 of 3)"))

        self.each_way(check)

    def test_fake_and_functional_tensors(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        def check():
            with FakeTensorMode() as mode:
                weight, indices = mode.from_tensor(WEIGHT), mode.from_tensor(BAD)
                self.assertEqual(F.embedding(indices, weight).shape, (2, 2, 2))
            replaced = torch.func.functionalize(lambda x, i: x.clone().index_put_((i,), torch.ones(())))
            self.assertEqual(replaced(WEIGHT, torch.tensor([9]))[9].tolist(), [1.0, 1.0])

        self.each_way(check)

    def test_the_meta_device(self):
        self.each_way(lambda: F.embedding(BAD.to("meta"), WEIGHT.to("meta")))

    def test_compiled_whole(self):
        def loss(weight, indices, labels):
            return F.cross_entropy(F.embedding(indices, weight), labels)

        labels = torch.tensor([0, 1])

        def check():
            torch._dynamo.reset()
            compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
            weight = WEIGHT.clone().requires_grad_()
            compiled(weight, torch.tensor([1, 9]), labels).backward()
            self.assertTrue(weight.grad.any())
            found = told(guarding._installed.late, lambda: compiled(weight, torch.tensor([1, 12]), labels))
            self.assertEqual(found[0], "GuardIndexError")
            self.assertIn("value 12 at [1]", found[1])

        self.each_way(check)

    def test_dynamo_does_not_compile_the_guard(self):
        """Beside a graph break torch's ops run in the middle of a compiled function."""

        @torch._dynamo.disable(recursive=False)
        def left(weight, indices):
            return torch.embedding(weight, indices)

        def frames():
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            compiled = torch.compile(lambda weight, indices: left(weight.sin(), indices) + 1, backend="eager")
            compiled(WEIGHT, torch.tensor([1, 9]))
            return torch._dynamo.utils.counters["frames"]["total"]

        bare = frames()
        self.assertGreater(bare, 1)
        self.each_way(lambda: self.assertEqual(frames(), bare))

    def test_a_distributed_tensor_by_its_shard(self):
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor

        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("gloo", init_method="file://" + folder + "/store", rank=0, world_size=1)
            try:
                mesh = init_device_mesh("cpu", (1,))
                rows = distribute_tensor(torch.arange(12.0).reshape(3, 4), mesh, [Shard(0)])
                picks = distribute_tensor(torch.tensor([0, 4]), mesh, [Replicate()])

                def check():
                    found = told(guarding._installed.late, lambda: torch.index_select(rows, 1, picks))
                    sentence = "index_select index: value 4 at [1] is outside [0, 4) (1 of 2)"
                    self.assertEqual(found, ("GuardIndexError", sentence))

                self.each_way(check)
            finally:
                dist.destroy_process_group()

    def test_threads(self):
        def check():
            found = []

            def work(bad):
                try:
                    for _ in range(50):
                        F.embedding(torch.tensor([1]), WEIGHT)
                    if bad:
                        F.embedding(BAD, WEIGHT)
                        guarding._installed.late.wait_and_tell()
                except GuardIndexError as error:
                    found.append(str(error).splitlines()[0])

            threads = [threading.Thread(target=work, args=(number == 2,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            # In the deferred way another thread's next op may have told of it.
            if not found:
                self.fail("nobody was told")
            self.assertEqual(found, [BAD_SENTENCE])

        self.each_way(check)


class Scopes(unittest.TestCase):
    def assert_bare(self):
        with self.assertRaises(IndexError) as raised:
            F.embedding(BAD, WEIGHT)
        self.assertNotIsInstance(raised.exception, GuardError)

    def test_the_guard_ends_with_its_last_scope(self):
        self.assert_bare()
        with on_the_cpu("strict"):
            with on_the_cpu("deferred"), self.assertRaises(GuardIndexError):
                F.embedding(BAD, WEIGHT)
            with self.assertRaises(GuardIndexError):
                F.embedding(BAD, WEIGHT)
        self.assert_bare()
        guarding.uninstall()

    def test_a_decorator_with_and_without_a_way(self):
        for decorate in (guarding.guard, guarding.guard(), guarding.guard(way="deferred")):

            @decorate
            def guarded():
                return guarding._installed.deferred

            self.assertIs(guarded(), getattr(decorate, "way", "strict") == "deferred")
            self.assertIsNone(guarding._installed)

    def test_an_unknown_way(self):
        with self.assertRaisesRegex(ValueError, "strict or deferred"):
            guarding.guard(way="sometimes")

    def test_what_the_kernels_source_compiles_to(self):
        """NVRTC needs no GPU."""
        from cublame.guard_kernel import compile_for

        self.assertTrue(compile_for("sm_90").startswith(b"\x7fELF"))


class Runs(unittest.TestCase):
    """`cublame run --mode guard`, with nothing of cublame installed."""

    def run_program(self, way, *python):
        program = os.path.join(HERE, "programs", "guarded.py")
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            env = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("CUBLAME", "CUDA_", "PYTHONPATH"))
            }
            env.update(
                CUBLAME_DIR=os.path.join(folder, "runs"),
                XDG_STATE_HOME=os.path.join(folder, "state"),
                CUBLAME_GUARD=way,
            )
            command = [CUBLAME, "run", "--mode", "guard", "--report", report, "--", sys.executable, *python, program]
            done = subprocess.run(
                command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
            )
            return done, json.load(open(report))["verdicts"]

    def line_of(self, mark):
        lines = open(os.path.join(HERE, "programs", "guarded.py")).read().splitlines()
        return next(number for number, line in enumerate(lines, 1) if mark in line)

    def test_the_installed_package_has_the_same_guard(self):
        code = (
            "import importlib.util as util; util.find_spec('torch');"
            "import torch, cublame, sys; guarding = sys.modules['cublame.guarding'];"
            "print(cublame.guard is guarding.guard, guarding._depth);"
            "print(cublame.GuardIndexError is sys.modules['cublame.guard_errors'].GuardIndexError)"
        )
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "PYTHONPATH": PACKAGE, "CUBLAME_DIR": folder, "XDG_STATE_HOME": folder}
            command = [CUBLAME, "run", "--mode", "guard", "--", sys.executable, "-c", code]
            done = subprocess.run(
                command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
            )
        self.assertEqual((done.stdout, done.stderr), ("True 1\nTrue\n", ""))

    def test_strict(self):
        done, verdicts = self.run_program("strict")
        first = verdicts[0]
        self.assertEqual((done.returncode, done.stdout, len(verdicts)), (1, "", 1), done.stderr)
        self.assertEqual((first["kind"], first["certainty"], first["trace_trusted"]), ("device-assert", "exact", True))
        self.assertEqual((first["place"]["line"], first["place"]["column"]), (self.line_of("@fault"), 16))
        self.assertEqual(first["summary"], "embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)")
        self.assertIn('File "<cublame>"', done.stderr)

    def test_deferred(self):
        done, verdicts = self.run_program("deferred")
        first = verdicts[0]
        self.assertEqual((done.returncode, done.stdout, len(verdicts)), (1, "", 1), done.stderr)
        self.assertEqual((first["kind"], first["certainty"], first["trace_trusted"]), ("device-assert", "exact", False))
        self.assertEqual(first["place"]["line"], self.line_of("@fault"))
        self.assertEqual(first["reported"]["line"], self.line_of("@told"))
        self.assertEqual(first["summary"], "embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)")


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner().run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
