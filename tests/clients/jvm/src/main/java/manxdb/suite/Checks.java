package manxdb.suite;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Prints PASS and FAIL lines, and opens connections to the server under test. */
final class Checks {
    private static final String HOST = variable("MANXDB_TEST_HOST", "127.0.0.1");
    private static final String PORT = variable("MANXDB_TEST_PORT", "3306");
    static final String USER = variable("MANXDB_TEST_USER", "root");
    static final String PASSWORD = variable("MANXDB_TEST_PASSWORD", "");
    static final String DATABASE = variable("MANXDB_TEST_DATABASE", "manx_test");
    static final boolean IS_MARIADB = "mariadb".equals(System.getenv("MANXDB_TEST_SERVER"));

    private static int failed;

    private Checks() {}

    /** What a check does; whatever it throws is its failure. */
    interface Body {
        void run() throws Exception;
    }

    static void check(String name, Body body) {
        try {
            body.run();
            System.out.println("PASS " + name);
        } catch (Exception | AssertionError error) {
            failed++;
            Throwable root = error;
            while (root.getCause() != null) {
                root = root.getCause();
            }
            String text = error == root ? error.toString() : error + " from " + root;
            System.out.println("FAIL " + name + ": " + text.replaceAll("\\s+", " "));
        }
    }

    static int exitCode() {
        return failed == 0 ? 0 : 1;
    }

    static void expect(String what, Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
        }
    }

    /** The body fails with this error number. */
    static SQLException expectError(int number, Body body) throws Exception {
        try {
            body.run();
        } catch (SQLException error) {
            if (error.getErrorCode() == number) {
                return error;
            }
            throw new AssertionError("error " + error.getErrorCode() + ", wanted " + number, error);
        }
        throw new AssertionError("succeeded, wanted error " + number);
    }

    /** The URL of a database (empty for none) for a driver (`mysql`, `mariadb`). */
    static String url(String driver, String database, String options) {
        String named = options.isEmpty() ? "" : "?" + options;
        return "jdbc:" + driver + "://" + HOST + ":" + PORT + "/" + database + named;
    }

    static Connection open(String driver, String options) throws SQLException {
        return DriverManager.getConnection(url(driver, DATABASE, options), USER, PASSWORD);
    }

    /** An empty test database. */
    static void recreateDatabase(String driver) throws SQLException {
        String url = url(driver, "", "");
        try (Connection admin = DriverManager.getConnection(url, USER, PASSWORD)) {
            execute(admin, "DROP DATABASE IF EXISTS " + DATABASE, "CREATE DATABASE " + DATABASE);
        }
    }

    static void execute(Connection link, String... texts) throws SQLException {
        try (Statement statement = link.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    static List<String> rows(Connection link, String text) throws SQLException {
        try (Statement statement = link.createStatement();
                ResultSet result = statement.executeQuery(text)) {
            return rows(result);
        }
    }

    /** Rows as text, columns joined by `|`. */
    static List<String> rows(ResultSet result) throws SQLException {
        int columns = result.getMetaData().getColumnCount();
        List<String> rows = new ArrayList<>();
        while (result.next()) {
            StringBuilder row = new StringBuilder();
            for (int at = 1; at <= columns; at++) {
                row.append(at > 1 ? "|" : "").append(result.getString(at));
            }
            rows.add(row.toString());
        }
        return rows;
    }

    private static String variable(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null ? otherwise : value;
    }
}
