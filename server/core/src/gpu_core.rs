//! The GPU core dump: which grid faulted, where in it, and with which arguments.
//!
//! The driver writes it when CUDA_ENABLE_COREDUMP_ON_EXCEPTION is set. It is an ELF file of machine 190; the section types
//! and the tables in them are those of `cudacoredump.h` of the CUDA toolkit (12.9, 13.0), the exceptions those of
//! `cudadebugger.h`. A table's rows may be longer than known here: newer drivers add fields at the end.

mod elf;
mod lines;

use std::collections::BTreeSet;

use elf::{Elf, Section};

/// What a core dump says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuCore {
    /// Every grid that was on the device, the faulted ones first.
    pub grids: Vec<Grid>,
    /// What the multiprocessors reported, each once; some dumps have these and no grid.
    pub exceptions: Vec<Exception>,
    /// `580.159`, where the dump tells.
    pub driver: Option<String>,
}

/// One launched kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// `gridId64`: in single-threaded programs the ordinal of the launch, elsewhere near it.
    pub id: u64,
    /// The process's CUcontext.
    pub context: u64,
    /// The process's CUfunction.
    pub function: u64,
    /// The mangled name, from the image of its module.
    pub kernel: Option<String>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// The system's number of the thread that launched it.
    pub host_thread: u32,
    /// Index of the device in the dump.
    pub device: u32,
    /// The arguments as they lie in the constant bank.
    pub arguments: Vec<u8>,
    /// Empty for a grid that only happened to run.
    pub faults: Vec<Fault>,
}

/// One block in which a fault was seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fault {
    pub exception: Exception,
    /// The block's index in the grid.
    pub block: [u32; 3],
    /// The thread's index in the block, where a single thread is known.
    pub thread: Option<[u32; 3]>,
    /// Bytes from the start of the kernel to the instruction.
    pub offset: Option<u64>,
    /// File and line of the kernel's source, where it was compiled with line information.
    pub source: Option<(String, u32)>,
}

/// `CUDBGException_t`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Exception(pub u32);

impl Exception {
    /// The kind of the catalogue.
    pub fn kind(self) -> &'static str {
        match self.0 {
            1 | 5 | 10 | 14 | 17 => "illegal-address",
            6 | 11 => "misaligned-address",
            4 | 8 => "illegal-instruction",
            7 => "invalid-address-space",
            12 => "device-assert",
            _ => "launch-failure",
        }
    }
}

/// Section types of `cudacoredump.h`.
mod kind {
    pub const RELOCATED_IMAGE: u32 = 0x8000_0007;
    pub const DEVICES: u32 = 0x8000_0009;
    pub const MODULES: u32 = 0x8000_0010;
    pub const SMS: u32 = 0x8000_000b;
    pub const GRIDS: u32 = 0x8000_000c;
    pub const BLOCKS: u32 = 0x8000_000d;
    pub const WARPS: u32 = 0x8000_000e;
    pub const THREADS: u32 = 0x8000_000f;
    pub const PARAMETERS: u32 = 0x8000_0012;
    pub const META: u32 = 0x8000_0016;
}

/// The machine number of CUDA's ELF files.
const EM_CUDA: u16 = 190;

/// Reads a core dump. Any bytes give a result; the error is one sentence.
pub fn read(bytes: &[u8]) -> Result<GpuCore, String> {
    let elf = Elf::read(bytes, EM_CUDA)?;
    if elf.of_kind(kind::DEVICES).next().is_none() {
        return Err("the file has no table of devices, so it is not a GPU core dump".into());
    }
    let mut grids = Vec::new();
    for table in elf.of_kind(kind::GRIDS) {
        for (index, row) in table.rows().enumerate() {
            grids.push(read_grid(&elf, table, index, row));
        }
    }
    for faulted in find_faults(&elf) {
        // Ids are unique on a device.
        if let Some(grid) = grids.iter_mut().find(|grid| grid.id == faulted.grid && grid.device == faulted.device) {
            let fault = locate(&elf, grid, faulted);
            grid.faults.push(fault);
        }
    }
    grids.sort_by_key(|grid| grid.faults.is_empty());
    // One entry, of which the section does not say how long it is.
    let meta = elf.of_kind(kind::META).next().map(Section::whole);
    let driver = meta.and_then(|entry| Some(format!("{}.{}", entry.u32(8)?, entry.u32(12)?)));
    Ok(GpuCore { grids, exceptions: exceptions(&elf), driver })
}

/// The distinct exceptions of the multiprocessors.
fn exceptions(elf: &Elf<'_>) -> Vec<Exception> {
    let all = elf.of_kind(kind::SMS).flat_map(Section::rows).filter_map(|sm| sm.u32(8)).filter(|code| *code != 0);
    all.collect::<BTreeSet<u32>>().into_iter().map(Exception).collect()
}

impl GpuCore {
    /// What went wrong, as a kind of the catalogue. A trap leaves no exception behind; CUDA calls it a launch failure.
    pub fn kind(&self) -> &'static str {
        let of_grid = self.faulted().and_then(|grid| grid.faults.first()).map(|fault| fault.exception);
        of_grid.or_else(|| self.exceptions.first().copied()).unwrap_or_default().kind()
    }

    /// The grid that faulted. None where none is marked and several were there, or more than one is.
    ///
    /// A trap leaves no exception behind when its warps have gone; the only grid on the device is then the best guess,
    /// and has no faults.
    pub fn faulted(&self) -> Option<&Grid> {
        let mut faulted = self.grids.iter().filter(|grid| !grid.faults.is_empty());
        match (faulted.next(), faulted.next(), &self.grids[..]) {
            (Some(grid), None, _) | (None, None, [grid]) => Some(grid),
            _ => None,
        }
    }
}

