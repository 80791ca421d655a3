"""What a run that the hook creates says of its command."""

import importlib.util
import os
import unittest

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "server", "src", "hook", "_cublame_adopt.py")
_spec = importlib.util.spec_from_file_location("_cublame_adopt", HOOK)
adopt = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(adopt)

DEBUGPY = "/venv/lib/debugpy/adapter/../../debugpy/launcher"

# what the interpreter was started with, what the user would type
COMMANDS = [
    ("python train.py --fast", "python train.py --fast"),
    ("python -X frozen_modules=off %s/../../debugpy --connect 127.0.0.1:5 --configure-qt none --adapter-access-token s3cret train.py --fast" % DEBUGPY, "python train.py --fast"),
    ("python %s 34567 -- train.py --fast" % DEBUGPY, "python train.py --fast"),
    ("python -m debugpy --listen 5678 --wait-for-client -m package.train --fast", "python -m package.train --fast"),
    ("python /opt/pycharm/pydevd.py --multiprocess --client 127.0.0.1 --port 3 --file train.py --fast", "python train.py --fast"),
    ("python /opt/pycharm/pydevd.py --module --port 3 --file package.train --fast", "python -m package.train --fast"),
    ("python train.py debugpy --connect 1", "python train.py debugpy --connect 1"),
    ("python -c pass debugpy --connect 1", "python -c pass debugpy --connect 1"),
    ("python", "python"),
]


class Commands(unittest.TestCase):
    def test_a_debuggers_words_are_left_out(self):
        for started, typed in COMMANDS:
            with self.subTest(started):
                self.assertEqual(adopt.without_debugger(started.split()), typed.split())


if __name__ == "__main__":
    unittest.main()
