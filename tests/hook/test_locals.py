"""What is told of the locals of a failing frame: tensors by what they are, nothing by its value, and nothing of it runs.

torch itself is in tests/torch. The stand-in here has its shape, so that every interpreter can be asked, those included
that no torch was ever built for: descriptors on a base class, and a guard against `__torch_function__`.
"""

import json

from harness import Case

TORCH = '''
class size(tuple): pass
class named:
    def __init__(self, name): self.name = name
    def __repr__(self): return "torch." + self.name
class device:
    def __init__(self, type, index): self.type, self.index = type, index
class TensorBase:
    shape = property(lambda self: size(object.__getattribute__(self, "_shape")))
    dtype = property(lambda self: named("float32"))
    device = property(lambda self: device("cuda", 0))
    layout = property(lambda self: named("strided"))
    requires_grad = property(lambda self: True)
    def stride(self): return (1,) * len(object.__getattribute__(self, "_shape"))
    def numel(self): return 6
    def element_size(self): return 4
    def __repr__(self): raise SystemExit("a value was read")
class Tensor(TensorBase):
    def __init__(self, *shape): self._shape = shape
class DisableTorchFunction:
    def __enter__(self): pass
    def __exit__(self, *_): pass
import sys
C = sys.modules["torch._C"] = type(sys)("torch._C")
C.TensorBase, C.DisableTorchFunction = TensorBase, DisableTorchFunction
nn = sys.modules["torch.nn.modules.module"] = type(sys)("torch.nn.modules.module")
class Module: pass
nn.Module = Module
optim = sys.modules["torch.optim.optimizer"] = type(sys)("torch.optim.optimizer")
class Optimizer: pass
optim.Optimizer = Optimizer
'''

HOSTILE = '''
import torch
def ran(*_, **__): print("RAN"); raise SystemExit(3)
class Meta(type):
    __eq__ = __hash__ = __getattribute__ = __instancecheck__ = __subclasscheck__ = __iter__ = __len__ = ran
class Evil(metaclass=Meta):
    __getattr__ = __getattribute__ = __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __repr__ = __str__ = ran
    __class__ = property(ran)
    __dict__ = property(ran)
    __fspath__ = __index__ = __contains__ = __getitem__ = None
class Dict(dict):
    __iter__ = __len__ = items = keys = __getitem__ = get = __contains__ = __bool__ = ran
class List(list):
    __iter__ = __len__ = __getitem__ = __bool__ = ran
class Wrapped(torch.Tensor):
    shape = dtype = device = property(ran)
    __torch_function__ = __torch_dispatch__ = ran
class Subclass(torch.Tensor):
    shape = property(ran)
    __getattr__ = __getattribute__ = ran
class Net(torch.Module):
    weight = property(ran)
    __getattr__ = ran
    def forward(self, evil):
        d, l = Dict(x=torch.Tensor(1)), List([torch.Tensor(2)])
        w, s = Wrapped(5), Subclass(3)
        1 / 0  # @fault
net = Net()
object.__getattribute__(net, "__dict__").update(evil=object.__new__(Evil), mine=torch.Tensor(4))
net.forward(object.__new__(Evil))
'''

SECRETS = '''
import torch
def f(password):
    token, number = "hunter2", 70123
    batch = {"x": torch.Tensor(2, 3), "hunter2 key": torch.Tensor(1), 70123: torch.Tensor(1), b"hunter2": torch.Tensor(1)}
    nested = {"a": [torch.Tensor(3), {"deeper": [torch.Tensor(9)]}]}
    1 / 0
f("hunter2")
'''


