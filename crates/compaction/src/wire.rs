//! Words of the protocol as they travel: protobuf, checked when they arrive.

use manxdb_core::Nanos;
use manxdb_jobs::Message;
use manxdb_jobs::control::Report;
use manxdb_jobs::control::report::Phase;
use manxdb_jobs::job::{
    AttemptId, DatabaseId, Facts, FailureClass, Fingerprint, JobId, LocalReason, Pressure,
    SessionId, Spec, WorkerId, Zone,
};
use manxdb_jobs::message::{Ability, Alive, Beat, Ended, Progress, Verdict};

/// The generated types and services.
#[allow(missing_docs, clippy::pedantic, clippy::disallowed_methods)]
pub mod proto {
    tonic::include_proto!("manxdb.compaction.v1");
}

use proto::word::Word as Kind;

/// Largest message in bytes: the same for all who send and receive.
pub const MESSAGE_MAX: usize = 16 << 20;

/// Room in a message for all but the description of a job or of its result.
const FRAME_MAX: usize = 4 << 10;

/// Largest description of a job or of its result, in bytes.
pub const DESCRIPTION_MAX: usize = MESSAGE_MAX - FRAME_MAX;

/// A message as it travels; none, and a word in the log, if it is too large: it would break the
/// stream that carries all others. Who makes descriptions keeps them within [`DESCRIPTION_MAX`],
/// so that this is never met.
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

fn job_out(job: JobId) -> proto::JobId {
    proto::JobId {
        database: job.database.0,
        session: job.session.0,
        number: job.number,
    }
}

fn job_in(job: proto::JobId) -> JobId {
    JobId {
        database: DatabaseId(job.database),
        session: SessionId(job.session),
        number: job.number,
    }
}

fn attempt_out(attempt: AttemptId) -> proto::AttemptId {
    proto::AttemptId {
        job: Some(job_out(attempt.job)),
        number: attempt.number,
        token: attempt.token,
    }
}

fn attempt_in(attempt: proto::AttemptId) -> Result<AttemptId, Invalid> {
    Ok(AttemptId {
        job: job_in(attempt.job.ok_or(Invalid("an attempt without a job"))?),
        number: attempt.number,
        token: attempt.token,
    })
}

fn some_attempt(attempt: Option<proto::AttemptId>) -> Result<AttemptId, Invalid> {
    attempt_in(attempt.ok_or(Invalid("it names no attempt"))?)
}

fn some_job(job: Option<proto::JobId>) -> Result<JobId, Invalid> {
    job.map(job_in).ok_or(Invalid("it names no job"))
}

fn facts_out(facts: Facts) -> proto::Facts {
    proto::Facts {
        start_level: facts.start_level.into(),
        output_level: facts.output_level.into(),
        bytes: facts.bytes,
        score: facts.score,
        fingerprint: facts.fingerprint.0,
        zone: facts.zone.0.into(),
    }
}

fn facts_in(facts: proto::Facts) -> Result<Facts, Invalid> {
    let level = |level: u32| u8::try_from(level).map_err(|_| Invalid("a level above 255"));
    Ok(Facts {
        start_level: level(facts.start_level)?,
        output_level: level(facts.output_level)?,
        bytes: facts.bytes,
        score: facts.score,
        fingerprint: Fingerprint(facts.fingerprint),
        zone: zone_in(facts.zone)?,
    })
}

fn zone_in(zone: u32) -> Result<Zone, Invalid> {
    u16::try_from(zone)
        .map(Zone)
        .map_err(|_| Invalid("a zone above 65535"))
}

fn spec_out(spec: Spec) -> proto::Spec {
    proto::Spec {
        facts: Some(facts_out(spec.facts)),
        input: spec.input.to_vec(),
    }
}

fn some_spec(spec: Option<proto::Spec>) -> Result<Spec, Invalid> {
    let spec = spec.ok_or(Invalid("a job without its description"))?;
    Ok(Spec {
        facts: facts_in(spec.facts.ok_or(Invalid("a job without facts"))?)?,
        input: spec.input.into(),
    })
}

fn ability_out(ability: Ability) -> proto::Ability {
    proto::Ability {
        fingerprints: ability.fingerprints.iter().map(|one| one.0).collect(),
        zone: ability.zone.0.into(),
        slots: ability.slots,
        bytes_second: ability.bytes_second,
        memory: ability.memory,
    }
}

/// Kinds of databases that one worker may know.
const FINGERPRINTS_MAX: usize = 256;

fn ability_in(ability: proto::Ability) -> Result<Ability, Invalid> {
    if ability.fingerprints.len() > FINGERPRINTS_MAX {
        return Err(Invalid("a worker with too many fingerprints"));
    }
    let fingerprints = ability.fingerprints.into_iter().map(Fingerprint);
    Ok(Ability {
        fingerprints: fingerprints.collect(),
        zone: zone_in(ability.zone)?,
        slots: ability.slots,
        bytes_second: ability.bytes_second,
        memory: ability.memory,
    })
}

fn alive_out(alive: Alive) -> proto::Alive {
    proto::Alive {
        database: alive.database.0,
        session: alive.session.0,
        beat: alive.beat,
        weight: alive.weight,
        pressure: Some(proto::Pressure {
            files: alive.pressure.files,
            files_stall: alive.pressure.files_stall,
            files_hour: alive.pressure.files_hour,
        }),
        waiting: alive.waiting,
        next: alive.next,
        settled: alive.settled.into_iter().map(settled_out).collect(),
    }
}

