//! A stand-in for the driver: the entry points that the tests call, each of which does nothing and succeeds, except where
//! STANDIN says otherwise: `cuStreamSynchronize:2=710` makes its second call fail, and after a sticky error every call.
//! `arrive:3=1` makes the third completion marker and all later ones never arrive. Compiled by the tests as `libcuda.so.1`.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

type Pointer = *mut c_void;

static STICKY: AtomicU32 = AtomicU32::new(0);
static CAPTURING: AtomicU64 = AtomicU64::new(0);
static CALLS: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);

/// Counts a call and answers with its scripted result.
fn outcome(name: &str) -> u32 {
    let count = {
        let mut calls = CALLS.lock().unwrap();
        let count = calls.get_or_insert_default().entry(name.to_owned()).or_default();
        *count += 1;
        *count
    };
    if STICKY.load(SeqCst) != 0 {
        return STICKY.load(SeqCst);
    }
    let script = std::env::var("STANDIN").unwrap_or_default();
    for line in script.split(',').filter(|line| !line.is_empty()) {
        let (call, code) = line.split_once('=').unwrap();
        let (call, number) = call.split_once(':').unwrap();
        if call == name && number.parse() == Ok(count) {
            let code = code.parse().unwrap();
            if code >= 700 {
                STICKY.store(code, SeqCst);
            }
            return code;
        }
    }
    0
}

macro_rules! succeed {
    ($( $name:ident ( $($argument:ident : $type:ty),* ) )*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($(_: $type),*) -> u32 {
                outcome(stringify!($name))
            }
        )*
        fn exported(name: &str) -> Option<Pointer> {
            match name {
                $(stringify!($name) => Some($name as Pointer),)*
                _ => None,
            }
        }
    };
}

succeed! {
    cuInit(f: u32)
    cuLaunchKernel(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer, e: Pointer)
    cuLaunchKernel_ptsz(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer, e: Pointer)
    cuLaunchKernelEx(c: Pointer, f: Pointer, p: Pointer, e: Pointer)
    cuLaunchCooperativeKernel(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer)
    cuGraphLaunch(g: Pointer, s: Pointer)
    cuMemcpyHtoDAsync_v2(d: u64, f: Pointer, n: usize, s: Pointer)
    cuMemcpyDtoHAsync_v2(d: Pointer, f: u64, n: usize, s: Pointer)
    cuMemcpyDtoH_v2(d: Pointer, f: u64, n: usize)
    cuMemsetD8Async(d: u64, v: u8, n: usize, s: Pointer)
    cuStreamSynchronize(s: Pointer)
    cuStreamQuery(s: Pointer)
    cuEventRecord(e: Pointer, s: Pointer)
    cuEventSynchronize(e: Pointer)
    cuEventQuery(e: Pointer)
    cuStreamWaitEvent(s: Pointer, e: Pointer, f: u32)
    cuCtxSynchronize()
    cuMemFree_v2(p: u64)
    cuMemAlloc_v2(p: Pointer, n: usize)
    cuDevicePrimaryCtxReset_v2(d: c_int)
    cuStreamDestroy_v2(s: Pointer)
    cuModuleUnload(m: Pointer)
}

/// Memory that is given to the GPU is the same memory to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostRegister_v2(_: usize, _: usize, _: u32) -> u32 {
    outcome("cuMemHostRegister_v2")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(device: *mut u64, host: u64, _: u32) -> u32 {
    unsafe { *device = host };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(_: *mut c_int) -> u32 {
    0
}

/// A GPU that is done with everything at once, until it is dead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamWriteValue64_v2(_: Pointer, place: *mut u64, value: u64, _: u32) -> u32 {
    static DEAD: AtomicU32 = AtomicU32::new(0);
    DEAD.fetch_or(outcome("arrive"), SeqCst);
    let code = outcome("cuStreamWriteValue64_v2");
    if code == 0 && DEAD.load(SeqCst) == 0 {
        unsafe { AtomicU64::from_ptr(place) }.store(value, SeqCst);
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut u64) -> u32 {
    unsafe { *context = 0xc0 };
    0
}

/// The kernel of handle `0xNN` is called `kernel_NN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetName(name: *mut *const c_char, function: u64) -> u32 {
    let text = std::ffi::CString::new(format!("kernel_{function:x}")).unwrap();
    unsafe { *name = text.into_raw() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamBeginCapture_v2(_: Pointer, _: c_int) -> u32 {
    CAPTURING.fetch_add(1, SeqCst);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCaptureInfo_v2(_: Pointer, status: *mut u32, id: *mut u64) -> u32 {
    let captures = CAPTURING.load(SeqCst);
    unsafe {
        *status = u32::from(captures % 2 == 1);
        *id = captures;
    }
    0
}

/// The graph of capture `n` has the handle `0x1000 + n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(_: Pointer, graph: *mut u64) -> u32 {
    unsafe { *graph = 0x1000 + CAPTURING.fetch_add(1, SeqCst) };
    0
}

/// The executable of graph `g` is `g + 0x1000`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(exec: *mut u64, graph: u64, _: u64) -> u32 {
    unsafe { *exec = graph + 0x1000 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphGetNodes(_: u64, _: Pointer, count: *mut usize) -> u32 {
    unsafe { *count = 2 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    out: *mut Pointer,
    _: c_int,
    flags: u64,
    _: *mut u32,
) -> u32 {
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
    let per_thread = if flags & 2 == 2 { "_ptsz" } else { "" };
    let found = [format!("{name}_v2{per_thread}"), format!("{name}{per_thread}"), format!("{name}_v2"), name.to_owned()]
        .iter()
        .find_map(|name| match name.as_str() {
            "cuGetProcAddress_v2" => Some(cuGetProcAddress_v2 as Pointer),
            "cuStreamBeginCapture_v2" => Some(cuStreamBeginCapture_v2 as Pointer),
            "cuStreamEndCapture" => Some(cuStreamEndCapture as Pointer),
            "cuGraphInstantiateWithFlags" => Some(cuGraphInstantiateWithFlags as Pointer),
            name => exported(name),
        });
    unsafe { *out = found.unwrap_or(std::ptr::null_mut()) };
    if found.is_some() { 0 } else { 500 }
}
