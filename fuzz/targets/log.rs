//! `make fuzz FUZZ_ARGS=log`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("log"), |data: &[u8]| {
    manxdb_fuzz::log(data);
});
