use super::*;

#[test]
fn an_empty_query_is_error_1065() {
    let error = parse(" ; -- nothing\n", SqlMode::default()).unwrap_err();
    assert_eq!(error.code, 1065);
}
