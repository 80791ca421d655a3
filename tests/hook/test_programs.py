"""Each program behaves as without the hook, and the hook tells what it should."""

import os

from harness import VERSION, Case, marked
from programs import PROGRAMS


class Programs(Case):
    pass


def case(program):
    def test(self):
        # A line before the program keeps a marker in its first line from being at line 1 by chance.
        source = "# a program\n" + program.source.lstrip("\n")
        script = self.write("program.py", source)
        if program.name == "shadowed modules":
            for name in ("json", "linecache", "traceback", "hashlib", "threading", "tokenize", "atexit", "stat"):
                self.write(name + ".py", "print('the program has a module of this name')")
        outcome = self.unchanged(*program.options, "program.py", *program.arguments)

        told = [(event["hook"], event["chain"][-1]["type"]) for event in outcome.events("exception")]
        self.assertEqual(sorted(told), sorted(program.tells))
        lines = marked(source)
        for event in outcome.events("exception") if lines else ():
            frames = [frame for frame in event["chain"][-1]["frames"] if frame["path"] == script]
            self.assertIn(frames[-1]["line"], lines)
            self.assertIn("@fault", frames[-1]["source"])

        events = outcome.events()
        self.assertEqual(events[0]["event"], "start")
        first = [event["event"] for event in events if event["pid"] == events[0]["pid"]]
        self.assertEqual("exit" in first, program.orderly)
        if program.orderly:
            self.assertEqual(outcome.faults(), [])
        self.assertEqual([name for name in os.listdir(self.folder) if "cublame" in name], [])

    return test


for _program in PROGRAMS:
    if _program.needs <= VERSION < _program.before:
        _name = "test_" + "".join(letter if letter.isalnum() else "_" for letter in _program.name)
        assert not hasattr(Programs, _name), _name
        setattr(Programs, _name, case(_program))
