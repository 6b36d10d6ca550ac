//! Root's password on the first start.

use crate::fault::Fault;
use crate::process::random_secret;

/// How root will log in.
pub enum RootPassword {
    /// Given by flag or environment.
    Given(String),
    /// Made up; told once.
    Generated(String),
    /// None: asked for.
    None,
}

impl RootPassword {
    /// The password, if root has one.
    pub fn password(&self) -> Option<&str> {
        match self {
            Self::Given(password) | Self::Generated(password) => Some(password),
            Self::None => None,
        }
    }

    /// What to print about it.
    pub fn told(&self) -> String {
        match self {
            Self::Given(_) => "First start: root has the password you gave.".to_owned(),
            Self::Generated(password) => format!(
                "First start: the password of root is\n\n  {password}\n\n\
                 It is shown only this once; ALTER USER root IDENTIFIED BY '…' changes it."
            ),
            Self::None => "First start: root has NO password, as asked by --insecure.".to_owned(),
        }
    }
}

/// A given password wins; without one `insecure` decides between none and a random one.
///
/// # Errors
/// An empty given password, which would be `--insecure` in disguise; no randomness.
pub fn choose_root_password(given: Option<&str>, insecure: bool) -> Result<RootPassword, Fault> {
    match given {
        Some("") => Err(Fault::Config(
            "the root password is empty: give one, or ask for none with --insecure".to_owned(),
        )),
        Some(password) => Ok(RootPassword::Given(password.to_owned())),
        None if insecure => Ok(RootPassword::None),
        None => Ok(RootPassword::Generated(random_secret()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_made_up_unless_one_is_given_or_none_asked_for() {
        let made = choose_root_password(None, false).unwrap();
        assert!(made.password().is_some_and(|password| password.len() >= 20));
        assert!(made.told().contains(made.password().unwrap()));
        let given = choose_root_password(Some("pw"), true).unwrap();
        assert_eq!(given.password(), Some("pw"));
        assert!(!given.told().contains("pw\n"));
        assert_eq!(choose_root_password(None, true).unwrap().password(), None);
        assert!(choose_root_password(Some(""), false).is_err());
    }
}
