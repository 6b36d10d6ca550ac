//! SHOW GRANTS and SHOW CREATE USER.

use super::password;
use super::privilege::{Level, Privileges};
use super::record::Account;

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn line(set: Privileges, level: Level, target: &str, account: &Account) -> String {
    let all = Privileges::all(level);
    let names = set.without(Privileges::GRANT_OPTION).names();
    let list = if names.is_empty() {
        "USAGE".to_string()
    } else if set.has(all) && level != Level::Global {
        "ALL PRIVILEGES".to_string()
    } else {
        names.join(", ")
    };
    let option = if set.has(Privileges::GRANT_OPTION) {
        " WITH GRANT OPTION"
    } else {
        ""
    };
    format!(
        "GRANT {list} ON {target} TO {}{option}",
        account.key.quoted('`')
    )
}

/// One GRANT statement a line.
pub(crate) fn grants(account: &Account) -> Vec<String> {
    let mut lines = vec![line(account.global, Level::Global, "*.*", account)];
    for (database, set) in &account.databases {
        let target = format!("{}.*", quoted(database));
        lines.push(line(*set, Level::Database, &target, account));
    }
    for ((database, table), set) in &account.tables {
        let target = format!("{}.{}", quoted(database), quoted(table));
        lines.push(line(*set, Level::Table, &target, account));
    }
    lines
}

/// The statement that makes the account.
pub(crate) fn create_user(account: &Account) -> String {
    let hash = password::shown(&account.plugin, &account.verifier);
    let proof = if hash.is_empty() {
        String::new()
    } else {
        format!(" AS '{hash}'")
    };
    let lock = if account.locked { "LOCK" } else { "UNLOCK" };
    format!(
        "CREATE USER {} IDENTIFIED WITH '{}'{proof} REQUIRE NONE PASSWORD EXPIRE DEFAULT \
         ACCOUNT {lock} PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT \
         PASSWORD REQUIRE CURRENT DEFAULT",
        account.key.quoted('`'),
        account.plugin
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::accounts::AccountKey;

    #[test]
    fn grants_are_shown_level_by_level() {
        let mut account = Account::new(AccountKey {
            user: "ann".into(),
            host: "%".into(),
        });
        account
            .databases
            .insert("shop".into(), Privileges::all(Level::Database));
        account.tables.insert(
            ("crm".into(), "people".into()),
            Privileges::SELECT.with(Privileges::GRANT_OPTION),
        );
        assert_eq!(
            grants(&account),
            vec![
                "GRANT USAGE ON *.* TO `ann`@`%`",
                "GRANT ALL PRIVILEGES ON `shop`.* TO `ann`@`%`",
                "GRANT SELECT ON `crm`.`people` TO `ann`@`%` WITH GRANT OPTION",
            ]
        );
    }
}
