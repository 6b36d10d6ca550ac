package manxdb.suite;

import static manxdb.suite.Checks.check;
import static manxdb.suite.Checks.expect;
import static manxdb.suite.Checks.expectError;
import static manxdb.suite.Checks.rows;
import static manxdb.suite.Checks.execute;

import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLIntegrityConstraintViolationException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** One JDBC driver with one set of options. */
final class DriverSuite {
    private final String name;
    private final String driver;
    private final String options;

    DriverSuite(String name, String driver, String options) {
        this.name = name;
        this.driver = driver;
        // MariaDB as the server under test has no certificate.
        this.options = Checks.IS_MARIADB ? options.replace("&sslMode=REQUIRED", "") : options;
    }

    void run() {
        verify("migrate", this::migrate);
        verify("every type there and back", this::types);
        verify("generated keys and batches", this::batches);
        verify("fetch size", this::fetchSize);
        verify("several statements and results", this::severalStatements);
        verify("transactions and savepoints", this::transactions);
        verify("isolation and read only", this::isolation);
        verify("errors", this::errors);
        verify("a deadlock is 1213 for one of two", this::deadlock);
        verify("time-outs", this::timeOuts);
    }

    private void verify(String what, Checks.Body body) {
        check(name + ": " + what, body);
    }

    private Connection open() throws SQLException {
        return Checks.open(driver, options);
    }

    private void migrate() throws Exception {
        Checks.recreateDatabase(driver);
        try (Connection link = open()) {
            execute(link,
                    "CREATE TABLE author (id BIGINT AUTO_INCREMENT PRIMARY KEY,"
                            + " name VARCHAR(40) NOT NULL UNIQUE)",
                    "CREATE TABLE book (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, author_id BIGINT,"
                            + " title VARCHAR(40), price DECIMAL(10,2), weight DOUBLE, printed DATE,"
                            + " seen DATETIME(6), cover LONGBLOB, notes JSON, CONSTRAINT book_author"
                            + " FOREIGN KEY (author_id) REFERENCES author (id))",
                    "INSERT INTO author (name) VALUES ('Iris'), ('Jorge')");
        }
    }

    private void types() throws Exception {
        byte[] cover = new byte[300_000];
        Arrays.fill(cover, (byte) '\'');
        // MariaDB introduces itself as a 5.5, to which Connector/J sends no fractions.
        int nanos = Checks.IS_MARIADB ? 0 : 123_456_000;
        LocalDateTime seen = LocalDateTime.of(2024, 2, 29, 23, 59, 59, nanos);
        try (Connection link = open();
                PreparedStatement insert = link.prepareStatement("INSERT INTO book (author_id, title,"
                        + " price, weight, printed, seen, cover, notes) VALUES (?,?,?,?,?,?,?,?)")) {
            insert.setNull(1, Types.BIGINT);
            insert.setString(2, "šroub 🔩 \\ ' \"");
            insert.setBigDecimal(3, new BigDecimal("12.50"));
            insert.setDouble(4, Math.PI);
            insert.setObject(5, LocalDate.of(2023, 1, 31));
            insert.setObject(6, seen);
            insert.setBytes(7, cover);
            insert.setString(8, "{\"a\": [1, null]}");
            expect("inserted", insert.executeUpdate(), 1);
            try (ResultSet row = link.createStatement().executeQuery("SELECT * FROM book")) {
                expect("a row", row.next(), true);
                expect("author", row.getObject("author_id"), null);
                expect("title", row.getString("title"), "šroub 🔩 \\ ' \"");
                expect("price", row.getBigDecimal("price"), new BigDecimal("12.50"));
                expect("weight", row.getDouble("weight"), Math.PI);
                expect("printed", row.getObject("printed", LocalDate.class), LocalDate.of(2023, 1, 31));
                expect("seen", row.getObject("seen", LocalDateTime.class), seen);
                expect("cover", Arrays.equals(row.getBytes("cover"), cover), true);
                expect("notes", row.getString("notes"), "{\"a\": [1, null]}");
            }
        }
    }

    private void batches() throws Exception {
        String text = "INSERT INTO author (name) VALUES (?)";
        try (Connection link = open();
                PreparedStatement insert =
                        link.prepareStatement(text, Statement.RETURN_GENERATED_KEYS)) {
            for (int at = 0; at < 200; at++) {
                insert.setString(1, "author " + at);
                insert.addBatch();
            }
            expect("batch", insert.executeBatch().length, 200);
            try (ResultSet keys = insert.getGeneratedKeys()) {
                expect("keys", rows(keys).size(), 200);
            }
            for (String name : List.of("new", "author 1")) {
                insert.setString(1, name);
                insert.addBatch();
            }
            try {
                insert.executeBatch();
                throw new AssertionError("a duplicate passed");
            } catch (BatchUpdateException error) {
                expect("error", error.getErrorCode(), 1062);
            }
        }
    }

    private void fetchSize() throws Exception {
        try (Connection link = open();
                PreparedStatement query =
                        link.prepareStatement("SELECT id, name FROM author WHERE id > ? ORDER BY id")) {
            query.setFetchSize(17);
            query.setLong(1, 0);
            try (ResultSet abandoned = query.executeQuery()) {
                abandoned.next();
            }
            try (ResultSet result = query.executeQuery()) {
                expect("all rows", rows(result).size() > 200, true);
            }
        }
    }

