//! The Python frames of the calling thread, read from its own interpreter state without the global lock.
//!
//! It is safe without the lock because only this thread changes its chain of frames, and it stands still here; the frames
//! keep their code objects alive. Where things lie differs by version: see [`Layout`]. Nothing is believed before it was
//! checked: first that everything reached has the right type (through reads that cannot fault), then, when this thread
//! happens to hold the lock, that the interpreter's own functions give the same code objects and lines.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32};

use cublame_journal::FrameState;
use cublame_journal::write::{CodeKey, CodeText, Writer};

use crate::{look_up, system};

/// The innermost frames that are kept of a stack.
pub const DEPTH: usize = 512;

/// An interpreter whose layout is known.
pub struct Interpreter {
    layout: Layout,
    this_thread_state: unsafe extern "C" fn() -> *const u8,
    current_thread_state: Option<unsafe extern "C" fn() -> *const u8>,
    code_type: u64,
    text_type: u64,
    bytes_type: u64,
    state: AtomicU8,
}

/// Offsets in bytes. Each row of [`LAYOUTS`] was taken with `offsetof` from the headers of that version.
#[derive(Debug, Clone, Copy)]
struct Layout {
    version: u32,
    /// `PyThreadState`: `frame` (to 3.10), `cframe` (3.11, 3.12), `current_frame` (since 3.13).
    thread_frame: usize,
    /// `_PyCFrame.current_frame`, in 3.11 and 3.12.
    c_frame: Option<usize>,
    frame_back: usize,
    frame_code: usize,
    frame_instruction: usize,
    /// The instruction is an `int` in units of so many bytes (to 3.10), else a pointer into the code.
    index_unit: Option<i64>,
    /// `_PyInterpreterFrame.owner`, since 3.11. Frames of 3 and above are the interpreter's own.
    frame_owner: Option<usize>,
    code_start: usize,
    code_file: usize,
    /// `co_qualname` since 3.11, `co_name` before.
    code_name: usize,
    code_line_table: usize,
    code_first_line: usize,
    /// `co_version`, since 3.12: another number for every code object ever made.
    code_version: Option<usize>,
    /// `sizeof(PyASCIIObject)` and `sizeof(PyCompactUnicodeObject)`.
    text_ascii: usize,
    text_compact: usize,
}

