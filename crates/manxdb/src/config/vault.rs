//! The vault's settings.

use std::path::{Path, PathBuf};

use manxdb_vault::MasterKeySource;

use super::file::Keys;
use super::resolve::{Resolver, path, quoted};
use super::rows::Rows;
use crate::cli::VaultArgs;
use crate::fault::Fault;

/// Where keys of people are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSettings {
    /// The first place.
    pub first: PathBuf,
    /// The second one.
    pub mirror: PathBuf,
    /// Where the master key comes from; `None`: no rows are sealed, unless a vault is there.
    pub master: Option<MasterKeySource>,
}

/// Settles them.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub(super) fn settle(
    r: &mut Resolver<'_>,
    args: &VaultArgs,
    keys: &Keys,
    data: &Path,
    rows: &Rows,
) -> Result<VaultSettings, Fault> {
    let beside = |suffix: &str| {
        let mut name = data.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let first = r.pick(
        "vault",
        args.vault.as_ref(),
        keys.vault.as_ref(),
        Some(beside("-vault")),
        path,
    );
    let mirror = r.pick(
        "vault_mirror",
        args.vault_mirror.as_ref(),
        keys.vault_mirror.as_ref(),
        Some(beside("-vault-mirror")),
        path,
    );
    let file = r.pick(
        "master_key_file",
        args.master_key_file.as_ref(),
        keys.master_key_file.as_ref(),
        None,
        path,
    );
    let variable = r.pick(
        "master_key_env",
        args.master_key_env.as_ref(),
        keys.master_key_env.as_ref(),
        None,
        quoted,
    );
    let command = r.pick(
        "master_key_command",
        args.master_key_command.as_ref(),
        keys.master_key_command.as_ref(),
        None,
        quoted,
    );
    let mut sources = [
        file.map(MasterKeySource::File),
        variable.map(MasterKeySource::Environment),
        command.map(MasterKeySource::Command),
    ]
    .into_iter()
    .flatten();
    let settings = VaultSettings {
        first: first.unwrap_or_else(|| beside("-vault")),
        mirror: mirror.unwrap_or_else(|| beside("-vault-mirror")),
        master: sources.next(),
    };
    if sources.next().is_some() {
        return Err(Fault::Config(
            "master_key_file, master_key_env and master_key_command are three ways to give one \
             key: set one of them"
                .to_owned(),
        ));
    }
    if settings.master.is_some() && *rows != Rows::Local {
        return Err(Fault::Config(
            "a master key is given, but commit_path is \"rsi\" or \"curp\": servers share rows there and no \
             vault, so that what one seals the others could not open"
                .to_owned(),
        ));
    }
    check_places(&settings, data)?;
    Ok(settings)
}

/// A copy of the data directory must hold neither keys nor what wraps them.
fn check_places(settings: &VaultSettings, data: &Path) -> Result<(), Fault> {
    let mut places = vec![
        ("vault", &settings.first),
        ("vault_mirror", &settings.mirror),
    ];
    if let Some(MasterKeySource::File(file)) = &settings.master {
        places.push(("master_key_file", file));
    }
    let inside = |place: &Path| absolute(place).starts_with(absolute(data));
    match places.into_iter().find(|(_, place)| inside(place)) {
        None => Ok(()),
        Some((name, place)) => Err(Fault::Config(format!(
            "{name} is {}, in the data directory: every copy of that would hold the keys of \
             people who are forgotten later; name a place outside",
            place.display()
        ))),
    }
}

/// The path from the root, links followed as far as it is there.
fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (std::fs::canonicalize(above), path.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::resolved;
    use super::*;

    #[test]
    fn the_vault_is_beside_the_data_and_has_one_master_key() {
        let (settings, _) = resolved(&["--data", "d"], "").unwrap();
        assert_eq!(settings.vault.first, Path::new("d-vault"));
        assert_eq!(settings.vault.master, None);
        let (settings, _) = resolved(&["--master-key-env", "KEY"], "").unwrap();
        let expected = MasterKeySource::Environment("KEY".into());
        assert_eq!(settings.vault.master, Some(expected));
        let refused = [
            (
                "master_key_env = \"A\"\nmaster_key_command = \"b\"",
                "one of them",
            ),
            ("data = \"d\"\nvault = \"d/vault\"", "vault is d/vault"),
            (
                "data = \"d\"\nmaster_key_file = \"d/key\"",
                "in the data directory",
            ),
        ];
        for (text, expected) in refused {
            let error = resolved(&[], text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = resolved(
            &[],
            "commit_path = \"rsi\"\nmemory = \"m.toml\"\nmaster_key_env = \"A\"",
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("rsi"), "{error}");
    }
}
