"""Makes a program of one captured call, and makes it small: `cublame repro --minimal`.

usage: _cublame_reduce.py FOLDER OUT SECONDS

FOLDER holds what `_cublame_capture.py` wrote. OUT gets `repro.py`, `tensors.pt` where values are needed that do not fit into
the program, and `outcome.json`. Shapes, types and devices stay as they are; values become zeros or ones as long as the call
fails in the same way. Each try is a process of its own, forked from one that has imported torch and has not touched the
GPU: after a fault the rest of a process is of no use.
"""

import builtins
import glob
import inspect
import json
import keyword
import os
import re
import select
import signal
import sys
import tempfile
import time

import torch

# A tensor with more values of its own than this goes into tensors.pt.
MOST_VALUES = 8
MOST_TRIES = 200
LONGEST_TRY = 60


def main():
    folder, out, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    # Threads of the parent would be missing in a child.
    torch.set_num_threads(1)
    captures = sorted(glob.glob(os.path.join(folder, "capture-*.pt")), key=os.path.getmtime)
    if not captures:
        return end(out, {"why": "no-call"})
    call = torch.load(captures[0], weights_only=True)
    if "unknown" in call:
        return end(out, {"why": "unknown-argument", "name": call["name"], "argument": call["unknown"]})
    program = Program(call)
    deadline = time.monotonic() + seconds
    wanted = attempt(program)
    alone = wanted is not None and wanted["type"] == call["error"]["type"]
    tries = 1
    if alone:
        tries += reduce(program, wanted, deadline)
    with open(os.path.join(out, "repro.py"), "w", encoding="utf-8") as file:
        file.write(program.text())
    stored = program.stored()
    if stored:
        torch.save(stored, os.path.join(out, "tensors.pt"))
    return end(
        out,
        {
            "why": None if alone else "not-alone",
            "name": call["name"],
            "error": call["error"],
            "tries": tries,
            "tensors": [tensor.about() for tensor in program.tensors],
        },
    )


def end(out, outcome):
    with open(os.path.join(out, "outcome.json"), "w", encoding="utf-8") as file:
        json.dump(outcome, file)


# Making it small.


def reduce(program, wanted, deadline):
    """Replaces values while the failure stays; returns the number of tries."""
    tries = 0

    def still_fails(tensor, change):
        nonlocal tries
        if tries >= MOST_TRIES or time.monotonic() > deadline:
            return False
        tries += 1
        before = tensor.base, tensor.kept, tensor.values
        change()
        if attempt(program) == wanted:
            return True
        tensor.base, tensor.kept, tensor.values = before
        return False

    # The large and the floating first: they are the least likely to matter.
    for tensor in sorted(program.tensors, key=lambda it: (not it.values.is_floating_point(), -it.values.numel())):
        if any(still_fails(tensor, lambda: tensor.fill(base)) for base in (0, 1)):
            continue
        best = None
        for base in (0, 1):
            whole = tensor.base, tensor.kept
            halve(tensor, base, still_fails)
            if tensor.kept is not None and (best is None or len(tensor.kept) < len(best[1])):
                best = tensor.base, tensor.kept
            if best is not None and len(best[1]) <= MOST_VALUES:
                break
            tensor.base, tensor.kept = whole
        if best is not None:
            tensor.base, tensor.kept = best
    return tries


def halve(tensor, base, still_fails):
    """Keeps the half of the values that is enough for the failure, again and again."""
    kept = [index for index, value in enumerate(tensor.flat) if value != base]
    while len(kept) > 1:
        middle = len(kept) // 2
        for half in (kept[:middle], kept[middle:]):
            if still_fails(tensor, lambda: tensor.keep(base, half)):
                kept = half
                break
        else:
            return
    if len(kept) == 1 and tensor.kept is None:
        still_fails(tensor, lambda: tensor.keep(base, kept))


def attempt(program):
    """How the program fails: the type and the words of the exception without their numbers, and the device's assertions.

    None where it does not fail.
    """
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            run_in_child(program, writing, errors)
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], LONGEST_TRY)
        said = b""
        if ready:
            with os.fdopen(reading, "rb") as pipe:
                said = pipe.read()
        else:
            os.close(reading)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        asserted = re.findall(rb"Assertion `(.+?)` failed", errors.read())
    if said:
        outcome = json.loads(said)
    elif os.WIFSIGNALED(status):
        outcome = {"type": "signal", "message": str(os.WTERMSIG(status))}
    else:
        outcome = None
    if outcome is not None:
        outcome["asserted"] = sorted({condition.decode("utf-8", "replace") for condition in asserted})
    return outcome