const LAYOUTS: [Layout; 6] = [
    // Include/cpython/frameobject.h and Include/cpython/code.h of 3.9.18; PyThreadState in Include/cpython/pystate.h.
    Layout {
        version: 0x309,
        thread_frame: 24,
        c_frame: None,
        frame_back: 24,
        frame_code: 32,
        frame_instruction: 104,
        index_unit: Some(1),
        frame_owner: None,
        code_start: 0,
        code_file: 104,
        code_name: 112,
        code_line_table: 120,
        code_first_line: 40,
        code_version: None,
        text_ascii: 48,
        text_compact: 72,
    },
    // The same headers of 3.10.13; f_lasti counts instructions of two bytes.
    Layout {
        version: 0x30a,
        thread_frame: 24,
        c_frame: None,
        frame_back: 24,
        frame_code: 32,
        frame_instruction: 96,
        index_unit: Some(2),
        frame_owner: None,
        code_start: 0,
        code_file: 104,
        code_name: 112,
        code_line_table: 120,
        code_first_line: 40,
        code_version: None,
        text_ascii: 48,
        text_compact: 72,
    },
    // Include/internal/pycore_frame.h, Include/cpython/code.h and Include/cpython/pystate.h of 3.11.7.
    Layout {
        version: 0x30b,
        thread_frame: 56,
        c_frame: Some(8),
        frame_back: 48,
        frame_code: 32,
        frame_instruction: 56,
        index_unit: None,
        frame_owner: Some(69),
        code_start: 184,
        code_file: 112,
        code_name: 128,
        code_line_table: 136,
        code_first_line: 72,
        code_version: None,
        text_ascii: 48,
        text_compact: 72,
    },
    // The same headers of 3.12.1.
    Layout {
        version: 0x30c,
        thread_frame: 56,
        c_frame: Some(0),
        frame_back: 8,
        frame_code: 0,
        frame_instruction: 56,
        index_unit: None,
        frame_owner: Some(70),
        code_start: 192,
        code_file: 112,
        code_name: 128,
        code_line_table: 136,
        code_first_line: 68,
        code_version: Some(92),
        text_ascii: 40,
        text_compact: 56,
    },
    // The same headers of 3.13.0. Most of it is replaced by what the interpreter itself says, see `debug_offsets`.
    Layout {
        version: 0x30d,
        thread_frame: 72,
        c_frame: None,
        frame_back: 8,
        frame_code: 0,
        frame_instruction: 56,
        index_unit: None,
        frame_owner: Some(70),
        code_start: 200,
        code_file: 112,
        code_name: 128,
        code_line_table: 136,
        code_first_line: 68,
        code_version: Some(92),
        text_ascii: 40,
        text_compact: 56,
    },
    // Include/internal/pycore_interpframe_structs.h and Include/cpython/code.h of 3.14; replaced likewise.
    Layout {
        version: 0x30e,
        thread_frame: 72,
        c_frame: None,
        frame_back: 8,
        frame_code: 0,
        frame_instruction: 56,
        index_unit: None,
        frame_owner: Some(74),
        code_start: 208,
        code_file: 112,
        code_name: 128,
        code_line_table: 136,
        code_first_line: 68,
        code_version: Some(92),
        text_ascii: 40,
        text_compact: 56,
    },
];

/// Frames of this owner and above are the interpreter's own: FRAME_OWNED_BY_CSTACK of 3.12 and 3.13,
/// FRAME_OWNED_BY_INTERPRETER and FRAME_OWNED_BY_CSTACK of 3.14.
const FIRST_FOREIGN_OWNER: u8 = 3;
/// `Py_TAG_BITS` of pycore_stackref.h in 3.14: a frame's code object is a tagged reference. Objects are aligned to 8, so
/// clearing the bits changes nothing in older versions.
const TAG_BITS: u64 = 3;

/// One frame as read: what tells whether it is the one that was seen before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawFrame {
    pub key: u64,
    pub identity: u64,
    pub offset: u32,
}

/// The stack that a thread had at its last call, interned.
pub struct StackCache {
    now: Box<[RawFrame]>,
    /// Outermost first: the frame and the stack that ends in it.
    known: Box<[(RawFrame, u32)]>,
    length: usize,
    /// Rows that this thread asked for lately, so that a stack that changes costs no walk through the shared tables.
    codes: Box<[(RawFrame, u32)]>,
    stacks: Box<[(u64, u32, u32)]>,
}

/// Entries of the two memories above; powers of two.
const CODES_KEPT: usize = 1024;
const STACKS_KEPT: usize = 2048;

impl StackCache {
    pub fn new() -> StackCache {
        StackCache {
            now: vec![RawFrame::default(); DEPTH].into_boxed_slice(),
            known: vec![(RawFrame::default(), 0); DEPTH].into_boxed_slice(),
            length: 0,
            codes: vec![(RawFrame::default(), 0); CODES_KEPT].into_boxed_slice(),
            stacks: vec![(0, 0, 0); STACKS_KEPT].into_boxed_slice(),
        }
    }

    /// The row of a frame's code object.
    fn code(&mut self, frame: RawFrame, find: impl FnOnce() -> u32) -> u32 {
        // Code objects lie at multiples of 16.
        let kept = &mut self.codes[(frame.key >> 4) as usize % CODES_KEPT];
        let frame = RawFrame { offset: 0, ..frame };
        if kept.0 != frame || kept.1 == 0 {
            *kept = (frame, find());
        }
        kept.1
    }

