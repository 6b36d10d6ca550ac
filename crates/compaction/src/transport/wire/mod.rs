//! Words of the protocol as they travel: protobuf, checked when they arrive.

mod parts;

use manxdb_core::Nanos;
use manxdb_jobs::Message;
use manxdb_jobs::control::Report;
use manxdb_jobs::control::report::JobPhase;
use manxdb_jobs::job::{LocalReason, WorkerId};

/// The generated types and services.
#[allow(missing_docs, clippy::pedantic, clippy::disallowed_methods)]
pub mod proto {
    tonic::include_proto!("manxdb.compaction.v1");
}

use parts::{
    ability_out, alive_in, alive_out, attempt_in, attempt_out, attempts_in, beat_in, beat_out,
    end_out, ended_in, facts_out, job_in, job_out, progress_out, some_attempt, some_job, some_spec,
    spec_out,
};
use proto::word::Word as Kind;

/// Largest message in bytes, the same for all senders and receivers.
pub const MESSAGE_MAX: usize = 16 << 20;

/// Room in a message for all but the description of a job or of its result.
const FRAME_MAX: usize = 4 << 10;

/// Largest description of a job or of its result, in bytes.
pub const DESCRIPTION_MAX: usize = MESSAGE_MAX - FRAME_MAX;

/// A message in its wire form. `None`, with a line in the log, if it is too large: it would break
/// the stream that carries all others. Descriptions are limited to [`DESCRIPTION_MAX`], so this
/// does not occur.
#[must_use]
pub fn pack(message: Message) -> Option<proto::Word> {
    let label = manxdb_core::Message::label(&message);
    let word = encode(message);
    let bytes = prost::Message::encoded_len(&word);
    if bytes > MESSAGE_MAX {
        tracing::error!(
            label,
            bytes,
            "a message larger than {MESSAGE_MAX} bytes is not sent"
        );
        return None;
    }
    Some(word)
}

