//! From an instruction of a CPython code object to its line: the three encodings of 3.9 to 3.14.
//!
//! Sources: `Objects/lnotab_notes.txt` of CPython 3.9 and 3.10, `Objects/locations.md` of 3.11 (`InternalDocs/code_objects.md`
//! since 3.14), and `PyCode_Addr2Line` of each.

/// Where an instruction comes from. Lines count from 1, columns from 0 in UTF-8 bytes, as CPython counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    pub line: u32,
    pub end_line: Option<u32>,
    pub column: Option<u32>,
    /// One past the last byte.
    pub end_column: Option<u32>,
}

/// The location of the instruction at `offset` bytes. None where the compiler gave none, or the table is damaged.
/// `version` is `major << 8 | minor`.
pub fn locate(version: u32, table: &[u8], first_line: u32, offset: u32) -> Option<Location> {
    match version {
        0x309 => line_number_table(table, first_line, offset),
        0x30a => line_table(table, first_line, offset),
        0x30b.. => location_table(table, first_line, offset),
        _ => None,
    }
}

/// `co_lnotab` of 3.9: pairs of an address step and a signed line step.
fn line_number_table(table: &[u8], first_line: u32, offset: u32) -> Option<Location> {
    let mut line = i64::from(first_line);
    let mut address = 0u64;
    for pair in table.chunks_exact(2) {
        address += u64::from(pair[0]);
        if address > u64::from(offset) {
            break;
        }
        line += i64::from(pair[1] as i8);
    }
    line_only(line)
}

/// `co_linetable` of 3.10: ranges of a length in bytes and a signed line step, where -128 is no line.
fn line_table(table: &[u8], first_line: u32, offset: u32) -> Option<Location> {
    let mut line = i64::from(first_line);
    let mut end = 0u64;
    for pair in table.chunks_exact(2) {
        end += u64::from(pair[0]);
        let none = pair[1] == 0x80;
        if !none {
            line += i64::from(pair[1] as i8);
        }
        if end > u64::from(offset) {
            return if none { None } else { line_only(line) };
        }
    }
    None
}

/// `co_linetable` since 3.11: entries of one to eight code units with line and column.
fn location_table(table: &[u8], first_line: u32, offset: u32) -> Option<Location> {
    let mut bytes = table.iter().copied();
    let mut line = i64::from(first_line);
    let mut end = 0u64;
    while let Some(first) = bytes.next() {
        // The high bit marks the first byte of an entry.
        if first & 0x80 == 0 {
            return None;
        }
        end += (u64::from(first & 7) + 1) * 2;
        let code = (first >> 3) & 15;
        let location = match code {
            0..=9 => {
                let second = bytes.next()?;
                let column = u32::from(code) << 3 | u32::from(second >> 4);
                on_one_line(line, column, column + u32::from(second & 15))
            }
            10..=12 => {
                line += i64::from(code - 10);
                let (column, end_column) = (bytes.next()?, bytes.next()?);
                on_one_line(line, column.into(), end_column.into())
            }
            13 => {
                line += signed(&mut bytes)?;
                line_only(line).map(|location| Location { end_line: Some(location.line), ..location })
            }
            14 => {
                line += signed(&mut bytes)?;
                let end_line = line + i64::from(unsigned(&mut bytes)?);
                let (column, end_column) = (unsigned(&mut bytes)?, unsigned(&mut bytes)?);
                line_only(line).map(|location| Location {
                    end_line: u32::try_from(end_line).ok(),
                    column: column.checked_sub(1),
                    end_column: end_column.checked_sub(1),
                    ..location
                })
            }
            _ => None,
        };
        if end > u64::from(offset) {
            return location;
        }
    }
    None
}

fn line_only(line: i64) -> Option<Location> {
    let line = u32::try_from(line).ok()?;
    Some(Location { line, end_line: None, column: None, end_column: None })
}

fn on_one_line(line: i64, column: u32, end_column: u32) -> Option<Location> {
    let line = u32::try_from(line).ok()?;
    Some(Location { line, end_line: Some(line), column: Some(column), end_column: Some(end_column) })
}

/// Six bits a byte, the lowest first; bit 6 says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..32).step_by(6) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x3f).checked_shl(shift)?;
        if byte & 0x40 == 0 {
            return Some(value);
        }
    }
    None
}

/// The lowest bit is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = i64::from(unsigned(bytes)?);
    Some(if value & 1 == 1 { -(value >> 1) } else { value >> 1 })
}
