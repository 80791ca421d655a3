"""The Python package beside real torch, on the CPU: nothing changes but what is asked for.

usage: test_package.py CUBLAME   (with the interpreter of a venv that has torch)
"""
import io
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CUBLAME = os.path.abspath(sys.argv.pop(1))
os.environ["CUBLAME"] = CUBLAME
sys.path.insert(0, os.path.join(HERE, "..", "..", "server", "python"))

import torch  # noqa: E402

import cublame  # noqa: E402


class Blocking(unittest.TestCase):
    def test_every_operation_passes_through_it_forward_and_backward(self):
        from cublame import operations

        seen = []

        class Counted(operations.WaitAfterOperations):
            def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
                seen.append(str(operation))
                return super().__torch_dispatch__(operation, types, args, kwargs)

        original, operations.WaitAfterOperations = operations.WaitAfterOperations, Counted
        try:
            weight = torch.ones(3, requires_grad=True)
            with cublame.blocking():
                (weight * 2).sum().backward()
        finally:
            operations.WaitAfterOperations = original
        self.assertEqual(weight.grad.tolist(), [2, 2, 2])
        self.assertIn("aten.mul.Tensor", seen)
        self.assertGreater(seen.count("aten.mul.Tensor"), 1, "the backward of mul is a mul")
        self.assertFalse(torch.cuda.is_initialized())

    def test_a_compiled_function_runs_operation_by_operation_and_is_compiled_after_the_block(self):
        compiled = []

        def backend(graph, inputs):
            compiled.append(graph)
            return graph.forward

        function = torch.compile(lambda x: (x + 1).sin(), backend=backend)
        x = torch.ones(3)
        with cublame.blocking():
            inside = function(x)
        self.assertEqual(compiled, [])
        self.assertTrue(torch.equal(function(x), inside))
        self.assertEqual(len(compiled), 1)

    def test_inside_a_compiled_function_it_says_that_it_cannot(self):
        def function(x):
            with cublame.blocking():
                return x + 1

        with self.assertRaisesRegex(Exception, "cublame.blocking cannot wait inside a compiled function"):
            torch.compile(function, backend="eager", fullgraph=True)(torch.ones(3))
        torch._dynamo.reset()
        self.assertEqual(torch.compile(function, backend="eager")(torch.ones(3)).tolist(), [2, 2, 2])

    def test_what_an_operation_says_of_itself_holds_no_value(self):
        from cublame import operations

        shown = operations.shown([torch.full((2, 3), 7), torch.ones(1, dtype=torch.half)])
        self.assertEqual(shown, "[int64[2, 3] on cpu, float16[1] on cpu]")


class Explain(unittest.TestCase):
    def failure(self):
        try:
            torch.nn.functional.embedding(torch.tensor([5]), torch.ones(3, 2))  # @fault
        except IndexError as error:
            return error

    def fault(self):
        with open(__file__) as source:
            lines = source.read().splitlines()
        return next(number for number, line in enumerate(lines, 1) if line.endswith("# @fault"))

    def test_the_line_is_said(self):
        stream = io.StringIO()
        cublame.explain(self.failure(), workspace=HERE, file=stream)
        self.assertIn("test_package.py:%d" % self.fault(), stream.getvalue())

    def test_the_verdicts_are_data(self):
        (verdict,) = cublame.verdicts(self.failure(), workspace=HERE)
        self.assertEqual((verdict["place"]["line"], verdict["certainty"]), (self.fault(), "exact"))

    def test_a_failure_that_was_waited_for_is_believed(self):
        text = "CUDA error: device-side assert triggered"
        certainties = []
        for waited in (False, True):
            try:
                raise RuntimeError(text)
            except RuntimeError as error:
                if waited:
                    error.raised_where_it_failed = True
                certainties.append(cublame.verdicts(error, workspace=HERE)[0]["trace_trusted"])
        self.assertEqual(certainties, [False, True])

    def test_without_an_exception(self):
        with self.assertRaisesRegex(ValueError, "no exception has been raised"):
            cublame.verdicts()

    def test_without_the_program(self):
        from cublame import program

        found, program.candidates = program.candidates, lambda: iter(())
        try:
            stream = io.StringIO()
            cublame.explain(self.failure(), file=stream)
        finally:
            program.candidates = found
        self.assertEqual(
            stream.getvalue(),
            "cublame: the program that explains failures is not installed. "
            "`pip install cublame` brings it; or set CUBLAME to the program's path\n",
        )


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=0).result
    failed = len(outcome.failures) + len(outcome.errors)
    print("%d passed, %d failed" % (outcome.testsRun - failed, failed))
    sys.exit(bool(failed))
