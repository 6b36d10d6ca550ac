package manxdb.suite;

import static manxdb.suite.Checks.check;
import static manxdb.suite.Checks.expect;
import static manxdb.suite.Checks.rows;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** What tools ask through DatabaseMetaData. */
final class MetadataSuite {
    private MetadataSuite() {}

    static void run() {
        for (String driver : List.of("mysql", "mariadb")) {
            check("DatabaseMetaData through jdbc:" + driver, () -> describe(driver));
        }
    }

    private static void describe(String driver) throws SQLException {
        Checks.recreateDatabase(driver);
        try (Connection link = Checks.open(driver, "")) {
            Checks.execute(link,
                    "CREATE TABLE parent (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
                            + " code VARCHAR(20) NOT NULL DEFAULT 'x' COMMENT 'a code', UNIQUE KEY codes (code))",
                    "CREATE TABLE child (a INT, b INT UNSIGNED NOT NULL, parent_id BIGINT, PRIMARY KEY (b),"
                            + " KEY ab (a, b), CONSTRAINT fk FOREIGN KEY (parent_id) REFERENCES parent (id)"
                            + " ON DELETE CASCADE)",
                    "CREATE VIEW codes AS SELECT code FROM parent");
            DatabaseMetaData data = link.getMetaData();
            String database = Checks.DATABASE;
            expect("tables", column(data.getTables(database, null, "%", null), "TABLE_NAME"),
                    List.of("child", "parent", "codes"));
            expect("columns", column(data.getColumns(database, null, "child", "%"), "COLUMN_NAME"),
                    List.of("a", "b", "parent_id"));
            expect("types", column(data.getColumns(database, null, "child", "%"), "TYPE_NAME"),
                    List.of("INT", "INT UNSIGNED", "BIGINT"));
            expect("remarks", column(data.getColumns(database, null, "parent", "code"), "REMARKS"),
                    List.of("a code"));
            expect("keys", column(data.getPrimaryKeys(database, null, "child"), "COLUMN_NAME"),
                    List.of("b"));
            expect("indexes",
                    column(data.getIndexInfo(database, null, "child", false, false), "INDEX_NAME"),
                    List.of("PRIMARY", "ab", "ab", "fk"));
            expect("imported", column(data.getImportedKeys(database, null, "child"), "DELETE_RULE"),
                    List.of(String.valueOf(DatabaseMetaData.importedKeyCascade)));
            expect("exported", column(data.getExportedKeys(database, null, "parent"), "FK_NAME").get(0), "fk");
            for (ResultSet asked : List.of(data.getTypeInfo(), data.getCatalogs(), data.getTableTypes(),
                    data.getProcedures(database, null, "%"), data.getFunctions(database, null, "%"),
                    data.getTablePrivileges(database, null, "%"),
                    data.getBestRowIdentifier(database, null, "child", DatabaseMetaData.bestRowSession, true))) {
                rows(asked);
                asked.close();
            }
        }
    }

    private static List<String> column(ResultSet result, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        while (result.next()) {
            values.add(result.getString(name));
        }
        result.close();
        return values;
    }
}
