"""A process that finds a mode but no run creates one, by the rules of server/src/session/place.rs and folder.rs."""

import json
import os
import re
import stat
import tempfile

from harness import RUNS, TARGET, Case


class Adopted(Case):
    def setUp(self):
        super().setUp()
        # Beneath RUNS, so that the caller reads these runs with the types of the product too.
        self.top = tempfile.mkdtemp(dir=RUNS)
        self.state = os.path.join(self.top, "state")
        self.project = os.path.join(self.top, "project")
        self.deep = os.path.join(self.project, "src", "deep")
        os.makedirs(self.deep)

    def adopt(self, *arguments, cwd=None, **env):
        variables = {"CUBLAME_RUN": None, "CUBLAME_MODE": "blocking", "XDG_STATE_HOME": self.state, **env}
        outcome = self.unchanged(*arguments, cwd=cwd or self.deep, env=variables)
        # The first of the two runs was without the hook and left nothing.
        index = os.path.join(self.state, "cublame", "index")
        self.runs = []
        if os.path.exists(index):
            with open(index) as file:
                self.runs = [json.loads(line) for line in file]
        if self.runs:
            outcome.run = self.runs[-1]["run"]
        return outcome

    def run_json(self):
        with open(os.path.join(self.runs[-1]["run"], "run.json")) as file:
            return json.load(file)

    def check_place(self, folder, **options):
        self.adopt("-c", "", **options)
        self.assertEqual(os.path.dirname(os.path.dirname(self.runs[-1]["run"])), os.path.join(self.top, folder))

    def test_the_place(self):
        self.check_place("project/src/deep/.cublame")
        # Now the nearest `.cublame` is that one.
        self.check_place("project/src/deep/.cublame", cwd=self.deep)
        self.check_place("project/src/.cublame", cwd=os.path.join(self.project, "src"))

    def test_the_place_by_a_mark(self):
        os.mkdir(os.path.join(self.project, ".git"))
        self.check_place("project/.cublame")

    def test_the_place_by_the_nearest_cublame_folder(self):
        os.mkdir(os.path.join(self.project, ".cublame"))
        os.mkdir(os.path.join(self.deep, ".git"))
        self.check_place("project/.cublame")

    def test_the_place_by_the_variable(self):
        self.check_place("elsewhere", CUBLAME_DIR=os.path.join(self.top, "elsewhere"))
        self.check_place("project/src/deep/relative", CUBLAME_DIR="relative")

    def test_the_place_where_the_project_cannot_be_written(self):
        with open(os.path.join(self.deep, ".cublame"), "w"):
            pass
        self.check_place("state/cublame")

    def test_a_link_in_the_project_is_not_followed(self):
        os.mkdir(os.path.join(self.top, "victim"))
        os.symlink(os.path.join(self.top, "victim"), os.path.join(self.deep, ".cublame"))
        self.check_place("state/cublame")
        self.assertEqual(os.listdir(os.path.join(self.top, "victim")), [])

    def test_no_place_at_all(self):
        with open(os.path.join(self.deep, ".cublame"), "w"):
            pass
        with open(self.state, "w"):
            pass
        outcome = self.adopt("-c", "print('x'); 1 / 0")
        self.assertEqual((self.runs, outcome.stdout), ([], b"x\n"))

    def test_what_run_json_says(self):
        script = os.path.join(self.deep, "train.py")
        with open(script, "w") as file:
            file.write("1 / 0\n")
        outcome = self.adopt("train.py", "--lr", "1", CUDA_LAUNCH_BLOCKING="1", AWS_SECRET_ACCESS_KEY="hunter2")
        run = self.run_json()
        started = run.pop("started")
        self.assertEqual(started, self.runs[-1]["started"])
        child = run.pop("child")
        self.assertEqual(child["pid"], outcome.events()[0]["pid"])
        self.assertGreater(child["start"], 0)
        self.assertEqual(run.pop("id"), os.path.basename(outcome.run))
        self.assertEqual(run.pop("host"), os.uname().nodename)
        self.assertEqual(
            run,
            {
                "schema": 1,
                "watch": "adopted",
                "mode": "blocking",
                "argv": [TARGET, "train.py", "--lr", "1"],
                "cwd": self.deep,
                "entry": script,
                "runner": None,
                "blocking": True,
                "env": {"CUDA_LAUNCH_BLOCKING": "1"},
            },
        )
        self.assertEqual([event["event"] for event in outcome.events()], ["start", "exception", "exit"])
        self.assertEqual(self.runs[-1]["cwd"], self.deep)

    def test_the_folder_is_named_private_and_ignored(self):
        outcome = self.adopt("-c", "")
        self.assertTrue(re.fullmatch(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}", os.path.basename(outcome.run)))
        self.assertEqual(stat.S_IMODE(os.stat(outcome.run).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(outcome.run, "run.json")).st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(outcome.run)), ["events", "run.json"])
        with open(os.path.join(self.deep, ".cublame", ".gitignore")) as file:
            self.assertTrue(file.read().endswith("\n*\n"))

    def test_children_join_the_run(self):
        outcome = self.adopt("-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', '1 / 0'])")
        self.assertEqual(len(self.runs), 1)
        self.assertEqual(len(outcome.processes()), 2)

    def test_a_mode_of_a_later_version(self):
        self.adopt("-c", "", CUBLAME_MODE="clairvoyance")
        self.assertEqual(self.run_json()["mode"], "off")

    def test_what_was_started_under_a_debugger(self):
        script = os.path.join(self.deep, "train.py")
        with open(script, "w") as file:
            file.write("pass\n")
        for name, flags in (
            ("debugpy/__main__.py", ("--connect", "127.0.0.1:1")),
            ("pydevd.py", ("--client", "127.0.0.1", "--port", "1", "--file")),
        ):
            path = self.write(name, "pass\n")
            first = os.path.dirname(path) if name.startswith("debugpy") else path
            self.adopt(first, *flags, script, "--lr", "1")
            self.assertEqual(self.run_json()["entry"], script)
        self.adopt("-c", "pass", "x.py")
        self.assertEqual(self.run_json()["entry"], None)
