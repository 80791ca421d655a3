"""Mode guard without torch: the import is watched, and a torch that the guard cannot work with is used as it is.

The guard itself is tested with a real torch, in tests/torch.
"""

from harness import Case

GUARD = {"CUBLAME_MODE": "guard"}
SAYS = "cublame: the guard cannot be put in force, so the program runs unguarded: "
PROGRAM = """
import importlib.util, sys
print(importlib.util.find_spec("torch").name)
import torch
print(torch.VALUE, type(torch.__loader__).__name__, type(torch.__spec__.loader).__name__)
print(importlib.util.find_spec("torch") is torch.__spec__)
print(any("Torch" in getattr(finder, "__name__", "") for finder in sys.meta_path))
"""


class Guarded(Case):
    def test_a_torch_that_is_none(self):
        self.write("torch/__init__.py", "VALUE = 7\n")
        self.write("program.py", PROGRAM)
        bare = self.python("program.py", hook=False)
        outcome = self.python("program.py", env=GUARD)
        self.assertEqual((outcome.code, outcome.stdout), (0, bare.stdout), outcome.stderr)
        lines = outcome.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(SAYS), lines)

    def test_a_torch_that_cannot_be_imported(self):
        self.write("torch/__init__.py", "raise ImportError('libtorch.so is missing')\n")
        self.write(
            "program.py",
            "for attempt in range(2):\n    try:\n        import torch\n    except ImportError as error:\n        print(error)\n",
        )
        self.unchanged("program.py", env=GUARD)

    def test_no_torch_at_all(self):
        self.write("program.py", "import importlib.util as util\nprint(util.find_spec('torch.nothing_of_the_kind'))\n")
        self.assertEqual(self.unchanged("program.py", env=GUARD).code, 1)
        self.write("other.py", "import json\nprint(json.dumps(1))\n")
        self.assertEqual(self.unchanged("other.py", env=GUARD).code, 0)