    private void severalStatements() throws Exception {
        String more = options.isEmpty() ? "allowMultiQueries=true" : options + "&allowMultiQueries=true";
        try (Connection link = Checks.open(driver, more.replace("&useCursorFetch=true", ""));
                Statement both = link.createStatement()) {
            expect("rows first", both.execute("SELECT 1; DO 2; SELECT 3"), true);
            expect("first", rows(both.getResultSet()), List.of("1"));
            expect("then a count", both.getMoreResults(), false);
            expect("then rows", both.getMoreResults(), true);
            expect("third", rows(both.getResultSet()), List.of("3"));
            String broken = "UPDATE author SET name = 'I.' WHERE id = 1; SELEKT";
            expectError(1064, () -> {
                both.execute(broken);
                both.getMoreResults();
            });
            expect("the first has run", rows(link, "SELECT name FROM author WHERE id = 1"), List.of("I."));
        }
    }

    private void transactions() throws Exception {
        try (Connection link = open()) {
            link.setAutoCommit(false);
            execute(link, "INSERT INTO author (name) VALUES ('kept')");
            Savepoint savepoint = link.setSavepoint("here");
            execute(link, "INSERT INTO author (name) VALUES ('undone')");
            link.rollback(savepoint);
            link.commit();
            execute(link, "UPDATE author SET name = 'lost' WHERE name = 'kept'");
            link.rollback();
            String names = "SELECT name FROM author WHERE name IN ('kept', 'undone', 'lost')";
            expect("names", rows(link, names), List.of("kept"));
            link.commit();
        }
    }

    private void isolation() throws Exception {
        try (Connection link = open()) {
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED,
                    Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
                link.setTransactionIsolation(level);
                expect("level", link.getTransactionIsolation(), level);
            }
            link.setReadOnly(true);
            link.setAutoCommit(false);
            expect("read", rows(link, "SELECT 1"), List.of("1"));
            try (Statement statement = link.createStatement()) {
                statement.executeUpdate("DELETE FROM book");
                throw new AssertionError("a read-only connection wrote");
            } catch (SQLException refused) {
                link.rollback();
            }
        }
    }

    private void errors() throws Exception {
        try (Connection link = open()) {
            SQLException duplicate =
                    expectError(1062, () -> execute(link, "INSERT INTO author (name) VALUES ('Jorge')"));
            expect("class", duplicate instanceof SQLIntegrityConstraintViolationException, true);
            expectError(1452, () -> execute(link, "INSERT INTO book (author_id) VALUES (999999)"));
            execute(link, "INSERT INTO book (author_id) VALUES (2)");
            expectError(1451, () -> execute(link, "DELETE FROM author WHERE id = 2"));
            expectError(1064, () -> execute(link, "SELEKT 1"));
            expectError(1146, () -> execute(link, "SELECT * FROM nowhere"));
            expectError(1406, () -> execute(link,
                    "INSERT INTO author (name) VALUES ('" + "x".repeat(41) + "')"));
            expect("still here", link.isValid(5), true);
        }
    }

    private void deadlock() throws Exception {
        try (Connection one = open(); Connection two = open()) {
            one.setAutoCommit(false);
            two.setAutoCommit(false);
            execute(one, "UPDATE author SET name = 'one' WHERE id = 1");
            execute(two, "UPDATE author SET name = 'two' WHERE id = 2");
            CompletableFuture<Integer> first =
                    CompletableFuture.supplyAsync(() -> finish(one, "UPDATE author SET name = 'a' WHERE id = 2"));
            int second = finish(two, "UPDATE author SET name = 'b' WHERE id = 1");
            expect("numbers", List.of(Math.min(first.get(), second), Math.max(first.get(), second)),
                    List.of(0, 1213));
        }
    }

    /** Runs the rest of a transaction and undoes it: the error's number, or 0. */
    private static int finish(Connection link, String text) {
        try {
            execute(link, text);
            link.rollback();
            return 0;
        } catch (SQLException error) {
            return error.getErrorCode();
        }
    }

    private void timeOuts() throws Exception {
        try (Connection holder = open(); Connection waiter = open()) {
            holder.setAutoCommit(false);
            execute(holder, "UPDATE author SET name = 'held' WHERE id = 1");
            execute(waiter, "SET SESSION innodb_lock_wait_timeout = 1");
            expectError(1205, () -> execute(waiter, "UPDATE author SET name = 'late' WHERE id = 1"));
            holder.rollback();
            String endless = "COUNT(*) FROM author a, author b, author c, author d, author e";
            if (!Checks.IS_MARIADB) {
                expectError(3024,
                        () -> rows(waiter, "SELECT /*+ MAX_EXECUTION_TIME(50) */ " + endless));
                execute(waiter, "SET SESSION max_execution_time = 50");
                expectError(3024, () -> rows(waiter, "SELECT " + endless));
                execute(waiter, "SET SESSION max_execution_time = 0");
            }
            try (Statement statement = waiter.createStatement()) {
                statement.setQueryTimeout(1);
                statement.executeQuery("SELECT " + endless).close();
                throw new AssertionError("setQueryTimeout did nothing");
            } catch (SQLException expected) {
                expect("usable", rows(waiter, "SELECT 1"), List.of("1"));
            }
        }
    }
}
