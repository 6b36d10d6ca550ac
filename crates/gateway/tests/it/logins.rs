//! Who gets in, and what the others are told.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::support::{Greeting, Login, Packet, RawClient, TestServer, response, scramble};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use manxdb_gateway::mysql::{MysqlOptions, SERVER_VERSION};
use manxdb_gateway::password_key::PasswordKey;
use manxdb_gateway::tls;
use mysql_common::constants::CapabilityFlags as Capability;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer};

fn attempt(server: &TestServer, login: &Login) -> Packet {
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    client.log_in(&greeting, login);
    client.login_answer()
}

/// Answers an auth switch request.
fn answer_switch<S: Read + Write>(client: &mut RawClient<S>, password: &str) -> String {
    let Packet::Other(request) = Packet::of(&client.read().unwrap()) else {
        panic!("no switch request");
    };
    assert_eq!(request[0], 0xFE);
    let end = request.iter().position(|b| *b == 0).unwrap();
    let plugin = String::from_utf8(request[1..end].to_vec()).unwrap();
    let salt: [u8; 20] = request[end + 1..end + 21].try_into().unwrap();
    client.send(&scramble(&plugin, salt, password)).unwrap();
    plugin
}

#[test]
fn the_greeting_names_a_mysql_8_and_a_fresh_challenge() {
    let server = TestServer::start();
    let first = Greeting::read(&mut server.dial());
    let second = Greeting::read(&mut server.dial());
    assert_eq!(first.version, SERVER_VERSION);
    assert!(first.version.starts_with("8.0."));
    assert_eq!(first.plugin, "caching_sha2_password");
    assert_ne!(first.salt, second.salt);
    assert!(!first.salt.contains(&0));
}

#[test]
fn the_right_password_gets_in_on_the_fast_path() {
    let server = TestServer::start();
    assert_eq!(attempt(&server, &Login::default()), Packet::Ok);
}

#[test]
fn wrong_passwords_and_unknown_users_are_told_the_same() {
    let server = TestServer::start();
    let wrong = Login {
        password: "guess",
        ..Login::default()
    };
    let none = Login {
        password: "",
        ..Login::default()
    };
    let unknown = Login {
        user: "nobody",
        ..Login::default()
    };
    let Packet::Error(1045, text) = attempt(&server, &wrong) else {
        panic!("let in");
    };
    assert_eq!(
        text,
        "#28000Access denied for user 'root'@'localhost' (using password: YES)"
    );
    let Packet::Error(1045, text) = attempt(&server, &none) else {
        panic!("let in");
    };
    assert!(text.ends_with("(using password: NO)"));
    let Packet::Error(1045, text) = attempt(&server, &unknown) else {
        panic!("let in");
    };
    assert_eq!(
        text,
        "#28000Access denied for user 'nobody'@'localhost' (using password: YES)"
    );
}

#[test]
fn a_client_that_begins_with_the_other_plugin_is_switched() {
    let server = TestServer::start();
    let native = Login {
        plugin: "mysql_native_password",
        ..Login::default()
    };
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    client.log_in(&greeting, &native);
    let plugin = answer_switch(&mut client, crate::support::PASSWORD);
    assert_eq!(plugin, "caching_sha2_password");
    assert_eq!(client.login_answer(), Packet::Ok);
}

#[test]
fn an_account_with_the_old_plugin_switches_new_clients_to_it() {
    let server = TestServer::start();
    let mut root = server.connect();
    root.query("CREATE USER old IDENTIFIED WITH mysql_native_password BY 'pw'")
        .unwrap();
    let login = Login {
        user: "old",
        password: "pw",
        ..Login::default()
    };
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    client.log_in(&greeting, &login);
    let plugin = answer_switch(&mut client, "pw");
    assert_eq!(plugin, "mysql_native_password");
    assert_eq!(client.packet(), Packet::Ok);
    let mut other = server.dial();
    let greeting = Greeting::read(&mut other);
    other.log_in(&greeting, &login);
    answer_switch(&mut other, "not it");
    assert_eq!(other.packet().code(), 1045);
}

#[test]
fn a_client_without_plugins_is_told_that_it_is_too_old() {
    let server = TestServer::start();
    let login = Login {
        capabilities: Capability::CLIENT_PROTOCOL_41 | Capability::CLIENT_SECURE_CONNECTION,
        ..Login::default()
    };
    assert_eq!(attempt(&server, &login).code(), 1251);
}

#[test]
fn a_changed_user_must_prove_itself_again() {
    let server = TestServer::start();
    let mut client = server.connect();
    for (password, expected) in [(crate::support::PASSWORD, true), ("wrong", false)] {
        client.command(17, b"root\0\0\0").unwrap();
        answer_switch(&mut client, password);
        assert_eq!(client.login_answer() == Packet::Ok, expected);
    }
    assert!(client.is_closed());
}