/// `CudbgGridTableEntry`.
fn read_grid(elf: &Elf<'_>, table: &Section<'_>, index: usize, row: elf::Row<'_>) -> Grid {
    let long = |offset| row.u64(offset).unwrap_or(0);
    let short = |offset| row.u32(offset).unwrap_or(0);
    let arguments = elf.of_kind(kind::PARAMETERS).find(|section| section.belongs_to(table, index));
    Grid {
        id: long(0),
        context: long(8),
        function: long(16),
        kernel: kernel_name(elf, long(32), long(24)),
        grid: [short(72), short(76), short(80)],
        block: [short(84), short(88), short(92)],
        host_thread: short(100),
        device: table.info,
        arguments: arguments.map(|section| section.bytes.to_vec()).unwrap_or_default(),
        faults: Vec::new(),
    }
}

/// The name of the kernel that begins at `entry`, from the section of that address in its module's image.
fn kernel_name(elf: &Elf<'_>, module: u64, entry: u64) -> Option<String> {
    let image = module_image(elf, module)?;
    let section =
        image.sections.iter().find(|section| section.address == entry && section.name.starts_with(".text."))?;
    section.name.strip_prefix(".text.").map(str::to_owned)
}

/// The image of a module as it was loaded, by the module's handle.
fn module_image<'a>(elf: &Elf<'a>, module: u64) -> Option<Elf<'a>> {
    elf.of_kind(kind::MODULES).find_map(|table| {
        let index = table.rows().position(|row| row.u64(0) == Some(module))?;
        let image = elf.of_kind(kind::RELOCATED_IMAGE).find(|section| section.belongs_to(table, index))?;
        Elf::read(image.bytes, EM_CUDA).ok()
    })
}

/// A block on a multiprocessor that reported an exception.
struct Faulted {
    device: u32,
    grid: u64,
    exception: Exception,
    block: [u32; 3],
    thread: Option<[u32; 3]>,
    /// Address of the instruction.
    pc: Option<u64>,
}

/// Goes down from the multiprocessors that reported an exception to their blocks, warps and threads.
fn find_faults(elf: &Elf<'_>) -> Vec<Faulted> {
    let mut faults = Vec::new();
    for table in elf.of_kind(kind::SMS) {
        for (index, sm) in table.rows().enumerate() {
            let exception = Exception(sm.u32(8).unwrap_or(0));
            let pc = sm.u64(16).filter(|_| sm.u32(12).is_some_and(|valid| valid != 0));
            for blocks in elf.of_kind(kind::BLOCKS).filter(|section| section.belongs_to(table, index)) {
                for (block_index, block) in blocks.rows().enumerate() {
                    let thread = find_thread(elf, blocks, block_index);
                    // Drivers before 555 say it of the threads only.
                    let seen = thread.as_ref().map(|thread| thread.exception).filter(|seen| seen.0 != 0);
                    let exception = if exception.0 != 0 { exception } else { seen.unwrap_or_default() };
                    if exception.0 == 0 {
                        continue;
                    }
                    faults.push(Faulted {
                        device: table.info,
                        grid: block.u64(0).unwrap_or(0),
                        exception,
                        block: [8, 12, 16].map(|offset| block.u32(offset).unwrap_or(0)),
                        thread: thread.as_ref().map(|thread| thread.index),
                        pc: pc.or(thread.and_then(|thread| thread.pc)),
                    });
                }
            }
        }
    }
    faults
}

struct ThreadFault {
    exception: Exception,
    index: [u32; 3],
    pc: Option<u64>,
}

/// The first thread of a block that reports an exception of its own.
fn find_thread(elf: &Elf<'_>, blocks: &Section<'_>, block: usize) -> Option<ThreadFault> {
    elf.of_kind(kind::WARPS).filter(|section| section.belongs_to(blocks, block)).find_map(|warps| {
        warps.rows().enumerate().find_map(|(index, warp)| {
            let pc = warp.u64(0).filter(|_| warp.u32(24).is_some_and(|valid| valid != 0));
            let mut threads = elf.of_kind(kind::THREADS).filter(|section| section.belongs_to(warps, index));
            threads.find_map(|threads| {
                threads.rows().find_map(|thread| {
                    let exception = Exception(thread.u32(32)?);
                    (exception.0 != 0).then(|| ThreadFault {
                        exception,
                        index: [20, 24, 28].map(|offset| thread.u32(offset).unwrap_or(0)),
                        pc: pc.or(thread.u64(0)),
                    })
                })
            })
        })
    })
}

/// Says where in its kernel a fault lies.
fn locate(elf: &Elf<'_>, grid: &Grid, faulted: Faulted) -> Fault {
    let row = elf
        .of_kind(kind::GRIDS)
        .filter(|table| table.info == grid.device)
        .find_map(|table| table.rows().find(|row| row.u64(0) == Some(grid.id)));
    let entry = row.as_ref().and_then(|row| row.u64(24));
    let module = row.as_ref().and_then(|row| row.u64(32));
    let offset =
        faulted.pc.zip(entry).and_then(|(pc, entry)| pc.checked_sub(entry)).filter(|offset| *offset < MOST_CODE);
    let image = module.and_then(|module| module_image(elf, module));
    let source = offset.and_then(|offset| lines::locate(&image?, grid.kernel.as_deref()?, offset));
    Fault { exception: faulted.exception, block: faulted.block, thread: faulted.thread, offset, source }
}

/// No kernel is longer; a larger difference is an address in another function.
const MOST_CODE: u64 = 1 << 28;

#[cfg(test)]
mod tests;
