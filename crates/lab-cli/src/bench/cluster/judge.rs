//! Whether what clients saw was right.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use manxdb_checker::append::{History, Level, Operation, Outcome, Transaction, check};
use manxdb_workloads::{append, tpca};

use super::load::{Load, Made, Purpose, Survey};
use manxdb::cluster::{ClusterFile, dast};

use crate::cluster;

/// How long replicas may take to become equal once nothing is asked any more.
const SETTLE_PATIENCE: Duration = Duration::from_secs(20);
/// Proofs that are printed.
const PROOFS_MAX: usize = 5;

/// What is wrong, in words.
pub fn judge(load: &Load, file: &ClusterFile) -> Vec<String> {
    let mut findings = Vec::new();
    if !load.is_whole() {
        findings.push("the run did not end: its history is judged as far as it goes".to_owned());
    }
    let made = load.made();
    match load.survey() {
        Some(Survey::Lists(_)) => judge_lists(made, &mut findings),
        Some(Survey::Totals) => judge_totals(made, &mut findings),
        None => {}
    }
    judge_replicas(file, &mut findings);
    findings
}

/// Each table has one increment more for each call that took effect; nobody else may have made
/// any meanwhile.
fn judge_totals(made: &[Made], findings: &mut Vec<String>) {
    let totals = |purpose| {
        let mut reads = made.iter().filter(|made| made.purpose == purpose);
        let (_, answer) = reads.next()?.answered.as_ref()?;
        tpca::read_totals(answer.given.as_deref().ok()?)
    };
    let (Some(before), Some(after)) = (totals(Purpose::Before), totals(Purpose::After)) else {
        findings.push("the tables could not be added up".to_owned());
        return;
    };
    if before[0] != before[1] || before[0] != before[2] {
        findings.push(format!(
            "the tables had {before:?} increments before the run"
        ));
    }
    let load = || made.iter().filter(|made| made.purpose == Purpose::Load);
    let took_effect = load().filter(|made| {
        let answer = made.answered.as_ref();
        answer.is_some_and(|(_, answer)| answer.given.is_ok())
    });
    let unknown = load().filter(|made| made.answered.is_none());
    let (acknowledged, unknown) = (took_effect.count() as u64, unknown.count() as u64);
    let mut made = [0; 3];
    for (table, made) in made.iter_mut().enumerate() {
        *made = after[table].saturating_sub(before[table]);
    }
    findings.extend(tpca::check_totals(made, acknowledged, unknown));
}

fn judge_lists(made: &[Made], findings: &mut Vec<String>) {
    let before = lists(made, Purpose::Before, findings);
    let after = lists(made, Purpose::After, findings);
    let load = made.iter().filter(|made| made.purpose == Purpose::Load);
    let mut transactions = vec![all_before(&before)];
    for (name, made) in (1..).zip(load) {
        match transaction(name, made) {
            Ok(transaction) => transactions.push(transaction),
            Err(error) => findings.push(format!("call {name}: {error}")),
        }
    }
    let ended = made.iter().any(|made| made.purpose == Purpose::After);
    let history = History {
        transactions,
        end_state: ended.then_some(after),
    };
    let verdict = check(&history, Level::Serializable);
    let violations = verdict.violations();
    for found in violations.iter().take(PROOFS_MAX) {
        findings.push(format!("{}: {}", found.anomaly.name(), found.proof));
    }
    if violations.len() > PROOFS_MAX {
        findings.push(format!("and {} more", violations.len() - PROOFS_MAX));
    }
}

/// One transaction that stands for everything that was in the lists at the beginning.
fn all_before(lists: &BTreeMap<u64, Vec<u64>>) -> Transaction {
    let appended = lists.iter().flat_map(|(key, list)| {
        let key = Some(*key);
        list.iter()
            .map(move |&element| Operation::Append { key, element })
    });
    Transaction {
        name: 0,
        session: u64::MAX,
        invoked: 0,
        completed: 0,
        outcome: Outcome::Ok,
        operations: appended.collect(),
    }
}

fn transaction(name: u64, made: &Made) -> Result<Transaction, String> {
    let (at, given) = match &made.answered {
        Some((at, answer)) => (Some(at.0), answer.given.as_deref().ok()),
        None => (None, None),
    };
    let seen = append::Seen {
        name,
        session: made.client as u64,
        args: &made.args,
        asked: made.asked.0,
        answered: at,
        given,
    };
    append::transaction(seen).map_err(|error| error.to_string())
}

/// What the calls of a purpose read.
fn lists(made: &[Made], purpose: Purpose, findings: &mut Vec<String>) -> BTreeMap<u64, Vec<u64>> {
    let mut lists = BTreeMap::new();
    for made in made.iter().filter(|made| made.purpose == purpose) {
        let read = transaction(0, made).and_then(|read| match read.outcome {
            Outcome::Ok => Ok(read.operations),
            _ => Err(format!("{:?}", made.answered)),
        });
        match read {
            Ok(operations) => lists.extend(operations.into_iter().filter_map(|read| match read {
                Operation::Read { key, list } => Some((key, list)),
                Operation::Append { .. } => None,
            })),
            Err(error) => findings.push(format!("the lists could not be read: {error}")),
        }
    }
    lists
}

