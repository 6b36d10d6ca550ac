//! What a program says of the pool: the settings of `manxdb serve`, by the same names.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::transport::secrets::{Secrets, read};
use serde::Deserialize;

/// Largest `compaction_min_mb`: a terabyte.
const MIN_MB_MAX: u64 = 1 << 20;

/// Settings, as TOML.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Control planes, tried in turn.
    pub control: Vec<String>,
    /// NAME=PLACE of the storage that workers reach too.
    compaction_volume: String,
    /// Compactions of fewer MiB are done by the program.
    #[serde(default = "min_mb")]
    compaction_min_mb: u64,
    /// Where this machine is.
    #[serde(default, rename = "compaction_zone")]
    pub zone: u16,
    /// Files with the secrets of the pool.
    compaction_token_file: Option<PathBuf>,
    compaction_tls_ca: Option<PathBuf>,
    compaction_tls_cert: Option<PathBuf>,
    compaction_tls_key: Option<PathBuf>,
    #[serde(default = "tls_name")]
    compaction_tls_name: String,
    /// The program sets neither `db_paths` nor `cf_paths`.
    #[serde(default, rename = "compaction_one_path")]
    pub one_path: bool,
    /// Where metrics are served.
    #[serde(rename = "compaction_metrics")]
    pub metrics: Option<SocketAddr>,
    /// Where the log goes, if not to standard error,
    #[serde(rename = "compaction_log")]
    pub log: Option<PathBuf>,
    /// and how much of it.
    #[serde(default = "log_level", rename = "compaction_log_level")]
    pub log_level: String,
}

fn min_mb() -> u64 {
    4
}

fn tls_name() -> String {
    "localhost".to_owned()
}

fn log_level() -> String {
    "info".to_owned()
}

impl Configuration {
    /// Reads settings, or the file that has them: no settings begin with `/` or `.`.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(given: &str) -> Result<Self, String> {
        if given.starts_with(['/', '.']) {
            let path = Path::new(given.trim_end());
            return Self::parse(&read(path)?)
                .map_err(|error| format!("{}: {error}", path.display()));
        }
        Self::parse(given).map_err(|error| format!("the configuration: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let settings: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if settings.control.is_empty() {
            return Err("control is empty: give HOST:PORT of manxdb compactor control".to_owned());
        }
        Ok(settings)
    }

    /// Bytes below which compactions are done by the program.
    ///
    /// # Errors
    /// It is too much.
    pub fn bytes_min(&self) -> Result<u64, String> {
        let min_mb = self.compaction_min_mb;
        if min_mb > MIN_MB_MAX {
            return Err(format!(
                "compaction_min_mb is {min_mb} but must be at most {MIN_MB_MAX}"
            ));
        }
        Ok(min_mb << 20)
    }

    /// The volume by its name, and what it is here.
    ///
    /// # Errors
    /// It is not NAME=PLACE, or there is no such place.
    pub fn volume(&self) -> Result<(String, Volume), String> {
        let (name, volume) = Volume::named("compaction_volume", &self.compaction_volume)?;
        volume.check(&name)?;
        Ok((name, volume))
    }

    /// Files with the secrets of the pool.
    pub fn secrets(&self) -> Secrets {
        Secrets {
            token: self.compaction_token_file.clone(),
            authority: self.compaction_tls_ca.clone(),
            certificate: self.compaction_tls_cert.clone(),
            key: self.compaction_tls_key.clone(),
            server_name: self.compaction_tls_name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "control = [\"a:1\", \"b:2\"]\ncompaction_volume = \"fast=/tmp\"\n";

    fn refused(text: &str) -> String {
        let read = Configuration::read(text);
        let used = read.and_then(|read| {
            read.bytes_min()?;
            read.secrets().read()?;
            read.volume().map(|_| ())
        });
        used.unwrap_err()
    }

    #[test]
    fn what_is_left_out_is_as_with_serve() {
        let read = Configuration::read(GOOD).unwrap();
        assert_eq!(read.control, ["a:1", "b:2"]);
        assert_eq!(read.bytes_min(), Ok(4 << 20));
        assert_eq!((read.zone, read.one_path, read.metrics), (0, false, None));
        assert_eq!(read.volume().unwrap().0, "fast");
        assert!(read.secrets().read().unwrap().token.is_none());
    }

    #[test]
    fn settings_may_be_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pool.toml");
        std::fs::write(&path, GOOD).unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(Configuration::read(path).unwrap().control.len(), 2);
        std::fs::write(path, "control = 7\n").unwrap();
        let error = refused(path);
        assert!(error.contains(path) && error.contains("line 1"), "{error}");
        assert!(refused("/not/there").contains("cannot read /not/there"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let more = |line: &str| format!("{GOOD}{line}\n");
        for (text, words) in [
            (String::new(), "control"),
            (
                "control = []\ncompaction_volume = \"a=/tmp\"".to_owned(),
                "control is empty",
            ),
            ("control = [\"a:1\"]".to_owned(), "compaction_volume"),
            (more("compaction_speed = 9"), "compaction_speed"),
            (more("compaction_min_mb = 99999999"), "at most"),
            (more("compaction_tls_ca = \"/ca\""), "belong together"),
            (more("compaction_token_file = \"/not there\""), "/not there"),
            (GOOD.replace("fast=", "fast"), "is NAME=PLACE"),
            (
                GOOD.replace("/tmp", "/not there"),
                "volume fast: /not there",
            ),
        ] {
            let error = refused(&text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
