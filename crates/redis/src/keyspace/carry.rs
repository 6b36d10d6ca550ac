//! Keys that are carried to another keyspace: as new objects there, since rows name the epoch and the
//! generation of the keyspace that wrote them.

use super::{Entry, Keyspace, rows};

impl Keyspace {
    /// A key with its expiry and all its elements, its time over or not, in the form of one row's value. `None`
    /// without the key, or where its value is only in the store.
    #[must_use]
    pub fn export(&self, db: usize, key: &[u8]) -> Option<Vec<u8>> {
        let entry = self.peek(db, key).filter(|entry| !entry.value.is_cold())?;
        let mut value = entry.value.clone();
        if let Some(pending) = value.pending_mut() {
            pending.in_rows = false;
            pending.forget();
        }
        let mut carried = Entry::new(value);
        carried.expires = entry.expires;
        Some(rows::encode_meta(&carried))
    }

    /// Puts a key that was exported in place of what is there; whether its bytes could be read.
    pub fn import(&mut self, db: usize, key: &[u8], exported: &[u8]) -> bool {
        let entry = rows::decode_meta(exported).filter(|entry| !entry.value.is_cold());
        let Some(entry) = entry.filter(|_| db < super::DATABASES) else {
            return false;
        };
        self.put_entry(db, key, entry);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Command, Keyspace, Stamp, execute};

    fn run(keyspace: &mut Keyspace, words: &[&str]) {
        let (reply, _) = execute(keyspace, 3, &Command::of(words), Stamp::new(1_000, 1));
        assert!(
            !matches!(reply, crate::Reply::Error(_)),
            "{words:?}: {reply:?}"
        );
    }

    #[test]
    fn each_type_is_carried_whole() {
        let mut source = Keyspace::new();
        run(&mut source, &["SET", "string", "value", "PX", "7000"]);
        for number in 0..300 {
            let number = number.to_string();
            run(&mut source, &["HSET", "hash", &number, "value"]);
            run(&mut source, &["RPUSH", "list", &number]);
            run(&mut source, &["LPUSH", "list", &number]);
            run(&mut source, &["SADD", "set", &number]);
            run(&mut source, &["ZADD", "zset", &number, &number]);
            run(&mut source, &["XADD", "stream", "*", "field", &number]);
        }
        run(&mut source, &["XGROUP", "CREATE", "stream", "group", "0"]);
        run(
            &mut source,
            &[
                "XREADGROUP",
                "GROUP",
                "group",
                "one",
                "COUNT",
                "2",
                "STREAMS",
                "stream",
                ">",
            ],
        );
        run(&mut source, &["SADD", "small", "member"]);
        let mut target = Keyspace::new();
        let keys = ["string", "hash", "list", "set", "zset", "stream", "small"];
        for key in keys {
            let exported = source.export(3, key.as_bytes()).unwrap();
            target.begin(Stamp::new(1_000, 1));
            assert!(target.import(3, key.as_bytes(), &exported));
            assert!(!target.finish().is_empty());
            let again = target.export(3, key.as_bytes()).unwrap();
            assert_eq!(exported, again, "{key}");
            let (one, other) = (
                source.peek(3, key.as_bytes()),
                target.peek(3, key.as_bytes()),
            );
            assert_eq!(one.unwrap().expires, other.unwrap().expires);
        }
        assert_eq!(target.recounted_memory(), target.memory());
        assert_eq!(source.export(3, b"absent"), None);
        assert!(!target.import(3, b"key", b"no row"));
    }
}