    /// The row of the stack that ends at `offset` of `code`, called from `parent`.
    fn stack(&mut self, parent: u32, code: u32, offset: u32, find: impl FnOnce() -> u32) -> u32 {
        let key = u64::from(parent) << 32 | u64::from(code);
        let hash = (key ^ u64::from(offset) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let kept = &mut self.stacks[hash as usize % STACKS_KEPT];
        if (kept.0, kept.1) != (key, offset) || kept.2 == 0 {
            *kept = (key, offset, find());
        }
        kept.2
    }
}

/// The interpreter in this process: None where there is none, or none whose frames can be read.
pub fn interpreter() -> Option<&'static Interpreter> {
    static FOUND: AtomicPtr<Interpreter> = AtomicPtr::new(std::ptr::null_mut());
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let found = FOUND.load(Acquire);
    let found = if found.is_null() {
        // Looking costs a microsecond, and an interpreter may be loaded later: look now and then.
        if ASKED.fetch_add(1, Relaxed) & 0xfff != 0 {
            return None;
        }
        let new = Box::into_raw(Box::new(Interpreter::find()?));
        match FOUND.compare_exchange(std::ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            // Another thread was first; a second one is a few hundred bytes, once.
            Err(other) => other,
        }
    } else {
        found
    };
    // SAFETY: it came from a box that is never freed.
    Some(unsafe { &*found })
}

