//! What words are made of, on the way out and in.

use manxdb_jobs::Message;
use manxdb_jobs::job::{
    AttemptId, DatabaseId, Facts, FailureClass, Fingerprint, JobId, Pressure, SessionId, Spec,
    WorkerId, Zone,
};
use manxdb_jobs::message::{Ability, Alive, Beat, Ended, OutputVerdict, Progress};

use super::{Invalid, proto};

pub(super) fn job_out(job: JobId) -> proto::JobId {
    proto::JobId {
        database: job.database.0,
        session: job.session.0,
        number: job.number,
    }
}

pub(super) fn job_in(job: proto::JobId) -> JobId {
    JobId {
        database: DatabaseId(job.database),
        session: SessionId(job.session),
        number: job.number,
    }
}

pub(super) fn attempt_out(attempt: AttemptId) -> proto::AttemptId {
    proto::AttemptId {
        job: Some(job_out(attempt.job)),
        number: attempt.number,
        token: attempt.token,
    }
}

pub(super) fn attempt_in(attempt: proto::AttemptId) -> Result<AttemptId, Invalid> {
    Ok(AttemptId {
        job: job_in(attempt.job.ok_or(Invalid("an attempt without a job"))?),
        number: attempt.number,
        token: attempt.token,
    })
}

pub(super) fn some_attempt(attempt: Option<proto::AttemptId>) -> Result<AttemptId, Invalid> {
    attempt_in(attempt.ok_or(Invalid("it names no attempt"))?)
}

pub(super) fn some_job(job: Option<proto::JobId>) -> Result<JobId, Invalid> {
    job.map(job_in).ok_or(Invalid("it names no job"))
}

pub(super) fn facts_out(facts: Facts) -> proto::Facts {
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

pub(super) fn spec_out(spec: Spec) -> proto::Spec {
    proto::Spec {
        facts: Some(facts_out(spec.facts)),
        input: spec.input.to_vec(),
    }
}

pub(super) fn some_spec(spec: Option<proto::Spec>) -> Result<Spec, Invalid> {
    let spec = spec.ok_or(Invalid("a job without its description"))?;
    Ok(Spec {
        facts: facts_in(spec.facts.ok_or(Invalid("a job without facts"))?)?,
        input: spec.input.into(),
    })
}

pub(super) fn ability_out(ability: Ability) -> proto::Ability {
    proto::Ability {
        fingerprints: ability.fingerprints.iter().map(|one| one.0).collect(),
        zone: ability.zone.0.into(),
        slots: ability.slots,
        bytes_second: ability.bytes_second,
        far_bytes_second: ability.far_bytes_second,
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
        far_bytes_second: ability.far_bytes_second,
        memory: ability.memory,
    })
}

pub(super) fn alive_out(alive: Alive) -> proto::Alive {
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

pub(super) fn alive_in(alive: proto::Alive) -> Result<Alive, Invalid> {
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

pub(super) fn beat_out(beat: Beat) -> proto::Beat {
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

pub(super) fn progress_out(progress: Progress) -> proto::Progress {
    proto::Progress {
        compacted: progress.compacted,
        fetched: progress.fetched,
        put: progress.put,
    }
}

/// An absent field means no progress.
fn progress_in(progress: Option<proto::Progress>) -> Progress {
    let progress = progress.unwrap_or_default();
    Progress {
        compacted: progress.compacted,
        fetched: progress.fetched,
        put: progress.put,
    }
}

pub(super) fn beat_in(beat: proto::Beat) -> Result<Beat, Invalid> {
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

pub(super) fn attempts_in(attempts: Vec<proto::AttemptId>) -> Result<Vec<AttemptId>, Invalid> {
    attempts.into_iter().map(attempt_in).collect()
}

pub(super) fn end_out(end: Ended) -> proto::ended::End {
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

pub(super) fn ended_in(ended: proto::Ended) -> Result<Message, Invalid> {
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

fn settled_out((attempt, verdict): (AttemptId, OutputVerdict)) -> proto::Settled {
    let verdict = match verdict {
        OutputVerdict::Installed => proto::Verdict::Installed,
        OutputVerdict::Refused => proto::Verdict::Refused,
        OutputVerdict::Unused => proto::Verdict::Unused,
    };
    proto::Settled {
        attempt: Some(attempt_out(attempt)),
        verdict: verdict.into(),
    }
}

fn settled_in(settled: proto::Settled) -> Result<(AttemptId, OutputVerdict), Invalid> {
    let verdict = match settled.verdict() {
        proto::Verdict::Installed => OutputVerdict::Installed,
        proto::Verdict::Refused => OutputVerdict::Refused,
        proto::Verdict::Unused => OutputVerdict::Unused,
    };
    Ok((some_attempt(settled.attempt)?, verdict))
}
