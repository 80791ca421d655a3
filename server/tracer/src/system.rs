//! The few calls of the C library that the standard library does not offer, declared by hand so that the tracer needs no
//! other crate. Types and constants are those of Linux on 64-bit machines.

use std::ffi::{c_char, c_int, c_long, c_void};

unsafe extern "C" {
    pub fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    pub fn mmap(
        address: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub fn posix_fallocate(file: c_int, offset: i64, bytes: i64) -> c_int;
    pub fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
    pub fn pipe2(ends: *mut c_int, flags: c_int) -> c_int;
    pub fn write(file: c_int, bytes: *const c_void, count: usize) -> isize;
    pub fn read(file: c_int, bytes: *mut c_void, count: usize) -> isize;
    pub fn close(file: c_int) -> c_int;
    fn fstatfs(file: c_int, system: *mut [u64; 32]) -> c_int;
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

pub const RTLD_LAZY: c_int = 1;
pub const RTLD_NOLOAD: c_int = 4;
/// The handle -1 of dlfcn.h.
pub const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
/// The handle 0 of dlfcn.h.
pub const RTLD_DEFAULT: *mut c_void = std::ptr::null_mut();
pub const O_CLOEXEC: c_int = 0o2_000_000;
pub const O_NONBLOCK: c_int = 0o4_000;
#[cfg(target_arch = "x86_64")]
pub const O_NOFOLLOW: c_int = 0o400_000;
#[cfg(target_arch = "aarch64")]
pub const O_NOFOLLOW: c_int = 0o100_000;
pub const PROT_READ_WRITE: c_int = 1 | 2;
pub const MAP_SHARED: c_int = 1;
const MAP_PRIVATE_ANONYMOUS: c_int = 2 | 0x20;
pub const MAP_POPULATE: c_int = 0x8000;
#[cfg(target_arch = "x86_64")]
const SYS_GETTID: c_long = 186;
#[cfg(target_arch = "aarch64")]
const SYS_GETTID: c_long = 178;

pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The C library's own `dlsym`. It moved from libdl to libc in glibc 2.34, under a new version; before, it had the
/// version of the first glibc of the machine.
pub fn real_dlsym() -> Option<Dlsym> {
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"] {
        // SAFETY: both names end in a zero byte; a symbol that is not there gives null.
        let found = unsafe { dlvsym(RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            // SAFETY: this is the function `dlsym` of dlfcn.h, which has this type.
            return Some(unsafe { std::mem::transmute::<*mut c_void, Dlsym>(found) });
        }
    }
    None
}

/// Pages of zeros of this process's own, never given back: the address.
pub fn zeroed_memory(bytes: usize) -> Option<usize> {
    // SAFETY: a new private mapping at an address of the kernel's choice.
    let base = unsafe { mmap(std::ptr::null_mut(), bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0) };
    (base.addr() != usize::MAX).then_some(base.addr())
}

/// Nanoseconds of CLOCK_REALTIME (0) or CLOCK_MONOTONIC (1).
pub fn nanoseconds(clock: c_int) -> u64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is a timespec that the call fills.
    unsafe { clock_gettime(clock, &raw mut time) };
    (time.seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(time.nanoseconds as u64)
}

/// What holds a file, and how many bytes an ordinary user may still use of it.
pub struct FileSystem {
    /// `f_type` of statfs(2).
    pub kind: u64,
    pub free: u64,
}

pub fn file_system(file: c_int) -> Option<FileSystem> {
    // `struct statfs` of 64-bit Linux has 15 words: f_type, f_bsize, f_blocks, f_bfree, f_bavail, ...
    let mut words = [0u64; 32];
    // SAFETY: there is room for more than the structure.
    let found = unsafe { fstatfs(file, &raw mut words) } == 0;
    found.then(|| FileSystem { kind: words[0], free: words[1].saturating_mul(words[4]) })
}

pub const REALTIME: c_int = 0;
pub const MONOTONIC: c_int = 1;

/// The number that the system gives to the calling thread.
pub fn thread_number() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { syscall(SYS_GETTID) as u32 }
}
