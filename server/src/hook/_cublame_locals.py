"""Describes the tensors in the frames of a failure: what they are, never what they hold.

After a GPU fault a value fails to be read, or hangs; a shape, a dtype and a device are plain numbers of the host.
Nothing of the program's runs here. A local may be of any class, with a `__getattr__`, a `__class__`, a `__torch_function__` or
a metaclass of its own, so a value is known by the bases of its type, its attributes are read from its own dictionary, and
what a library computes is asked of the library's own descriptors.
"""

import sys
import time

# The deepest frames of the user's own code, and what may be told of all of them.
MOST_FRAMES = 12
MOST_TOLD = 160
MOST_IN_FRAME = 40
MOST_NAMES = 1000
MOST_ITEMS = 8
MOST_DIMENSIONS = 32
LONGEST_NAME = 120
LONGEST_TIME = 0.05

OPTIMIZED = 0x1
NUMPY_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}

bases_of = type.__dict__["__mro__"].__get__
dictionary_of = type.__dict__["__dict__"].__get__
qualified_name_of = type.__dict__["__qualname__"].__get__
module_of = type.__dict__["__module__"].__get__
DESCRIPTORS = type(type.__dict__["__mro__"]), type(type.__dict__["__qualname__"])
# Since Python 3.13 the locals of a function are no dictionary.
LOCALS_PROXY = type((lambda: sys._getframe().f_locals)())
FUNCTION = type(lambda: None)
NEVER = {id(it) for it in (str, bytes, int, float, complex, bool, type(None), type, type(sys), type(len), FUNCTION)}


class Locals:
    """What may still be told of one event, within its bounds of number and time."""

    def __init__(self):
        self.kinds = known_kinds()
        self.left = MOST_TOLD
        self.until = time.monotonic() + LONGEST_TIME
        self.told = {}

    def tell(self, frames):
        """Adds `locals` to the descriptions of frames: pairs of a frame and its description, outermost first."""
        if not self.kinds:
            return
        deepest = [pair for pair in frames if is_users(pair[0].f_code.co_filename)][-MOST_FRAMES:]
        for frame, description in reversed(deepest):
            try:
                found = self.told.get(id(frame))
                if found is None:
                    found = self.told[id(frame)] = self.of(frame, description.get("source") or "")
                if found:
                    description["locals"] = found
            except KeyboardInterrupt:
                raise
            except BaseException:
                pass

    def of(self, frame, line):
        """The tensors of one frame, those first that its line names."""
        named = words(line)
        pairs = pairs_of(frame.f_locals, MOST_NAMES)
        pairs.sort(key=lambda pair: pair[0] not in named)
        found, method = [], None
        for name, value in pairs:
            if name.startswith("__") or len(found) >= MOST_IN_FRAME or self.is_spent():
                continue
            if name == "self" and frame.f_code.co_flags & OPTIMIZED:
                method = (value,)
                self.add(found, name, value, 2, False)
            else:
                self.add(found, name, value, 0, name in named)
        if method is not None:
            self.add_attributes(found, "self", method[0], named)
        del found[max(0, min(MOST_IN_FRAME, self.left)) :]
        self.left -= len(found)
        return found

    def is_spent(self):
        return self.left <= 0 or time.monotonic() > self.until

    def add(self, found, name, value, depth, is_named):
        cls = type(value)
        if id(cls) in NEVER or len(name) > LONGEST_NAME:
            return
        bases = bases_of(cls)
        for base, describe in self.kinds:
            if has(bases, base):
                try:
                    described = describe(value, cls, bases)
                except Exception:
                    described = {"kind": "object"}
                described["name"] = name
                described["class"] = name_of(cls)
                found.append(described)
                if described["kind"] == "module" and is_named:
                    # `z = emb(tok)`: its table is what the index has to fit.
                    self.add_parameters(found, name, value, bases)
                return
        if depth < 2:
            self.add_items(found, name, value, cls, bases, depth)

    def add_items(self, found, name, value, cls, bases, depth):
        items, length = items_of(value, bases)
        before = len(found)
        for key, item in items:
            self.add(found, name + key, item, depth + 1, False)
        if length > len(items) and len(found) > before:
            found.append({"kind": "container", "name": name, "class": name_of(cls), "length": length})

    def add_attributes(self, found, name, value, named):
        bases = bases_of(type(value))
        self.add_parameters(found, name, value, bases)
        pairs = attributes_of(value, bases)
        pairs += pairs_of(dict(pairs).get("_modules"), MOST_NAMES)
        pairs.sort(key=lambda pair: pair[0] not in named)
        for attribute, item in pairs:
            if not attribute.startswith("__") and len(found) < MOST_IN_FRAME and not self.is_spent():
                # One level: what a container or another object holds is not told.
                self.add(found, name + "." + attribute, item, 2, attribute in named)

    def add_parameters(self, found, name, value, bases):
        """A module keeps its parameters and buffers beside its attributes."""
        attributes = dict(attributes_of(value, bases))
        for store in ("_parameters", "_buffers"):
            for key, item in pairs_of(attributes.get(store), MOST_ITEMS):
                self.add(found, name + "." + key, item, 2, False)


