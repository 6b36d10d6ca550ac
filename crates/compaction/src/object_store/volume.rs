//! Storage that databases and workers share, under a name that operators give it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hdfs_native_object_store::HdfsObjectStoreBuilder;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::object_store::delayed_store::DelayedStore;
use crate::object_store::objects::{Objects, Stop};

/// Time limit for retries of a request: meanwhile a compaction waits that could be done locally.
const RETRY: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(2);
const REQUEST: Duration = Duration::from_secs(20);

/// Storage that others reach too.
#[derive(Clone)]
pub enum Volume {
    /// A directory of any mounted file system. Files are worked on where they are.
    Directory(PathBuf),
    /// An object store. Copies go there and come back.
    Objects(Arc<Objects>),
}

impl Volume {
    /// Parses the location of a volume: a path, or `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`,
    /// of which only the bucket is needed. Credentials and all other settings come from the
    /// environment, as for every S3 client (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …). Or
    /// `hdfs://HOST:PORT/PREFIX` with the name node's address, or `hdfs://NAME/PREFIX` with a name
    /// that the files in `HADOOP_CONF_DIR` define. Or, for experiments on one machine,
    /// `file://PATH?delay_ms=NUMBER`: objects in a directory, with a one-way delay of that many
    /// milliseconds for every request and every answer.
    ///
    /// # Errors
    /// Which part is wrong, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("s3", rest)) => s3(rest),
            Some(("hdfs", rest)) => hdfs(rest),
            Some(("file", rest)) => file(rest),
            Some((other, _)) => Err(format!(
                "'{other}://' is no storage that is known: give a directory, s3://BUCKET/PREFIX or \
                 hdfs://HOST:PORT/PREFIX"
            )),
            None => directory(text),
        }
    }

    /// Parses `NAME=PLACE`: the operators' name of a volume, and its location on this machine.
    /// `setting` is the name of the setting, for errors.
    ///
    /// # Errors
    /// Which part is wrong, and a correct form.
    pub fn named(setting: &str, given: &str) -> Result<(String, Self), String> {
        let Some((name, place)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!(
                "{setting} is NAME=PLACE, as in fast=/mnt/fast or far=s3://bucket/prefix, and not \
                 '{given}'"
            ));
        };
        let volume = Self::parse(place).map_err(|why| wrong(name, &why))?;
        Ok((name.to_owned(), volume))
    }

    /// Whether it can be reached now; `name` is what operators call it.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let there = match self {
            Self::Directory(path) => is_directory(path),
            Self::Objects(objects) => {
                let stop = Arc::new(Stop::default());
                let transfer = objects.transfer("", &stop);
                let there = transfer.and_then(|transfer| transfer.list("no-database"));
                there.map(|_| ()).map_err(|error| error.to_string())
            }
        };
        there.map_err(|why| wrong(name, &why))
    }
}

fn wrong(name: &str, why: &str) -> String {
    format!("volume {name}: {why}")
}

fn directory(text: &str) -> Result<Volume, String> {
    is_directory(Path::new(text))?;
    Ok(Volume::Directory(text.into()))
}

fn is_directory(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        Ok(())
    } else {
        Err(format!("{} is no directory", path.display()))
    }
}

fn s3(rest: &str) -> Result<Volume, String> {
    let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    if bucket.is_empty() {
        return Err("a bucket is missing: s3://BUCKET/PREFIX".to_owned());
    }
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 5,
        retry_timeout: RETRY,
    };
    let client = ClientOptions::new()
        .with_connect_timeout(CONNECT)
        .with_timeout(REQUEST);
    let mut builder = AmazonS3Builder::from_env()
        .with_client_options(client)
        .with_retry(retry)
        .with_bucket_name(bucket);
    for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
        builder = match setting.split_once('=') {
            // An explicit http:// is deliberate.
            Some(("endpoint", url)) => builder
                .with_endpoint(url)
                .with_allow_http(url.starts_with("http://")),
            Some(("region", name)) => builder.with_region(name),
            _ => {
                return Err(format!(
                    "'{setting}' is no setting of an S3 volume: there are endpoint=URL and \
                     region=NAME"
                ));
            }
        };
    }
    let store = builder.build().map_err(|error| error.to_string())?;
    let objects = Objects::new(Arc::new(store), prefix.trim_matches('/'))?;
    Ok(Volume::Objects(Arc::new(objects)))
}

