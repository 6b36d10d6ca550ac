// ioredis, node-redis and BullMQ on the Redis server.
'use strict';

const assert = require('node:assert/strict');
const Redis = require('ioredis');
const { createClient } = require('redis');
const { FlowProducer, Job, Queue, QueueEvents, Worker } = require('bullmq');

const port = Number(process.env.MANXDB_TEST_REDIS_PORT);
const checks = [];
const check = (name, run) => checks.push([name, run]);

// Fails when it takes too long, and says what.
function within(seconds, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

check('ioredis: pipeline, transaction, script, blocking, messages, scan', async () => {
  const link = new Redis({ port, db: 8 });
  await link.flushdb();
  const piped = await link.pipeline().set('a', 1).incr('a').hset('h', { x: 1, y: 2 }).exec();
  assert.deepEqual(piped, [[null, 'OK'], [null, 2], [null, 2]]);
  assert.deepEqual(await link.hgetall('h'), { x: '1', y: '2' });
  assert.deepEqual(await link.multi().get('a').incr('a').exec(), [[null, '2'], [null, 3]]);
  link.defineCommand('compareAndSet', {
    numberOfKeys: 1,
    lua: "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end return 0",
  });
  assert.equal(await link.compareAndSet('a', '3', '4'), 1);
  assert.equal(await link.compareAndSet('a', '3', '5'), 0);
  const other = link.duplicate();
  const popped = other.blpop('queue', 5);
  await link.rpush('queue', 'x');
  assert.deepEqual(await popped, ['queue', 'x']);
  const heard = new Promise((resolve) => { other.on('message', (channel, text) => resolve([channel, text])); });
  await other.subscribe('news');
  await link.publish('news', 'hello');
  assert.deepEqual(await within(5, heard, 'a message'), ['news', 'hello']);
  const keys = [];
  for await (const page of link.scanStream({ match: '*' })) keys.push(...page);
  assert.deepEqual(keys.sort(), ['a', 'h']);
  await other.quit();
  await link.quit();
});

check('node-redis: RESP 2 and 3', async () => {
  for (const RESP of [2, 3]) {
    const link = createClient({ socket: { port, host: '127.0.0.1' }, database: 9, RESP });
    await link.connect();
    await link.flushDb();
    assert.equal(await link.set('a', '1', { expiration: { type: 'EX', value: 60 } }), 'OK');
    assert.deepEqual(await link.multi().incr('a').get('a').exec(), [2, '2']);
    await link.zAdd('z', [{ score: 1, value: 'm' }, { score: 2.5, value: 'n' }]);
    assert.deepEqual(await link.zRangeWithScores('z', 0, -1), [{ value: 'm', score: 1 }, { value: 'n', score: 2.5 }]);
    assert.equal(await link.eval('return #KEYS + ARGV[1]', { keys: ['x', 'y'], arguments: ['40'] }), 42);
    const id = await link.xAdd('s', '*', { f: 'v' });
    const [entry] = await link.xRange('s', '-', '+');
    assert.deepEqual([entry.id, { ...entry.message }], [id, { f: 'v' }]);
    await link.close();
  }
});

check('BullMQ: jobs, priorities, delay, retry, a flow, progress', async () => {
  const connection = { port, host: '127.0.0.1', db: 10, maxRetriesPerRequest: null };
  const queue = new Queue('day', { connection });
  const events = new QueueEvents('day', { connection });
  await events.waitUntilReady();
  let tries = 0;
  const worker = new Worker('day', async (job) => {
    if (job.name === 'flaky' && ++tries < 2) throw new Error('as planned');
    await job.updateProgress(50);
    if (job.name === 'parent') return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
    return job.data.number * 2;
  }, { connection, concurrency: 4 });
  const jobs = await queue.addBulk([1, 2, 3, 4, 5].map((number) => ({ name: 'double', data: { number }, opts: { priority: number } })));
  const results = await within(15, Promise.all(jobs.map((job) => job.waitUntilFinished(events))), 'jobs');
  assert.deepEqual(results, [2, 4, 6, 8, 10]);
  const delayed = await queue.add('double', { number: 21 }, { delay: 100 });
  assert.equal(await within(15, delayed.waitUntilFinished(events), 'a delayed job'), 42);
  const flaky = await queue.add('flaky', { number: 4 }, { attempts: 2, backoff: { type: 'fixed', delay: 50 } });
  assert.equal(await within(15, flaky.waitUntilFinished(events), 'a job that is tried again'), 8);
  const flow = new FlowProducer({ connection });
  const tree = await flow.add({
    name: 'parent', queueName: 'day', data: {},
    children: [1, 2].map((number) => ({ name: 'double', queueName: 'day', data: { number } })),
  });
  assert.equal(await within(15, tree.job.waitUntilFinished(events), 'a flow'), 6);
  assert.equal(await (await Job.fromId(queue, flaky.id)).getState(), 'completed');
  const counts = await queue.getJobCounts('completed', 'failed', 'delayed', 'wait', 'active');
  assert.deepEqual(counts, { completed: 10, failed: 0, delayed: 0, wait: 0, active: 0 });
  await queue.upsertJobScheduler('every', { every: 100 }, { name: 'double', data: { number: 1 } });
  await within(15, new Promise((resolve) => { worker.on('completed', (job) => job.repeatJobKey && resolve()); }), 'a repeated job');
  await queue.removeJobScheduler('every');
  await worker.close();
  await queue.obliterate({ force: true });
  await Promise.all([events.close(), flow.close(), queue.close()]);
});

(async () => {
  let failed = 0;
  for (const [name, run] of checks) {
    try {
      await within(60, run(), name);
      console.log(`PASS redis: ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL redis: ${name}: ${String(error.stack || error).split('\n').slice(0, 4).join(' | ')}`);
    }
  }
  process.exit(failed ? 1 : 0);
})();