def run_in_child(program, writing, errors):
    os.dup2(errors.fileno(), 2)
    os.dup2(errors.fileno(), 1)
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    try:
        exec(compile(program.body(), "repro.py", "exec"), {"torch": torch, "tensors": program.stored()})
    except Exception as error:
        words = re.sub(r"[-+]?\d[\d.e+-]*", "N", str(error).partition("\n")[0])
        os.write(writing, json.dumps({"type": type(error).__name__, "message": words}).encode())
    os._exit(0)


# The program.


class Program:
    def __init__(self, call):
        self.call = call
        self.function = resolve(call["name"])
        self.tensors = [Tensor(about) for about in call["tensors"]]
        self.drop_defaults()
        self.name_tensors()

    def text(self):
        call, versions = self.call, self.call["versions"]
        where = os.path.basename(call["line"]["file"]) + ":%d" % call["line"]["line"]
        machine = ["Python " + versions["python"], "torch " + versions["torch"]]
        machine += ["CUDA " + versions["cuda"], versions["gpu"]] if versions["cuda"] else []
        lines = ['"""%s: %s' % (call["error"]["type"], in_docstring(call["error"]["message"])), ""]
        lines += ["The call of %s alone, as it was made from %s:" % (call["name"], where), ""]
        lines += ["    " + in_docstring(call["line"]["source"]), "", "Seen with %s." % ", ".join(machine), '"""', ""]
        stored, cuda = self.stored(), self.uses_cuda()
        lines += ["import os"] if stored or cuda else []
        lines += ["import random", "", "import torch", ""]
        if cuda:
            lines += ["# Before CUDA is first used, so that the failing call raises the exception itself."]
            lines += ['os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', ""]
        lines += ["", "def set_seed(seed):", "    random.seed(seed)", "    torch.manual_seed(seed)", "", ""]
        lines += ["set_seed(%d)" % call["seed"]]
        if stored:
            lines += ['tensors = torch.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensors.pt"))']
        return "\n".join(lines) + "\n" + self.body()

    def body(self):
        lines = [line for tensor in self.tensors for line in tensor.lines()]
        depth = 0
        for device, dtype in self.call["autocast"]:
            lines.append("    " * depth + 'with torch.autocast("%s", dtype=%s):' % (device, dtype))
            depth += 1
        if not self.call["grad"]:
            lines.append("    " * depth + "with torch.no_grad():")
            depth += 1
        lines.append("    " * depth + self.expression())
        lines += ["torch.cuda.synchronize()"] if self.uses_cuda() else []
        return "\n".join(lines) + "\n"

    def expression(self):
        args = self.call["args"][1]
        name = self.call["name"]
        if name == "torch.Tensor.__getitem__":
            return "%s[%s]" % (self.shown(args[0]), self.subscript(args[1]))
        if name == "torch.Tensor.__setitem__":
            return "%s[%s] = %s" % (self.shown(args[0]), self.subscript(args[1]), self.shown(args[2]))
        words = [self.shown(arg) for arg in args]
        words += ["%s=%s" % (key, self.shown(value)) for key, value in self.call["kwargs"][1].items()]
        owner, _, method = name.rpartition(".")
        if owner == "torch.Tensor" and args and args[0][0] == "tensor" and not method.startswith("_"):
            return "%s.%s(%s)" % (words[0], method, ", ".join(words[1:]))
        return "%s(%s)" % (name, ", ".join(words))

    def subscript(self, index):
        if index[0] == "tuple" and index[1]:
            return ", ".join(self.subscript(item) for item in index[1])
        if index[0] == "slice":
            parts = ["" if part == ["literal", "None"] else self.shown(part) for part in index[1]]
            return ":".join(parts if parts[2] else parts[:2])
        return self.shown(index)

    def shown(self, value):
        kind, inside = value
        if kind == "tensor":
            return self.tensors[inside].name
        if kind == "literal":
            return inside
        if kind == "slice":
            return "slice(%s)" % ", ".join(self.shown(part) for part in inside)
        if kind == "dict":
            return "{%s}" % ", ".join("%r: %s" % (key, self.shown(item)) for key, item in inside.items())
        items = ", ".join(self.shown(item) for item in inside)
        if kind == "tuple":
            return "(%s,)" % items if len(inside) == 1 else "(%s)" % items
        return "[%s]" % items

    def drop_defaults(self):
        """Arguments that say what the function takes anyway."""
        try:
            parameters = inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return
        for key, value in list(self.call["kwargs"][1].items()):
            if key in parameters and value == ["literal", repr(parameters[key].default)]:
                del self.call["kwargs"][1][key]

    def name_tensors(self):
        names = names_of_parameters(self.function, self.call["name"])
        for name, value in list(zip(names, self.call["args"][1])) + list(self.call["kwargs"][1].items()):
            found = list(tensors_in(value))
            for number, index in enumerate(found):
                if self.tensors[index].name is None:
                    self.tensors[index].name = usable(name) + ("_%d" % number if len(found) > 1 else "")
        taken = set()
        for index, tensor in enumerate(self.tensors):
            if tensor.name is None or tensor.name in taken:
                tensor.name = "tensor_%d" % index
            taken.add(tensor.name)

    def stored(self):
        return dict((tensor.name, tensor.whole()) for tensor in self.tensors if tensor.is_stored())

    def uses_cuda(self):
        return any(tensor.device.startswith("cuda") for tensor in self.tensors)


