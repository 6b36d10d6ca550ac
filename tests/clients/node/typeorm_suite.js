// TypeORM: synchronize, which must find nothing to do afterwards, repositories, schema changes.
'use strict';

require('reflect-metadata');
const mysql = require('mysql2/promise');
const { DataSource, EntitySchema, In, Like, MoreThan, Table, TableColumn, TableForeignKey, TableIndex } = require('typeorm');
const { assert, check, database, expectError, main, server } = require('./checks');

const userColumns = {
  id: { type: Number, primary: true, generated: 'increment' },
  email: { type: String, unique: true, length: 191 },
  name: { type: 'varchar', length: 50, default: 'none' },
  bio: { type: 'text', nullable: true },
  age: { type: 'int', unsigned: true, default: 0 },
  balance: { type: 'decimal', precision: 12, scale: 2, default: 0 },
  active: { type: 'boolean', default: true },
  role: { type: 'enum', enum: ['admin', 'user'], default: 'user' },
  meta: { type: 'json', nullable: true },
  created: { type: 'datetime', precision: 6, createDate: true },
  updated: { type: 'datetime', precision: 6, updateDate: true },
  deleted: { type: 'datetime', precision: 6, deleteDate: true, nullable: true },
  version: { type: 'int', version: true },
  raw: { type: 'varbinary', length: 20, nullable: true },
  born: { type: 'date', nullable: true },
  stamp: { type: 'timestamp', precision: 6, default: () => 'CURRENT_TIMESTAMP(6)', onUpdate: 'CURRENT_TIMESTAMP(6)' },
  ratio: { type: 'double', nullable: true },
  big: { type: 'bigint', nullable: true },
  tags: { type: 'simple-array', nullable: true },
  label: { type: 'varchar', length: 250, asExpression: "concat(`name`,' ',`email`)", generatedType: 'VIRTUAL', nullable: true },
  twice: { type: 'int', asExpression: '`age` * 2', generatedType: 'STORED', nullable: true },
  exact: { type: 'varchar', length: 20, charset: 'utf8mb4', collation: 'utf8mb4_bin', nullable: true },
  note: { type: 'varchar', length: 5, comment: "user's note", nullable: true },
};

function user(columns) {
  return new EntitySchema({
    name: 'User', tableName: 'user', columns,
    relations: { posts: { type: 'one-to-many', target: 'Post', inverseSide: 'user' } },
    indices: [{ name: 'by_name_age', columns: ['name', 'age'] }],
    checks: [{ name: 'young', expression: '`age` < 200' }],
  });
}

const Post = new EntitySchema({
  name: 'Post',
  columns: { id: { type: 'bigint', primary: true, generated: 'increment' }, title: { type: String } },
  relations: {
    user: { type: 'many-to-one', target: 'User', inverseSide: 'posts', onDelete: 'CASCADE', nullable: false },
    topics: { type: 'many-to-many', target: 'Topic', joinTable: true },
  },
  uniques: [{ columns: ['title', 'user'] }],
});
const Topic = new EntitySchema({ name: 'Topic', columns: { word: { type: 'varchar', length: 20, primary: true } } });

let source;

async function open(options) {
  source = new DataSource({ type: 'mysql', host: server.host, port: server.port, username: server.user, password: server.password, database, ...options });
  await source.initialize();
}

// What synchronize would do.
async function pending() {
  const log = await source.driver.createSchemaBuilder().log();
  return log.upQueries.map((query) => query.query);
}

check('synchronize, and a second time nothing to do', async () => {
  const admin = await mysql.createConnection(server);
  await admin.query(`DROP DATABASE IF EXISTS ${database}`);
  await admin.query(`CREATE DATABASE ${database}`);
  await admin.end();
  await open({ entities: [user(userColumns), Post, Topic] });
  await source.synchronize();
  assert.deepEqual(await pending(), []);
});

check('save with relations', async () => {
  const users = source.getRepository('User');
  const ann = await users.save({ email: 'ann@x', name: 'ann', age: 3, meta: { x: [1] }, raw: Buffer.from([0, 255]), born: '2020-01-01', tags: ['p', 'q'], big: '9007199254740993' });
  const topic = await source.getRepository('Topic').save({ word: 'cats' });
  await source.getRepository('Post').save([{ title: 'one', user: ann, topics: [topic] }, { title: 'two', user: ann }]);
  const got = await users.findOne({ where: { id: ann.id }, relations: { posts: { topics: true } } });
  assert.equal(got.posts.length, 2);
  assert.equal(got.label, 'ann ann@x');
  assert.deepEqual([got.twice, got.big, got.meta, got.born], [6, '9007199254740993', { x: [1] }, '2020-01-01']);
  got.name = 'anne';
  await users.save(got);
  assert.equal((await users.findOneBy({ id: ann.id })).version, 2);
});

