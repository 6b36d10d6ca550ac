#!/usr/bin/env bash
# The mariadb command line and mariadb-dump, as an administrator uses them.
set -uo pipefail

DB="$MANXDB_TEST_DATABASE"
WORK="$(mktemp -d)"
trap 'rm -rf "$WORK"' EXIT
export MYSQL_PWD="$MANXDB_TEST_PASSWORD"
CONNECT=(--no-defaults --default-character-set=utf8mb4 --protocol=tcp -h "$MANXDB_TEST_HOST" -P "$MANXDB_TEST_PORT" -u "$MANXDB_TEST_USER")
failures=0

client() { mariadb "${CONNECT[@]}" "$@"; }
query() { client -N -B -e "$1" "${2:-$DB}" 2>&1; }

pass() { echo "PASS $1"; }
fail() { echo "FAIL $1: $(tr '\n' ' ' <<<"$2" | cut -c1-500)"; failures=$((failures + 1)); }

# same NAME WANTED GOT
same() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got '$3', wanted '$2'"; fi; }
# has NAME PART TEXT
has() { case "$3" in *"$2"*) pass "$1" ;; *) fail "$1" "got '$3', wanted '$2' in it" ;; esac; }

cat >"$WORK/schema.sql" <<SQL
DROP DATABASE IF EXISTS \`$DB\`;
CREATE DATABASE \`$DB\`;
USE \`$DB\`;
-- comments and a delimiter, as dumps have them
CREATE TABLE customer (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  name VARCHAR(60) NOT NULL,
  joined DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  UNIQUE KEY name_unique (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE purchase (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  customer_id INT UNSIGNED NOT NULL,
  amount DECIMAL(10,2) NOT NULL,
  note TEXT,
  photo BLOB,
  KEY by_customer (customer_id),
  CONSTRAINT purchase_customer FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE
);
INSERT INTO customer (name, joined) VALUES ('Ann', '2024-01-02 03:04:05'), ('Björn', '2024-01-03 00:00:00');
INSERT INTO purchase (customer_id, amount, note, photo) VALUES
  (1, 9.99, 'it''s\\tfine', X'00FF10'), (1, 20.01, NULL, NULL), (2, 5, 'multi
line', '');
SQL

output="$(client <"$WORK/schema.sql" 2>&1)"
same "a script from standard input" "" "$output"
same "batch output" $'1\tAnn\n2\tBjörn' "$(query 'SELECT id, name FROM customer ORDER BY id')"
has "table output" "| Ann  " "$(client -t -e 'SELECT name FROM customer ORDER BY id' "$DB" 2>&1)"
has "vertical output" "joined: 2024-01-02 03:04:05" "$(client -E -e 'SELECT joined FROM customer WHERE id = 1' "$DB" 2>&1)"
same "show tables" $'customer\npurchase' "$(query 'SHOW TABLES')"
has "describe" $'name\tvarchar(60)\tNO\tUNI' "$(query 'DESCRIBE customer')"
has "show create table" "CONSTRAINT \`purchase_customer\` FOREIGN KEY (\`customer_id\`) REFERENCES \`customer\` (\`id\`) ON DELETE CASCADE" "$(query 'SHOW CREATE TABLE purchase')"
has "show index" $'purchase\t1\tby_customer\t1\tcustomer_id' "$(query 'SHOW INDEX FROM purchase')"
has "status" "Connection id:" "$(client -e 'status' "$DB" 2>&1)"
has "use and source" "2" "$(client -N -B -e "use $DB
SELECT COUNT(*) FROM customer" 2>&1)"

same "transaction" $'1\n0' "$(query "BEGIN; INSERT INTO customer (name) VALUES ('Gone'); SELECT COUNT(*) FROM customer WHERE name = 'Gone'; ROLLBACK; SELECT COUNT(*) FROM customer WHERE name = 'Gone'")"
has "duplicate key" "ERROR 1062 (23000)" "$(query "INSERT INTO customer (name) VALUES ('Ann')")"
has "foreign key" "ERROR 1452 (23000)" "$(query 'INSERT INTO purchase (customer_id, amount) VALUES (77, 1)')"
has "syntax error" "ERROR 1064 (42000)" "$(query 'SELEKT 1')"
has "unknown table" "ERROR 1146 (42S02)" "$(query 'SELECT * FROM nothing')"
has "unknown column" "ERROR 1054 (42S22)" "$(query 'SELECT nothing FROM customer')"
has "time-out" "ERROR 1205 (HY000)" "$(
    # The lock's holder says when it has it and keeps it until its input ends.
    mkfifo "$WORK/in" "$WORK/out"
    client -N -B -n "$DB" <"$WORK/in" >"$WORK/out" 2>&1 &
    exec 8>"$WORK/in" 9<"$WORK/out"
    echo "BEGIN; SELECT id FROM customer WHERE id = 1 FOR UPDATE;" >&8
    read -r _ <&9
    query "SET innodb_lock_wait_timeout = 1; UPDATE customer SET name = 'X' WHERE id = 1"
    exec 8>&- 9<&-
    wait)"
same "cascade" "1" "$(query "BEGIN; DELETE FROM customer WHERE id = 1; SELECT COUNT(*) FROM purchase; ROLLBACK")"
same "force goes on after an error" "2" "$(printf 'SELECT nothing;\nSELECT 2;' | client -N -B -f "$DB" 2>/dev/null)"

if mariadb-dump "${CONNECT[@]}" --single-transaction --hex-blob "$DB" >"$WORK/dump.sql" 2>"$WORK/dump.err"; then
    pass "mariadb-dump"
    client -e "DROP DATABASE IF EXISTS copy; CREATE DATABASE copy" 2>&1
    same "the dump loads" "" "$(client copy <"$WORK/dump.sql" 2>&1)"
    for table in customer purchase; do
        same "the copy of $table is equal" \
            "$(query "SELECT * FROM $table ORDER BY id")" "$(query "SELECT * FROM $table ORDER BY id" copy)"
    done
    has "the copy keeps its foreign key" "ERROR 1452" "$(query 'INSERT INTO purchase (customer_id, amount) VALUES (77, 1)' copy)"
    client -e "DROP DATABASE copy" 2>&1
else
    fail "mariadb-dump" "$(cat "$WORK/dump.err")"
fi

same "admin ping" "mysqld is alive" "$(mariadb-admin "${CONNECT[@]}" ping 2>&1)"
has "admin status" "Uptime:" "$(mariadb-admin "${CONNECT[@]}" status 2>&1)"
exit $((failures > 0))
