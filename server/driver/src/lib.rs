//! Asks the CUDA driver what there is. It is loaded at run time, and its absence is a value like any other.
//!
//! No context is made: nothing is allocated on a GPU, and one that another program holds for itself answers as well.
//! Loading the driver runs its code in this process and cannot be undone, so callers do it in a process of its own.

use std::ffi::c_int;
use std::panic;

use cublame_core::advice::Capability;
use cublame_core::doctor::{Gpu, Library};
use cudarc::driver::DriverError;
use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

/// What a program that is started as this process was finds.
pub fn look() -> Library {
    // cudarc panics at the first entry point that the library lacks; the hook would print that.
    panic::set_hook(Box::new(|_| {}));
    let looked = panic::catch_unwind(present);
    drop(panic::take_hook());
    match looked {
        Ok(Ok(library)) => library,
        Ok(Err(DriverError(error))) => Library::Refused { code: error as u32, name: format!("{error:?}") },
        Err(said) => Library::Incomplete { what: words(&*said) },
    }
}

#[expect(unsafe_code, reason = "cudarc leaves the driver's plain queries unsafe")]
fn present() -> Result<Library, DriverError> {
    // SAFETY: looking for the library runs its initialisers, as any program that uses the GPU does.
    if !unsafe { sys::is_culib_present() } {
        return Ok(Library::Absent);
    }
    result::init()?;
    let mut version: c_int = 0;
    // SAFETY: the driver writes one int.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    let version = version.unsigned_abs();
    let gpus = (0..device::get_count()?).map(gpu).collect::<Result<_, _>>()?;
    Ok(Library::Works { cuda: (version / 1000, version % 1000 / 10), gpus })
}

#[expect(unsafe_code, reason = "cudarc leaves the driver's plain queries unsafe")]
fn gpu(ordinal: c_int) -> Result<Gpu, DriverError> {
    let device = device::get(ordinal)?;
    // SAFETY: the device comes from the driver itself.
    let attribute = |which| unsafe { device::get_attribute(device, which) }.map(i32::unsigned_abs);
    let capability = Capability {
        major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    };
    Ok(Gpu {
        name: device::get_name(device)?,
        capability,
        // SAFETY: as above.
        memory: unsafe { device::total_mem(device) }? as u64,
        exclusive: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)? == EXCLUSIVE_PROCESS,
    })
}

/// CU_COMPUTEMODE_EXCLUSIVE_PROCESS of cuda.h.
const EXCLUSIVE_PROCESS: u32 = 3;

/// `Missing symbol cuInit: ...: undefined symbol: cuInit` without what the loader adds.
fn words(said: &(dyn std::any::Any + Send)) -> String {
    let text = said.downcast_ref::<String>().map(String::as_str).or_else(|| said.downcast_ref::<&str>().copied());
    let text = text.unwrap_or_default();
    match text.strip_prefix("Missing symbol ").and_then(|rest| rest.split_once(':')) {
        Some((symbol, _)) => symbol.to_owned(),
        None => text.lines().next().unwrap_or_default().to_owned(),
    }
}
