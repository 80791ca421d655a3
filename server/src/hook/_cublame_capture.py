"""Keeps what the call at one line is about to be given, and writes it down if that call fails: `cublame repro --minimal`.

CUBLAME_CAPTURE arms it: a folder and a line, as `folder`, `file`, `line` on three lines. What is watched are the calls of
torch's functions that come from that line; under `backward()` also the operations that autograd makes of it.
The inputs are copied to the CPU before each such call, since after a fault on the GPU nothing can be read; a tensor that
has not changed since is not copied again. Only the last call's copies are kept.

Loaded in a rerun that the user has asked for and in no other, so that it may import and take its time.
"""

import os
import sys


def arm(wish):
    """Once torch is there. `wish` is the value of CUBLAME_CAPTURE."""
    folder, file, line = wish.split("\n")
    # Read when Dynamo is imported, which importing torch does not do: a compiled function runs its calls one by one, so
    # that the one at fault can be seen.
    os.environ["TORCH_COMPILE_DISABLE"] = os.environ["TORCHDYNAMO_DISABLE"] = "1"
    watch(sys.modules["torch"], Target(folder, file, int(line)))


class Target:
    def __init__(self, folder, file, line):
        self.folder = folder
        self.file = os.path.realpath(file)
        self.line = line
        self.written = False
        self.same_file = {}

    def is_calling(self):
        """Is a frame of this thread at the line?"""
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            # What torch.compile made of a function had no lines but the function's first.
            begins = code.co_firstlineno == self.line and code.co_name != "<module>"
            if (begins or frame.f_lineno == self.line) and self.is_its_file(code.co_filename):
                return True
            frame = frame.f_back
        return False

    def is_its_file(self, name):
        known = self.same_file.get(name)
        if known is None:
            known = self.same_file[name] = os.path.realpath(name) == self.file
        return known


def watch(torch, target):
    import torch.overrides
    import torch.utils._python_dispatch

    copies = Copies(torch)

    class Operations(torch.utils._python_dispatch.TorchDispatchMode):
        """What autograd does under a `backward()`, in whichever thread: all of it where that call is the line's, else what
        the line calls in a backward of the program's own."""

        def __init__(self, all_of_it):
            super().__init__()
            self.all_of_it = all_of_it

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            if target.written or not (self.all_of_it or target.is_calling()):
                return operation(*args, **(kwargs or {}))
            return observed("torch.ops." + str(operation), operation, args, kwargs or {})

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if target.written or is_capturing(torch):
                return function(*args, **kwargs)
            at_line = target.is_calling()
            if getattr(function, "__name__", "") in ("backward", "grad"):
                with Operations(at_line):
                    return function(*args, **kwargs)
            if not at_line:
                return function(*args, **kwargs)
            return observed(torch.overrides.resolve_name(function), function, args, kwargs)

    def observed(name, function, args, kwargs):
        try:
            call = copies.of_call(name, args, kwargs)
        except Unknown as reason:
            call = {"name": name, "unknown": str(reason)}
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not target.written:
                target.written = True
                write(torch, target, call, error)
            raise

    Functions().__enter__()
    in_each_thread(Functions)


def in_each_thread(mode):
    """Modes of torch are a thread's own. Whatever class the thread is of, it begins here."""
    import threading

    begin = threading.Thread._bootstrap_inner

    def begin_in_mode(thread):
        with mode():
            begin(thread)

    threading.Thread._bootstrap_inner = begin_in_mode


def is_capturing(torch):
    """A copy would spoil the capture of a CUDA graph."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


class Unknown(Exception):
    """An argument that cannot be written down."""


class Copies:
    """Arguments as plain values, with their tensors beside them on the CPU."""

    def __init__(self, torch):
        self.torch = torch
        # The tensors of the last call: the same one, unchanged, need not be copied again.
        self.last = []

    def of_call(self, name, args, kwargs):
        self.before, self.last, self.tensors = self.last, [], []
        call = {"name": name, "args": self.plain(list(args)), "kwargs": self.plain(dict(kwargs))}
        call["tensors"] = self.tensors
        return call

    def plain(self, value):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return ["tensor", self.tensor(value)]
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return ["literal", repr(value)]
        if type(value) in (float, complex):
            text = repr(value)
            return ["literal", text if text.strip("+-0123456789.ej") == "" else "%s(%r)" % (type(value).__name__, text)]
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return ["literal", str(value)]
        if isinstance(value, torch.device):
            return ["literal", "torch.device(%r)" % str(value)]
        if isinstance(value, slice):
            return ["slice", self.plain([value.start, value.stop, value.step])[1]]
        if isinstance(value, torch.Size):
            return ["tuple", [["literal", repr(int(size))] for size in value]]
        if type(value) in (list, tuple):
            return [type(value).__name__, [self.plain(item) for item in value]]
        if type(value) is dict and all(type(key) is str for key in value):
            return ["dict", dict((key, self.plain(item)) for key, item in value.items())]
        raise Unknown("an argument is a %s.%s" % (type(value).__module__, type(value).__qualname__))

    def tensor(self, tensor):
        if type(tensor) not in (self.torch.Tensor, self.torch.nn.Parameter):
            raise Unknown("an argument is a tensor of the class " + type(tensor).__qualname__)
        if tensor.layout is not self.torch.strided or tensor.is_quantized:
            raise Unknown("an argument is a sparse or quantised tensor")
        version = None if tensor.is_inference() else tensor._version
        for index, (kept, kept_version, copy) in enumerate(self.last + self.before):
            if kept is tensor and kept_version == version and version is not None:
                if index < len(self.last):
                    return index
                break
        else:
            copy = tensor.detach().to("cpu", copy=True)
        self.last.append((tensor, version, copy))
        self.tensors.append(
            {"values": copy, "device": str(tensor.device), "requires_grad": tensor.requires_grad, "name": None}
        )
        return len(self.tensors) - 1


def write(torch, target, call, error):
    """Touches no tensor of the program: all that is written was copied before."""
    call["error"] = {"type": type(error).__name__, "message": first_line(error)}
    call["line"] = {"file": target.file, "line": target.line, "source": source_line(target)}
    call["seed"] = torch.initial_seed()
    call["grad"] = torch.is_grad_enabled()
    call["autocast"] = autocast(torch)
    call["versions"] = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda if torch.cuda.is_initialized() else None,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_initialized() else None,
    }
    aside = os.path.join(target.folder, "capture-%d.aside" % os.getpid())
    torch.save(call, aside)
    os.rename(aside, os.path.join(target.folder, "capture-%d.pt" % os.getpid()))


def autocast(torch):
    """The device types and dtypes of the autocast that is on."""
    found = []
    for device in ("cuda", "cpu"):
        try:
            if torch.is_autocast_enabled(device):
                found.append([device, str(torch.get_autocast_dtype(device))])
        except TypeError:
            # Before torch 2.4 it took no device.
            if device == "cuda" and torch.is_autocast_enabled():
                found.append([device, str(torch.get_autocast_gpu_dtype())])
    return found


def first_line(error):
    return str(error).partition("\n")[0]


def source_line(target):
    import linecache

    return linecache.getline(target.file, target.line).strip()
