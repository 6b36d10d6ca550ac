//! `make fuzz FUZZ_ARGS=resp`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("resp"), |data: &[u8]| {
    manxdb_fuzz::resp(data);
});
