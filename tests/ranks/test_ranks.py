"""Several processes of one run, each failing or losing the one that did. usage: test_ranks.py CUBLAME TORCH_PYTHON"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CUBLAME, TORCH_PYTHON = sys.argv[1:3]
TORCHRUN = [TORCH_PYTHON, "-m", "torch.distributed.run", "--no-python"]
PATIENCE = 120


def program(name):
    return os.path.join(HERE, "programs", name + ".py")


def fault_line(name):
    with open(program(name)) as file:
        return next(number for number, line in enumerate(file, 1) if "# @fault" in line)


class Ranks(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="cublame-ranks-")
        self.addCleanup(scratch.cleanup)
        self.folder = os.path.realpath(scratch.name)
        os.makedirs(os.path.join(self.folder, ".cublame"))
        launchers = ("CUBLAME", "CUDA_", "SLURM", "OMPI", "PMI", "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(launchers)}
        self.env.update(XDG_STATE_HOME=os.path.join(self.folder, "state"), MEETING=self.folder, OMP_NUM_THREADS="1", LANG="C")

    def run_it(self, *command):
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
        if done.returncode == 77 and done.stdout.startswith("skipped:"):
            self.skipTest(done.stdout.strip().removeprefix("skipped: "))
        return done

    def report(self, done):
        reports = glob.glob(os.path.join(self.folder, ".cublame/runs/*/report.json"))
        self.assertEqual(len(reports), 1, done.stderr[-3000:])
        with open(reports[0]) as file:
            return json.load(file)

    def check(self, done, name, rank, kind="unrecognised"):
        """One report, that blames the marked line in this rank and nobody else."""
        report = self.report(done)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotEqual(report["verdicts"], [], done.stderr[-3000:])
        verdict = report["verdicts"][0]
        place = verdict["place"] or {}
        said = [verdict["kind"], verdict["rank"], place.get("path"), place.get("line")]
        self.assertEqual(said, [kind, rank, program(name), fault_line(name)], done.stderr[-3000:])
        self.assertEqual(report["partial"], [])
        return verdict

    def needs(self, *programs):
        for name in programs:
            if shutil.which(name) is None and not os.path.exists(name):
                self.skipTest("%s is not installed" % name)

    # torchrun

    def torchrun(self, ranks, name, *before, monitor=0.1):
        self.needs(TORCH_PYTHON)
        torchrun = [*TORCHRUN, "--monitor-interval", str(monitor), "--nproc-per-node", str(ranks), TORCH_PYTHON, program(name)]
        return self.run_it(CUBLAME, "run", "--mode", "off", "--", *before, *torchrun)

    def test_a_rank_that_waits_in_a_collective_is_not_the_root(self):
        verdict = self.check(self.torchrun(4, "mismatch"), "mismatch", 2)
        self.assertEqual(verdict["missing"], [])
        lost = {other["rank"] for other in verdict["collateral"] if "connection" in other["summary"]}
        self.assertTrue(lost and lost <= {0, 1, 3}, verdict["collateral"])

    def test_of_two_failures_the_earlier_is_the_root_whatever_the_rank(self):
        verdict = self.check(self.torchrun(3, "later", monitor=2), "later", 2)
        self.assertIn({"rank": 0, "summary": "KeyError: 'other'"}, verdict["collateral"])

    def test_torchs_error_file_tells_where_nothing_else_does(self):
        verdict = self.check(self.torchrun(2, "recorded", "env", "-u", "PYTHONPATH"), "recorded", 1)
        self.assertEqual(verdict["exception"]["message"], "only the error file has it")

    def test_ranks_that_never_spoke_are_named(self):
        self.needs(TORCH_PYTHON)
        shell = 'test "$RANK" = 0 && unset PYTHONPATH; test "$RANK" = 3 && unset PYTHONPATH; exec "$0" "$@"'
        done = self.run_it(
            CUBLAME, "run", "--mode", "off", "--", *TORCHRUN, "--nproc-per-node", "4", "bash", "-c", shell, TORCH_PYTHON, program("mismatch")
        )
        verdict = self.check(done, "mismatch", 2)
        self.assertEqual(verdict["missing"], ["no event came from these ranks: 0, 3"])

    # Hangs

    def test_a_silent_run_shows_where_each_rank_stands_and_goes_on(self):
        self.needs(TORCH_PYTHON)
        command = [CUBLAME, "run", "--mode", "off", "--hang-after", "2", "--", *TORCHRUN, "--nproc-per-node", "3", TORCH_PYTHON]
        shown = open(os.path.join(self.folder, "stderr"), "w+")
        self.addCleanup(shown.close)
        run = subprocess.Popen(
            [*command, program("stuck")], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=shown
        )
        self.addCleanup(run.kill)
        here = [run.stdout.readline() for _ in range(3)]
        # The ranks write at once, and a line of one may stand within that of another.
        expected = [b"rank %d is here\n" % rank for rank in range(3)]
        self.assertEqual(sorted(b"".join(here)), sorted(b"".join(expected)))
        stands = "stuck.py:%d" % fault_line("stuck")
        deadline = time.monotonic() + PATIENCE
        while not ("the others wait in a collective for rank 1" in self.text_of(shown) and stands in self.text_of(shown)):
            self.assertLess(time.monotonic(), deadline, self.text_of(shown))
            time.sleep(0.1)
        self.assertIn("warning[nccl-timeout]", self.text_of(shown))
        self.assertIn("rank 0, 2 stands at", self.text_of(shown))
        self.assertIsNone(run.poll())
        # The user has seen enough.
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=PATIENCE)
        with open(glob.glob(os.path.join(self.folder, ".cublame/runs/*/report.json"))[0]) as file:
            verdict = json.load(file)["verdicts"][0]
        self.assertEqual([verdict["kind"], verdict["rank"], verdict["place"]["line"]], ["nccl-timeout", 1, fault_line("stuck")])

    @staticmethod
    def text_of(file):
        with open(file.name) as again:
            return " ".join(again.read().split())

    def test_a_program_with_the_signal_of_its_own_keeps_it(self):
        source = (
            "import signal, sys, time\n"
            "signal.signal(16, lambda *_: print('mine', flush=True))\n"
            "time.sleep(3.5)\n"
        )
        done = self.run_it(CUBLAME, "run", "--mode", "off", "--hang-after", "1", "--", sys.executable, "-c", source)
        self.assertEqual(done.returncode, 0, done.stderr)

    # mpirun

    def mpirun(self, *command):
        self.needs("mpirun")
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", *command]

    def test_mpirun_within_a_run(self):
        done = self.run_it(CUBLAME, "run", "--mode", "off", "--", *self.mpirun(sys.executable, program("tasks")))
        self.assertEqual(self.check(done, "tasks", 1)["missing"], [])

    def test_a_run_in_each_task_of_mpirun(self):
        done = self.run_it(*self.mpirun(CUBLAME, "run", "--mode", "off", "--", sys.executable, program("tasks")))
        self.check(done, "tasks", 1)
        self.assertEqual(done.stderr.count("error["), 1, done.stderr)

    # Slurm

    def slurm(self, *command):
        slurm = tempfile.mkdtemp(prefix="slurm-", dir=self.folder)
        return self.run_it("bash", os.path.join(HERE, "slurm.sh"), slurm, *command)

    def test_srun_within_a_run(self):
        srun = ["srun", "--overcommit", "-n", "3", sys.executable, program("tasks")]
        done = self.slurm(CUBLAME, "run", "--mode", "off", "--", *srun)
        self.assertEqual(self.check(done, "tasks", 1)["missing"], [])

    def test_a_run_in_each_task_of_srun(self):
        run = [CUBLAME, "run", "--mode", "off", "--", sys.executable, program("tasks")]
        done = self.slurm("srun", "--overcommit", "-n", "3", *run)
        self.assertEqual(self.check(done, "tasks", 1)["missing"], [])
        self.assertEqual(done.stderr.count("error["), 1, done.stderr)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Ranks)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for _, why in result.skipped:
        print("skipped:", why)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed - len(result.skipped), failed))
    sys.exit(failed > 0)
