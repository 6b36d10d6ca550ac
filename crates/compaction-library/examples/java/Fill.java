import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import manxdb.Compaction;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Statistics;
import org.rocksdb.StringAppendOperator;
import org.rocksdb.TickerType;

/**
 * A Java program whose compactions a pool does: {@code Fill LIBRARY DIRECTORY CONFIGURATION KIND},
 * where KIND is {@code plain}, or {@code merge}: with a merge operator.
 */
public final class Fill {
    private static final int ROUNDS = 30;

    public static void main(String[] arguments) throws RocksDBException {
        boolean merges = arguments[3].equals("merge");
        try (Statistics statistics = new Statistics();
                Options options = new Options()) {
            options.setCreateIfMissing(true)
                    .setWriteBufferSize(256 << 10)
                    .setTargetFileSizeBase(128 << 10)
                    .setMaxBytesForLevelBase(1 << 20)
                    .setStatistics(statistics);
            if (merges) {
                options.setMergeOperator(new StringAppendOperator());
            }
            Compaction.service(arguments[0], options, arguments[2]);
            int keys;
            try (RocksDB db = RocksDB.open(options, arguments[1])) {
                TreeMap<String, String> copy = fill(db, merges);
                db.compactRange();
                keys = compare(db, copy);
            }
            long bytes = statistics.getTickerCount(TickerType.REMOTE_COMPACT_READ_BYTES);
            System.out.println("pool " + bytes + " bytes all " + keys + " keys are right");
        }
    }

    private static TreeMap<String, String> fill(RocksDB db, boolean merges) throws RocksDBException {
        TreeMap<String, String> copy = new TreeMap<>();
        Random random = new Random(7);
        for (int i = 0; i < ROUNDS * 2_000; i++) {
            String key = Integer.toString(random.nextInt(20_000));
            String value = random.nextInt() + "v".repeat(200);
            if (i % 7 == 0) {
                db.delete(bytes(key));
                copy.remove(key);
            } else if (merges) {
                db.merge(bytes(key), bytes(value));
                copy.merge(key, value, (old, more) -> old + "," + more);
            } else {
                db.put(bytes(key), bytes(value));
                copy.put(key, value);
            }
        }
        return copy;
    }

    private static int compare(RocksDB db, TreeMap<String, String> copy) throws RocksDBException {
        int keys = 0;
        try (RocksIterator found = db.newIterator()) {
            var expected = copy.entrySet().iterator();
            for (found.seekToFirst(); found.isValid(); found.next(), keys++) {
                String key = new String(found.key(), StandardCharsets.UTF_8);
                Map.Entry<String, String> next = expected.hasNext() ? expected.next() : null;
                String value = new String(found.value(), StandardCharsets.UTF_8);
                if (next == null || !next.getKey().equals(key) || !next.getValue().equals(value)) {
                    throw new IllegalStateException(key + " is not what was written");
                }
            }
            found.status();
            if (expected.hasNext()) {
                throw new IllegalStateException("keys are missing at the end");
            }
        }
        db.verifyChecksum();
        return keys;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
