//! The tracer: a library that is preloaded into the traced process and writes down what it asks of the GPU.
//!
//! It is entered in two ways. It exports `dlsym`, so that everything that looks the driver up gets our entry points, and the
//! entry points themselves, for what is linked with the driver; both CUDA runtimes, Triton, CuPy and JAX come through one of
//! them. Each entry point notes the call in the journal ([`cublame_journal`]) before the driver is called, and its result
//! afterwards. [`memory`] says where the journal lives, [`python`] reads the frames, [`recorder`] decides what is written,
//! [`driver`] lists the entry points.
//!
//! It never harms: without CUBLAME_JOURNAL, or before the driver is used, it hands everything through; it holds no lock
//! while the driver runs, allocates nothing on the way of a launch once warm, and after a panic of its own it is off for good.

mod driver;
mod recorder;

mod marks;
mod memory;
mod python;
mod system;

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The C library's `dlsym`, once it was found. The assembly below jumps through it.
static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);

/// `dlsym` of dlfcn.h. What is not ours is answered by the C library's own, which must see the caller's return address
/// (`RTLD_NEXT` means "after the object of the caller"); hence a jump and not a call.
///
/// # Safety
/// As for `dlsym`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {answer}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "cmp rax, -1",
        "je 3f",
        "test rax, rax",
        "jne 2f",
        "jmp qword ptr [rip + {real}]",
        "3:",
        "xor eax, eax",
        "2:",
        "ret",
        answer = sym answer,
        real = sym REAL_DLSYM,
    )
}

/// See above.
///
/// # Safety
/// As for `dlsym`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {answer}",
        "mov x9, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cmn x9, #1",
        "b.eq 3f",
        "cbnz x9, 2f",
        "adrp x9, {real}",
        "ldr x9, [x9, :lo12:{real}]",
        "br x9",
        "3:",
        "mov x0, #0",
        "ret",
        "2:",
        "mov x0, x9",
        "ret",
        answer = sym answer,
        real = sym REAL_DLSYM,
    )
}

/// What the C library's `dlsym` is asked.
const ASK_THE_C_LIBRARY: usize = 0;
/// There is no such symbol.
const ABSENT: usize = usize::MAX;

/// The address that `dlsym` answers with, or one of the two constants above.
unsafe extern "C" fn answer(handle: *mut c_void, symbol: *const c_char) -> usize {
    real_dlsym();
    // SAFETY: the caller of `dlsym` passes a text.
    let name = unsafe { CStr::from_ptr(symbol) }.to_bytes();
    if !name.starts_with(b"cu") || handle == system::RTLD_NEXT || !recorder::wanted() {
        return ASK_THE_C_LIBRARY;
    }
    catch_unwind(AssertUnwindSafe(|| driver::answer(handle, name))).unwrap_or_else(|_| {
        recorder::stop();
        ASK_THE_C_LIBRARY
    })
}

fn real_dlsym() -> Option<system::Dlsym> {
    match REAL_DLSYM.load(Relaxed) {
        0 => {
            let real = system::real_dlsym()?;
            REAL_DLSYM.store(real as usize, Relaxed);
            Some(real)
        }
        // SAFETY: only the function itself was stored.
        real => Some(unsafe { std::mem::transmute::<usize, system::Dlsym>(real) }),
    }
}

/// A symbol of the process, of any library that it loaded globally.
fn look_up(symbol: &CStr) -> Option<*mut c_void> {
    look_up_in(system::RTLD_DEFAULT, symbol)
}

/// A symbol of a library, past our own `dlsym`.
fn look_up_in(library: *mut c_void, symbol: &CStr) -> Option<*mut c_void> {
    let real = real_dlsym()?;
    // SAFETY: the name is a text; the handle is the caller's.
    let found = unsafe { real(library, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}