def is_users(filename):
    """The core decides whose a frame is; here it is enough to spare the work for libraries."""
    home = sys.modules.get("os")
    library = getattr(home, "__file__", "").rpartition("/")[0]
    installed = "/site-packages/" in filename or "/dist-packages/" in filename
    return not (installed or filename.startswith(("<frozen ", "<cublame>")) or (library and filename.startswith(library + "/")))


def words(line):
    return set("".join([c if c.isalnum() or c == "_" else " " for c in line[:2000]]).split())


# The inside of values.


def has(bases, base):
    """By identity: a metaclass may define what is equal to it."""
    for each in bases:
        if each is base:
            return True
    return False


def pairs_of(mapping, most):
    """The first pairs of a mapping whose keys are text."""
    cls = type(mapping)
    if has(bases_of(cls), dict):
        items = dict.items(mapping)
    elif cls is LOCALS_PROXY:
        items = mapping.items()
    else:
        return []
    pairs = []
    try:
        for key, value in items:
            if len(pairs) >= most:
                break
            if type(key) is str:
                pairs.append((key, value))
    except RuntimeError:
        # Another thread is changing it.
        pass
    return pairs


def attributes_of(value, bases):
    """The instance's own dictionary, without asking the instance."""
    for base in bases:
        descriptor = dictionary_of(base).get("__dict__")
        if type(descriptor) in DESCRIPTORS:
            return pairs_of(descriptor.__get__(value), MOST_NAMES)
    return []


def items_of(value, bases):
    """The first items of a builtin container, each with how it is reached, and how many there are."""
    if has(bases, dict):
        pairs = pairs_of(value, MOST_ITEMS)
        return [("[%s]" % repr(key), item) for key, item in pairs if is_name(key)], dict.__len__(value)
    for kind in (list, tuple):
        if has(bases, kind):
            length = kind.__len__(value)
            return [("[%d]" % at, kind.__getitem__(value, at)) for at in range(min(length, MOST_ITEMS))], length
    for base in bases:
        if dictionary_of(base).get("__module__") == "collections" and qualified_name_of(base) == "UserDict":
            # What tokenizers give.
            data = dict(attributes_of(value, bases)).get("data")
            return items_of(data, bases_of(type(data))) if type(data) is dict else ([], 0)
    return [], 0


def is_name(key):
    """A key like a name is a part of the program; any other text is data of it."""
    return key.isidentifier() and len(key) <= 40


def name_of(cls):
    module = module_of(cls)
    name = qualified_name_of(cls)
    return name if type(module) is not str or module in ("builtins", "__main__") else module + "." + name


# The libraries, as far as the program has loaded them.


def known_kinds():
    """Pairs of a base class and what describes its instances."""
    found = []
    torch = contents("torch")
    tensor = torch.get("Tensor")
    if is_class(tensor):
        describe = torch_tensor(tensor, contents("torch._C"))
        if describe is not None:
            found.append((tensor, describe))
    for module, name, kind in (
        ("torch.nn.modules.module", "Module", "module"),
        ("torch.optim.optimizer", "Optimizer", "optimizer"),
        ("flax.linen.module", "Module", "module"),
        ("equinox._module", "Module", "module"),
        ("keras.src.layers.layer", "Layer", "module"),
    ):
        cls = contents(module).get(name)
        if is_class(cls):
            found.append((cls, lambda value, cls, bases, kind=kind: {"kind": kind}))
    for module, name, describe in (
        ("numpy", "ndarray", numpy_array),
        ("cupy", "ndarray", cupy_array),
        ("jaxlib._jax", "ArrayImpl", jax_array),
        ("jaxlib.xla_extension", "ArrayImpl", jax_array),
        ("jax._src.core", "Tracer", jax_tracer),
    ):
        cls = contents(module).get(name)
        if is_class(cls):
            found.append((cls, describe))
    return found