fn alive_in(alive: proto::Alive) -> Result<Alive, Invalid> {
    let pressure = alive.pressure.unwrap_or_default();
    Ok(Alive {
        database: DatabaseId(alive.database),
        session: SessionId(alive.session),
        beat: alive.beat,
        weight: alive.weight,
        pressure: Pressure {
            files: pressure.files,
            files_stall: pressure.files_stall,
            files_hour: pressure.files_hour,
        },
        waiting: alive.waiting,
        next: alive.next,
        settled: alive
            .settled
            .into_iter()
            .map(settled_in)
            .collect::<Result<_, _>>()?,
    })
}

fn beat_out(beat: Beat) -> proto::Beat {
    let running = beat.running.into_iter().map(|(attempt, progress)| {
        let (attempt, progress) = (Some(attempt_out(attempt)), Some(progress_out(progress)));
        proto::Running { attempt, progress }
    });
    proto::Beat {
        worker: beat.worker.0,
        beat: beat.beat,
        seen: beat.seen,
        ability: Some(ability_out(beat.ability)),
        running: running.collect(),
        ended: beat.ended.into_iter().map(attempt_out).collect(),
        drains: beat.drains,
        total: Some(progress_out(beat.total)),
    }
}

fn progress_out(progress: Progress) -> proto::Progress {
    proto::Progress {
        compacted: progress.compacted,
        fetched: progress.fetched,
        put: progress.put,
    }
}

/// Who says nothing has done nothing.
fn progress_in(progress: Option<proto::Progress>) -> Progress {
    let progress = progress.unwrap_or_default();
    Progress {
        compacted: progress.compacted,
        fetched: progress.fetched,
        put: progress.put,
    }
}

fn beat_in(beat: proto::Beat) -> Result<Beat, Invalid> {
    let running = beat.running.into_iter();
    let running = running.map(|one| Ok((some_attempt(one.attempt)?, progress_in(one.progress))));
    let ability = beat.ability.ok_or(Invalid("a worker without abilities"))?;
    Ok(Beat {
        worker: WorkerId(beat.worker),
        beat: beat.beat,
        seen: beat.seen,
        ability: ability_in(ability)?,
        running: running.collect::<Result<_, _>>()?,
        ended: attempts_in(beat.ended)?,
        drains: beat.drains,
        total: progress_in(beat.total),
    })
}

fn attempts_in(attempts: Vec<proto::AttemptId>) -> Result<Vec<AttemptId>, Invalid> {
    attempts.into_iter().map(attempt_in).collect()
}

fn end_out(end: Ended) -> proto::ended::End {
    use proto::ended::End;
    match end {
        Ended::Finished(result) => End::Finished(result.to_vec()),
        Ended::Failed(FailureClass::Declined) => End::Declined(proto::Nothing {}),
        Ended::Failed(FailureClass::Transient) => End::Transient(proto::Nothing {}),
        Ended::Failed(FailureClass::Deterministic { cause }) => {
            End::Deterministic(proto::Deterministic { cause })
        }
    }
}

fn ended_in(ended: proto::Ended) -> Result<Message, Invalid> {
    use proto::ended::End;
    let end = match ended
        .end
        .ok_or(Invalid("an attempt that ended in no way"))?
    {
        End::Finished(result) => Ended::Finished(result.into()),
        End::Declined(_) => Ended::Failed(FailureClass::Declined),
        End::Transient(_) => Ended::Failed(FailureClass::Transient),
        End::Deterministic(proto::Deterministic { cause }) => {
            Ended::Failed(FailureClass::Deterministic { cause })
        }
    };
    Ok(Message::Ended {
        worker: WorkerId(ended.worker),
        attempt: some_attempt(ended.attempt)?,
        end,
    })
}

fn settled_out((attempt, verdict): (AttemptId, Verdict)) -> proto::Settled {
    let verdict = match verdict {
        Verdict::Installed => proto::Verdict::Installed,
        Verdict::Refused => proto::Verdict::Refused,
        Verdict::Unused => proto::Verdict::Unused,
    };
    proto::Settled {
        attempt: Some(attempt_out(attempt)),
        verdict: verdict.into(),
    }
}

fn settled_in(settled: proto::Settled) -> Result<(AttemptId, Verdict), Invalid> {
    let verdict = match settled.verdict() {
        proto::Verdict::Installed => Verdict::Installed,
        proto::Verdict::Refused => Verdict::Refused,
        proto::Verdict::Unused => Verdict::Unused,
    };
    Ok((some_attempt(settled.attempt)?, verdict))
}

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

/// A message that arrived.
///
/// # Errors
/// [`Invalid`] says what it lacks.
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
            Phase::Waiting => Out::Waiting(proto::Nothing {}),
            Phase::Running(worker, progress) => Out::Running(proto::RunningOn {
                worker: worker.0,
                progress: Some(progress_out(progress)),
            }),
            Phase::Done(attempt) => Out::Done(attempt_out(attempt)),
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
                    (attempt(1), Verdict::Installed),
                    (attempt(2), Verdict::Refused),
                    (attempt(3), Verdict::Unused),
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