impl Interpreter {
    fn find() -> Option<Interpreter> {
        let this_thread_state = look_up(c"PyGILState_GetThisThreadState")?;
        let version = version()?;
        let current = look_up(c"_PyThreadState_UncheckedGet").or_else(|| look_up(c"PyThreadState_GetUnchecked"));
        let known = LAYOUTS.iter().find(|layout| layout.version == version).copied();
        let layout = known.map(|layout| if version >= 0x30d { debug_offsets(layout) } else { Some(layout) });
        let state = match layout {
            Some(Some(_)) => FrameState::None,
            _ => FrameState::Unsupported,
        };
        Some(Interpreter {
            layout: layout.flatten().unwrap_or(Layout { version, ..LAYOUTS[0] }),
            // SAFETY: `PyThreadState *PyGILState_GetThisThreadState(void)` in Include/pystate.h.
            this_thread_state: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const u8>(this_thread_state)
            },
            // SAFETY: both names have the type `PyThreadState *(void)` in Include/cpython/pystate.h.
            current_thread_state: current.map(|function| unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const u8>(function)
            }),
            code_type: look_up(c"PyCode_Type")? as u64,
            text_type: look_up(c"PyUnicode_Type")? as u64,
            bytes_type: look_up(c"PyBytes_Type")? as u64,
            state: AtomicU8::new(state as u8),
        })
    }

    pub fn version(&self) -> u32 {
        self.layout.version
    }

    pub fn state(&self) -> FrameState {
        FrameState::from_number(self.state.load(Acquire).into())
    }

    /// The stack of the calling thread, interned. 0 when it has no frames, or none that can be trusted.
    pub fn stack(&self, writer: &Writer, cache: &mut StackCache) -> u32 {
        // SAFETY: the function takes nothing and returns null for a thread without a state.
        let thread = unsafe { (self.this_thread_state)() };
        if thread.is_null() || !self.trusted(thread, writer) {
            return 0;
        }
        let (depth, changed) = self.walk(thread, &mut cache.now);
        // Outermost first: what is as it was at the last call has its number already. At the same depth the walk itself
        // has told; otherwise the frames lie at other places and are compared again.
        let mut level = if depth == cache.length { depth - changed } else { 0 };
        if depth != cache.length {
            while level < depth.min(cache.length) && cache.known[level].0 == cache.now[depth - 1 - level] {
                level += 1;
            }
        }
        let mut stack = level.checked_sub(1).map_or(0, |last| cache.known[last].1);
        while level < depth {
            let frame = cache.now[depth - 1 - level];
            let code = cache.code(frame, || self.intern(frame, writer));
            stack = cache.stack(stack, code, frame.offset, || writer.stack(stack, code, frame.offset));
            cache.known[level] = (frame, stack);
            level += 1;
        }
        cache.length = depth;
        stack
    }

    /// Asks the interpreter itself, if the calling thread holds its lock and that was not done before.
    pub fn verify_if_locked(&self, writer: Option<&Writer>) {
        if !matches!(self.state(), FrameState::None | FrameState::Plausible) {
            return;
        }
        // SAFETY: the functions take nothing.
        let (thread, current) = unsafe {
            ((self.this_thread_state)(), self.current_thread_state.map_or(std::ptr::null(), |current| current()))
        };
        if thread.is_null() || thread != current {
            return;
        }
        if self.state() == FrameState::None && !self.plausible(thread) {
            self.become_(FrameState::Refused, writer);
        } else if let Some(same) = self.ask(thread) {
            self.become_(if same { FrameState::Verified } else { FrameState::Refused }, writer);
        }
    }

    fn trusted(&self, thread: *const u8, writer: &Writer) -> bool {
        match self.state() {
            FrameState::Verified => true,
            FrameState::Plausible => {
                self.verify_if_locked(Some(writer));
                self.state() != FrameState::Refused
            }
            FrameState::None => {
                let state = if self.plausible(thread) { FrameState::Plausible } else { FrameState::Refused };
                self.become_(state, Some(writer));
                self.verify_if_locked(Some(writer));
                self.state() != FrameState::Refused
            }
            FrameState::Refused | FrameState::Unsupported => false,
        }
    }

    fn become_(&self, state: FrameState, writer: Option<&Writer>) {
        self.state.store(state as u8, Release);
        if let Some(writer) = writer {
            writer.interpreter(self.version(), state);
        }
    }

    /// Fills `frames`, innermost first: how many there are, and how many of these, from the innermost on, are not what was
    /// at the same place in `frames` before.
    fn walk(&self, thread: *const u8, frames: &mut [RawFrame]) -> (usize, usize) {
        let layout = &self.layout;
        let (mut count, mut changed) = (0, 0);
        let mut frame = self.innermost(thread, direct);
        while !frame.is_null() && count < frames.len() {
            // SAFETY: `frame` is a frame of this thread, and the offsets were checked for this interpreter.
            unsafe {
                let own = layout.frame_owner.is_none_or(|owner| *frame.add(owner) < FIRST_FOREIGN_OWNER);
                let code = word(frame.add(layout.frame_code)) & !TAG_BITS;
                if own && code != 0 {
                    let offset = self.offset(frame, code);
                    let identity = self.identity(code as *const u8);
                    let offset = offset.clamp(0, i64::from(u32::MAX)) as u32;
                    let seen = RawFrame { key: code, identity, offset };
                    if frames[count] != seen {
                        frames[count] = seen;
                        changed = count + 1;
                    }
                    count += 1;
                }
                frame = word(frame.add(layout.frame_back)) as *const u8;
            }
        }
        (count, changed)
    }

    /// The innermost frame, read with `read` (address to word).
    fn innermost(&self, thread: *const u8, read: impl Fn(*const u8) -> u64) -> *const u8 {
        let first = read(thread.wrapping_add(self.layout.thread_frame)) as *const u8;
        match self.layout.c_frame {
            Some(current) if !first.is_null() => read(first.wrapping_add(current)) as *const u8,
            _ => first,
        }
    }

    /// Byte offset of the instruction that a frame is at; negative before its first.
    ///
    /// # Safety
    /// `frame` is a frame of this interpreter and `code` its code object.
    unsafe fn offset(&self, frame: *const u8, code: u64) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            let at = frame.add(self.layout.frame_instruction);
            match self.layout.index_unit {
                Some(unit) => i64::from(at.cast::<i32>().read_unaligned()) * unit,
                None => word(at).wrapping_sub(code + self.layout.code_start as u64) as i64,
            }
        }
    }

    /// What no other code object at the same address has: the addresses of its parts, its first line and its version.
    ///
    /// # Safety
    /// `code` is a code object of this interpreter.
    unsafe fn identity(&self, code: *const u8) -> u64 {
        let layout = &self.layout;
        // SAFETY: the caller's promise.
        unsafe {
            // A version is given to one code object only; 0 says that the interpreter ran out of them.
            match layout.code_version.map_or(0, |version| half(code.add(version))) {
                0 => self.contents(code),
                version => version.into(),
            }
        }
    }

    /// The same where code objects are not numbered. Strings and tables of a new one can lie where those of the old
    /// one lay, so a part of what they hold counts as well: the ends, where made-up file names and tables differ.
    ///
    /// # Safety
    /// `code` is a code object of this interpreter.
    unsafe fn contents(&self, code: *const u8) -> u64 {
        let layout = &self.layout;
        let mut identity = 0u64;
        let mut add = |part: u64| identity = (identity ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        // SAFETY: the caller's promise; a string's or table's size lies at 16, and its data is at least as long.
        unsafe {
            let (table, file) = (word(code.add(layout.code_line_table)), word(code.add(layout.code_file)));
            let (table_bytes, file_bytes) = (word((table as *const u8).add(16)), word((file as *const u8).add(16)));
            for (object, data, bytes) in [(table, 32, table_bytes), (file, layout.text_ascii as u64, file_bytes)] {
                add(object);
                add(bytes);
                if bytes >= 8 {
                    add(word((object + data) as *const u8));
                    add(word((object + data + bytes - 8) as *const u8));
                } else {
                    add(word((object + data) as *const u8) & ((1 << (bytes * 8)) - 1));
                }
            }
            add(word(code.add(layout.code_name)));
            add(half(code.add(layout.code_first_line)).into());
        }
        identity
    }

    fn intern(&self, frame: RawFrame, writer: &Writer) -> u32 {
        let code = frame.key as *const u8;
        let mut texts = (Vec::new(), Vec::new());
        let texts = &mut texts;
        writer.code(CodeKey { address: frame.key, identity: frame.identity }, || {
            let layout = &self.layout;
            // SAFETY: the frame keeps its code object alive, which keeps its names and its table.
            unsafe {
                self.text(word(code.add(layout.code_file)) as *const u8, &mut texts.0);
                self.text(word(code.add(layout.code_name)) as *const u8, &mut texts.1);
                let table = word(code.add(layout.code_line_table)) as *const u8;
                // PyBytesObject: ob_size at 16, ob_sval at 32, in every version of 64-bit CPython to 3.14.
                let line_table = std::slice::from_raw_parts(table.add(32), word(table.add(16)) as usize);
                CodeText {
                    file: &texts.0,
                    name: &texts.1,
                    line_table,
                    first_line: half(code.add(layout.code_first_line)),
                }
            }
        })
    }

    /// A string object as UTF-8.
    ///
    /// # Safety
    /// `text` is a string object of this interpreter.
    unsafe fn text(&self, text: *const u8, into: &mut Vec<u8>) {
        // SAFETY: the caller's promise; length and state lie at 16 and 32 in PyASCIIObject of all versions.
        unsafe {
            let (length, state) = (word(text.add(16)) as usize, half(text.add(32)));
            let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
            if compact == 0 {
                return;
            }
            let data = text.add(if ascii == 1 { self.layout.text_ascii } else { self.layout.text_compact });
            let mut push = |number: u32| {
                let mut bytes = [0; 4];
                let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                into.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
            };
            match kind {
                1 => std::slice::from_raw_parts(data, length).iter().for_each(|unit| push(u32::from(*unit))),
                2 => (0..length).for_each(|unit| push(u32::from(data.cast::<u16>().add(unit).read_unaligned()))),
                4 => (0..length).for_each(|unit| push(data.cast::<u32>().add(unit).read_unaligned())),
                _ => {}
            }
        }
    }

    /// Does everything that the layout leads to have the right type? Nothing is touched that could fault.
    fn plausible(&self, thread: *const u8) -> bool {
        let Some(reader) = CarefulReader::new() else { return false };
        let read = |address: *const u8| reader.word(address).unwrap_or(0);
        let is_a = |object: u64, kind: u64| object != 0 && read((object as *const u8).wrapping_add(8)) == kind;
        let layout = &self.layout;
        let mut frame = self.innermost(thread, read);
        let mut seen = 0;
        while !frame.is_null() && seen < DEPTH {
            let Some(code) = reader.word(frame.wrapping_add(layout.frame_code)) else { return false };
            let owner = layout.frame_owner.map_or(0, |owner| read(frame.wrapping_add(owner)) as u8);
            if owner < FIRST_FOREIGN_OWNER {
                let code = code & !TAG_BITS;
                let part = |offset: usize| read((code as *const u8).wrapping_add(offset));
                if !is_a(code, self.code_type)
                    || !is_a(part(layout.code_file), self.text_type)
                    || !is_a(part(layout.code_name), self.text_type)
                    || !is_a(part(layout.code_line_table), self.bytes_type)
                {
                    return false;
                }
                seen += 1;
            }
            let Some(back) = reader.word(frame.wrapping_add(layout.frame_back)) else { return false };
            frame = back as *const u8;
        }
        // A thread that holds a state but no frame proves nothing.
        seen > 0
    }

    /// Compares every frame of the calling thread, which holds the lock, with what the interpreter's own functions say.
    /// None where they are not there, or there are too few frames to be sure.
    fn ask(&self, thread: *const u8) -> Option<bool> {
        type Object = *mut c_void;
        // SAFETY: the types are those of Include/pyframe.h, Include/ceval.h and Include/cpython/code.h since 3.9.
        let (current, back, code_of, line_of, line_at, release) = unsafe {
            (
                std::mem::transmute::<Object, unsafe extern "C" fn() -> Object>(look_up(c"PyEval_GetFrame")?),
                std::mem::transmute::<Object, unsafe extern "C" fn(Object) -> Object>(look_up(c"PyFrame_GetBack")?),
                std::mem::transmute::<Object, unsafe extern "C" fn(Object) -> Object>(look_up(c"PyFrame_GetCode")?),
                std::mem::transmute::<Object, unsafe extern "C" fn(Object) -> c_int>(look_up(
                    c"PyFrame_GetLineNumber",
                )?),
                std::mem::transmute::<Object, unsafe extern "C" fn(Object, c_int) -> c_int>(look_up(
                    c"PyCode_Addr2Line",
                )?),
                std::mem::transmute::<Object, unsafe extern "C" fn(Object)>(look_up(c"Py_DecRef")?),
            )
        };
        let mut frames = vec![RawFrame::default(); DEPTH];
        let (depth, _) = self.walk(thread, &mut frames);
        if depth < 2 {
            return None;
        }
        let mut same = true;
        // SAFETY: the lock is held; `current` lends a frame, `back` and `code_of` give references that are released.
        unsafe {
            let mut frame = current();
            let mut owned = false;
            for raw in &frames[..depth] {
                if frame.is_null() {
                    same = false;
                    break;
                }
                let code = code_of(frame);
                same &= code as u64 == raw.key && line_of(frame) == line_at(code, raw.offset as c_int);
                release(code);
                let outer = back(frame);
                if owned {
                    release(frame);
                }
                (frame, owned) = (outer, true);
            }
            if owned && !frame.is_null() {
                same &= depth == DEPTH;
                release(frame);
            }
        }
        Some(same)
    }
}

