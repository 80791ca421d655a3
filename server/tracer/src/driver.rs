//! The driver's entry points that are wrapped, and how they reach the program.
//!
//! Signatures and versions are those of cuda.h and cudaTypedefs.h, CUDA 10.0 to 13.0. The rows are named by the exported
//! symbol; `cuGetProcAddress` names a base, a version and flags, and is answered by address, so that no caller ever gets a
//! wrapper of another signature.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use cublame_journal::{GraphKind, Kind};

use crate::recorder::{self, Stream, What, text};
use crate::{look_up_in, system};

type Pointer = *mut c_void;

/// One wrapped entry point.
struct Row {
    /// The exported symbol.
    name: &'static CStr,
    wrapper: Pointer,
    /// The driver's own, 0 before the driver was met or when it has none.
    real: AtomicUsize,
}

// SAFETY: the wrapper is the address of a function.
unsafe impl Sync for Row {}

impl Row {
    const fn new(name: &'static str, wrapper: Pointer) -> Row {
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Row { name, wrapper, real: AtomicUsize::new(0) },
            Err(_) => Row { name: c"", wrapper, real: AtomicUsize::new(0) },
        }
    }
}

/// CUDA_ERROR_NOT_FOUND, for an entry point that this driver does not have.
const NOT_FOUND: u32 = 500;

/// Declares the wrappers and their table. Each line: exported symbol, arguments, what the call asks for.
macro_rules! entries {
    (
        by hand: $( $by_hand:ident ),*;
        $( $name:ident ( $($argument:ident : $type:ty),* ) => $what:expr; )*
    ) => {
        #[derive(Clone, Copy)]
        #[expect(non_camel_case_types, reason = "the rows have the names of the driver's entry points")]
        enum Entry { $($name,)* $($by_hand),* }

        static ROWS: [Row; [$(stringify!($name),)* $(stringify!($by_hand)),*].len()] = [
            $(Row::new(concat!(stringify!($name), "\0"), $name as Pointer),)*
            $(Row::new(concat!(stringify!($by_hand), "\0"), $by_hand as Pointer)),*
        ];

        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                let real = real(Entry::$name);
                if real == 0 {
                    return NOT_FOUND;
                }
                // SAFETY: the driver's symbol of this name has this signature.
                let real = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> u32>(real) };
                let what = $what;
                let ticket = recorder::before(&what);
                // SAFETY: the caller's own arguments.
                let code = unsafe { real($($argument),*) };
                recorder::after(ROWS[Entry::$name as usize].name, &what, ticket, code);
                code
            }
        )*
    };
}