class Locals(Case):
    def frames(self, source):
        self.write("torch.py", TORCH)
        self.write("program.py", source)
        outcome = self.unchanged("program.py")
        return outcome.exception()["chain"][-1]["frames"]

    def deepest(self, source):
        return self.frames(source)[-1].get("locals", [])

    def test_without_a_library_nothing_is_looked_at(self):
        self.write("program.py", "def f(x):\n    1 / 0\nf([1])\n")
        frames = self.unchanged("program.py").exception()["chain"][-1]["frames"]
        self.assertEqual([frame.get("locals") for frame in frames], [None, None])

    def test_a_tensor_is_told_by_what_it_is(self):
        (told,) = self.deepest("import torch\ndef f(x):\n    n = 3\n    1 / 0\nf(torch.Tensor(2, 3))\n")
        self.assertEqual(
            told,
            {
                "name": "x",
                "class": "torch.Tensor",
                "kind": "tensor",
                "shape": [2, 3],
                "dtype": "float32",
                "device": "cuda:0",
                "strides": [1, 1],
                "requires_grad": True,
                "bytes": 24,
            },
        )

    def test_nothing_of_the_programs_runs(self):
        told = {local["name"]: local for local in self.deepest(HOSTILE)}
        kinds = {name: local["kind"] for name, local in told.items()}
        self.assertEqual(
            kinds,
            {
                "d['x']": "tensor",
                "l[0]": "tensor",
                "w": "object",
                "s": "tensor",
                "self": "module",
                "self.mine": "tensor",
            },
        )
        self.assertEqual(told["s"]["shape"], [3])

    def test_no_value_is_told(self):
        told = self.deepest(SECRETS)
        names = [local["name"] for local in told]
        self.assertEqual(names, ["batch['x']", "batch", "nested['a'][0]"])
        self.assertEqual(told[1], {"kind": "container", "name": "batch", "class": "dict", "length": 4})
        for value in ("hunter2", "70123"):
            self.assertNotIn(value, json.dumps(told))

    def test_a_module_that_the_line_names_shows_its_parameters(self):
        source = """
import torch
class Net(torch.Module):
    def __init__(self, depth):
        self._parameters = {"weight": torch.Tensor(10, 4), "bias": None}
        self._buffers = {"mask": torch.Tensor(1)}
        self._modules = {"emb": Net(depth - 1)} if depth else {}
        self.other, self.text, self.kept = torch.Tensor(7), "words", [torch.Tensor(1)]
    def forward(self, tok):
        return self.emb(tok)
net, optimizer = Net(1), torch.Optimizer()
net.forward(torch.Tensor(2))
"""
        self.write("torch.py", TORCH)
        self.write("program.py", source)
        frames = self.python("program.py").exception()["chain"][-1]["frames"]
        top, forward = ([local["name"] for local in frame["locals"]] for frame in frames)
        self.assertEqual(top, ["net", "net.weight", "net.mask", "optimizer"])
        self.assertEqual(
            forward,
            ["self", "tok", "self.weight", "self.mask", "self.emb", "self.emb.weight", "self.emb.mask", "self.other"],
        )

    def test_what_the_line_names_comes_first(self):
        source = "import torch\nT = torch.Tensor\ndef f():\n    a, b, c = T(1), T(2), T(3)\n    c + b + 1 / 0\nf()\n"
        self.assertEqual([local["name"] for local in self.deepest(source)], ["b", "c", "a"])

    def test_it_is_bounded(self):
        many = "import torch\nT = torch.Tensor\ndef f():\n%s    1 / 0\nf()\n"
        source = many % "".join("    x%d = T(1)\n" % at for at in range(500))
        self.assertEqual(len(self.deepest(source)), 40)
        told = self.deepest(many % "    x = [[[T(1)] * 50] * 50] * 5000\n    y = [T(1)] * 5000\n    z = []; z.append(z)\n")
        self.assertEqual([local["name"] for local in told][-2:], ["y[7]", "y"])
        self.assertEqual(told[-1]["length"], 5000)
        self.assertLess(len(told), 41)

    def test_only_the_deepest_frames_are_told_of(self):
        source = "import torch\ndef f(x, n):\n    f(x, n - 1) if n else 1 / 0\nf(torch.Tensor(1), 100)\n"
        counts = [len(frame.get("locals", ())) for frame in self.frames(source)]
        self.assertEqual(counts, [0] * 90 + [1] * 12)

    def test_a_time_that_runs_out_is_not_exceeded(self):
        source = """
import time, torch
now = [0.0]
def late(): now[0] += 0.04; return now[0]
time.monotonic = late
def f():
    a, b, c, d, e = [torch.Tensor(1) for _ in range(5)]
    1 / 0
f()
"""
        self.assertLess(len(self.deepest(source)), 3)

    def test_odd_namespaces(self):
        odd = """
import torch
class Names(dict):
    def __getitem__(self, name): return {"x": torch.Tensor(1), "torch": torch}[name]
    def items(self): print("RAN"); return dict.items(self)
class Mapping:
    def __init__(self): self.kept = {}
    def __getitem__(self, name): return self.kept[name]
    def __setitem__(self, name, value): self.kept[name] = value
    def items(self): print("RAN")
try:
    exec("y = torch.Tensor(1); 1 / 0", {"torch": torch}, Mapping())
except ZeroDivisionError:
    class Body:
        z = torch.Tensor(2)
        exec("torch.Tensor; w = torch.Tensor(3); 1 / 0", {"torch": torch}, Names())
"""
        self.write("torch.py", TORCH)
        self.write("program.py", odd)
        first, last = self.unchanged("program.py").exception()["chain"]
        names = [[local["name"] for local in frame.get("locals", [])] for link in (first, last) for frame in link["frames"]]
        self.assertEqual(names, [[], [], [], ["z"], ["w"]])

    def test_the_locals_stay_as_they_are(self):
        """A frame that goes on after the hook has looked at it, as a generator's may."""
        source = """
import sys, torch
def g():
    x = torch.Tensor(1)
    try:
        yield 1
    finally:
        x = None
        raise ValueError("in a finalizer")
def outer():
    kept = torch.Tensor(2)
    it = g(); next(it); del it
    held = sys.getrefcount(kept)
    kept = "changed"
    return held, kept, sorted(locals())
print(outer())
"""
        self.write("torch.py", TORCH)
        self.write("program.py", source)
        self.unchanged("program.py")
