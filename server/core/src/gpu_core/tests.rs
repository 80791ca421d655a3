use std::io::Read;

use super::*;

/// A dump recorded on a GPU.
fn sample(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/fixtures/gpu/cores/{name}.gpucore.gz", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "a test reads its sample")]
    let packed = std::fs::read(path).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn an_illegal_address_is_found_in_its_kernel_and_line() {
    let core = read(&sample("ext_illegal")).unwrap();
    let grid = core.faulted().unwrap();
    assert_eq!(grid.kernel.as_deref(), Some("_Z9k_illegalPfm"));
    assert_eq!((grid.id, grid.grid, grid.block, grid.host_thread), (2, [4, 1, 1], [64, 1, 1], 669));
    assert_eq!(grid.function, 1_051_817_456);
    // `k_illegal(float *x, size_t off)`: a pointer and 1 << 40.
    assert_eq!(grid.arguments.len(), 16);
    assert_eq!(u64::from_le_bytes(grid.arguments[8..].try_into().unwrap()), 1 << 40);
    let blocks: Vec<_> = grid.faults.iter().map(|fault| fault.block[0]).collect();
    assert_eq!(blocks, [0, 1, 2, 3]);
    for fault in &grid.faults {
        assert_eq!(fault.exception.kind(), "illegal-address");
        assert_eq!(fault.offset, Some(0xa0));
        // The sanitizer said ext.cu:4 of the same program.
        let (file, line) = fault.source.clone().unwrap();
        assert!(file.ends_with("/ext.cu"), "{file}");
        assert_eq!(line, 4);
    }
}

#[test]
fn an_assertion_names_the_threads() {
    let core = read(&sample("gather_oob")).unwrap();
    let grid = core.faulted().unwrap();
    assert!(grid.kernel.as_deref().unwrap().contains("_scatter_gather_elementwise_kernel"), "{:?}", grid.kernel);
    assert_eq!((grid.id, grid.grid, grid.block), (3, [1, 1, 1], [128, 1, 1]));
    let fault = &grid.faults[0];
    assert_eq!((fault.exception.kind(), fault.block, fault.thread), ("device-assert", [0; 3], Some([0; 3])));
    // The wheel was built without line information.
    assert_eq!(fault.source, None);
    assert_eq!(core.driver.as_deref().map(|driver| driver.split('.').count()), Some(2));
}

#[test]
fn a_cut_or_damaged_dump_gives_an_answer() {
    let whole = sample("ext_illegal");
    for length in [0, 4, 20, 63, 64, 1000, whole.len() / 2, whole.len() - 1] {
        let _ = read(&whole[..length]);
    }
    // The table of sections lies at the end: damage it byte by byte.
    let table = usize::try_from(u64::from_le_bytes(whole[40..48].try_into().unwrap())).unwrap();
    for at in (table..whole.len()).step_by(97).chain(0..64) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        let _ = read(&damaged);
    }
    assert!(read(b"\x7fELF").is_err());
    assert!(read(b"").is_err());
}