/// Replicas that take part have equal rows once everything has run everywhere.
fn judge_replicas(file: &ClusterFile, findings: &mut Vec<String>) {
    let deadline = Instant::now() + SETTLE_PATIENCE;
    loop {
        let wrong = unequal(file);
        if wrong.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            findings.extend(wrong);
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn unequal(file: &ClusterFile) -> Vec<String> {
    let mut of_shard: BTreeMap<&str, BTreeMap<String, Vec<u32>>> = BTreeMap::new();
    for node in &file.nodes {
        let Ok(status) = cluster::ask(file, node) else {
            continue;
        };
        if let Some(rows) = cluster::note(&status, dast::ROWS)
            && cluster::note(&status, dast::STATE) == Some(dast::TAKES_PART)
        {
            let shard = of_shard.entry(&node.role).or_default();
            shard.entry(rows.to_owned()).or_default().push(node.number);
        }
    }
    let unequal = of_shard.iter().filter(|(_, rows)| rows.len() > 1);
    let words = unequal.map(|(role, rows)| format!("{role}: rows differ: {rows:?}"));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_core::{Nanos, NodeId};
    use manxdb_dast::{Answer, CallId};
    use manxdb_workloads::Partition;
    use manxdb_workloads::append::{Form, Kind, List, encode};

    const LIST: List = List {
        partition: Partition(0),
        row: 0,
    };

    fn made(purpose: Purpose, kind: Kind, given: Result<Vec<u8>, String>) -> Made {
        let operation = manxdb_workloads::append::Operation { list: LIST, kind };
        let answer = Answer {
            id: CallId {
                client: NodeId(1),
                number: 1,
            },
            given: given.map(|value| vec![(0, value)]),
            attempts: 1,
        };
        Made {
            client: 0,
            purpose,
            args: encode(Form::Together, &[operation]),
            is_local: true,
            asked: Nanos(1),
            answered: Some((Nanos(2), answer)),
        }
    }

    fn appended(element: u64, given: Result<Vec<u8>, String>) -> Made {
        made(Purpose::Load, Kind::Append(element), given)
    }

    fn read(purpose: Purpose, list: &[u64]) -> Made {
        let bytes = u32::try_from(list.len() * 8).unwrap().to_le_bytes();
        let mut given = bytes.to_vec();
        given.extend(list.iter().flat_map(|element| element.to_le_bytes()));
        made(purpose, Kind::Read, Ok(given))
    }

    fn findings(made: &[Made]) -> Vec<String> {
        let mut findings = Vec::new();
        judge_lists(made, &mut findings);
        findings
    }

    const ROW: [u8; 4] = [0; 4];

    fn totals(purpose: Purpose, totals: [u64; 3]) -> Made {
        let bytes = totals.iter().flat_map(|total| total.to_le_bytes());
        made(purpose, Kind::Read, Ok(bytes.collect()))
    }

    #[test]
    fn increments_are_counted_from_the_run_s_beginning() {
        let findings = |after, load: &[Made]| {
            let mut all = vec![totals(Purpose::Before, [5; 3])];
            all.extend_from_slice(load);
            all.push(totals(Purpose::After, after));
            let mut findings = Vec::new();
            judge_totals(&all, &mut findings);
            findings
        };
        let answered = appended(1, Ok(Vec::new()));
        let mut lost = appended(2, Ok(Vec::new()));
        lost.answered = None;
        let load = [answered.clone(), answered, lost];
        assert_eq!(findings([7; 3], &load), [""; 0]);
        assert_eq!(findings([8; 3], &load), [""; 0]);
        assert_eq!(findings([6; 3], &load).len(), 3);
        assert!(findings([7, 7, 8], &load)[0].starts_with("the tables have"));
    }

    #[test]
    fn a_table_that_lacks_an_increment_of_an_earlier_run_is_found() {
        let all = [
            totals(Purpose::Before, [5, 4, 5]),
            totals(Purpose::After, [5, 4, 5]),
        ];
        let mut findings = Vec::new();
        judge_totals(&all, &mut findings);
        assert_eq!(
            findings,
            ["the tables had [5, 4, 5] increments before the run"]
        );
    }

    #[test]
    fn lists_of_an_earlier_run_are_no_surprise() {
        let right = [
            read(Purpose::Before, &[3, 4]),
            appended(7, Ok(ROW.to_vec())),
            read(Purpose::Load, &[3, 4, 7]),
            read(Purpose::After, &[3, 4, 7]),
        ];
        assert_eq!(findings(&right), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_found() {
        let before = read(Purpose::Before, &[]);
        let lost = [
            before.clone(),
            appended(7, Ok(ROW.to_vec())),
            read(Purpose::After, &[]),
        ];
        assert!(
            findings(&lost)[0].starts_with("lost append"),
            "{:?}",
            findings(&lost)
        );
        let refused = [
            before.clone(),
            appended(7, Err("no".into())),
            read(Purpose::Load, &[7]),
            read(Purpose::After, &[7]),
        ];
        assert!(!findings(&refused).is_empty());
        let strange = [before, appended(7, Ok(vec![1])), read(Purpose::After, &[])];
        assert!(
            findings(&strange)[0].starts_with("call 1"),
            "{:?}",
            findings(&strange)
        );
    }
}