entries! {
    // The driver's own look-up.
    by hand: cuGetProcAddress, cuGetProcAddress_v2;

    // Launches.
    cuLaunchKernel(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer, e: Pointer)
        => launch(f, [x, y, z], [a, b, c], legacy(s), Kind::Kernel);
    cuLaunchKernel_ptsz(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer, e: Pointer)
        => launch(f, [x, y, z], [a, b, c], per_thread(s), Kind::Kernel);
    cuLaunchCooperativeKernel(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer)
        => launch(f, [x, y, z], [a, b, c], legacy(s), Kind::Cooperative);
    cuLaunchCooperativeKernel_ptsz(f: Pointer, x: u32, y: u32, z: u32, a: u32, b: u32, c: u32, shared: u32, s: Pointer, p: Pointer)
        => launch(f, [x, y, z], [a, b, c], per_thread(s), Kind::Cooperative);
    cuLaunchKernelEx(config: *const LaunchConfig, f: Pointer, p: Pointer, e: Pointer) => launch_ex(config, f, false);
    cuLaunchKernelEx_ptsz(config: *const LaunchConfig, f: Pointer, p: Pointer, e: Pointer) => launch_ex(config, f, true);
    cuGraphLaunch(exec: Pointer, s: Pointer) => work(Kind::Graph, legacy(s), exec);
    cuGraphLaunch_ptsz(exec: Pointer, s: Pointer) => work(Kind::Graph, per_thread(s), exec);
    cuLaunchHostFunc(s: Pointer, f: Pointer, u: Pointer) => work(Kind::Other, legacy(s), NONE);
    cuLaunchHostFunc_ptsz(s: Pointer, f: Pointer, u: Pointer) => work(Kind::Other, per_thread(s), NONE);

    // Forms of before CUDA 4.0, which some wrappers still call.
    cuLaunch(f: Pointer) => launch(f, [1, 1, 1], [0; 3], legacy(NONE), Kind::Kernel);
    cuLaunchGrid(f: Pointer, w: c_int, h: c_int) => launch(f, [w as u32, h as u32, 1], [0; 3], legacy(NONE), Kind::Kernel);
    cuLaunchGridAsync(f: Pointer, w: c_int, h: c_int, s: Pointer) => launch(f, [w as u32, h as u32, 1], [0; 3], legacy(s), Kind::Kernel);
    // Launches on several devices at once: known to have been there, and no more.
    cuLaunchCooperativeKernelMultiDevice(list: Pointer, n: u32, f: u32) => What::Unseen;

    // Copies and sets in a stream.
    cuMemcpyAsync(d: u64, f: u64, n: usize, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpyAsync_ptsz(d: u64, f: u64, n: usize, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpyHtoDAsync_v2(d: u64, f: Pointer, n: usize, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpyHtoDAsync_v2_ptsz(d: u64, f: Pointer, n: usize, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpyDtoHAsync_v2(d: Pointer, f: u64, n: usize, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpyDtoHAsync_v2_ptsz(d: Pointer, f: u64, n: usize, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpyDtoDAsync_v2(d: u64, f: u64, n: usize, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpyDtoDAsync_v2_ptsz(d: u64, f: u64, n: usize, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpyPeerAsync(d: u64, dc: Pointer, f: u64, fc: Pointer, n: usize, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpyPeerAsync_ptsz(d: u64, dc: Pointer, f: u64, fc: Pointer, n: usize, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpy2DAsync_v2(c: Pointer, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpy2DAsync_v2_ptsz(c: Pointer, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpy3DAsync_v2(c: Pointer, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpy3DAsync_v2_ptsz(c: Pointer, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemcpy3DPeerAsync(c: Pointer, s: Pointer) => work(Kind::Memcpy, legacy(s), NONE);
    cuMemcpy3DPeerAsync_ptsz(c: Pointer, s: Pointer) => work(Kind::Memcpy, per_thread(s), NONE);
    cuMemsetD8Async(d: u64, v: u8, n: usize, s: Pointer) => work(Kind::Memset, legacy(s), NONE);
    cuMemsetD8Async_ptsz(d: u64, v: u8, n: usize, s: Pointer) => work(Kind::Memset, per_thread(s), NONE);
    cuMemsetD16Async(d: u64, v: u16, n: usize, s: Pointer) => work(Kind::Memset, legacy(s), NONE);
    cuMemsetD16Async_ptsz(d: u64, v: u16, n: usize, s: Pointer) => work(Kind::Memset, per_thread(s), NONE);
    cuMemsetD32Async(d: u64, v: u32, n: usize, s: Pointer) => work(Kind::Memset, legacy(s), NONE);
    cuMemsetD32Async_ptsz(d: u64, v: u32, n: usize, s: Pointer) => work(Kind::Memset, per_thread(s), NONE);
    cuMemsetD2D8Async(d: u64, pitch: usize, v: u8, w: usize, h: usize, s: Pointer) => work(Kind::Memset, legacy(s), NONE);
    cuMemsetD2D8Async_ptsz(d: u64, pitch: usize, v: u8, w: usize, h: usize, s: Pointer) => work(Kind::Memset, per_thread(s), NONE);
    cuMemsetD2D16Async(d: u64, pitch: usize, v: u16, w: usize, h: usize, s: Pointer) => work(Kind::Memset, legacy(s), NONE);
    cuMemsetD2D16Async_ptsz(d: u64, pitch: usize, v: u16, w: usize, h: usize, s: Pointer) => work(Kind::Memset, per_thread(s), NONE);
    cuMemsetD2D32Async(d: u64, pitch: usize, v: u32, w: usize, h: usize, s: Pointer) => work(Kind::Memset, legacy(s), NONE);
    cuMemsetD2D32Async_ptsz(d: u64, pitch: usize, v: u32, w: usize, h: usize, s: Pointer) => work(Kind::Memset, per_thread(s), NONE);

    // Copies without a stream. Only one to the host is done when it returns (CUDA driver API, "API synchronization behavior").
    cuMemcpyDtoH_v2(d: Pointer, f: u64, n: usize) => work(Kind::BlockingCopy, legacy(NONE), NONE);
    cuMemcpyDtoH_v2_ptds(d: Pointer, f: u64, n: usize) => work(Kind::BlockingCopy, per_thread(NONE), NONE);
    cuMemcpyHtoD_v2(d: u64, f: Pointer, n: usize) => work(Kind::Memcpy, legacy(NONE), NONE);
    cuMemcpyHtoD_v2_ptds(d: u64, f: Pointer, n: usize) => work(Kind::Memcpy, per_thread(NONE), NONE);
    cuMemcpyDtoD_v2(d: u64, f: u64, n: usize) => work(Kind::Memcpy, legacy(NONE), NONE);
    cuMemcpyDtoD_v2_ptds(d: u64, f: u64, n: usize) => work(Kind::Memcpy, per_thread(NONE), NONE);
    cuMemcpy(d: u64, f: u64, n: usize) => work(Kind::Memcpy, legacy(NONE), NONE);
    cuMemcpy_ptds(d: u64, f: u64, n: usize) => work(Kind::Memcpy, per_thread(NONE), NONE);
    cuMemsetD8_v2(d: u64, v: u8, n: usize) => work(Kind::Memset, legacy(NONE), NONE);
    cuMemsetD32_v2(d: u64, v: u32, n: usize) => work(Kind::Memset, legacy(NONE), NONE);

    // Synchronisation, and questions that prove as much when they are answered with yes.
    cuStreamSynchronize(s: Pointer) => What::SyncStream(legacy(s));
    cuStreamSynchronize_ptsz(s: Pointer) => What::SyncStream(per_thread(s));
    cuStreamQuery(s: Pointer) => What::AskStream(legacy(s));
    cuStreamQuery_ptsz(s: Pointer) => What::AskStream(per_thread(s));
    cuEventSynchronize(e: Pointer) => What::SyncEvent(e as u64);
    cuEventQuery(e: Pointer) => What::AskEvent(e as u64);
    cuCtxSynchronize() => What::SyncContext(0);
    cuCtxSynchronize_v2(c: Pointer) => What::SyncContext(c as u64);
    cuEventRecord(e: Pointer, s: Pointer) => record(e, legacy(s), 0);
    cuEventRecord_ptsz(e: Pointer, s: Pointer) => record(e, per_thread(s), 0);
    cuEventRecordWithFlags(e: Pointer, s: Pointer, f: u32) => record(e, legacy(s), f);
    cuEventRecordWithFlags_ptsz(e: Pointer, s: Pointer, f: u32) => record(e, per_thread(s), f);
    cuStreamWaitEvent(s: Pointer, e: Pointer, f: u32) => What::WaitEvent { event: e as u64, stream: legacy(s) };
    cuStreamWaitEvent_ptsz(s: Pointer, e: Pointer, f: u32) => What::WaitEvent { event: e as u64, stream: per_thread(s) };

    // Frees, in order with the work.
    cuMemFree_v2(p: u64) => work(Kind::Free, legacy(NONE), NONE);
    cuMemFreeAsync(p: u64, s: Pointer) => work(Kind::Free, legacy(s), NONE);
    cuMemFreeAsync_ptsz(p: u64, s: Pointer) => work(Kind::Free, per_thread(s), NONE);

    // Graphs. The older and newer forms differ in their last arguments only, which are handed through.
    cuStreamBeginCapture(s: Pointer) => What::BeginCapture;
    cuStreamBeginCapture_ptsz(s: Pointer) => What::BeginCapture;
    cuStreamBeginCapture_v2(s: Pointer, mode: c_int) => What::BeginCapture;
    cuStreamBeginCapture_v2_ptsz(s: Pointer, mode: c_int) => What::BeginCapture;
    cuStreamBeginCaptureToGraph(s: Pointer, g: Pointer, d: Pointer, e: Pointer, n: usize, mode: c_int) => What::BeginCapture;
    cuStreamBeginCaptureToGraph_ptsz(s: Pointer, g: Pointer, d: Pointer, e: Pointer, n: usize, mode: c_int) => What::BeginCapture;
    cuStreamEndCapture(s: Pointer, g: *mut u64) => What::EndCapture { stream: legacy(s), graph: g };
    cuStreamEndCapture_ptsz(s: Pointer, g: *mut u64) => What::EndCapture { stream: per_thread(s), graph: g };
    cuGraphInstantiate(exec: *mut u64, g: Pointer, n: Pointer, log: Pointer, size: usize) => made(GraphKind::Instantiated, g, exec);
    cuGraphInstantiate_v2(exec: *mut u64, g: Pointer, n: Pointer, log: Pointer, size: usize) => made(GraphKind::Instantiated, g, exec);
    cuGraphInstantiateWithFlags(exec: *mut u64, g: Pointer, f: u64) => made(GraphKind::Instantiated, g, exec);
    cuGraphInstantiateWithParams(exec: *mut u64, g: Pointer, p: Pointer) => made(GraphKind::Instantiated, g, exec);
    cuGraphInstantiateWithParams_ptsz(exec: *mut u64, g: Pointer, p: Pointer) => made(GraphKind::Instantiated, g, exec);
    cuGraphExecUpdate(exec: Pointer, g: Pointer, n: Pointer, r: Pointer) => known(GraphKind::Updated, g, exec);
    cuGraphExecUpdate_v2(exec: Pointer, g: Pointer, r: Pointer) => known(GraphKind::Updated, g, exec);
    cuGraphClone(clone: *mut u64, g: Pointer) => made(GraphKind::Cloned, g, clone);
    cuGraphAddChildGraphNode(node: Pointer, g: Pointer, d: Pointer, n: usize, child: Pointer) => known(GraphKind::Child, g, child);
    cuGraphAddKernelNode(node: Pointer, g: Pointer, d: Pointer, n: usize, p: *const KernelNode) => add_kernel(g, p);
    cuGraphAddKernelNode_v2(node: Pointer, g: Pointer, d: Pointer, n: usize, p: *const KernelNode) => add_kernel(g, p);
    cuGraphAddMemcpyNode(node: Pointer, g: Pointer, d: Pointer, n: usize, p: Pointer, c: Pointer) => known(GraphKind::AddedOther, g, NONE);
    cuGraphAddMemsetNode(node: Pointer, g: Pointer, d: Pointer, n: usize, p: Pointer, c: Pointer) => known(GraphKind::AddedOther, g, NONE);
    cuGraphAddEventRecordNode(node: Pointer, g: Pointer, d: Pointer, n: usize, e: Pointer) => known(GraphKind::Event, e, NONE);
    cuGraphExecEventRecordNodeSetEvent(exec: Pointer, node: Pointer, e: Pointer) => known(GraphKind::Event, e, NONE);

    cuGraphKernelNodeSetParams(node: Pointer, p: Pointer) => known(GraphKind::Changed, NONE, NONE);
    cuGraphKernelNodeSetParams_v2(node: Pointer, p: Pointer) => known(GraphKind::Changed, NONE, NONE);
    cuGraphNodeSetParams(node: Pointer, p: Pointer) => known(GraphKind::Changed, NONE, NONE);
    cuGraphExecKernelNodeSetParams(exec: Pointer, node: Pointer, p: Pointer) => known(GraphKind::Changed, exec, NONE);
    cuGraphExecKernelNodeSetParams_v2(exec: Pointer, node: Pointer, p: Pointer) => known(GraphKind::Changed, exec, NONE);
    cuGraphExecNodeSetParams(exec: Pointer, node: Pointer, p: Pointer) => known(GraphKind::Changed, exec, NONE);
    cuGraphExecChildGraphNodeSetParams(exec: Pointer, node: Pointer, g: Pointer) => known(GraphKind::Changed, exec, NONE);

    // What takes the memory of the markers with it.
    cuCtxDestroy(c: Pointer) => What::DestroyContext;
    cuCtxDestroy_v2(c: Pointer) => What::DestroyContext;
    cuCtxDetach(c: Pointer) => What::DestroyContext;
    cuDevicePrimaryCtxRelease(d: c_int) => What::DestroyContext;
    cuDevicePrimaryCtxRelease_v2(d: c_int) => What::DestroyContext;
    cuDevicePrimaryCtxReset(d: c_int) => What::DestroyContext;
    cuDevicePrimaryCtxReset_v2(d: c_int) => What::DestroyContext;

    // What changes the meaning of a handle.
    cuStreamDestroy_v2(s: Pointer) => What::DestroyStream(s as u64);
    cuModuleUnload(m: Pointer) => What::Unload;
    cuLibraryUnload(l: Pointer) => What::Unload;

    // Calls that are often the first to report a fault of earlier work.
    cuMemAlloc_v2(p: Pointer, n: usize) => What::Watch;
    cuMemAllocAsync(p: Pointer, n: usize, s: Pointer) => What::Watch;
    cuMemAllocAsync_ptsz(p: Pointer, n: usize, s: Pointer) => What::Watch;
    cuMemHostAlloc(p: Pointer, n: usize, f: u32) => What::Watch;
    cuMemFreeHost(p: Pointer) => What::Watch;
    cuMemGetInfo_v2(f: Pointer, t: Pointer) => What::Watch;
    cuStreamCreate(s: Pointer, f: u32) => What::Watch;
    cuStreamCreateWithPriority(s: Pointer, f: u32, p: c_int) => What::Watch;
    cuEventCreate(e: Pointer, f: u32) => What::Watch;
    cuEventElapsedTime(t: Pointer, a: Pointer, b: Pointer) => What::Watch;
    cuModuleLoadData(m: Pointer, i: Pointer) => What::Watch;
    cuModuleLoadDataEx(m: Pointer, i: Pointer, n: u32, o: Pointer, v: Pointer) => What::Watch;
    cuLibraryLoadData(l: Pointer, c: Pointer, jo: Pointer, jv: Pointer, jn: u32, lo: Pointer, lv: Pointer, ln: u32) => What::Watch;
    cuStreamIsCapturing(s: Pointer, status: Pointer) => What::Watch;
    cuStreamIsCapturing_ptsz(s: Pointer, status: Pointer) => What::Watch;

}

/// `cuGetProcAddress` of CUDA 11.3 to 11.8.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress(name: *const c_char, out: *mut Pointer, version: c_int, flags: u64) -> u32 {
    type Real = unsafe extern "C" fn(*const c_char, *mut Pointer, c_int, u64) -> u32;
    let real = real(Entry::cuGetProcAddress);
    if real == 0 {
        return NOT_FOUND;
    }
    // SAFETY: the driver's symbol of this name has this signature, and the arguments are the caller's.
    let code = unsafe { std::mem::transmute::<usize, Real>(real)(name, out, version, flags) };
    // SAFETY: as above.
    unsafe { wrap_found(code, name, out) };
    code
}

/// `cuGetProcAddress` since CUDA 12.0.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    out: *mut Pointer,
    version: c_int,
    flags: u64,
    status: Pointer,
) -> u32 {
    type Real = unsafe extern "C" fn(*const c_char, *mut Pointer, c_int, u64, Pointer) -> u32;
    let real = real(Entry::cuGetProcAddress_v2);
    if real == 0 {
        return NOT_FOUND;
    }
    // SAFETY: the driver's symbol of this name has this signature, and the arguments are the caller's.
    let code = unsafe { std::mem::transmute::<usize, Real>(real)(name, out, version, flags, status) };
    // SAFETY: as above.
    unsafe { wrap_found(code, name, out) };
    code
}

/// Replaces what the driver found by our wrapper, if it is one of ours.
///
/// # Safety
/// The arguments of a call of `cuGetProcAddress` that returned `code`.
unsafe fn wrap_found(code: u32, name: *const c_char, out: *mut Pointer) {
    if code != 0 || out.is_null() || !recorder::wanted() {
        return;
    }
    // SAFETY: the call succeeded, so it read the name and wrote the address.
    let (name, found) = unsafe { (text(name), *out) };
    if let Some(row) = by_address(name, found) {
        // SAFETY: as above.
        unsafe { *out = row.wrapper };
    }
}

/// The row whose entry point lies at `found`. The address decides, so that the wrapper has the signature that the caller
/// asked for; the name only keeps other symbols at the same address apart.
fn by_address(base: &[u8], found: Pointer) -> Option<&'static Row> {
    let rows = ROWS.iter().filter(|row| row.name.to_bytes().starts_with(base));
    rows.into_iter().find(|row| row.real.load(Acquire) == found as usize && !found.is_null())
}

/// What `dlsym` answers for a name that begins with "cu".
pub fn answer(handle: Pointer, name: &[u8]) -> usize {
    let Some(row) = ROWS.iter().find(|row| row.name.to_bytes() == name) else { return crate::ASK_THE_C_LIBRARY };
    recorder::meet_interpreter();
    let loaded = meet_driver(Some(handle));
    let found = look_up_in(handle, row.name).unwrap_or(std::ptr::null_mut());
    if found.is_null() {
        crate::ASK_THE_C_LIBRARY
    } else if found == row.wrapper {
        // Our own export was found, in the global scope. Without a driver there is no such symbol, unless a library
        // after this one has it; asking for that also leaves the message that `dlerror` is asked for.
        let has_driver = loaded && row.real.load(Acquire) != 0;
        if has_driver {
            found as usize
        } else {
            look_up_in(system::RTLD_NEXT, row.name).map_or(crate::ABSENT, |next| next as usize)
        }
    } else if found as usize == row.real.load(Acquire) {
        row.wrapper as usize
    } else {
        // Somebody else's entry point: another library that wraps the driver. It comes to us when it calls the driver.
        crate::ASK_THE_C_LIBRARY
    }
}

/// The driver's own entry point, 0 where it has none.
fn real(entry: Entry) -> usize {
    let row = &ROWS[entry as usize];
    match row.real.load(Acquire) {
        0 => {
            meet_driver(None);
            row.real.load(Acquire)
        }
        real => real,
    }
}

/// Looks up the driver's own entry points, once, if it is loaded. `handle` is where the program found the driver.
fn meet_driver(handle: Option<Pointer>) -> bool {
    static LIBRARY: AtomicUsize = AtomicUsize::new(0);
    if LIBRARY.load(Acquire) != 0 {
        return true;
    }
    // SAFETY: a name; the library is not loaded by this, only found.
    let mut library = unsafe { system::dlopen(c"libcuda.so.1".as_ptr(), system::RTLD_LAZY | system::RTLD_NOLOAD) };
    if library.is_null() {
        library = handle.unwrap_or(system::RTLD_DEFAULT);
    }
    let own = |found: Pointer| ROWS.iter().any(|row| row.wrapper == found);
    if library == system::RTLD_DEFAULT || look_up_in(library, c"cuInit").is_none() {
        return false;
    }
    for row in &ROWS {
        if let Some(found) = look_up_in(library, row.name).filter(|found| !own(*found)) {
            row.real.store(found as usize, Release);
        }
    }
    LIBRARY.store(library as usize, Release);
    DRIVER.store(library as usize, Release);
    true
}

/// The handle of the driver's library, for what the recorder itself asks.
static DRIVER: AtomicUsize = AtomicUsize::new(0);

/// The driver's functions that the recorder itself calls. Only the writing of a marker touches the GPU.
pub struct Helpers {
    context: Option<unsafe extern "C" fn(*mut u64) -> u32>,
    function_name: Option<unsafe extern "C" fn(*mut *const c_char, u64) -> u32>,
    kernel_name: Option<unsafe extern "C" fn(*mut *const c_char, u64) -> u32>,
    capture: Option<CaptureInfo>,
    nodes: Option<unsafe extern "C" fn(u64, Pointer, *mut usize) -> u32>,
    capture_mode: Option<unsafe extern "C" fn(*mut c_int) -> u32>,
    register: Option<unsafe extern "C" fn(usize, usize, u32) -> u32>,
    device_pointer: Option<unsafe extern "C" fn(*mut u64, usize, u32) -> u32>,
    write_value: Option<unsafe extern "C" fn(u64, u64, u64, u32) -> u32>,
}

/// The longest form of `cuStreamGetCaptureInfo` (12.3). The older ones take the first three or six of its arguments, and
/// the rest may be null.
type CaptureInfo = unsafe extern "C" fn(u64, *mut u32, *mut u64, Pointer, Pointer, Pointer, Pointer) -> u32;

/// CU_STREAM_CAPTURE_MODE_RELAXED.
const RELAXED: c_int = 2;
/// CU_MEMHOSTREGISTER_PORTABLE and _DEVICEMAP.
const PORTABLE: u32 = 1;
const DEVICE_MAPPED: u32 = 2;

/// CU_STREAM_CAPTURE_STATUS_ACTIVE.
const CAPTURING: u32 = 1;

impl Helpers {
    pub fn find() -> Helpers {
        let library = DRIVER.load(Relaxed) as Pointer;
        let find = |name: &CStr| if library.is_null() { None } else { look_up_in(library, name) };
        let capture = find(c"cuStreamGetCaptureInfo_v3")
            .or_else(|| find(c"cuStreamGetCaptureInfo_v2"))
            .or_else(|| find(c"cuStreamGetCaptureInfo"));
        // SAFETY: the signatures are those of cuda.h.
        unsafe {
            Helpers {
                context: find(c"cuCtxGetCurrent").map(|f| std::mem::transmute(f)),
                function_name: find(c"cuFuncGetName").map(|f| std::mem::transmute(f)),
                kernel_name: find(c"cuKernelGetName").map(|f| std::mem::transmute(f)),
                capture: capture.map(|f| std::mem::transmute(f)),
                nodes: find(c"cuGraphGetNodes").map(|f| std::mem::transmute(f)),
                capture_mode: find(c"cuThreadExchangeStreamCaptureMode").map(|f| std::mem::transmute(f)),
                register: find(c"cuMemHostRegister_v2").map(|f| std::mem::transmute(f)),
                device_pointer: find(c"cuMemHostGetDevicePointer_v2").map(|f| std::mem::transmute(f)),
                write_value: find(c"cuStreamWriteValue64_v2").map(|f| std::mem::transmute(f)),
            }
        }
    }

    /// The calling thread's current context.
    pub fn current_context(&self) -> u64 {
        let mut context = 0;
        if let Some(ask) = self.context {
            // SAFETY: the call writes a handle.
            unsafe { ask(&raw mut context) };
        }
        context
    }

    /// The mangled name of a kernel that was just launched, so its handle is good. `?` where the driver cannot say.
    pub fn name_of(&self, function: u64) -> &'static [u8] {
        for ask in [self.function_name, self.kernel_name].into_iter().flatten() {
            let mut name = std::ptr::null();
            // SAFETY: the call writes a text that lives as long as the module, and it is copied at once.
            if unsafe { ask(&raw mut name, function) } == 0 && !name.is_null() {
                // SAFETY: as above.
                return unsafe { text(name) };
            }
        }
        b"?"
    }

    /// The capture that a stream takes part in.
    pub fn capture_of(&self, stream: u64) -> Option<u64> {
        let null = std::ptr::null_mut();
        let (mut status, mut id) = (0, 0);
        // SAFETY: a stream that the program passes to the driver itself in this very call.
        let code = unsafe { self.capture?(stream, &raw mut status, &raw mut id, null, null, null, null) };
        (code == 0 && status == CAPTURING).then_some(id)
    }

    /// Gives memory of this process to the GPU: its address there. The pages that it touches are pinned.
    pub fn share(&self, base: usize, bytes: usize) -> Option<u64> {
        const PAGE: usize = 4096;
        let first = base / PAGE * PAGE;
        let length = (base + bytes).next_multiple_of(PAGE) - first;
        // Another thread may be capturing; a relaxed mode of this thread keeps the call out of its way.
        let mut mode = RELAXED;
        // SAFETY: exchanges the mode of the calling thread.
        let exchanged = unsafe { self.capture_mode?(&raw mut mode) } == 0;
        let mut device = 0;
        // SAFETY: the memory is mapped and never unmapped; the second call writes an address.
        let code = unsafe {
            match self.register?(first, length, PORTABLE | DEVICE_MAPPED) {
                0 => self.device_pointer?(&raw mut device, base, 0),
                code => code,
            }
        };
        if exchanged {
            // SAFETY: as above.
            unsafe { self.capture_mode?(&raw mut mode) };
        }
        (code == 0).then_some(device)
    }

    /// Asks the GPU to write a value once what is in the stream is done. Not in every driver: then it is not found.
    pub fn write_value(&self, stream: u64, place: u64, value: u64) -> u32 {
        // SAFETY: the program passes this stream to the driver right after, and the place was shared with the GPU.
        self.write_value.map_or(NOT_FOUND, |write| unsafe { write(stream, place, value, 0) })
    }

    pub fn count_nodes(&self, graph: u64) -> Option<u64> {
        let mut count = 0;
        // SAFETY: with no room for nodes the call writes their count only.
        (unsafe { self.nodes?(graph, std::ptr::null_mut(), &raw mut count) } == 0).then_some(count as u64)
    }
}

/// CUlaunchConfig of cuda.h.
#[repr(C)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: Pointer,
    attributes: *const LaunchAttribute,
    attribute_count: u32,
}

/// CUlaunchAttribute of cuda.h.
#[repr(C)]
struct LaunchAttribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// CU_LAUNCH_ATTRIBUTE_COOPERATIVE, _PROGRAMMATIC_STREAM_SERIALIZATION and _PROGRAMMATIC_EVENT.
const COOPERATIVE: u32 = 2;
const SERIALIZATION: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;

/// The beginning of CUDA_KERNEL_NODE_PARAMS, the same in both versions.
#[repr(C)]
struct KernelNode {
    function: Pointer,
    grid: [u32; 3],
    block: [u32; 3],
}

const NONE: Pointer = std::ptr::null_mut();

fn legacy(stream: Pointer) -> Stream {
    Stream { handle: stream as u64, per_thread: false }
}

fn per_thread(stream: Pointer) -> Stream {
    Stream { handle: stream as u64, per_thread: true }
}

fn launch(function: Pointer, grid: [u32; 3], block: [u32; 3], stream: Stream, kind: Kind) -> What {
    What::Launch { function: function as u64, grid, block, stream, kind, overlaps: false }
}

fn launch_ex(config: *const LaunchConfig, function: Pointer, per_thread: bool) -> What {
    // SAFETY: null, or the configuration that the driver is about to read.
    let Some(config) = (unsafe { config.as_ref() }) else { return What::Watch };
    let attributes = if config.attributes.is_null() {
        &[]
    } else {
        // SAFETY: the caller says how many there are.
        unsafe { std::slice::from_raw_parts(config.attributes, config.attribute_count as usize) }
    };
    let has = |id: u32| attributes.iter().any(|attribute| attribute.id == id && attribute.value[0] != 0);
    What::Launch {
        function: function as u64,
        grid: config.grid,
        block: config.block,
        stream: Stream { handle: config.stream as u64, per_thread },
        kind: if has(COOPERATIVE) { Kind::Cooperative } else { Kind::Kernel },
        overlaps: has(SERIALIZATION) || has(PROGRAMMATIC_EVENT),
    }
}

fn work(kind: Kind, stream: Stream, handle: Pointer) -> What {
    What::Work { kind, stream, handle: handle as u64 }
}

/// CU_EVENT_RECORD_EXTERNAL: in a capture, the event becomes a node of the graph.
fn record(event: Pointer, stream: Stream, flags: u32) -> What {
    What::RecordEvent { event: event as u64, stream, external: flags & 1 == 1 }
}

fn made(kind: GraphKind, first: Pointer, second_at: *const u64) -> What {
    What::Graph { kind, first: first as u64, second: 0, second_at }
}

fn known(kind: GraphKind, first: Pointer, second: Pointer) -> What {
    What::Graph { kind, first: first as u64, second: second as u64, second_at: std::ptr::null() }
}

fn add_kernel(graph: Pointer, node: *const KernelNode) -> What {
    // SAFETY: null, or the parameters that the driver is about to read.
    match unsafe { node.as_ref() } {
        Some(node) => {
            What::AddKernel { graph: graph as u64, function: node.function as u64, grid: node.grid, block: node.block }
        }
        None => What::Watch,
    }
}
