//! A real S3 server, which the tests start: moto, in the Python environment of `scripts/setup.sh
//! test`. Run by `make test`, or `cargo test -p manxdb-compaction --test stores -- --ignored`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_compaction::object_store::objects::{Objects, Stop};
use manxdb_jobs::job::LocalReason;
use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::pool::Pool;

/// A server that ends with the test.
pub struct Server {
    process: Child,
    address: String,
}

/// Prints its address once it listens: the port is the system's choice.
const PROGRAM: &str = "
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print('%s:%d' % server.get_host_and_port(), flush=True)
import sys; sys.stdin.read()
";

impl Server {
    pub fn start() -> Self {
        let python = crate::root().join(".venv/bin/python");
        let mut process = Command::new(&python)
            .args(["-c", PROGRAM])
            .stdin(Stdio::piped()) // it ends when this does
            .stdout(Stdio::piped())
            .stderr(Stdio::null()) // a line for each request
            .spawn()
            .unwrap_or_else(|error| {
                let python = python.display();
                panic!("{python}: {error}; scripts/setup.sh test makes it")
            });
        let mut address = String::new();
        let mut lines = BufReader::new(process.stdout.as_mut().unwrap());
        lines.read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(
            !address.is_empty(),
            "moto did not start: scripts/setup.sh test installs it"
        );
        let server = Self { process, address };
        server.make_bucket("bucket");
        server
    }

    fn make_bucket(&self, name: &str) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let address = &self.address;
        write!(
            stream,
            "PUT /{name} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    pub fn store(&self) -> Arc<dyn ObjectStore> {
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 2,
            retry_timeout: Duration::from_secs(10),
        };
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://{}", self.address))
            .with_allow_http(true)
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_retry(retry)
            .with_region("us-east-1")
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_bucket_name("bucket")
            .build();
        Arc::new(store.unwrap())
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let began = Instant::now();
        while TcpStream::connect(&self.address).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
#[ignore = "needs moto: make test"]
fn s3_databases_compact_and_leave_only_copies_of_their_files() {
    let server = Server::start();
    crate::databases_compact(&Pool::start(server.store()));
}

#[test]
#[ignore = "needs moto: make test"]
fn s3_outputs_that_were_tampered_with_are_refused() {
    let server = Server::start();
    crate::tampered_outputs_are_refused(server.store());
}

#[test]
#[ignore = "needs moto: make test"]
fn s3_that_is_killed_sends_compactions_home() {
    let mut server = Server::start();
    let pool = Pool::start(server.store());
    let (_, installed) = pool.fill_as_at_home(31);
    assert!(installed >= 3);
    server.kill();
    let (local, installed) = pool.fill_as_at_home(37);
    assert_eq!(installed, 0);
    assert!(local(LocalReason::Storage) >= 3);
}

#[test]
#[ignore = "needs moto: make test"]
fn s3_takes_and_gives_large_files() {
    let server = Server::start();
    let objects = Objects::new(server.store(), "large").unwrap();
    large_files_come_and_go(&Arc::new(objects));
}

/// Larger than one request.
pub fn large_files_come_and_go(objects: &Arc<Objects>) {
    let transfer = objects.transfer("base", &Arc::<Stop>::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    let numbers = 0..25_u32 << 20;
    let bytes: Vec<u8> = numbers
        .map(|number| (number / 7).to_be_bytes()[3])
        .collect();
    std::fs::write(&from, &bytes).unwrap();
    let object = transfer.put_file("some/file", &from).unwrap();
    transfer.fetch_file(&object, &to).unwrap();
    assert!(std::fs::read(&to).unwrap() == bytes);
    let all = bytes.len() as u64;
    let moved = transfer.moved();
    assert_eq!((moved.put, moved.fetched), (all, all));
    let keys = transfer.list("").unwrap();
    assert_eq!(keys, ["some/file"]);
    transfer.remove(&keys).unwrap();
    assert_eq!(transfer.list("").unwrap(), [""; 0]);
}