class Tensor:
    """A tensor of the call: all its values, or `base` everywhere but at the flat indices `kept`."""

    def __init__(self, about):
        self.values = about["values"]
        self.device = about["device"]
        self.requires_grad = about["requires_grad"]
        self.flat = self.values.flatten().tolist()
        self.base = 0
        self.kept = None
        self.name = None

    def fill(self, base):
        self.base, self.kept = base, []

    def keep(self, base, kept):
        self.base, self.kept = base, kept

    def is_stored(self):
        if self.kept is None:
            return self.values.numel() > MOST_VALUES
        return len(self.kept) > MOST_VALUES

    def whole(self):
        if self.kept is None:
            return self.values
        whole = torch.full_like(self.values, self.base).flatten()
        for index in self.kept:
            whole[index] = self.flat[index]
        return whole.reshape(self.values.shape)

    def lines(self):
        """The statements that make it."""
        on = "" if self.device == "cpu" else ', device="%s"' % self.device
        if self.is_stored():
            lines = ['%s = tensors["%s"].to("%s")' % (self.name, self.name, self.device)]
        elif self.kept is None:
            nested = re.sub(r"(?<![\w.])(-?(?:nan|inf))(?![\w.])", r'float("\1")', repr(self.values.tolist()))
            lines = ["%s = torch.tensor(%s%s%s)" % (self.name, nested, self.typed(), on)]
            if self.values.numel() == 0:
                lines = ["%s = torch.empty(%s%s%s)" % (self.name, tuple(self.values.shape), self.typed(), on)]
        else:
            make = "zeros" if self.base == 0 else "ones"
            shape = tuple(self.values.shape)
            lines = ["%s = torch.%s(%s%s%s)" % (self.name, make, shape, self.typed(), on if not self.kept else "")]
            for index in self.kept:
                place = ", ".join(str(part) for part in position(index, shape)) or "..."
                lines.append("%s[%s] = %s" % (self.name, place, literal(self.flat[index])))
            if self.kept and self.device != "cpu":
                lines.append('%s = %s.to("%s")' % (self.name, self.name, self.device))
        if self.requires_grad:
            lines.append("%s.requires_grad_()" % self.name)
        return lines

    def typed(self):
        return "" if self.values.dtype is torch.float32 else ", dtype=%s" % self.values.dtype

    def about(self):
        kept = self.values.numel() if self.kept is None else len(self.kept)
        return {"name": self.name, "shape": list(self.values.shape), "dtype": str(self.values.dtype), "kept": kept}


def resolve(name):
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def names_of_parameters(function, name):
    schema = getattr(function, "_schema", None)
    if schema is None:
        try:
            return list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            packet = getattr(torch.ops.aten, name.rpartition(".")[2].strip("_"), None)
            overloads = packet.overloads() if packet is not None else []
            if not overloads:
                return ["x", "index", "value"] if name.endswith("item__") else ["x", "y", "z"]
            schema = getattr(packet, overloads[0])._schema
    return [argument.name for argument in schema.arguments]


def usable(name):
    if name == "self":
        return "x"
    return name + "_" if keyword.iskeyword(name) or hasattr(builtins, name) and name != "input" else name


def tensors_in(value):
    kind, inside = value
    if kind == "tensor":
        yield inside
    elif kind in ("list", "tuple", "slice"):
        for item in inside:
            yield from tensors_in(item)
    elif kind == "dict":
        for item in inside.values():
            yield from tensors_in(item)


def position(index, shape):
    parts = []
    for size in reversed(shape):
        index, part = divmod(index, size)
        parts.append(part)
    return parts[::-1]


def literal(value):
    text = repr(value)
    return text if type(value) in (bool, int) or text.strip("+-0123456789.ej()") == "" else 'float("%s")' % text


def in_docstring(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


main()