/// `PY_VERSION_HEX >> 16`, from the beginning of `Py_GetVersion()`: "3.12.3 (main, ...".
fn version() -> Option<u32> {
    let function = look_up(c"Py_GetVersion")?;
    // SAFETY: `const char *Py_GetVersion(void)` returns a text that lives as long as the process.
    let text = unsafe {
        std::ffi::CStr::from_ptr(std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(function)())
    };
    let mut numbers = text.to_str().ok()?.split(|c: char| !c.is_ascii_digit());
    let (major, minor) = (numbers.next()?.parse::<u32>().ok()?, numbers.next()?.parse::<u32>().ok()?);
    Some(major << 8 | minor)
}

/// What the interpreter says of itself since 3.13: `_Py_DebugOffsets` at the start of `_PyRuntime`
/// (Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of 3.14). None for a build without the global lock.
fn debug_offsets(layout: Layout) -> Option<Layout> {
    const COOKIE: u64 = u64::from_ne_bytes(*b"xdebugpy");
    const FREE_THREADED: usize = 2;
    let runtime = look_up(c"_PyRuntime")?.cast::<u64>();
    // SAFETY: `_PyRuntime` is far larger than the 80 words that are read of it.
    let at = |index: usize| unsafe { runtime.add(index).read_unaligned() };
    if at(0) != COOKIE || at(1) >> 16 != u64::from(layout.version) || at(FREE_THREADED) != 0 {
        return None;
    }
    // 3.14 has one field more in the interpreter's state (threads_main) and one more in the frame (stackpointer).
    let (thread, frame) = if layout.version == 0x30d { (19, 28) } else { (20, 29) };
    let code = if layout.version == 0x30d { 34 } else { 36 };
    let offset = |index: usize| usize::try_from(at(index)).ok().filter(|offset| *offset < 4096);
    Some(Layout {
        thread_frame: offset(thread + 4)?,
        frame_back: offset(frame + 1)?,
        frame_code: offset(frame + 2)?,
        frame_instruction: offset(frame + 3)?,
        frame_owner: Some(offset(frame + 5)?),
        code_file: offset(code + 1)?,
        code_name: offset(code + 3)?,
        code_line_table: offset(code + 4)?,
        code_first_line: offset(code + 5)?,
        code_start: offset(code + 9)?,
        ..layout
    })
}

