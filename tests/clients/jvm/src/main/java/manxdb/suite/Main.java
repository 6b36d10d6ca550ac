package manxdb.suite;

import java.util.logging.LogManager;

/** JDBC drivers, a pool, Hibernate and Flyway against one server. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        LogManager.getLogManager().reset();
        new DriverSuite("Connector/J", "mysql", "").run();
        new DriverSuite("Connector/J, compressed", "mysql", "useCompression=true").run();
        new DriverSuite("Connector/J, prepared", "mysql",
                "useServerPrepStmts=true&cachePrepStmts=true&rewriteBatchedStatements=true"
                        + "&useCursorFetch=true&sslMode=REQUIRED").run();
        new DriverSuite("MariaDB Connector/J", "mariadb", "useServerPrepStmts=true").run();
        MetadataSuite.run();
        PoolSuite.run();
        HibernateSuite.run();
        System.exit(Checks.exitCode());
    }
}