#[test]
fn tls_is_negotiated_and_carries_the_login() {
    let directory = tempfile::tempdir().unwrap();
    let config = tls::self_signed(directory.path(), &["localhost".into()]).unwrap();
    let server = TestServer::with(MysqlOptions {
        tls: Some(config),
        ..MysqlOptions::default()
    });
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    assert!(greeting.capabilities.contains(Capability::CLIENT_SSL));
    let mut login = Login::default();
    login.capabilities |= Capability::CLIENT_SSL;
    let whole = response(&login, greeting.salt);
    client.send(&whole[..32]).unwrap();

    let certificate =
        CertificateDer::from_pem_file(directory.path().join("server-cert.pem")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut secure = RawClient {
        stream: rustls::StreamOwned::new(connection, client.stream),
        sequence: client.sequence,
    };
    secure.send(&whole).unwrap();
    assert_eq!(secure.login_answer(), Packet::Ok);
    assert_eq!(secure.ping(), Packet::Ok);

    // A wrong scramble is asked for the password itself, inside TLS only.
    secure.command(17, b"root\0\0\0").unwrap();
    answer_switch(&mut secure, "wrong scramble");
    assert_eq!(secure.packet(), Packet::Other(vec![1, 4]));
    let clear = [crate::support::PASSWORD.as_bytes(), &[0]].concat();
    secure.send(&clear).unwrap();
    assert_eq!(secure.packet(), Packet::Ok);
}

/// Begins a login whose scramble is wrong, over a connection without TLS.
fn asked_for_the_password(
    server: &TestServer,
    user: &'static str,
) -> (RawClient<TcpStream>, [u8; 20]) {
    let mut client = server.dial();
    let greeting = Greeting::read(&mut client);
    let login = Login {
        user,
        password: "another scramble",
        ..Login::default()
    };
    client.log_in(&greeting, &login);
    assert_eq!(client.packet(), Packet::Other(vec![1, 4]));
    (client, greeting.salt)
}

/// `clear`, covered with the challenge and encrypted for the key that the server sends.
fn encrypted(client: &mut RawClient<TcpStream>, salt: [u8; 20], clear: &[u8]) -> Vec<u8> {
    client.send(&[2]).unwrap();
    let Packet::Other(answer) = client.packet() else {
        panic!("no key");
    };
    assert_eq!(answer[0], 1);
    let der = SubjectPublicKeyInfoDer::from_pem_slice(&answer[1..]).unwrap();
    let key = PublicEncryptingKey::from_der(der.as_ref()).unwrap();
    let key = OaepPublicEncryptingKey::new(key).unwrap();
    let covers = salt.iter().cycle();
    let covered: Vec<u8> = clear.iter().zip(covers).map(|(a, b)| a ^ b).collect();
    let mut out = vec![0; key.ciphertext_size()];
    key.encrypt(&OAEP_SHA1_MGF1SHA1, &covered, &mut out, None)
        .unwrap();
    out
}

fn server_with_a_password_key() -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    TestServer::with(MysqlOptions {
        password_key: Some(PasswordKey::open(directory.path()).unwrap()),
        ..MysqlOptions::default()
    })
}

#[test]
fn without_tls_the_password_travels_encrypted() {
    let server = server_with_a_password_key();
    let (mut client, salt) = asked_for_the_password(&server, "root");
    let clear = [crate::support::PASSWORD.as_bytes(), &[0]].concat();
    let answer = encrypted(&mut client, salt, &clear);
    client.send(&answer).unwrap();
    assert_eq!(client.packet(), Packet::Ok);
    assert_eq!(client.ping(), Packet::Ok);
}

#[test]
fn an_encrypted_answer_gets_in_only_with_the_password_and_once() {
    let server = server_with_a_password_key();
    let right = [crate::support::PASSWORD.as_bytes(), &[0]].concat();
    for (user, clear) in [
        ("root", &b"guess\0"[..]),
        ("root", crate::support::PASSWORD.as_bytes()), // without its NUL
        ("root", b"\0"),
        ("root", b""),
        ("nobody", &right),
    ] {
        let (mut client, salt) = asked_for_the_password(&server, user);
        let answer = encrypted(&mut client, salt, clear);
        client.send(&answer).unwrap();
        assert_eq!(client.packet().code(), 1045, "{user} {clear:?}");
        assert!(client.is_closed());
    }
    // Another connection's right answer covers the password with another challenge.
    let (mut first, salt) = asked_for_the_password(&server, "root");
    let recorded = encrypted(&mut first, salt, &right);
    let (mut second, _) = asked_for_the_password(&server, "root");
    second.send(&recorded).unwrap();
    assert_eq!(second.packet().code(), 1045);
}

#[test]
fn nonsense_in_place_of_an_encrypted_password_is_a_wrong_password() {
    let server = server_with_a_password_key();
    for answer in [
        vec![],
        vec![0],
        vec![2, 2],
        vec![0xFF; 255],
        vec![0xFF; 256],
        vec![0; 256],
        vec![7; 257],
        vec![9; 60_000],
        [crate::support::PASSWORD.as_bytes(), &[0]].concat(), // in clear
    ] {
        let (mut client, _) = asked_for_the_password(&server, "root");
        client.send(&answer).unwrap();
        assert_eq!(client.packet().code(), 1045, "{} bytes", answer.len());
    }
    // The key is asked for once.
    let (mut client, _) = asked_for_the_password(&server, "root");
    client.send(&[2]).unwrap();
    assert!(matches!(client.packet(), Packet::Other(_)));
    client.send(&[2]).unwrap();
    assert_eq!(client.packet().code(), 1045);
    assert_eq!(attempt(&server, &Login::default()), Packet::Ok);
}

#[test]
fn a_server_without_a_key_asks_for_no_password_outside_of_tls() {
    let server = TestServer::start();
    let wrong = Login {
        password: "another scramble",
        ..Login::default()
    };
    assert_eq!(attempt(&server, &wrong).code(), 1045);
}
