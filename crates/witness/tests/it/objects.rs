//! The committed objects are what the sources say.

use std::path::Path;
use std::process::Command;

/// The major version of clang that made the objects.
const CLANG: &str = "14";

/// `clang version 14.0.6` of what a compiler says of itself.
fn major_version(said: &str) -> Option<&str> {
    let version = said.split("clang version ").nth(1)?;
    version.split('.').next()
}

#[test]
fn the_objects_are_made_of_the_sources_byte_for_byte() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let versioned = format!("clang-{CLANG}");
    let found = [versioned.as_str(), "clang"].into_iter().find_map(|clang| {
        let said = Command::new(clang).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        Some((clang, major_version(&said)?.to_owned()))
    });
    let Some((clang, version)) = found else {
        println!("skipped: the objects are of clang {CLANG}, and there is no clang here");
        return;
    };
    if version != CLANG {
        println!("skipped: the objects are of clang {CLANG}, and here is clang {version}");
        return;
    }
    let strip = format!("llvm-strip-{CLANG}");
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let strip = if has(&strip) { &strip } else { "llvm-strip" };
    if !has(strip) {
        println!("skipped: there is clang {version} here and no llvm-strip (package llvm-{CLANG})");
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let ran = Command::new(bpf.join("build.sh"))
        .arg(made.path())
        .env("CLANG", clang)
        .env("LLVM_STRIP", strip)
        .output()
        .unwrap();
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{complained}");
    for name in ["witness.bpf.o", "dispatch.bpf.o"] {
        let committed = std::fs::read(bpf.join(name)).unwrap();
        let made = std::fs::read(made.path().join(name)).unwrap();
        assert!(
            made == committed,
            "{name} is not what its source says: run crates/witness/bpf/build.sh crates/witness/bpf"
        );
    }
}

#[test]
fn a_version_is_read_of_what_a_compiler_says() {
    assert_eq!(
        major_version("Debian clang version 14.0.6\nTarget"),
        Some("14")
    );
    assert_eq!(major_version("gcc (Debian 12.2.0)"), None);
}
