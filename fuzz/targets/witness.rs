//! `make fuzz FUZZ_ARGS=witness`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("witness"), |data: &[u8]| {
    manxdb_fuzz::witness(data);
});
