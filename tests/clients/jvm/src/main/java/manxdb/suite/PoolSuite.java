package manxdb.suite;

import static manxdb.suite.Checks.check;
import static manxdb.suite.Checks.expect;
import static manxdb.suite.Checks.rows;
import static manxdb.suite.Checks.execute;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.flywaydb.core.Flyway;

/** A pool under concurrent writers, and migrations. */
final class PoolSuite {
    private static final int WRITERS = 6;
    private static final int ROUNDS = 20;

    private PoolSuite() {}

    static void run() {
        check("Flyway migrates, validates and has nothing left to do", PoolSuite::migrate);
        check("HikariCP: retried conflicts lose no update", PoolSuite::count);
    }

    private static void migrate() throws SQLException {
        Checks.recreateDatabase("mysql");
        Flyway flyway = Flyway.configure()
                .dataSource(Checks.url("mysql", Checks.DATABASE, ""), Checks.USER, Checks.PASSWORD)
                .locations("classpath:migrations")
                .cleanDisabled(false)
                .load();
        expect("first", flyway.migrate().migrationsExecuted, 2);
        flyway.validate();
        expect("again", flyway.migrate().migrationsExecuted, 0);
        flyway.clean();
        expect("after clean", flyway.migrate().migrationsExecuted, 2);
        try (Connection link = Checks.open("mysql", "")) {
            expect("labels", rows(link, "SELECT label FROM labels ORDER BY label"), List.of("a;b", "it's"));
        }
    }

    private static void count() throws Exception {
        Checks.recreateDatabase("mysql");
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(Checks.url("mysql", Checks.DATABASE, ""));
        config.setUsername(Checks.USER);
        config.setPassword(Checks.PASSWORD);
        config.setMaximumPoolSize(WRITERS);
        config.setAutoCommit(false);
        config.setTransactionIsolation("TRANSACTION_SERIALIZABLE");
        try (HikariDataSource pool = new HikariDataSource(config)) {
            try (Connection link = pool.getConnection()) {
                execute(link, "CREATE TABLE counter (id INT PRIMARY KEY, n INT)",
                        "INSERT INTO counter VALUES (1, 0)");
                link.commit();
            }
            List<CompletableFuture<Void>> writers = new ArrayList<>();
            for (int writer = 0; writer < WRITERS; writer++) {
                writers.add(CompletableFuture.runAsync(() -> write(pool)));
            }
            for (CompletableFuture<Void> writer : writers) {
                writer.get();
            }
            try (Connection link = pool.getConnection()) {
                expect("n", rows(link, "SELECT n FROM counter"), List.of(String.valueOf(WRITERS * ROUNDS)));
            }
        }
    }

    /** Reads, then writes what it computed: two that overlap conflict, and one tries again. */
    private static void write(HikariDataSource pool) {
        int done = 0;
        while (done < ROUNDS) {
            try (Connection link = pool.getConnection()) {
                int n = Integer.parseInt(rows(link, "SELECT n FROM counter WHERE id = 1").get(0));
                execute(link, "UPDATE counter SET n = " + (n + 1) + " WHERE id = 1");
                link.commit();
                done++;
            } catch (SQLException error) {
                if (error.getErrorCode() != 1213) {
                    throw new IllegalStateException(error);
                }
            }
        }
    }
}
