package manxdb.suite;

import static manxdb.suite.Checks.check;
import static manxdb.suite.Checks.expect;

import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScanCursor;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.StreamEntry;

/** Jedis and lettuce, unmodified, on the Redis port. */
final class RedisSuite {
    private static final int PORT = Integer.parseInt(System.getenv("MANXDB_TEST_REDIS_PORT"));
    private static final long PATIENCE_SECONDS = 30;
    private static final String DELETE_IF_MINE =
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

    private RedisSuite() {}

    public static void main(String[] arguments) {
        try (JedisPool pool = new JedisPool("127.0.0.1", PORT)) {
            check("redis: jedis: values, expiry and locks", () -> jedisValues(pool));
            check("redis: jedis: pipelines and transactions", () -> jedisTransactions(pool));
            check("redis: jedis: a queue between threads", () -> jedisQueue(pool));
            check("redis: jedis: streams and groups", () -> jedisStreams(pool));
            check("redis: jedis: channels", () -> jedisChannels(pool));
        }
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + PORT + "/9");
        try {
            check("redis: lettuce: RESP 3, values and scans", () -> lettuceValues(client));
            check("redis: lettuce: many commands under way", () -> lettuceAsync(client));
            check("redis: lettuce: channels and transactions", () -> lettuceChannels(client));
        } finally {
            client.shutdown(0, 1, TimeUnit.SECONDS);
        }
        System.exit(Checks.exitCode());
    }

    private static void jedisValues(JedisPool pool) {
        try (Jedis jedis = pool.getResource()) {
            jedis.select(8);
            jedis.flushDB();
            expect("SET NX", jedis.set("lock", "me", SetParams.setParams().nx().px(20_000)), "OK");
            expect("SET NX of another", jedis.set("lock", "you", SetParams.setParams().nx().px(20_000)), null);
            expect("not mine", jedis.eval(DELETE_IF_MINE, List.of("lock"), List.of("you")), 0L);
            expect("mine", jedis.evalsha(jedis.scriptLoad(DELETE_IF_MINE), List.of("lock"), List.of("me")), 1L);
            jedis.hset("hash", Map.of("a", "1", "b", "2"));
            expect("HGETALL", jedis.hgetAll("hash"), Map.of("a", "1", "b", "2"));
            expect("HINCRBY", jedis.hincrBy("hash", "a", 41), 42L);
            jedis.zadd("scores", Map.of("x", 1.5, "y", 2.5));
            expect("ZRANGE", jedis.zrangeByScore("scores", 2, 3), List.of("y"));
            byte[] bytes = new byte[70_000];
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] = (byte) at;
            }
            jedis.set("bytes".getBytes(), bytes);
            expect("bytes", java.util.Arrays.equals(jedis.get("bytes".getBytes()), bytes), true);
            Set<String> seen = new HashSet<>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> page = jedis.scan(cursor, new ScanParams().count(2));
                seen.addAll(page.getResult());
                cursor = page.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            expect("SCAN", seen, Set.of("hash", "scores", "bytes"));
        }
    }

    private static void jedisTransactions(JedisPool pool) {
        try (Jedis jedis = pool.getResource(); Jedis other = pool.getResource()) {
            jedis.del("count", "list");
            Pipeline pipeline = jedis.pipelined();
            List<Response<Long>> counts = new ArrayList<>();
            for (int number = 0; number < 1_000; number++) {
                counts.add(pipeline.incr("count"));
            }
            pipeline.sync();
            expect("the last of 1,000", counts.get(999).get(), 1_000L);
            Transaction transaction = jedis.multi();
            transaction.incr("count");
            transaction.rpush("list", "a", "b");
            expect("EXEC", transaction.exec(), List.of(1_001L, 2L));
            jedis.watch("count");
            other.incr("count");
            transaction = jedis.multi();
            transaction.set("count", "0");
            expect("EXEC of what was watched and changed", transaction.exec(), null);
            expect("the count", jedis.get("count"), "1002");
        }
    }

    private static void jedisQueue(JedisPool pool) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (Jedis jedis = pool.getResource()) {
            jedis.del("jobs");
            List<Future<Integer>> workers = new ArrayList<>();
            for (int worker = 0; worker < 4; worker++) {
                workers.add(threads.submit(() -> {
                    int done = 0;
                    try (Jedis mine = new Jedis("127.0.0.1", PORT, 60_000)) {
                        while (!mine.brpop(20, "jobs").get(1).equals("end")) {
                            done++;
                        }
                    }
                    return done;
                }));
            }
            for (int number = 0; number < 400; number++) {
                jedis.lpush("jobs", "job " + number);
            }
            jedis.lpush("jobs", "end", "end", "end", "end");
            int done = 0;
            for (Future<Integer> worker : workers) {
                done += worker.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            }
            expect("jobs done", done, 400);
        } finally {
            threads.shutdownNow();
        }
    }

    private static void jedisStreams(JedisPool pool) {
        try (Jedis jedis = pool.getResource()) {
            jedis.del("stream");
            for (int number = 0; number < 10; number++) {
                jedis.xadd("stream", StreamEntryID.NEW_ENTRY, Map.of("number", Integer.toString(number)));
            }
            jedis.xgroupCreate("stream", "group", new StreamEntryID(0, 0), false);
            List<Map.Entry<String, List<StreamEntry>>> read = jedis.xreadGroup("group", "one",
                    XReadGroupParams.xReadGroupParams().count(6),
                    Map.of("stream", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
            List<StreamEntry> entries = read.get(0).getValue();
            expect("entries", entries.size(), 6);
            expect("the last", entries.get(5).getFields(), Map.of("number", "5"));
            expect("XACK", jedis.xack("stream", "group", entries.get(0).getID(), entries.get(1).getID()), 2L);
            expect("pending", jedis.xpending("stream", "group").getTotal(), 4L);
        }
    }

    private static void jedisChannels(JedisPool pool) throws Exception {
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
        CountDownLatch listening = new CountDownLatch(1);
        JedisPubSub ear = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                listening.countDown();
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.add(channel + ": " + message);
            }
        };
        Thread thread = new Thread(() -> {
            try (Jedis jedis = new Jedis("127.0.0.1", PORT)) {
                jedis.subscribe(ear, "news");
            }
        });
        thread.start();
        expect("listens", listening.await(PATIENCE_SECONDS, TimeUnit.SECONDS), true);
        try (Jedis jedis = pool.getResource()) {
            expect("PUBLISH", jedis.publish("news", "hello"), 1L);
        }
        expect("heard", heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS), "news: hello");
        ear.unsubscribe();
        thread.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
        expect("it ended", thread.isAlive(), false);
    }

    private static void lettuceValues(RedisClient client) {
        try (StatefulRedisConnection<String, String> link = client.connect()) {
            RedisCommands<String, String> redis = link.sync();
            redis.flushdb();
            expect("SET", redis.set("k", "v", SetArgs.Builder.ex(100)), "OK");
            expect("TTL", redis.ttl("k") > 90, true);
            redis.sadd("set", "a", "b", "c");
            expect("SMEMBERS", redis.smembers("set"), Set.of("a", "b", "c"));
            redis.hset("hash", Map.of("f", "1"));
            expect("HGETALL", redis.hgetall("hash"), Map.of("f", "1"));
            redis.zadd("scores", 2.25, "m");
            expect("ZSCORE", redis.zscore("scores", "m"), 2.25);
            expect("BLPOP of nothing", redis.blpop(1, "none"), null);
            redis.rpush("list", "x");
            expect("BLPOP", redis.blpop(1, "list"), KeyValue.just("list", "x"));
            Long ran = redis.eval("return #KEYS + ARGV[1]", ScriptOutputType.INTEGER, new String[] {"k"}, "41");
            expect("EVAL", ran, 42L);
            Set<String> names = new HashSet<>();
            ScanIterator.scan(redis).forEachRemaining(names::add);
            expect("SCAN", names, Set.of("k", "set", "hash", "scores"));
            expect("the end of SCAN", redis.scan(ScanCursor.of("0")).getKeys().isEmpty(), false);
        }
    }

    private static void lettuceAsync(RedisClient client) throws Exception {
        try (StatefulRedisConnection<String, String> link = client.connect()) {
            RedisAsyncCommands<String, String> redis = link.async();
            List<RedisFuture<Long>> counts = new ArrayList<>();
            redis.del("count").get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            for (int number = 0; number < 5_000; number++) {
                counts.add(redis.incr("count"));
            }
            for (int number = 0; number < 5_000; number++) {
                expect("in order", counts.get(number).get(PATIENCE_SECONDS, TimeUnit.SECONDS), number + 1L);
            }
        }
    }

    private static void lettuceChannels(RedisClient client) throws Exception {
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
        try (StatefulRedisPubSubConnection<String, String> ear = client.connectPubSub();
                StatefulRedisConnection<String, String> link = client.connect()) {
            ear.addListener(new RedisPubSubAdapter<>() {
                @Override
                public void message(String pattern, String channel, String message) {
                    heard.add(pattern + " " + channel + ": " + message);
                }
            });
            ear.sync().psubscribe("new*");
            RedisCommands<String, String> redis = link.sync();
            redis.multi();
            redis.publish("news", "one");
            redis.set("published", "1");
            expect("EXEC", redis.exec().stream().toList(), List.of(1L, "OK"));
            expect("heard", heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS), "new* news: one");
        }
    }
}
