//! The one optimizer hint with an effect: `SELECT /*+ MAX_EXECUTION_TIME(1000) */ …`.
//!
//! The others only choose between plans of the same result; they are comments here.

/// The time a SELECT is given by its hint, milliseconds. `clean` is `raw` with its comments
/// blanked. 0 is no limit of its own, so it is none.
pub(super) fn time_limit(clean: &str, raw: &str) -> Option<u32> {
    if !raw.contains("/*+") {
        return None;
    }
    let start = clean.find(|c: char| !c.is_whitespace() && c != '(')?;
    let behind = start + "SELECT".len();
    if !clean.get(start..behind)?.eq_ignore_ascii_case("SELECT") {
        return None;
    }
    let hints = raw.get(behind..)?.trim_start().strip_prefix("/*+")?;
    let hints = hints.get(..hints.find("*/")?)?.to_ascii_uppercase();
    let value = hints.split("MAX_EXECUTION_TIME").nth(1)?;
    let value = value.trim_start().strip_prefix('(')?;
    let millis: u32 = value.get(..value.find(')')?)?.trim().parse().ok()?;
    (millis > 0).then_some(millis)
}

#[cfg(test)]
mod tests {
    use crate::types::SqlMode;

    fn limit(text: &str) -> Option<u32> {
        let parts = super::super::scan::split(text, SqlMode::default()).unwrap();
        parts[0].time_limit_millis
    }

    #[test]
    fn a_hint_counts_directly_behind_select_only() {
        assert_eq!(
            limit("SELECT /*+ MAX_EXECUTION_TIME(1500) */ 1"),
            Some(1500)
        );
        assert_eq!(
            limit("/* app */ (select\n/*+ NO_ICP(t) max_execution_time( 7 ) */ 1)"),
            Some(7)
        );
        for none in [
            "SELECT 1 /*+ MAX_EXECUTION_TIME(5) */",
            "SELECT /* MAX_EXECUTION_TIME(5) */ 1",
            "SELECT /*+ MAX_EXECUTION_TIME(0) */ 1",
            "SELECT /*+ MAX_EXECUTION_TIME() */ 1",
            "SELECT /*+ MAX_EXECUTION_TIME(99999999999) */ 1",
            "SELECT /*+ BKA(t) */ 1",
            "INSERT /*+ MAX_EXECUTION_TIME(5) */ INTO t VALUES (1)",
            "SELECT '/*+ MAX_EXECUTION_TIME(5) */'",
            "é /*+ MAX_EXECUTION_TIME(5) */",
        ] {
            assert_eq!(limit(none), None, "{none}");
        }
    }
}
