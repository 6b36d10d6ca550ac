//! `make fuzz FUZZ_ARGS=packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("packets"), |data: &[u8]| {
    manxdb_fuzz::packets(data);
});
