package manxdb;

import java.nio.charset.StandardCharsets;
import org.rocksdb.DBOptionsInterface;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksObject;

/** Compactions by a pool of ManxDB's workers, for rocksdbjni 11.8. */
public final class Compaction {
    private Compaction() {}

    /**
     * Gives databases that are opened with {@code options} a compaction service.
     *
     * @param library path of libmanxdb_compaction.so
     * @param configuration TOML, or the path of a file with it
     * @throws IllegalArgumentException what is wrong with the configuration
     */
    public static <T extends RocksObject & DBOptionsInterface<T>> void service(
            String library, T options, String configuration) {
        RocksDB.loadLibrary();
        System.load(library);
        byte[] text = configuration.getBytes(StandardCharsets.UTF_8);
        String wrong = install(options.getNativeHandle(), text);
        if (wrong != null) {
            throw new IllegalArgumentException("manxdb: " + wrong);
        }
    }

    private static native String install(long options, byte[] configuration);
}
