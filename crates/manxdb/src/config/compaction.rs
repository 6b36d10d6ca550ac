//! Where compactions are done.

use std::ops::RangeInclusive;

use manxdb_compaction::transport::secrets::Secrets;
use manxdb_storage::Options;

use super::file::Keys;
use super::resolve::{Resolver, path, pick, plain, quoted};
use crate::cli::{CompactionArgs, CompactionChoice, SecurityArgs};
use crate::fault::Fault;

/// Largest `compaction_min_mb`: a terabyte.
const MIN_MB_MAX: usize = 1 << 20;

/// Largest `compaction_weight`.
const WEIGHT_MAX: u32 = 1_000;

/// `compaction_level0_files`: fewer are compacted all the time, more would stop writes.
const LEVEL0_FILES: RangeInclusive<u16> = 2..=20;

/// Compactions done by a pool.
#[derive(Debug, Clone)]
pub struct RemoteCompaction {
    /// Control planes.
    pub control: Vec<String>,
    /// NAME=PLACE of the storage that workers reach too.
    pub volume: String,
    /// Where this machine is.
    pub zone: u16,
    /// Its share of the pool, relative to other servers'.
    pub weight: u32,
    /// Smaller ones are done here, bytes.
    pub bytes_min: u64,
    /// Sorted files that gather on level 0 until they are compacted.
    pub level0_files: u16,
    /// Files with the secrets of the pool.
    pub security: SecurityArgs,
}

/// `$key`, which has no default.
macro_rules! unset {
    ($resolver:ident, $args:ident, $keys:ident, $key:ident, $show:expr) => {
        $resolver.pick(
            stringify!($key),
            $args.$key.as_ref(),
            $keys.$key.as_ref(),
            None,
            $show,
        )
    };
}

/// Settles the settings of compactions; none when they are done here.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub(super) fn settle(
    r: &mut Resolver<'_>,
    args: &CompactionArgs,
    keys: &Keys,
) -> Result<Option<RemoteCompaction>, Fault> {
    let choice = pick!(r, args, keys, compaction, CompactionChoice::Local, quoted);
    let list = |control: &Vec<String>| format!("{control:?}");
    let control = unset!(r, args, keys, control, list);
    let volume = unset!(r, args, keys, compaction_volume, quoted);
    let zone = pick!(r, args, keys, compaction_zone, 0, plain);
    let min_mb = pick!(r, args, keys, compaction_min_mb, 4, plain);
    let weight = pick!(r, args, keys, compaction_weight, 1, plain);
    // A compaction costs what travels: fewer, of more files each, move fewer bytes for the same rows.
    let travels = volume.as_ref().is_some_and(|volume| volume.contains("://"));
    let usual = if travels {
        8
    } else {
        Options::default().level0_files
    };
    let level0_files = pick!(r, args, keys, compaction_level0_files, usual, plain);
    let security = settle_security(r, args, keys);
    if choice == CompactionChoice::Local {
        let given = [
            ("control", control.is_some()),
            ("compaction_volume", volume.is_some()),
            ("compaction_token_file", security.token_file.is_some()),
            ("compaction_tls_ca", security.tls_ca.is_some()),
            ("compaction_tls_cert", security.tls_cert.is_some()),
            ("compaction_tls_key", security.tls_key.is_some()),
        ];
        return match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(None),
            Some((name, _)) => Err(Fault::Config(format!(
                "{name} is set, but compaction is \"local\": set compaction = \"remote\" to have \
                 compactions done by a pool, or leave {name} out"
            ))),
        };
    }
    Secrets::from(&security).check().map_err(Fault::Config)?;
    if min_mb > MIN_MB_MAX {
        return Err(Fault::Config(format!(
            "compaction_min_mb is {min_mb} but must be at most {MIN_MB_MAX}"
        )));
    }
    if !(1..=WEIGHT_MAX).contains(&weight) {
        return Err(Fault::Config(format!(
            "compaction_weight is {weight} but must be 1 to {WEIGHT_MAX}"
        )));
    }
    if !LEVEL0_FILES.contains(&level0_files) {
        return Err(Fault::Config(format!(
            "compaction_level0_files is {level0_files} but must be {} to {}",
            LEVEL0_FILES.start(),
            LEVEL0_FILES.end()
        )));
    }
    let control = control.filter(|control| !control.is_empty());
    Ok(Some(RemoteCompaction {
        control: needed(control, "control", "HOST:PORT of manxdb compactor control")?,
        volume: needed(volume, "compaction_volume", "NAME=PLACE of the storage")?,
        zone,
        weight,
        bytes_min: (min_mb as u64) << 20,
        level0_files,
        security,
    }))
}

