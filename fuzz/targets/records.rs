//! `make fuzz FUZZ_ARGS=records`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("records"), |data: &[u8]| {
    manxdb_fuzz::records(data);
});
