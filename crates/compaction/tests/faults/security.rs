//! Who is not let in finds out why, and so does the control plane's operator; databases compact
//! at home meanwhile.

use std::path::{Path, PathBuf};

use manxdb_compaction::transport::security::{Security, Tls};
use manxdb_compaction::transport::wire::proto::ReportRequest;
use manxdb_compaction::transport::wire::proto::pool_client::PoolClient;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::cluster::Cluster;
use crate::process::until;
use crate::settings::Settings;

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Certificate and key for a name.
    pub fn sign(&self, name: &str, is_expired: bool) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if is_expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// Certificates of many kinds, in files.
struct Office {
    directory: tempfile::TempDir,
    ours: Authority,
    others: Authority,
}

impl Office {
    fn new() -> Self {
        let office = Self {
            directory: tempfile::tempdir().unwrap(),
            ours: Authority::new("ours"),
            others: Authority::new("others"),
        };
        let (ours, others) = (&office.ours, &office.others);
        office.write("right", &ours.pem, ours.sign("localhost", false));
        office.write(
            "other_authority",
            &ours.pem,
            others.sign("localhost", false),
        );
        office.write("distrustful", &others.pem, ours.sign("localhost", false));
        office.write("expired", &ours.pem, ours.sign("localhost", true));
        office
    }

    fn prefix(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, authority: &str, (certificate, key): (String, String)) {
        for (end, pem) in [("ca", authority), ("cert", &certificate), ("key", &key)] {
            std::fs::write(self.prefix(name).with_extension(end), pem).unwrap();
        }
    }

    fn text(&self, name: &str) -> String {
        self.prefix(name).display().to_string()
    }
}

fn read(prefix: &Path) -> Tls {
    let read = |end| std::fs::read_to_string(prefix.with_extension(end)).unwrap();
    Tls {
        authority: read("ca"),
        certificate: read("cert"),
        key: read("key"),
        server_name: "localhost".to_owned(),
    }
}

/// A pool that asks for certificates and a token.
fn guarded(office: &Office, certificate: &str) -> Cluster {
    let common = Settings::default()
        .with("tls", office.text(certificate))
        .with("token", "right");
    let security = Security {
        token: Some("right".to_owned()),
        tls: Some(read(&office.prefix("right"))),
    };
    Cluster::with(&common, security)
}

/// What is wrong with who comes.
type Wrong<'a> = &'a [(&'a str, &'a str)];

#[test]
fn with_the_right_certificates_and_token_everybody_is_let_in() {
    let office = Office::new();
    let mut cluster = guarded(&office, "right");
    let _worker = cluster.worker(&[]);
    let mut database = cluster.database(&[]);
    until("it works", || database.count("installed") > 1);
    cluster.finish(vec![database]);
}

#[test]
fn whoever_is_not_let_in_finds_out_why_and_compacts_at_home() {
    let office = Office::new();
    let mut cluster = guarded(&office, "right");
    let _worker = cluster.worker(&[]);
    let (other_authority, distrustful) =
        (office.text("other_authority"), office.text("distrustful"));
    let expired = office.text("expired");
    // Who it is, what its log says, and the control plane's.
    let cases: [(Wrong<'_>, &str, &str); 7] = [
        (&[("tls", &other_authority)], "UnknownCA", "UnknownIssuer"),
        (&[("tls", &distrustful)], "UnknownIssuer", "UnknownCA"),
        (&[("tls", &expired)], "CertificateExpired", "expired"),
        (
            &[("tls_name", "other")],
            "not valid for name",
            "BadCertificate",
        ),
        (
            &[("tls", "")],
            "the control plane may ask for TLS",
            "InvalidContentType",
        ),
        (
            &[("token", "wrong")],
            "asks for its token",
            "it said a wrong token",
        ),
        (&[("token", "")], "asks for its token", "it said no token"),
    ];
    let mut databases = Vec::new();
    for (wrong, at_home, at_control) in cases {
        let slow = [&[("pause_us", "10000")], wrong].concat();
        let mut database = cluster.database(&slow);
        database.logs(&["no control plane here", at_home]);
        cluster
            .control()
            .logs(&["a connection is refused", at_control]);
        until("it compacts at home", || database.count("away") > 0);
        assert_eq!(database.count("installed"), 0);
        databases.push(database);
    }
    cluster.finish(databases);
}

#[test]
fn whoever_shows_no_certificate_is_not_let_in() {
    let office = Office::new();
    let mut cluster = guarded(&office, "right");
    let authority = Certificate::from_pem(read(&office.prefix("right")).authority);
    let tls = ClientTlsConfig::new()
        .ca_certificate(authority)
        .domain_name("localhost");
    let endpoint = Endpoint::from_shared(format!("https://{}", cluster.address)).unwrap();
    let endpoint = endpoint.tls_config(tls).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut client = PoolClient::new(endpoint.connect_lazy());
        let error = client.report(ReportRequest {}).await.unwrap_err();
        assert!(
            format!("{error:?}").contains("CertificateRequired"),
            "{error:?}"
        );
    });
    cluster
        .control()
        .logs(&["a connection is refused", "peer sent no certificates"]);
}

#[test]
fn a_control_plane_whose_certificate_expired_is_not_trusted() {
    let office = Office::new();
    let mut cluster = guarded(&office, "expired");
    let mut database = cluster.database(&[("tls", &office.text("right"))]);
    database.logs(&["no control plane here", "expired"]);
    cluster
        .control()
        .logs(&["a connection is refused", "CertificateExpired"]);
    until("it compacts at home", || database.count("away") > 0);
    let why = cluster.route().report().unwrap_err();
    assert!(why.contains("expired"), "{why}");
    cluster.kill_control();
    cluster.finish(vec![database]);
}

#[test]
fn certificates_that_are_none_are_refused_at_the_start() {
    let office = Office::new();
    let right = read(&office.prefix("right"));
    let none = "no PEM".to_owned();
    let cases = [
        (
            Tls {
                authority: none.clone(),
                ..right.clone()
            },
            "the authority's certificate",
        ),
        (
            Tls {
                certificate: none.clone(),
                ..right.clone()
            },
            "our certificate",
        ),
        (
            Tls {
                key: none,
                ..right.clone()
            },
            "the key of our certificate",
        ),
    ];
    for (tls, words) in cases {
        let error = tls.acceptor().err().unwrap();
        assert!(error.contains(words), "{error}");
        let error = tls.client().unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let other = read(&office.prefix("other_authority"));
    let mismatched = Tls {
        key: other.key,
        ..right
    };
    let error = mismatched.acceptor().err().unwrap();
    assert!(error.contains("do not fit"), "{error}");
}
