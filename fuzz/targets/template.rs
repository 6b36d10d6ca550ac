//! `make fuzz FUZZ_ARGS=template`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("template"), |data: &[u8]| {
    manxdb_fuzz::template(data);
});
