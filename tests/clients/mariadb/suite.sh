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

# A whole database with what dumps carry, out and in again, as each way of dumping writes it.
RICH="${DB}_rich"
cat >"$WORK/rich.sql" <<SQL
DROP DATABASE IF EXISTS \`$RICH\`;
CREATE DATABASE \`$RICH\` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE \`$RICH\`;
CREATE TABLE kinds (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  uuid CHAR(36) BINARY DEFAULT NULL,
  price DECIMAL(12,4) NOT NULL DEFAULT 0,
  ratio DOUBLE, small FLOAT, flag TINYINT(1) NOT NULL DEFAULT 1,
  state ENUM('new','it''s done') DEFAULT 'new',
  day DATE, moment DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  stamp TIMESTAMP NULL, span TIME(3), born YEAR,
  word VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT 'a''b' COMMENT 'with \\\\ and ''',
  body LONGTEXT, raw VARBINARY(20), data JSON,
  doubled DECIMAL(14,4) GENERATED ALWAYS AS (price * 2) STORED, length INT AS (CHAR_LENGTH(body)) VIRTUAL,
  CONSTRAINT positive CHECK (price >= 0),
  UNIQUE KEY words (word, flag), KEY bodies (body(10) DESC)
) COMMENT='all kinds';
INSERT INTO kinds (uuid, price, ratio, small, flag, state, day, moment, stamp, span, born, word, body, raw, data) VALUES
  ('Aa', 1.5, 1e100, 0.1, 0, 'it''s done', '2024-02-29', '2024-02-29 01:02:03.000004', '2024-03-31 02:30:00', '-838:59:59', 1999, 'q''"\\\\', 'two\\nlines\\0zero', X'00FF275C', '{"a": [1, "x''y", null]}'),
  (NULL, 0, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, '', '', '', NULL);
CREATE TABLE empty_one (a INT, b INT, KEY (b));
CREATE TABLE numbered (id SERIAL, word VARCHAR(10));
INSERT INTO numbered (word) VALUES ('a'), ('b');
CREATE TABLE child (id INT PRIMARY KEY, kind BIGINT UNSIGNED, CONSTRAINT child_kind FOREIGN KEY (kind) REFERENCES kinds (id) ON DELETE SET NULL);
INSERT INTO child VALUES (1, 1), (2, NULL);
CREATE TABLE aaa_first (id INT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES child (id));
INSERT INTO aaa_first VALUES (1, 2);
CREATE VIEW priced AS SELECT id, price FROM kinds WHERE price > 0;
CREATE VIEW a_view_of_views AS SELECT COUNT(*) AS n FROM priced;
SQL
same "the rich schema loads" "" "$(client <"$WORK/rich.sql" 2>&1)"

# Definitions and data of a database, as text to compare.
picture() {
    local table
    for table in kinds empty_one numbered child aaa_first; do
        query "SHOW CREATE TABLE $table" "$1"
        query "SELECT * FROM $table" "$1"
    done
    query "SELECT * FROM priced; SELECT * FROM a_view_of_views; SHOW FULL TABLES" "$1"
}

for options in "" "--single-transaction" "--hex-blob --complete-insert --skip-extended-insert" "--skip-opt --create-options --routines --triggers --events"; do
    name="dump ${options:-with default options}"
    # shellcheck disable=SC2086 # options are words
    if ! mariadb-dump "${CONNECT[@]}" $options "$RICH" >"$WORK/rich_dump.sql" 2>"$WORK/dump.err"; then
        fail "$name" "$(cat "$WORK/dump.err")"
        continue
    fi
    client -e "DROP DATABASE IF EXISTS copy; CREATE DATABASE copy CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" 2>&1
    same "$name loads" "" "$(client copy <"$WORK/rich_dump.sql" 2>&1)"
    if difference="$(diff <(picture "$RICH") <(picture copy))"; then
        pass "$name keeps everything"
    else
        fail "$name keeps everything" "$difference"
    fi
done
before="$(picture "$RICH")"
mariadb-dump "${CONNECT[@]}" --databases "$RICH" >"$WORK/rich_dump.sql" 2>"$WORK/dump.err"
client -e "DROP DATABASE \`$RICH\`" 2>&1
same "dump --databases loads" "" "$(client <"$WORK/rich_dump.sql" 2>&1; cat "$WORK/dump.err")"
same "dump --databases keeps everything" "$before" "$(picture "$RICH")"
if [ "$MANXDB_TEST_SERVER" = manxdb ]; then
    mariadb-dump "${CONNECT[@]}" --all-databases --single-transaction --routines --events >"$WORK/rich_dump.sql" 2>"$WORK/dump.err"
    client -e "DROP DATABASE \`$RICH\`; DROP DATABASE \`$DB\`" 2>&1
    same "dump --all-databases loads" "" "$(client <"$WORK/rich_dump.sql" 2>&1; cat "$WORK/dump.err")"
    same "dump --all-databases keeps everything" "$before" "$(picture "$RICH")"
fi
has "check tables" "$RICH.kinds" "$(mariadb-check "${CONNECT[@]}" "$RICH" 2>&1)"
has "check for an upgrade" "OK" "$(mariadb-check "${CONNECT[@]}" --check-upgrade "$RICH" kinds 2>&1)"
has "analyze tables" "OK" "$(mariadb-check "${CONNECT[@]}" --analyze "$RICH" kinds 2>&1)"
has "show counts rows" "| kinds           |       18 |          2 |" "$(mariadb-show "${CONNECT[@]}" -vv "$RICH" 2>&1)"
client -e "DROP DATABASE copy; DROP DATABASE \`$RICH\`" 2>&1
has "slap" "Average number of queries per client: 50" "$(mariadb-slap "${CONNECT[@]:0:1}" "${CONNECT[@]:2}" --create-schema=slapped --auto-generate-sql \
    --auto-generate-sql-add-autoincrement --concurrency=2 --number-of-queries=100 2>&1)"

# The compressed protocol, small and large, both ways.
client -e "CREATE DATABASE IF NOT EXISTS \`$DB\`" 2>&1
squeezed() { client --compress -N -B -e "$1" "$DB" 2>&1; }
same "compression is on" $'Compression\tON' "$(squeezed "SHOW STATUS LIKE 'Compression'")"
same "compression is off unless asked for" $'Compression\tOFF' "$(query "SHOW STATUS LIKE 'Compression'")"
same "compressed: a result of 15 MB" "15000000" "$(squeezed "SELECT REPEAT('manx ', 3000000)" | tr -d '\n' | wc -c)"
has "compressed: an error behind a result" "ERROR 1146" "$(squeezed "SELECT 1; SELECT * FROM nowhere")"
{ echo "CREATE OR REPLACE TABLE squeezed (id INT PRIMARY KEY, t LONGTEXT);" | sed 's/OR REPLACE //'
  echo "INSERT INTO squeezed VALUES (1, '$(head -c 3000000 /dev/zero | tr '\0' 'x')'), (2, '$(head -c 600000 /dev/urandom | base64 -w0)');"; } >"$WORK/squeezed.sql"
same "compressed: a statement of 4 MB" "" "$(client --compress "$DB" <"$WORK/squeezed.sql" 2>&1)"
same "compressed: it is stored whole" "$(query "SELECT SUM(CRC32(t)) FROM squeezed")" "$(squeezed "SELECT SUM(CRC32(t)) FROM squeezed")"
mariadb-dump "${CONNECT[@]}" --compress "$DB" squeezed >"$WORK/squeezed_dump.sql" 2>&1
sum="$(query "SELECT SUM(CRC32(t)), SUM(LENGTH(t)) FROM squeezed")"
query "DROP TABLE squeezed"
same "a compressed dump loads" "" "$(client --compress "$DB" <"$WORK/squeezed_dump.sql" 2>&1)"
same "a compressed dump keeps everything" "$sum" "$(squeezed "SELECT SUM(CRC32(t)), SUM(LENGTH(t)) FROM squeezed")"

# Text files: from the client, from the server, and back.
query "SET GLOBAL local_infile = 1" >/dev/null
query "CREATE TABLE line (a INT PRIMARY KEY, b VARCHAR(40), c DECIMAL(8,2) NULL, d DATE)" >/dev/null
printf '1\tone\t1.50\t2024-01-02\n2\ttab\\\there\t\\N\t2024-02-29\n3\tBjörn\t-7\t\\N\n' >"$WORK/line.txt"
loading() { client --local-infile=1 -vvv -e "$1" "$DB" 2>&1; }
has "load data local" "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0" "$(loading "LOAD DATA LOCAL INFILE '$WORK/line.txt' INTO TABLE line")"
same "load data local: rows" $'1\tone\t1.50\t2024-01-02\n2\ttab\\there\tNULL\t2024-02-29\n3\tBjörn\t-7.00\tNULL' "$(query 'SELECT * FROM line ORDER BY a')"
has "load data local: duplicates are skipped" "Records: 3  Deleted: 0  Skipped: 3  Warnings: 3" "$(loading "LOAD DATA LOCAL INFILE '$WORK/line.txt' INTO TABLE line")"
has "load data local: a file that is not there" "ERROR" "$(loading "LOAD DATA LOCAL INFILE '$WORK/none.txt' INTO TABLE line")"
same "load data local: the connection goes on" "3" "$(query 'SELECT COUNT(*) FROM line')"
has "load data local: no such table" "ERROR 1146" "$(loading "LOAD DATA LOCAL INFILE '$WORK/line.txt' INTO TABLE nowhere")"
seq 1 60000 | sed 's/.*/&,"name &",&.25,2024-01-01/' >"$WORK/many.csv"
query "CREATE TABLE many LIKE line" >/dev/null
same "mariadb-import" "$DB.many: Records: 60000  Deleted: 0  Skipped: 0  Warnings: 0" "$(mariadb-import "${CONNECT[@]}" --compress --local --fields-terminated-by=, --fields-optionally-enclosed-by='"' "$DB" "$WORK/many.csv" 2>&1)"
same "mariadb-import: rows" $'60000\t1800030000\tname 60000' "$(query 'SELECT COUNT(*), SUM(a), MAX(IF(a = 60000, b, NULL)) FROM many')"
FILES="$MANXDB_TEST_FILES"
same "into outfile" "" "$(query "SELECT * FROM line ORDER BY a INTO OUTFILE '$FILES/line.csv' FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'")"
same "into outfile: the file" $'1,"one",1.50,"2024-01-02"\n2,"tab\there",\\N,"2024-02-29"\n3,"Björn",-7.00,\\N' "$(cat "$FILES/line.csv")"
has "into outfile: it is there" "ERROR 1086" "$(query "SELECT 1 INTO OUTFILE '$FILES/line.csv'")"
has "into outfile: elsewhere" "ERROR 1290" "$(query "SELECT 1 INTO OUTFILE '$WORK/elsewhere'")"
has "load data: elsewhere" "ERROR 1290" "$(query "LOAD DATA INFILE '$WORK/line.txt' INTO TABLE line")"
before="$(query 'SELECT * FROM line ORDER BY a')"
query "DELETE FROM line" >/dev/null
same "load data from the server" "" "$(query "LOAD DATA INFILE '$FILES/line.csv' INTO TABLE line FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'")"
same "load data from the server: rows" "$before" "$(query 'SELECT * FROM line ORDER BY a')"
query "SELECT b FROM line WHERE a = 3 INTO DUMPFILE '$FILES/dumped'" >/dev/null
same "into dumpfile" "Björn" "$(cat "$FILES/dumped")"
mkdir "$FILES/tab"
same "mariadb-dump --tab" "" "$(mariadb-dump "${CONNECT[@]}" --tab="$FILES/tab" "$DB" line many 2>&1)"
before="$(query 'SELECT COUNT(*), SUM(CRC32(CONCAT_WS(0, a, b, c, d))) FROM many')$(query 'SELECT * FROM line ORDER BY a')"
query "DROP TABLE line, many" >/dev/null
cat "$FILES"/tab/*.sql | client "$DB" 2>&1
same "mariadb-import of a dump" "" "$(mariadb-import "${CONNECT[@]}" --silent "$DB" "$FILES"/tab/*.txt 2>&1)"
same "mariadb-dump --tab keeps everything" "$before" "$(query 'SELECT COUNT(*), SUM(CRC32(CONCAT_WS(0, a, b, c, d))) FROM many')$(query 'SELECT * FROM line ORDER BY a')"
client -e "CREATE USER IF NOT EXISTS reader@'%' IDENTIFIED BY '$MANXDB_TEST_PASSWORD'; CREATE USER IF NOT EXISTS reader@localhost IDENTIFIED BY '$MANXDB_TEST_PASSWORD'; GRANT SELECT, INSERT ON \`$DB\`.* TO reader@'%', reader@localhost" 2>&1
has "load data needs FILE" "ERROR 1045" "$(mariadb "${CONNECT[@]}" -u reader -e "LOAD DATA INFILE '$FILES/line.csv' INTO TABLE line" "$DB" 2>&1)"
client -e "DROP USER reader@'%', reader@localhost" 2>&1
query "SET GLOBAL local_infile = 0" >/dev/null
has "local files are off by default" "ERROR" "$(loading "LOAD DATA LOCAL INFILE '$WORK/line.txt' INTO TABLE line")"
query "SET GLOBAL local_infile = 1" >/dev/null

# What the client calls its text is what the session's variables say.
variables="SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection"
same "a client's utf8mb4" $'utf8mb4\tutf8mb4\tutf8mb4' "$(query "$variables" | cut -f1-3)"
same "a client's latin1" $'latin1\tlatin1\tlatin1\tlatin1_swedish_ci' "$(client --default-character-set=latin1 -N -B -e "$variables" "$DB" 2>&1)"

same "admin ping" "mysqld is alive" "$(mariadb-admin "${CONNECT[@]}" ping 2>&1)"
for command in refresh flush-threads flush-tables reload flush-logs; do
    same "admin $command" "" "$(mariadb-admin "${CONNECT[@]}" "$command" 2>&1)"
done
has "admin processlist" "Command" "$(mariadb-admin "${CONNECT[@]}" processlist 2>&1)"
has "admin extended-status" "Questions" "$(mariadb-admin "${CONNECT[@]}" extended-status 2>&1)"
has "admin status" "Uptime:" "$(mariadb-admin "${CONNECT[@]}" status 2>&1)"
exit $((failures > 0))
