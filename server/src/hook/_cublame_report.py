"""Describes an exception as server/core/src/event.rs wants it. Loaded when there is one.

It reads names, lines, files on disk and `str(exception)`, never another value of the program: after a GPU fault the repr of
a tensor fails or hangs. What may be said of the locals is said by `_cublame_locals.py`.
It imports nothing that was not there at the start. An import holds a lock, and in a child that was forked while another
thread held it, it is never released.
"""

import os
import stat
import sys

MOST_LINKS = 64
MOST_FRAMES = 200
MOST_NOTES = 32
MOST_FILES = 128
LONGEST_MESSAGE = 64 << 10
LONGEST_NOTE = 8 << 10
LONGEST_LINE = 2 << 10
LARGEST_FILE = 4 << 20
DEEPEST_GROUP = 10
MARK = b"\xef\xbb\xbf"


def describe(value, traceback, process, locals_of_event):
    """The chain of an exception and the hashes of the files that it names."""
    sources = Sources(process)
    sources.locals = locals_of_event
    links, left_out = links_of(value, traceback, sources, set(), 0)
    process.hashes.update(sources.hashes)
    return {"chain": links, "links_left_out": left_out, "hashes": sources.hashes}


# The chain.


def links_of(value, traceback, sources, seen, depth):
    """The exception and all that it came from, the first cause first, and how many were left out."""
    steps = []
    relation = None
    while value is not None and id(value) not in seen:
        seen.add(id(value))
        steps.append((value, traceback, relation))
        # As the interpreter prints them: `raise from` hides what was being handled.
        if value.__cause__ is not None:
            value, relation = value.__cause__, "cause"
        elif value.__context__ is not None and not value.__suppress_context__:
            value, relation = value.__context__, "context"
        else:
            break
        traceback = value.__traceback__
    left_out = max(0, len(steps) - MOST_LINKS)
    if left_out:
        steps[MOST_LINKS // 2 : -MOST_LINKS // 2] = []

    links = []
    for value, traceback, relation in reversed(steps):
        for leaf in leaves_of(value):
            if depth >= DEEPEST_GROUP or len(links) + len(steps) >= MOST_LINKS:
                left_out += 1
                continue
            beneath, cut = links_of(leaf, leaf.__traceback__, sources, seen, depth + 1)
            left_out += cut
            if beneath:
                beneath[-1]["relation"] = "group"
                links += beneath
        links.append(link_of(value, traceback, relation, sources))
    return links, left_out


def leaves_of(value):
    """The exceptions in a group: the builtin, or the one of the package `exceptiongroup` before Python 3.11."""
    home = sys.modules.get("builtins" if sys.version_info >= (3, 11) else "exceptiongroup")
    group = getattr(home, "BaseExceptionGroup", None)
    return value.exceptions if group is not None and isinstance(value, group) else ()


def link_of(value, traceback, relation, sources):
    frames, left_out = frames_of(traceback, sources)
    if isinstance(value, SyntaxError):
        frames += place_of_syntax_error(value, sources)
    return {
        "type": type_name(type(value)),
        "bases": [type_name(base) for base in type(value).__mro__[1:-1]],
        "message": cut(message_of(value), LONGEST_MESSAGE),
        "notes": notes_of(value),
        "relation": relation,
        "frames": frames,
        "frames_left_out": left_out,
    }


def type_name(cls):
    """As a traceback prints it."""
    module = cls.__module__
    if not isinstance(module, str) or module in ("builtins", "__main__"):
        return cls.__qualname__
    return module + "." + cls.__qualname__


# What it says.


def message_of(value):
    try:
        if isinstance(value, SyntaxError) and type(value.msg) is str:
            return value.msg
        if harmless(value):
            return str(value)
        shown = [repr(item) if harmless(item) else "<" + type_name(type(item)) + ">" for item in value.args]
        return shown[0] if len(shown) == 1 else "(" + ", ".join(shown) + ")"
    except KeyboardInterrupt:
        raise
    except BaseException:
        # The words of the interpreter.
        return "<exception str() failed>"


def harmless(value, depth=0):
    """Can its text be asked for? An argument of an exception may be a tensor, or hold one."""
    if type(value) in (str, bytes, int, float, complex, bool, type(None)):
        return True
    if depth > 4:
        return False
    if isinstance(value, BaseException):
        # A class with words of its own is asked for them, as the interpreter does when it prints the exception.
        if type(value).__str__ is not BaseException.__str__ and type(value).__str__ is not KeyError.__str__:
            return True
        return all(harmless(item, depth + 1) for item in value.args)
    if type(value) in (tuple, list, set, frozenset) and len(value) <= 1000:
        return all(harmless(item, depth + 1) for item in value)
    if type(value) is dict and len(value) <= 1000:
        return all(harmless(key, depth + 1) and harmless(item, depth + 1) for key, item in value.items())
    return type_name(type(value)) in HARMLESS_TYPES


HARMLESS_TYPES = (
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib._local.PosixPath",
    "pathlib._local.WindowsPath",
    "torch.Size",
    "torch.device",
    "torch.dtype",
)


def notes_of(value):
    notes = getattr(value, "__notes__", None)
    if type(notes) is not list:
        return []
    return [cut(note, LONGEST_NOTE) for note in notes[:MOST_NOTES] if isinstance(note, str)]


def cut(text, most):
    left_out = len(text) - most
    if left_out <= 0:
        return text
    half = most // 2
    return "%s\n[... %d characters left out ...]\n%s" % (text[:half], left_out, text[-half:])


# Where it was.


def frames_of(traceback, sources):
    """The frames, outermost first, and how many were left out in the middle."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    left_out = max(0, len(entries) - MOST_FRAMES)
    if left_out:
        entries[MOST_FRAMES // 2 : -MOST_FRAMES // 2] = []
    frames = [frame_of(entry, sources) for entry in entries]
    if sources.locals is not None:
        sources.locals.tell([(entry.tb_frame, frame) for entry, frame in zip(entries, frames)])
    return frames, left_out


def frame_of(entry, sources):
    code = entry.tb_frame.f_code
    source = sources.of(code.co_filename, entry.tb_frame.f_globals)
    line = entry.tb_lineno or code.co_firstlineno
    frame = place(source, code.co_filename, line)
    frame["function"] = getattr(code, "co_qualname", code.co_name)
    if hasattr(code, "co_positions") and entry.tb_lasti >= 0:
        start, end, start_byte, end_byte = position_of(code, entry.tb_lasti // 2)
        if start == line and end is not None:
            frame["end_line"] = end
            frame["column"] = column(source.line(line), start_byte)
            frame["end_column"] = column(source.line(end), end_byte)
    return frame


def position_of(code, instruction):
    for index, position in enumerate(code.co_positions()):
        if index == instruction:
            return position
    return None, None, None, None


def place_of_syntax_error(value, sources):
    """A SyntaxError was raised in the compiler, for a place that no frame is at."""
    if type(value.filename) is not str or type(value.lineno) is not int or value.lineno < 1:
        return []
    source = sources.of(value.filename, {})
    frame = place(source, value.filename, value.lineno)
    frame["function"] = ""
    if frame["source"] is None and type(value.text) is str:
        frame["source"] = value.text.rstrip("\r\n")[:LONGEST_LINE]
    # CPython's parser counts characters here in some versions and bytes in others, its compiler always bytes, and neither
    # knows what to do with a byte order mark. Where that makes a difference no column is given.
    text = frame["source"]
    if text is not None and text.isascii() and not (source.marked and value.lineno == 1):
        frame["column"] = positive(value.offset)
        frame["end_line"] = positive(getattr(value, "end_lineno", None))
        if frame["end_line"] == value.lineno:
            frame["end_column"] = positive(getattr(value, "end_offset", None))
    return [frame]


def positive(number):
    return number if type(number) is int and number > 0 else None


def place(source, filename, line):
    text = source.line(line)
    found = {"file": filename, "path": source.path, "line": line, "source": text and text[:LONGEST_LINE]}
    if source.changed:
        found["changed"] = True
    return found


def column(line, byte):
    """CPython counts the bytes of the line in UTF-8 from 0; the contract counts code points from 1."""
    if line is None or byte is None:
        return None
    before = line.encode("utf-8", "surrogatepass")
    return len(before[:byte].decode("utf-8", "replace")) + 1 if byte <= len(before) else None


# The source files.


class Sources:
    """The files that one event names, each read once."""

    def __init__(self, process):
        self.process = process
        self.known = {}
        self.hashes = {}
        self.locals = None

    def of(self, filename, module_globals):
        source = self.known.get(filename)
        if source is None:
            source = self.known[filename] = Source()
            if len(self.known) <= MOST_FILES:
                self.fill(source, filename, module_globals)
        return source

    def fill(self, source, filename, module_globals):
        path = self.find(filename)
        data = None
        if path is not None:
            data, modified = read(path)
        if data is not None:
            source.path = path
            source.changed = modified > self.process.started
            source.lines = lines(data)
            source.marked = data.startswith(MARK)
            if self.process.sha256 is not None:
                self.hashes[path] = self.process.sha256(data).hexdigest()
        else:
            source.lines = lines_in_memory(filename, module_globals)

    def find(self, filename):
        """The absolute path of a regular file; `<string>` and a pipe are none."""
        if filename.startswith("<"):
            return None
        for folder in (self.process.cwd, working_directory()):
            path = os.path.normpath(os.path.join(folder, filename))
            try:
                # A name that is not Unicode cannot be written in JSON: then there is no path rather than a wrong one.
                path.encode("utf-8")
                if os.path.isabs(path) and stat.S_ISREG(os.stat(path).st_mode):
                    return path
            except (OSError, ValueError):
                pass
        return None


class Source:
    path = None
    changed = False
    # It begins with a byte order mark.
    marked = False
    lines = None

    def line(self, number):
        if self.lines is None or not 1 <= number <= len(self.lines):
            return None
        return self.lines[number - 1]


def read(path):
    """The bytes of a regular file and the time of its last change; (None, 0) where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None, 0
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            return None, 0
        parts = []
        while sum(map(len, parts)) <= LARGEST_FILE:
            part = os.read(descriptor, LARGEST_FILE)
            if not part:
                return b"".join(parts), status.st_mtime
            parts.append(part)
        return None, 0
    except OSError:
        return None, 0
    finally:
        os.close(descriptor)


def lines_in_memory(filename, module_globals):
    """Of a notebook's cell, of `python -c` where the interpreter keeps it, of a module in a zip file."""
    entry = getattr(sys.modules.get("linecache"), "cache", {}).get(filename)
    if type(entry) is tuple and len(entry) == 4:
        return [line.rstrip("\r\n") for line in entry[2]]
    loader = module_globals.get("__loader__")
    if type(loader).__name__ == "zipimporter" and type(loader).__module__ == "zipimport":
        try:
            text = loader.get_source(module_globals.get("__name__"))
        except Exception:
            return None
        return text and split(text)
    return None


def lines(data):
    encoding = encoding_of(data)
    try:
        return split(data.decode(encoding, "replace"))
    except LookupError:
        return split(data.decode("utf-8", "replace"))


def split(text):
    """Only what ends a line for the tokenizer: str.splitlines also splits at form feeds and others."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def encoding_of(data):
    """By PEP 263: a byte order mark, or a comment with `coding:` in one of the first two lines."""
    if data.startswith(MARK):
        return "utf-8-sig"
    for line in data.split(b"\n", 2)[:2]:
        line = line.strip(b" \t\f\r")
        if not line.startswith(b"#"):
            if line:
                break
            continue
        for mark in (b"coding:", b"coding="):
            name = line.partition(mark)[2].lstrip(b" \t")
            end = 0
            while end < len(name) and (name[end : end + 1].isalnum() or name[end : end + 1] in (b"-", b"_", b".")):
                end += 1
            if end:
                return name[:end].decode("ascii")
    return "utf-8"


def working_directory():
    try:
        return os.getcwd()
    except OSError:
        return ""