check('queries, upsert, soft deletion', async () => {
  const users = source.getRepository('User');
  for (let age = 0; age < 20; age += 1) await users.insert({ email: `e${age}`, age });
  await users.upsert([{ email: 'e1', age: 77 }, { email: 'new', age: 1 }], ['email']);
  assert.equal((await users.findOneBy({ email: 'e1' })).age, 77);
  await users.softDelete({ email: 'e2' });
  assert.equal(await users.findOneBy({ email: 'e2' }), null);
  await users.restore({ email: 'e2' });
  await users.increment({ age: MoreThan(5) }, 'age', 1);
  const [rows, count] = await users.findAndCount({ where: { name: Like('non%'), role: In(['user']) }, order: { age: 'DESC' }, skip: 1, take: 3, relations: { posts: true } });
  assert.deepEqual([rows.length, count], [3, 21]);
  const raw = await users.createQueryBuilder('u').select('u.role', 'role').addSelect('COUNT(*)', 'n').groupBy('u.role').getRawMany();
  assert.deepEqual(raw.map((row) => ({ ...row })), [{ role: 'user', n: '22' }]);
  await expectError(1062, users.insert({ email: 'e1' }));
});

check('transactions nest and lock', async () => {
  const users = source.getRepository('User');
  await source.transaction(async (manager) => {
    await manager.find('User', { lock: { mode: 'pessimistic_write_or_fail' }, take: 1 });
    await manager.transaction(async (inner) => {
      await inner.save('User', { email: 'inner' });
      throw new Error('undone');
    }).catch(() => {});
    await manager.save('User', { email: 'outer' });
  });
  assert.equal(await users.countBy({ email: In(['inner', 'outer']) }), 1);
});

check('a schema changed by hand', async () => {
  const runner = source.createQueryRunner();
  await runner.createTable(new Table({ name: 'made', columns: [
    { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
    { name: 'word', type: 'varchar', length: '20', isNullable: true }, { name: 'owner', type: 'int' }] }));
  await runner.addColumn('made', new TableColumn({ name: 'x', type: 'int', default: 1 }));
  await runner.changeColumn('made', 'x', new TableColumn({ name: 'y', type: 'bigint', isNullable: true }));
  await runner.createIndex('made', new TableIndex({ name: 'by_word', columnNames: ['word'] }));
  await runner.createForeignKey('made', new TableForeignKey({ name: 'owned', columnNames: ['owner'], referencedTableName: 'user', referencedColumnNames: ['id'], onDelete: 'CASCADE' }));
  const table = await runner.getTable('made');
  assert.deepEqual(table.columns.map((column) => column.name), ['id', 'word', 'owner', 'y']);
  assert.equal(table.foreignKeys[0].onDelete, 'CASCADE');
  await runner.dropForeignKey('made', 'owned');
  await runner.renameTable('made', 'renamed');
  await runner.dropTable('renamed');
  // One SELECT for each table there is, joined by UNION.
  assert.ok((await runner.getTables()).some((found) => found.name.endsWith('user')));
  await runner.release();
});

check('changed entities are synchronized, and again nothing to do', async () => {
  await source.destroy();
  const columns = { ...userColumns, bio: { type: 'varchar', length: 80, default: '' }, ratio: { type: 'float', nullable: true },
    role: { type: 'enum', enum: ['admin', 'user', 'guest'], default: 'guest' }, extra: { type: 'int', nullable: true } };
  delete columns.note;
  await open({ entities: [user(columns), Post, Topic] });
  assert.ok((await pending()).length > 3);
  await source.synchronize();
  assert.deepEqual(await pending(), []);
  await source.destroy();
});

check('migrations up and down', async () => {
  class First1700000000000 {
    name = 'First1700000000000';
    up(runner) { return runner.query('CREATE TABLE moved (id INT PRIMARY KEY)'); }
    down(runner) { return runner.query('DROP TABLE moved'); }
  }
  class Second1700000000001 {
    name = 'Second1700000000001';
    up(runner) { return runner.query('ALTER TABLE moved ADD x INT'); }
    down(runner) { return runner.query('ALTER TABLE moved DROP x'); }
  }
  await open({ entities: [], migrations: [First1700000000000, Second1700000000001] });
  assert.equal((await source.runMigrations({ transaction: 'each' })).length, 2);
  assert.equal(await source.showMigrations(), false);
  await source.undoLastMigration();
  assert.equal((await source.runMigrations()).length, 1);
});

main(() => source.destroy());
