//! Requests to the pool: which jobs stay local, and the description of the others.

use std::fs;
use std::sync::atomic::Ordering;

use manxdb_jobs::job::{Facts, LocalReason, Spec};

use super::Remote;
use super::location::Shared;
use crate::database::blobs;
use crate::database::outputs::Expected;
use crate::database::uploads::Put;
use crate::edge::{JobFiles, JobInfo};
use crate::object_store::objects::ObjectError;
use crate::order::Order;
use crate::rocksdb_files::settings::{self, Settings};
use crate::rocksdb_files::text::{Fields, Unreadable};
use crate::seal::pack;
use crate::transport::wire::DESCRIPTION_MAX;

/// Why a job stays local.
pub(super) struct AtHome {
    pub reason: LocalReason,
    pub why: String,
}

fn unfit(why: impl ToString) -> AtHome {
    AtHome {
        reason: LocalReason::Unfit,
        why: why.to_string(),
    }
}

fn storage(error: ObjectError) -> AtHome {
    AtHome {
        reason: LocalReason::Storage,
        why: error.to_string(),
    }
}

/// RocksDB's description of a job.
struct Asked {
    names: Vec<String>,
    output_level: u64,
    options_file: u64,
    /// Of a part of a split job: its first user key,
    begin: Option<Vec<u8>>,
    /// and the one behind its last.
    end: Option<Vec<u8>>,
}

impl Asked {
    fn read(input: &[u8]) -> Result<Self, Unreadable> {
        let fields = Fields::of(input)?;
        let border = |is_there: &str, key: &str| match fields.raw(is_there)? {
            "true" => fields.bytes(key).map(Some),
            _ => Ok(None),
        };
        Ok(Self {
            names: fields.names("input_files")?,
            output_level: fields.number("output_level")?,
            options_file: fields.number("options_file_number")?,
            begin: border("has_begin", "begin")?,
            end: border("has_end", "end")?,
        })
    }

    /// The part of a range of keys that outputs may be in. A deleted range may end at the border.
    fn narrowed(&self, (first, last): (Vec<u8>, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
        let begin = self.begin.clone().unwrap_or_default();
        let end = self.end.clone().unwrap_or_else(|| last.clone());
        (first.max(begin), last.min(end))
    }
}

/// An order as it travels.
fn packed(order: &Order, files: usize) -> Result<Vec<u8>, AtHome> {
    let bytes = pack(order).map_err(unfit)?;
    if bytes.len() > DESCRIPTION_MAX {
        let length = bytes.len();
        return Err(unfit(format!(
            "its description has {length} bytes ({files} files), a message at most \
             {DESCRIPTION_MAX}"
        )));
    }
    Ok(bytes)
}

/// A job as it is handed out.
pub(super) struct Described {
    pub spec: Spec,
    pub expected: Expected,
    pub put: Option<Put>,
}

impl Remote {
    /// Translates RocksDB's description into a job for workers, and uploads what a worker needs.
    pub(super) fn describe(&self, info: &JobInfo, input: &[u8]) -> Result<Described, AtHome> {
        let asked = Asked::read(input).map_err(unfit)?;
        let options = settings::read(&self.place.database, asked.options_file).map_err(unfit)?;
        let settings = Settings::of(&options);
        let blobs = blobs::found(&self.place.database, &settings, &info.family);
        if let Some(why) = blobs.map_err(unfit)? {
            return Err(unfit(why));
        }
        let bytes = self.large_enough(&asked.names)?;
        let expected = self.expected(&asked);
        let job_files = JobFiles {
            inputs: &asked.names,
            options: &options,
        };
        let parameters = self.callbacks.parameters(info, &job_files).map_err(unfit)?;
        let expected = expected.map_err(unfit)?;
        let (database, put) = self.shown(info, &asked)?;
        let order = Order {
            volume: self.place.volume.clone(),
            database,
            copies: put.as_ref().map(|put| put.copies.clone()),
            profile: self.place.profile_id.name.to_owned(),
            parameters,
            input: input.to_vec(),
        };
        let packed = packed(&order, asked.names.len());
        if packed.is_err() {
            self.take_back(put.as_ref());
        }
        let input = packed?.into();
        let facts = self.facts(info, bytes);
        Ok(Described {
            spec: Spec { facts, input },
            expected,
            put,
        })
    }

    /// Bytes of the inputs.
    fn large_enough(&self, names: &[String]) -> Result<u64, AtHome> {
        let size = |name: &String| {
            let path = self.place.database.join(name);
            fs::metadata(&path).map(|found| found.len())
        };
        let sizes: Result<Vec<u64>, _> = names.iter().map(size).collect();
        let bytes: u64 = sizes.map_err(unfit)?.into_iter().sum();
        if bytes < self.place.bytes_min {
            return Err(AtHome {
                reason: LocalReason::Small,
                why: String::new(),
            });
        }
        Ok(bytes)
    }

    /// Where workers find the database, and the job's uploads.
    fn shown(&self, info: &JobInfo, asked: &Asked) -> Result<(String, Option<Put>), AtHome> {
        let uploads = match &self.place.shared {
            Shared::Directory(relative) => return Ok((relative.clone(), None)),
            Shared::Uploads(uploads) => uploads,
        };
        let put = uploads.put(&info.family, &asked.names, asked.options_file);
        let put = put.map_err(storage)?;
        self.counts.put.fetch_add(put.moved.put, Ordering::Relaxed);
        Ok((uploads.base().to_owned(), Some(put)))
    }

    fn facts(&self, info: &JobInfo, bytes: u64) -> Facts {
        let level = |level: i32| u8::try_from(level).unwrap_or(u8::MAX);
        Facts {
            start_level: level(info.start_level),
            output_level: level(info.output_level),
            bytes,
            score: if info.is_manual { -1 } else { 0 },
            fingerprint: self.place.profile_id.fingerprint,
            zone: self.place.zone,
        }
    }

    /// The facts against which the outputs will be verified.
    ///
    /// # Errors
    /// The database lacks a fact that it must know.
    fn expected(&self, asked: &Asked) -> Result<Expected, String> {
        let sight = self.sight.lock();
        let known = sight.as_ref().map(|opened| opened.inputs(&asked.names));
        drop(sight);
        let known = known.transpose()?.unwrap_or_default();
        let is_whole = asked.begin.is_none() && asked.end.is_none();
        Ok(Expected {
            output_level: asked.output_level,
            keys: known.keys.map(|keys| asked.narrowed(keys)),
            entries: known.entries.filter(|_| is_whole),
        })
    }
}
