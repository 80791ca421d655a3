//! From an offset in a kernel to the line of its source, through the DWARF line table that `-lineinfo` leaves in the image.

use std::borrow::Cow;

use gimli::{DebugLine, DebugLineOffset, LittleEndian};

use super::elf::{Elf, Row};

/// A base far from any offset, which the wanted kernel's rows get.
const BASE: u64 = 1 << 40;

/// File and line of the instruction at `offset` bytes of `kernel`. None without line information.
///
/// Every kernel's rows begin at address 0 and carry a relocation to the kernel's symbol. So the relocations of the wanted
/// kernel are applied with a base of our own, and only its rows lie there.
pub fn locate(image: &Elf<'_>, kernel: &str, offset: u64) -> Option<(String, u32)> {
    let section = image.sections.iter().find(|section| section.name == ".debug_line" && !section.bytes.is_empty())?;
    let mut table = section.bytes.to_vec();
    let relocations = image.sections.iter().find(|section| section.name == ".rela.debug_line")?;
    for relocation in relocations.rows() {
        let symbol = (relocation.u64(8)? >> 32) as usize;
        if symbol_name(image, symbol) == Some(kernel) {
            let place = usize::try_from(relocation.u64(0)?).ok()?;
            table.get_mut(place..place.checked_add(8)?)?.copy_from_slice(&BASE.to_le_bytes());
        }
    }
    find_row(&table, BASE + offset)
}

/// The row that covers `address`.
fn find_row(table: &[u8], address: u64) -> Option<(String, u32)> {
    let lines = DebugLine::new(table, LittleEndian);
    let mut unit = 0;
    while unit < table.len() {
        let program = lines.program(DebugLineOffset(unit), 8, None, None).ok()?;
        unit = next_unit(table, unit)?;
        let mut rows = program.rows();
        let mut before: Option<(u64, u64, Option<u64>)> = None;
        while let Ok(Some((header, row))) = rows.next_row() {
            if let Some((start, file, line)) = before
                && (start..row.address()).contains(&address)
            {
                let file = header.file(file)?;
                let folder = file.directory(header).and_then(|folder| folder.string_value(&Default::default()));
                let name = text(file.path_name().string_value(&Default::default())?);
                let path = match folder.map(text) {
                    Some(folder) if !name.starts_with('/') && !folder.is_empty() => format!("{folder}/{name}"),
                    _ => name.into_owned(),
                };
                return Some((path, u32::try_from(line?).ok()?));
            }
            let line = row.line().map(std::num::NonZero::get);
            before = (!row.end_sequence()).then(|| (row.address(), row.file_index(), line));
        }
    }
    None
}

/// Where the next unit begins: DWARF 2 to 4 in 32 bits, as nvcc writes it.
fn next_unit(table: &[u8], unit: usize) -> Option<usize> {
    let length = u32::from_le_bytes(table.get(unit..unit + 4)?.try_into().ok()?);
    unit.checked_add(4)?.checked_add(length as usize)
}

fn symbol_name<'a>(image: &Elf<'a>, symbol: usize) -> Option<&'a str> {
    let table = image.sections.iter().find(|section| section.name == ".symtab")?;
    let names = image.sections.get(table.link as usize)?;
    let row: Row<'_> = table.rows().nth(symbol)?;
    let start = names.bytes.get(row.u32(0)? as usize..)?;
    std::str::from_utf8(&start[..start.iter().position(|byte| *byte == 0)?]).ok()
}

fn text(bytes: gimli::EndianSlice<'_, LittleEndian>) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.slice())
}
