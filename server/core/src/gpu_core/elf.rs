//! As much of ELF as a core dump and the images in it need: 64-bit little-endian sections. Total: whatever the bytes say,
//! a section is cut to what is there.

pub struct Elf<'a> {
    pub sections: Vec<Section<'a>>,
}

pub struct Section<'a> {
    /// Index in the table of sections: what other sections link to.
    pub index: u32,
    pub name: &'a str,
    pub kind: u32,
    pub address: u64,
    pub link: u32,
    pub info: u32,
    row_bytes: usize,
    pub bytes: &'a [u8],
}

/// A row of a table. A field beyond its end is None: an older driver did not have it.
#[derive(Clone, Copy)]
pub struct Row<'a>(&'a [u8]);

impl<'a> Elf<'a> {
    /// Reads the table of sections (gABI, "Sections"). The error is one sentence.
    pub fn read(bytes: &'a [u8], machine: u16) -> Result<Elf<'a>, String> {
        let header = Row(bytes);
        if !bytes.starts_with(b"\x7fELF\x02\x01") || header.u16(18) != Some(machine) {
            return Err("the file is not an ELF file of the GPU".into());
        }
        let table = header.u64(40).and_then(|offset| usize::try_from(offset).ok()).unwrap_or(usize::MAX);
        let [size, count, names] = [58, 60, 62].map(|offset| usize::from(header.u16(offset).unwrap_or(0)));
        let rows = bytes.get(table..).unwrap_or(&[]).chunks_exact(size.max(64)).take(count);
        let headers: Vec<Row<'a>> = rows.map(Row).collect();
        let names = headers.get(names).map_or(&[][..], |header| contents(bytes, *header));
        let sections = headers
            .iter()
            .enumerate()
            .map(|(index, header)| Section {
                index: index as u32,
                name: text_at(names, header.u32(0).unwrap_or(0) as usize),
                kind: header.u32(4).unwrap_or(0),
                address: header.u64(16).unwrap_or(0),
                link: header.u32(40).unwrap_or(0),
                info: header.u32(44).unwrap_or(0),
                row_bytes: usize::try_from(header.u64(56).unwrap_or(0)).unwrap_or(0),
                bytes: contents(bytes, *header),
            })
            .collect();
        Ok(Elf { sections })
    }

    pub fn of_kind(&self, kind: u32) -> impl Iterator<Item = &Section<'a>> {
        self.sections.iter().filter(move |section| section.kind == kind)
    }
}

impl<'a> Section<'a> {
    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> + use<'a> {
        self.bytes.chunks_exact(self.row_bytes.max(1)).map(Row).take(if self.row_bytes == 0 { 0 } else { usize::MAX })
    }

    /// All of it as one row.
    pub fn whole(&self) -> Row<'a> {
        Row(self.bytes)
    }

    /// Does it describe row `index` of `table`?
    pub fn belongs_to(&self, table: &Section<'_>, index: usize) -> bool {
        self.link == table.index && self.info as usize == index
    }
}

impl Row<'_> {
    fn u16(self, offset: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(offset..offset + 2)?.try_into().ok()?))
    }

    pub fn u32(self, offset: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(offset..offset + 4)?.try_into().ok()?))
    }

    pub fn u64(self, offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(offset..offset + 8)?.try_into().ok()?))
    }
}

fn contents<'a>(bytes: &'a [u8], header: Row<'a>) -> &'a [u8] {
    /// SHT_NOBITS takes no room in the file.
    const NOTHING: u32 = 8;
    let place = |offset| header.u64(offset).and_then(|value| usize::try_from(value).ok()).unwrap_or(usize::MAX);
    if header.u32(4) == Some(NOTHING) {
        return &[];
    }
    let from = bytes.get(place(24)..).unwrap_or(&[]);
    &from[..place(32).min(from.len())]
}

fn text_at(names: &[u8], offset: usize) -> &str {
    let from = names.get(offset..).unwrap_or(&[]);
    let end = from.iter().position(|byte| *byte == 0).unwrap_or(from.len());
    std::str::from_utf8(&from[..end]).unwrap_or("")
}