fn needed<T>(value: Option<T>, name: &str, what: &str) -> Result<T, Fault> {
    value.ok_or_else(|| {
        Fault::Config(format!(
            "compaction is \"remote\", but {name} is not set: give {what}"
        ))
    })
}

fn settle_security(r: &mut Resolver<'_>, args: &CompactionArgs, keys: &Keys) -> SecurityArgs {
    let name = "localhost".to_owned();
    SecurityArgs {
        token_file: unset!(r, args, keys, compaction_token_file, path),
        tls_ca: unset!(r, args, keys, compaction_tls_ca, path),
        tls_cert: unset!(r, args, keys, compaction_tls_cert, path),
        tls_key: unset!(r, args, keys, compaction_tls_key, path),
        tls_name: pick!(r, args, keys, compaction_tls_name, name, quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::resolved;
    use super::WEIGHT_MAX;

    const REMOTE: &str = "compaction = \"remote\"\ncontrol = [\"a:1\", \"b:2\"]\n\
                          compaction_volume = \"fast=/mnt\"\n";

    fn error(text: &str) -> String {
        resolved(&[], text).unwrap_err().to_string()
    }

    #[test]
    fn compactions_are_local_unless_asked_otherwise() {
        assert!(resolved(&[], "").unwrap().0.compaction.is_none());
        let (settings, explained) = resolved(&["--control", "c:3,d:4"], REMOTE).unwrap();
        let remote = settings.compaction.unwrap();
        assert_eq!(remote.control, ["c:3", "d:4"]);
        assert_eq!(remote.volume, "fast=/mnt");
        assert_eq!(remote.bytes_min, 4 << 20);
        assert_eq!((remote.weight, remote.level0_files), (1, 4));
        let control = explained.iter().find(|e| e.key == "control").unwrap();
        assert_eq!(control.value, "[\"c:3\", \"d:4\"]");
        assert_eq!(control.origin, "flag --control");
    }

    #[test]
    fn what_does_not_belong_together_is_refused_by_name() {
        let wrong = error("control = [\"a:1\"]");
        assert!(
            wrong.contains("control is set, but compaction is"),
            "{wrong}"
        );
        for (left_out, name) in [(1, "control"), (2, "compaction_volume")] {
            let lines = REMOTE.lines().enumerate();
            let rest = lines.filter(|(number, _)| *number != left_out);
            let text: Vec<&str> = rest.map(|(_, line)| line).collect();
            let wrong = error(&text.join("\n"));
            assert!(wrong.contains(&format!("{name} is not set")), "{wrong}");
        }
        let wrong = error(&format!("{REMOTE}compaction_tls_ca = \"ca.pem\"\n"));
        assert!(wrong.contains("compaction_tls_key"), "{wrong}");
        assert!(error("compaction = \"far\"").contains("line 1"));
        for weight in [0, WEIGHT_MAX + 1] {
            let wrong = error(&format!("{REMOTE}compaction_weight = {weight}\n"));
            assert!(wrong.contains("must be 1 to 1000"), "{wrong}");
        }
        let wrong = error(&format!("{REMOTE}compaction_level0_files = 21\n"));
        assert!(wrong.contains("must be 2 to 20"), "{wrong}");
    }

    #[test]
    fn where_files_travel_more_of_them_are_compacted_at_once() {
        let files = |flags: &[&str]| {
            let (settings, _) = resolved(flags, REMOTE).unwrap();
            settings.compaction.unwrap().level0_files
        };
        assert_eq!(files(&["--compaction-volume", "far=s3://bucket"]), 8);
        assert_eq!(files(&["--compaction-level0-files", "12"]), 12);
    }
}