/// A word that lacks something or holds too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of the compaction pool is not valid: {0}")]
pub struct Invalid(&'static str);

/// The reason that a word stands for.
#[must_use]
pub fn reason_of(word: &str) -> Option<LocalReason> {
    let mut all = LocalReason::ALL.into_iter();
    all.find(|reason| reason.word() == word)
}

/// A message as it travels.
#[must_use]
pub fn encode(message: Message) -> proto::Word {
    let word = match message {
        Message::Alive(alive) => Kind::Alive(alive_out(alive)),
        Message::Submit { job, spec } => Kind::Submit(proto::Submit {
            job: Some(job_out(job)),
            spec: Some(spec_out(spec)),
        }),
        Message::Withdraw { job } => Kind::Withdraw(job_out(job)),
        Message::Heard { beat } => Kind::Heard(beat),
        Message::Taken { job } => Kind::Taken(job_out(job)),
        Message::Begun { job } => Kind::Begun(job_out(job)),
        Message::Unknown { job } => Kind::Unknown(job_out(job)),
        Message::Done { attempt, result } => Kind::Done(proto::Done {
            attempt: Some(attempt_out(attempt)),
            result: result.to_vec(),
        }),
        Message::GoLocal { job, reason } => Kind::GoLocal(proto::GoLocal {
            job: Some(job_out(job)),
            reason: reason.word().to_owned(),
        }),
        Message::Beat(beat) => Kind::Beat(beat_out(beat)),
        Message::Ended {
            worker,
            attempt,
            end,
        } => Kind::Ended(proto::Ended {
            worker: worker.0,
            attempt: Some(attempt_out(attempt)),
            end: Some(end_out(end)),
        }),
        Message::Run {
            worker,
            order,
            attempt,
            spec,
            lease,
        } => Kind::Run(proto::Run {
            worker: worker.0,
            order,
            attempt: Some(attempt_out(attempt)),
            spec: Some(spec_out(spec)),
            lease_nanos: lease.0,
        }),
        Message::Kept {
            beat,
            attempts,
            lease,
        } => Kind::Kept(proto::Kept {
            beat,
            attempts: attempts.into_iter().map(attempt_out).collect(),
            lease_nanos: lease.0,
        }),
        Message::Stop { attempt } => Kind::Stop(attempt_out(attempt)),
        Message::Recorded { attempt } => Kind::Recorded(attempt_out(attempt)),
        Message::NotLeader { leader } => Kind::NotLeader(leader),
    };
    proto::Word { word: Some(word) }
}

/// A message from its wire form.
///
/// # Errors
/// [`Invalid`] names the missing field.
pub fn decode(word: proto::Word) -> Result<Message, Invalid> {
    Ok(match word.word.ok_or(Invalid("it says nothing"))? {
        Kind::Alive(alive) => Message::Alive(alive_in(alive)?),
        Kind::Submit(submit) => Message::Submit {
            job: some_job(submit.job)?,
            spec: some_spec(submit.spec)?,
        },
        Kind::Withdraw(job) => Message::Withdraw { job: job_in(job) },
        Kind::Heard(beat) => Message::Heard { beat },
        Kind::Taken(job) => Message::Taken { job: job_in(job) },
        Kind::Begun(job) => Message::Begun { job: job_in(job) },
        Kind::Unknown(job) => Message::Unknown { job: job_in(job) },
        Kind::Done(done) => Message::Done {
            attempt: some_attempt(done.attempt)?,
            result: done.result.into(),
        },
        Kind::GoLocal(local) => Message::GoLocal {
            job: some_job(local.job)?,
            reason: reason_of(&local.reason).ok_or(Invalid("a reason nobody knows"))?,
        },
        Kind::Beat(beat) => Message::Beat(beat_in(beat)?),
        Kind::Ended(ended) => ended_in(ended)?,
        Kind::Run(run) => Message::Run {
            worker: WorkerId(run.worker),
            order: run.order,
            attempt: some_attempt(run.attempt)?,
            spec: some_spec(run.spec)?,
            lease: Nanos(run.lease_nanos),
        },
        Kind::Kept(kept) => Message::Kept {
            beat: kept.beat,
            attempts: attempts_in(kept.attempts)?,
            lease: Nanos(kept.lease_nanos),
        },
        Kind::Stop(attempt) => Message::Stop {
            attempt: attempt_in(attempt)?,
        },
        Kind::Recorded(attempt) => Message::Recorded {
            attempt: attempt_in(attempt)?,
        },
        Kind::NotLeader(leader) => Message::NotLeader { leader },
    })
}

/// A report as it travels.
#[must_use]
pub fn encode_report(report: Report) -> proto::ReportReply {
    let jobs = report.jobs.into_iter().map(|line| {
        use proto::job_line::Phase as Out;
        let phase = match line.phase {
            JobPhase::Waiting => Out::Waiting(proto::Nothing {}),
            JobPhase::Running(worker, progress) => Out::Running(proto::RunningOn {
                worker: worker.0,
                progress: Some(progress_out(progress)),
            }),
            JobPhase::Done(attempt) => Out::Done(attempt_out(attempt)),
        };
        proto::JobLine {
            job: Some(job_out(line.job)),
            facts: Some(facts_out(line.facts)),
            attempts: line.attempts,
            phase: Some(phase),
        }
    });
    let workers = report.workers.into_iter().map(|line| proto::WorkerLine {
        worker: line.worker.0,
        ability: Some(ability_out(line.ability)),
        running: line.running,
        total: Some(progress_out(line.total)),
    });
    let shares = report.shares.into_iter().map(|(database, used)| {
        let (database, used_millis) = (database.0, used);
        proto::ShareLine {
            database,
            used_millis,
        }
    });
    let (counts, standing) = (report.counts, report.standing);
    let local = counts.local.into_iter();
    proto::ReportReply {
        jobs: jobs.collect(),
        workers: workers.collect(),
        banned: report.banned.into_iter().map(|worker| worker.0).collect(),
        shares: shares.collect(),
        taken: counts.taken,
        done: counts.done,
        lost: counts.lost,
        failed: counts.failed,
        late: counts.late,
        refused: counts.refused,
        leads: standing.leads,
        term: standing.term.0,
        leader: standing.leader,
        local: local
            .map(|(reason, count)| (reason.word().to_owned(), count))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_jobs::job::{
        AttemptId, DatabaseId, Facts, FailureClass, Fingerprint, JobId, Pressure, SessionId, Spec,
        Zone,
    };
    use manxdb_jobs::message::{Ability, Alive, Beat, Ended, OutputVerdict, Progress};
    use std::sync::Arc;

    fn job() -> JobId {
        JobId {
            database: DatabaseId(u64::MAX),
            session: SessionId(3),
            number: 4,
        }
    }

    fn attempt(number: u32) -> AttemptId {
        AttemptId {
            job: job(),
            number,
            token: u64::MAX - 1,
        }
    }

    fn spec() -> Spec {
        Spec {
            facts: Facts {
                start_level: 1,
                output_level: 2,
                bytes: 3,
                score: -4,
                fingerprint: Fingerprint(5),
                zone: Zone(6),
            },
            input: Arc::from(&b"input"[..]),
        }
    }

    fn ability() -> Ability {
        Ability {
            fingerprints: vec![Fingerprint(1), Fingerprint(u64::MAX)],
            zone: Zone(2),
            slots: 3,
            bytes_second: 4,
            far_bytes_second: 6,
            memory: 5,
        }
    }

    fn progress(first: u64) -> Progress {
        Progress {
            compacted: first,
            fetched: first + 1,
            put: first + 2,
        }
    }

    fn ends() -> Vec<Ended> {
        vec![
            Ended::Finished(Arc::from(&b"result"[..])),
            Ended::Failed(FailureClass::Declined),
            Ended::Failed(FailureClass::Transient),
            Ended::Failed(FailureClass::Deterministic { cause: 7 }),
        ]
    }

    fn every_message() -> Vec<Message> {
        let mut all = vec![
            Message::Alive(Alive {
                database: DatabaseId(1),
                session: SessionId(2),
                beat: 3,
                weight: 4,
                pressure: Pressure {
                    files: 5,
                    files_stall: 6,
                    files_hour: 7,
                },
                waiting: vec![8, 9],
                next: 10,
                settled: vec![
                    (attempt(1), OutputVerdict::Installed),
                    (attempt(2), OutputVerdict::Refused),
                    (attempt(3), OutputVerdict::Unused),
                ],
            }),
            Message::Submit {
                job: job(),
                spec: spec(),
            },
            Message::Withdraw { job: job() },
            Message::Heard { beat: 3 },
            Message::Taken { job: job() },
            Message::Begun { job: job() },
            Message::Unknown { job: job() },
            Message::Done {
                attempt: attempt(1),
                result: Arc::from(&b"result"[..]),
            },
            Message::Beat(Beat {
                worker: WorkerId(1),
                beat: 2,
                seen: 3,
                ability: ability(),
                running: vec![(attempt(1), progress(5))],
                ended: vec![attempt(2)],
                drains: true,
                total: progress(8),
            }),
            Message::Run {
                worker: WorkerId(1),
                order: 2,
                attempt: attempt(3),
                spec: spec(),
                lease: Nanos(4),
            },
            Message::Kept {
                beat: 1,
                attempts: vec![attempt(1), attempt(2)],
                lease: Nanos(4),
            },
            Message::Stop {
                attempt: attempt(1),
            },
            Message::Recorded {
                attempt: attempt(1),
            },
            Message::NotLeader {
                leader: "10.0.0.2:7411".to_owned(),
            },
        ];
        all.extend(LocalReason::ALL.map(|reason| Message::GoLocal { job: job(), reason }));
        all.extend(ends().into_iter().map(|end| Message::Ended {
            worker: WorkerId(9),
            attempt: attempt(1),
            end,
        }));
        all
    }

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        for message in every_message() {
            assert_eq!(decode(encode(message.clone())), Ok(message));
        }
    }

    #[test]
    fn what_lacks_something_is_refused() {
        let lacking = [
            Kind::Submit(proto::Submit::default()),
            Kind::Alive(proto::Alive {
                settled: vec![proto::Settled::default()],
                ..proto::Alive::default()
            }),
            Kind::Beat(proto::Beat::default()),
            Kind::Ended(proto::Ended::default()),
            Kind::Run(proto::Run::default()),
            Kind::Stop(proto::AttemptId::default()),
            Kind::GoLocal(proto::GoLocal::default()),
        ];
        for word in lacking {
            assert!(decode(proto::Word { word: Some(word) }).is_err());
        }
        assert!(decode(proto::Word::default()).is_err());
    }
}