/// Reads memory that may not be there: the kernel copies it into a pipe, or refuses.
struct CarefulReader {
    ends: [c_int; 2],
}

impl CarefulReader {
    fn new() -> Option<CarefulReader> {
        let mut ends = [0; 2];
        // SAFETY: the call fills the two descriptors.
        let made = unsafe { system::pipe2(ends.as_mut_ptr(), system::O_CLOEXEC | system::O_NONBLOCK) };
        (made == 0).then_some(CarefulReader { ends })
    }

    fn word(&self, address: *const u8) -> Option<u64> {
        let mut word = 0u64;
        // SAFETY: a bad address makes `write` fail with EFAULT; eight bytes of a good one come back into `word`.
        unsafe {
            (system::write(self.ends[1], address.cast(), 8) == 8
                && system::read(self.ends[0], (&raw mut word).cast(), 8) == 8)
                .then_some(word)
        }
    }
}

impl Drop for CarefulReader {
    fn drop(&mut self) {
        // SAFETY: the two descriptors are this reader's own.
        unsafe {
            system::close(self.ends[0]);
            system::close(self.ends[1]);
        }
    }
}

fn direct(address: *const u8) -> u64 {
    // SAFETY: only used on a thread's state after the layout was checked.
    unsafe { word(address) }
}

/// # Safety
/// Eight readable bytes.
unsafe fn word(address: *const u8) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { address.cast::<u64>().read_unaligned() }
}

/// # Safety
/// Four readable bytes.
unsafe fn half(address: *const u8) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { address.cast::<u32>().read_unaligned() }
}
