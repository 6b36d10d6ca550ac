//! The same pages on several servers, every answer compared.

use std::process::ExitCode;

use manxdb_workloads::lobsters::{Counters, Mix, Page, Scale};
use manxdb_workloads::{Answer, Statement, Value};

use super::Link;
use crate::cli::SiteArgs;
use crate::fault::Fault;

/// Differences shown in full; the rest is counted.
const SHOWN: usize = 10;

/// Sends `pages` pages, with their readers' notifications if asked, to all servers, which must have
/// been filled alike and not changed since, and compares the answers of the first with those of each
/// other. The exit code says whether every answer was the same.
///
/// # Errors
/// A server that does not answer.
pub fn run(
    site: &SiteArgs,
    against: &[String],
    (pages, notifications): (usize, bool),
    scale: Scale,
) -> Result<ExitCode, Fault> {
    let password = site.password.as_deref();
    let mut ours = Link::open(&site.url, password, true)?;
    let others = against.iter().map(|url| Link::open(url, password, true));
    let mut others: Vec<Link> = others.collect::<Result<_, _>>()?;
    let mut mix = Mix::new(scale, site.seed, Counters::seeded(scale));
    let (mut statements, mut differences) = (0, 0);
    for number in 0..pages {
        let request = mix.request();
        let kind = request.kind().name();
        // Time is an input of pages, so that all servers store the same.
        let now = format!(
            "2021-05-08 12:{:02}:{:02}.123456789",
            number / 60 % 60,
            number % 60
        );
        let mut page = Page::new(request, now);
        if notifications {
            page = page.with_notifications();
        }
        let mut answer = Answer::default();
        while let Some(statement) = page.next(&answer) {
            statements += 1;
            let mine = ours.ask(&statement);
            let theirs = others.iter_mut().map(|link| link.ask(&statement));
            let theirs: Vec<mysql::Result<Answer>> = theirs.collect();
            let mut servers = theirs.iter().zip(against);
            let found =
                servers.find_map(|(other, url)| Some((url, difference(&statement, &mine, other)?)));
            if let Some((url, what)) = found {
                differences += 1;
                if differences <= SHOWN {
                    println!("page {number} ({kind}), {}: {what}", statement.name);
                    println!("  at {url}: {}", statement.text);
                    println!("  parameters {:?}", statement.parameters);
                }
                break;
            }
            let Ok(mine) = mine else { break };
            answer = mine;
        }
    }
    println!("{pages} pages, {statements} statements, {differences} differences");
    Ok(if differences == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What differs between two answers, if anything.
fn difference(
    statement: &Statement,
    mine: &mysql::Result<Answer>,
    other: &mysql::Result<Answer>,
) -> Option<String> {
    let (mine, other) = match (mine, other) {
        (Ok(mine), Ok(other)) => (mine, other),
        (Err(mine), Err(other)) => {
            let same = code(mine).is_some() && code(mine) == code(other);
            return (!same).then(|| format!("errors '{mine}' and '{other}'"));
        }
        (Ok(_), Err(error)) => return Some(format!("only the second failed: {error}")),
        (Err(error), Ok(_)) => return Some(format!("only the first failed: {error}")),
    };
    if mine.columns != other.columns {
        return Some(format!(
            "columns {:?} and {:?}",
            mine.columns, other.columns
        ));
    }
    if mine.affected != other.affected {
        return Some(format!(
            "{} and {} rows affected",
            mine.affected, other.affected
        ));
    }
    let (one, two) = (in_order(statement, mine), in_order(statement, other));
    if one != two {
        return Some(format!(
            "order by {:?}: {one:?} and {two:?}",
            statement.ordered_by
        ));
    }
    let (one, two) = (sorted(mine), sorted(other));
    if one == two {
        return None;
    }
    let first = one.iter().zip(&two).find(|(one, two)| one != two);
    Some(format!(
        "{} and {} rows, first difference {first:?}",
        one.len(),
        two.len()
    ))
}

fn code(error: &mysql::Error) -> Option<u16> {
    match error {
        mysql::Error::MySqlError(error) => Some(error.code),
        _ => None,
    }
}

/// The columns that the order is promised by, row by row as they came.
fn in_order(statement: &Statement, answer: &Answer) -> Vec<Vec<String>> {
    let positions: Vec<usize> = (0..answer.columns.len())
        .filter(|&at| statement.ordered_by.contains(&answer.columns[at].as_str()))
        .collect();
    let row = |row: &Vec<Value>| positions.iter().map(|&at| row[at].literal()).collect();
    answer.rows.iter().map(row).collect()
}

/// All rows in an order of their own.
fn sorted(answer: &Answer) -> Vec<Vec<String>> {
    let row = |row: &Vec<Value>| row.iter().map(Value::literal).collect();
    let mut rows: Vec<Vec<String>> = answer.rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[[i64; 2]]) -> Answer {
        Answer {
            columns: vec!["hotness".into(), "id".into()],
            rows: rows
                .iter()
                .map(|row| row.map(Value::Integer).to_vec())
                .collect(),
            affected: 0,
        }
    }

    #[test]
    fn rows_with_equal_keys_may_come_in_any_order_and_others_not() {
        let statement = Statement::prepared("s", "SELECT", Vec::new()).ordered(&["hotness"]);
        let one = answer(&[[1, 10], [1, 11], [2, 12]]);
        let swapped_equal = answer(&[[1, 11], [1, 10], [2, 12]]);
        let swapped = answer(&[[2, 12], [1, 10], [1, 11]]);
        assert_eq!(
            difference(&statement, &Ok(one.clone()), &Ok(swapped_equal)),
            None
        );
        assert!(difference(&statement, &Ok(one), &Ok(swapped)).is_some());
    }

    #[test]
    fn a_missing_or_changed_row_is_a_difference() {
        let statement = Statement::prepared("s", "SELECT", Vec::new());
        let one = Ok(answer(&[[1, 10], [1, 11]]));
        assert!(difference(&statement, &one, &Ok(answer(&[[1, 10]]))).is_some());
        assert!(difference(&statement, &one, &Ok(answer(&[[1, 10], [1, 12]]))).is_some());
    }
}
