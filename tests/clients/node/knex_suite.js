// Knex: its schema builder and inspection, queries, migrations.
'use strict';

const knex = require('knex');
const { assert, check, database, expectError, main, server } = require('./checks');

let db;

function open(name) {
  return knex({ client: 'mysql2', connection: { ...server, database: name, multipleStatements: true }, pool: { min: 0, max: 3 } });
}

check('tables with columns of every kind', async () => {
  const admin = open();
  await admin.raw(`DROP DATABASE IF EXISTS ${database}`);
  await admin.raw(`CREATE DATABASE ${database}`);
  await admin.destroy();
  db = open(database);
  await db.schema.createTable('users', (table) => {
    table.increments('id');
    table.string('name', 50).notNullable().defaultTo("it's").comment('na"me');
    table.text('bio');
    table.integer('age').unsigned().index();
    table.decimal('price', 10, 2).defaultTo(1.5);
    table.double('ratio');
    table.boolean('active').defaultTo(true);
    table.dateTime('moment', { precision: 6 }).defaultTo(db.fn.now(6));
    table.timestamps(true, true);
    table.binary('raw');
    table.json('data');
    table.uuid('code').defaultTo(db.fn.uuid());
    table.enu('state', ['a', 'b']).defaultTo('a');
    table.unique(['name', 'age'], { indexName: 'name_once' });
    table.index(['state', 'moment'], 'by_state');
    table.check('?? >= ?', ['age', 0]);
    table.charset('utf8mb4');
    table.collate('utf8mb4_unicode_ci');
  });
  await db.schema.createTable('posts', (table) => {
    table.bigIncrements();
    table.integer('user_id').unsigned().notNullable().references('id').inTable('users').onDelete('CASCADE');
    table.string('title');
  });
});

check('tables change', async () => {
  await db.schema.alterTable('posts', (table) => {
    table.renameColumn('title', 'headline');
    table.integer('rank').after('id');
    table.string('lead').first();
  });
  await db.schema.alterTable('posts', (table) => {
    table.string('headline', 300).nullable().alter();
    table.dropColumns('lead', 'rank');
  });
  await db.schema.alterTable('users', (table) => {
    table.dropIndex([], 'by_state');
    table.dropUnique([], 'name_once');
    table.unique('name');
  });
  await db.schema.renameTable('posts', 'articles');
  await db.schema.createView('names', (view) => {
    view.columns(['id', 'called']);
    view.as(db('users').select('id', 'name'));
  });
  await db.schema.dropView('names');
  await db.schema.createTableLike('copies', 'users');
  assert.equal(await db.schema.hasTable('articles'), true);
  assert.equal(await db.schema.hasColumn('articles', 'headline'), true);
  const info = await db('users').columnInfo();
  assert.deepEqual(info.name, { defaultValue: "it's", type: 'varchar', maxLength: 50, nullable: false });
  assert.equal(info.price.defaultValue, '1.50');
});

check('rows are merged, ignored and counted', async () => {
  const [id] = await db('users').insert({ name: 'ann', age: 1, data: JSON.stringify({ a: { b: [1, 2] } }), raw: Buffer.from([0, 255]) });
  assert.equal(id, 1);
  await db('users').insert([{ name: 'bea', age: 2 }, { name: 'cat', age: 3 }]);
  await db('users').insert({ name: 'ann', age: 5 }).onConflict('name').merge(['age']);
  await db('users').insert({ name: 'ann', age: 6 }).onConflict('name').ignore();
  await db.batchInsert('articles', Array.from({ length: 100 }, (_, at) => ({ user_id: 1, headline: `t${at}` })), 30);
  const rows = await db('users').leftJoin('articles', 'users.id', 'articles.user_id').select('users.age')
    .count('articles.id as n').groupBy('users.id').orderBy('n', 'desc').limit(2);
  assert.deepEqual(rows.map((row) => ({ ...row }))[0], { age: 5, n: 100 });
  await expectError(1062, db('users').insert({ name: 'ann' }));
  await expectError(1452, db('articles').insert({ user_id: 99 }));
});

check('queries of many kinds', async () => {
  assert.deepEqual((await db('users').jsonExtract('data', '$.a.b', 'found'))[0].found, '[1, 2]');
  assert.equal((await db('users').whereJsonPath('data', '$.a.b[0]', '=', 1)).length, 1);
  assert.equal((await db('users').whereJsonSupersetOf('data', { a: { b: [1] } })).length, 1);
  assert.equal((await db.with('w', db('users').select('id')).select().from('w').unionAll([db('articles').select('id')])).length, 103);
  assert.equal((await db('users').rowNumber('place', (window) => window.orderBy('id')))[2].place, 3);
  assert.equal((await db('users').whereIn(['id', 'age'], [[2, 2], [3, 9]])).length, 1);
  assert.equal(await db('users').join('articles', 'users.id', 'articles.user_id').where('articles.id', 5).update({ 'users.bio': 'x' }), 1);
  const [results] = await db.raw('SELECT 1 AS x; SELECT 2 AS y');
  assert.equal(results.length, 2);
  let streamed = 0;
  for await (const row of db('articles').stream()) streamed += row.user_id;
  assert.equal(streamed, 100);
});

check('transactions nest and lock', async () => {
  await db.transaction(async (outer) => {
    await outer('users').where('id', 1).forUpdate().first();
    await outer('users').forShare().skipLocked();
    await outer('users').increment('age', 2).where('id', 1);
    await outer.transaction(async (inner) => {
      await inner('users').del();
      throw new Error('undone');
    }).catch(() => {});
  }, { isolationLevel: 'repeatable read' });
  assert.deepEqual((await db('users').orderBy('id')).map((row) => row.age), [7, 2, 3]);
});

check('migrations up and down', async () => {
  const steps = {
    first: { up: (k) => k.schema.createTable('moved', (table) => table.increments()), down: (k) => k.schema.dropTable('moved') },
    second: { up: (k) => k.schema.alterTable('moved', (table) => table.string('x')), down: (k) => k.schema.alterTable('moved', (table) => table.dropColumn('x')) },
  };
  const config = { migrationSource: {
    getMigrations: async () => Object.keys(steps), getMigrationName: (name) => name, getMigration: (name) => steps[name] } };
  await db.migrate.latest(config);
  await db.migrate.rollback(config, true);
  assert.equal(await db.schema.hasTable('moved'), false);
  await db.migrate.up(config);
  await db.migrate.latest(config);
  assert.equal(await db.schema.hasColumn('moved', 'x'), true);
  assert.equal(await db.migrate.currentVersion(config), 'second');
});

main(() => db.destroy());
