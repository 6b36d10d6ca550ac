//! The windows of a WINDOW clause, and what one inherits from another.

use sqlparser::ast;

use super::scope::same_name;
use crate::error::{SqlError, SqlResult};

/// A window of the WINDOW clause: its name, and all that it says and inherits.
pub(super) type NamedWindow = (String, ast::WindowSpec);

/// The windows of a clause with what they inherit; they may name each other in any order.
///
/// # Errors
/// 3591 for a name given twice, 3579 for one that is not there, 3580 where windows inherit in a
/// circle, and what [`inherit`] meets.
pub(super) fn resolve(windows: &[ast::NamedWindowDefinition]) -> SqlResult<Vec<NamedWindow>> {
    let mut written: Vec<NamedWindow> = Vec::with_capacity(windows.len());
    for ast::NamedWindowDefinition(name, definition) in windows {
        let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
            return Err(SqlError::syntax(format!("near '{definition}'")));
        };
        if written
            .iter()
            .any(|(known, _)| same_name(known, &name.value))
        {
            let message = format!("Window '{}' is defined twice.", name.value);
            return Err(SqlError::new(3591, "HY000", message));
        }
        written.push((name.value.clone(), spec.clone()));
    }
    let mut resolved: Vec<NamedWindow> = Vec::with_capacity(written.len());
    // Each round resolves the windows whose ancestors are resolved; at least one, or none can be.
    while resolved.len() < written.len() {
        let before = resolved.len();
        for (name, spec) in &written {
            if find(&resolved, name).is_some() {
                continue;
            }
            let whole = match &spec.window_name {
                None => spec.clone(),
                Some(ancestor) if find(&written, &ancestor.value).is_none() => {
                    return Err(undefined(&ancestor.value));
                }
                Some(ancestor) => match find(&resolved, &ancestor.value) {
                    Some(ancestor) => inherit(name, spec, ancestor)?,
                    None => continue,
                },
            };
            resolved.push((name.clone(), whole));
        }
        if resolved.len() == before {
            let message = "There is a circularity in the window dependency graph.";
            return Err(SqlError::new(3580, "HY000", message));
        }
    }
    Ok(resolved)
}

fn find<'a>(windows: &'a [NamedWindow], name: &str) -> Option<&'a NamedWindow> {
    windows.iter().find(|(known, _)| same_name(known, name))
}

/// What the window `name` is that says `spec` and names `ancestor`, whose partitions and order
/// are its own.
///
/// # Errors
/// 3581 where it has partitions of its own, 3582 where the ancestor has a frame, 3583 where both
/// have an order.
pub(super) fn inherit(
    name: &str,
    spec: &ast::WindowSpec,
    (ancestor, inherited): &NamedWindow,
) -> SqlResult<ast::WindowSpec> {
    let refuse = |code, message: String| Err(SqlError::new(code, "HY000", message));
    if !spec.partition_by.is_empty() {
        let message = "A window which depends on another cannot define partitioning.";
        return refuse(3581, message.to_string());
    }
    if inherited.window_frame.is_some() {
        let message = format!(
            "Window '{ancestor}' has a frame definition, so cannot be referenced by another window."
        );
        return refuse(3582, message);
    }
    if !spec.order_by.is_empty() && !inherited.order_by.is_empty() {
        let message = format!(
            "Window '{name}' cannot inherit '{ancestor}' since both contain an ORDER BY clause."
        );
        return refuse(3583, message);
    }
    let order = if spec.order_by.is_empty() {
        &inherited.order_by
    } else {
        &spec.order_by
    };
    Ok(ast::WindowSpec {
        window_name: None,
        partition_by: inherited.partition_by.clone(),
        order_by: order.clone(),
        window_frame: spec.window_frame.clone(),
    })
}

/// 3579.
pub(super) fn undefined(name: &str) -> SqlError {
    let message = format!("Window name '{name}' is not defined.");
    SqlError::new(3579, "HY000", message)
}