fn file(rest: &str) -> Result<Volume, String> {
    let (path, settings) = rest.split_once('?').unwrap_or((rest, "delay_ms=0"));
    let delay = settings.strip_prefix("delay_ms=");
    let Some(millis) = delay.and_then(|millis| millis.parse().ok()) else {
        return Err(format!(
            "'{settings}' is no setting of a directory with objects: there is delay_ms=NUMBER"
        ));
    };
    is_directory(Path::new(path))?;
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| error.to_string())?;
    let store = DelayedStore::new(
        Arc::new(store.with_automatic_cleanup(true)),
        Duration::from_millis(millis),
    );
    let objects = Objects::new(Arc::new(store), "")?;
    Ok(Volume::Objects(Arc::new(objects)))
}

fn hdfs(rest: &str) -> Result<Volume, String> {
    let (host, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() {
        return Err("a name node is missing: hdfs://HOST:PORT/PREFIX".to_owned());
    }
    let objects = hdfs_objects(host, prefix.trim_matches('/'))?;
    Ok(Volume::Objects(Arc::new(objects)))
}

/// A directory in HDFS as an object store.
///
/// # Errors
/// The name node's address or name is not usable.
pub fn hdfs_objects(host: &str, prefix: &str) -> Result<Objects, String> {
    // One of a pair of name nodes may be down; the timeouts allow for that and no more.
    let patience = [
        ("dfs.client.failover.max.attempts", "3"),
        ("dfs.client.failover.sleep.max.millis", "1000"),
    ];
    let store = HdfsObjectStoreBuilder::new()
        .with_url(format!("hdfs://{host}"))
        .with_config(patience)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Objects::new(Arc::new(store), prefix)?.with_directories())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match Volume::parse(text) {
            Ok(_) => panic!("{text} is a volume"),
            Err(why) => why,
        }
    }

    #[test]
    fn what_is_no_volume_is_said_with_what_would_be_one() {
        assert!(refused("/not there").contains("is no directory"));
        assert!(refused("ftp://host/a").contains("s3://BUCKET/PREFIX"));
        assert!(refused("s3:///prefix").contains("a bucket is missing"));
        assert!(refused("hdfs:///prefix").contains("a name node is missing"));
        assert!(refused("s3://bucket?speed=9").contains("endpoint=URL"));
        assert!(refused("file:///not there").contains("is no directory"));
        assert!(refused("file:///tmp?delay_ms=soon").contains("delay_ms=NUMBER"));
        assert!(refused("s3://bucket/a/../b").contains("a/../b"));
    }

    #[test]
    fn a_volume_has_a_name() {
        let here = tempfile::tempdir().unwrap();
        let place = here.path().display();
        let (name, volume) = Volume::named("--volume", &format!("fast={place}")).unwrap();
        assert_eq!((name.as_str(), volume.check("fast")), ("fast", Ok(())));
        let why = |given: &str| Volume::named("--volume", given).map(|_| ()).unwrap_err();
        for given in ["fast", "=/tmp"] {
            assert!(why(given).contains("--volume is NAME=PLACE"), "{given}");
        }
        assert!(why("fast=/not there").starts_with("volume fast: /not there"));
    }

    #[test]
    fn a_directory_and_a_bucket_are_volumes() {
        let here = tempfile::tempdir().unwrap();
        let text = here.path().to_str().unwrap();
        assert!(matches!(Volume::parse(text), Ok(Volume::Directory(_))));
        let bucket = "s3://bucket/some/where?endpoint=http://127.0.0.1:1&region=eu-1";
        assert!(matches!(Volume::parse(bucket), Ok(Volume::Objects(_))));
    }
}
