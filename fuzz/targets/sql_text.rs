//! `make fuzz FUZZ_ARGS=sql_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: manxdb_fuzz::write_samples("sql_text"), |data: &[u8]| {
    manxdb_fuzz::sql_text(data);
});