def contents(name):
    module = sys.modules.get(name)
    return module.__dict__ if type(module) is type(sys) else {}


def is_class(value):
    return has(bases_of(type(value)), type)


def torch_tensor(tensor, torch_c):
    base = torch_c.get("TensorBase") or torch_c.get("_TensorBase")
    plain = torch_c.get("DisableTorchFunction")
    if not is_class(base) or plain is None:
        return None
    own = dictionary_of(base)

    def describe(value, cls, bases):
        if is_dispatched(bases, tensor):
            return {"kind": "object"}
        with plain():
            shape = numbers(own["shape"].__get__(value))
            if shape is None:
                return {"kind": "object"}
            device = own["device"].__get__(value)
            described = {
                "kind": "tensor",
                "shape": shape,
                "dtype": repr(own["dtype"].__get__(value)).replace("torch.", "", 1),
                "device": device.type if device.index is None else "%s:%d" % (device.type, device.index),
                "requires_grad": own["requires_grad"].__get__(value) is True,
            }
            layout = repr(own["layout"].__get__(value))
            if layout == "torch.strided":
                described["strides"] = numbers(own["stride"](value))
                described["bytes"] = own["numel"](value) * own["element_size"](value)
            else:
                described["layout"] = layout.replace("torch.", "", 1)
        return described

    return describe


def is_dispatched(bases, tensor):
    """Does a class of the program's answer what torch asks of the tensor? Torch's own do so without running any of it."""
    for base in bases:
        if base is tensor:
            return False
        own = dictionary_of(base)
        module = own.get("__module__")
        if "__torch_dispatch__" in own and not (type(module) is str and module.startswith("torch.")):
            return True
    return True


def numpy_array(value, cls, bases):
    own = dictionary_of(sys.modules["numpy"].__dict__["ndarray"])
    return array(own, value, "cpu")


def cupy_array(value, cls, bases):
    for base in bases:
        own = dictionary_of(base)
        if "shape" in own and str(own.get("__module__")).startswith("cupy"):
            data = own["data"].__get__(value)
            return array(own, value, "cuda:%d" % data.device_id)
    return {"kind": "object"}


def array(own, value, device):
    dtype = own["dtype"].__get__(value)
    strides = numbers(own["strides"].__get__(value))
    size = dtype.itemsize
    if strides is None or not size or any(stride % size for stride in strides):
        strides = None
    return {
        "kind": "array",
        "shape": numbers(own["shape"].__get__(value)),
        "dtype": numpy_dtype(dtype),
        "device": device,
        "strides": strides and [stride // size for stride in strides],
        "bytes": own["nbytes"].__get__(value),
    }


def numpy_dtype(dtype):
    """Its name without numpy's own code, which would be imported for it."""
    name = NUMPY_KINDS.get(dtype.kind)
    if name is None:
        return qualified_name_of(dtype.type).rstrip("_")
    return "%s%d" % (name, dtype.itemsize * 8)


def jax_array(value, cls, bases):
    """The class cannot be derived from. Its properties are JAX's own and wait for nothing."""
    described = jax_tracer(value, cls, bases)
    devices = sorted("%s:%d" % ("cuda" if it.platform == "gpu" else it.platform, it.id) for it in value.sharding.device_set)
    described["device"] = devices[0] if len(devices) == 1 else "%d devices" % len(devices)
    return described


def jax_tracer(value, cls, bases):
    aval = value.aval
    described = {"kind": "array", "shape": numbers(aval.shape), "dtype": numpy_dtype(aval.dtype), "device": "traced"}
    if described["shape"] is None:
        return {"kind": "object"}
    count = 1
    for length in described["shape"]:
        count *= length
    described["bytes"] = count * aval.dtype.itemsize
    return described


def numbers(lengths):
    """A tuple of numbers as a list; None where one of them is a symbol of a compiler's."""
    listed = list(tuple.__iter__(lengths))[:MOST_DIMENSIONS]
    return listed if all(type(number) is int for number in listed) else None
