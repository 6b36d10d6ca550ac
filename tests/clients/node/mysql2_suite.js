// mysql2: text and prepared statements, pools, streams.
'use strict';

const mysql = require('mysql2/promise');
const { assert, check, database, expectError, isMariadb, main, server } = require('./checks');

let pool;
let admin;

check('migrate', async () => {
  admin = await mysql.createConnection({ ...server, multipleStatements: true });
  await admin.query(`DROP DATABASE IF EXISTS ${database}; CREATE DATABASE ${database}`);
  pool = mysql.createPool({ ...server, database, connectionLimit: 4, dateStrings: true });
  await pool.query(`CREATE TABLE team (
    id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE)`);
  await pool.query(`CREATE TABLE player (
    id BIGINT AUTO_INCREMENT PRIMARY KEY, team_id INT NOT NULL, nick VARCHAR(40) NOT NULL,
    score DECIMAL(9,3) NOT NULL DEFAULT 0, born DATE, seen DATETIME(3), data JSON, avatar BLOB,
    INDEX (team_id), FOREIGN KEY (team_id) REFERENCES team (id))`);
});

check('text protocol: insert, select, update, delete', async () => {
  const [result] = await pool.query('INSERT INTO team (name) VALUES ?', [[['red'], ['blue'], ['green']]]);
  assert.equal(result.affectedRows, 3);
  assert.equal(result.insertId, 1);
  const [rows, fields] = await pool.query('SELECT id, name FROM team ORDER BY name');
  assert.deepEqual(rows.map((row) => row.name), ['blue', 'green', 'red']);
  assert.deepEqual(fields.map((field) => field.name), ['id', 'name']);
  const [update] = await pool.query("UPDATE team SET name = 'GREEN' WHERE id = 3");
  assert.deepEqual([update.affectedRows, update.changedRows], [1, 1]);
  const [same] = await pool.query("UPDATE team SET name = 'GREEN' WHERE id = 3");
  assert.deepEqual([same.affectedRows, same.changedRows], [1, 0]);
  const [gone] = await pool.query('DELETE FROM team WHERE id = 3');
  assert.equal(gone.affectedRows, 1);
});

check('prepared statements with every kind of parameter', async () => {
  const seen = '2024-05-06 07:08:09.123';
  const [result] = await pool.execute(
    'INSERT INTO player (team_id, nick, score, born, seen, data, avatar) VALUES (?, ?, ?, ?, ?, ?, ?)',
    [1, 'žofie', 12.5, '2000-02-29', seen, JSON.stringify({ level: 3 }), Buffer.from([0, 255, 10])]);
  assert.equal(result.insertId, 1);
  const [[row]] = await pool.execute('SELECT * FROM player WHERE nick = ? AND score > ?', ['žofie', 1]);
  assert.equal(row.score, '12.500');
  assert.equal(row.born, '2000-02-29');
  assert.equal(row.seen, seen);
  assert.deepEqual(typeof row.data === 'string' ? JSON.parse(row.data) : row.data, { level: 3 });
  assert.deepEqual([...row.avatar], [0, 255, 10]);
  const [[nothing]] = await pool.execute('SELECT ? AS a, ? AS b, ? AS c', [null, 'x', 7]);
  assert.equal(nothing.a, null);
  assert.equal(nothing.b, 'x');
  assert.equal(Number(nothing.c), 7);
  for (let index = 0; index < 50; index += 1) {
    const [[answer]] = await pool.execute('SELECT COUNT(*) AS n FROM player WHERE id = ?', [index]);
    assert.equal(answer.n, index === 1 ? 1 : 0);
  }
  await pool.execute('SELECT * FROM player ORDER BY id LIMIT ? OFFSET ?', ['10', '0']);
});

check('a prepared statement survives a change of the table', async () => {
  const connection = await mysql.createConnection({ ...server, database });
  await connection.query('CREATE TABLE changing (id INT PRIMARY KEY)');
  await connection.execute('INSERT INTO changing VALUES (?)', [1]);
  const select = await connection.prepare('SELECT * FROM changing WHERE id = ?');
  assert.deepEqual((await select.execute([1]))[0].length, 1);
  await pool.query('ALTER TABLE changing ADD COLUMN extra INT NOT NULL DEFAULT 5');
  const [rows] = await select.execute([1]);
  assert.deepEqual({ ...rows[0] }, { id: 1, extra: 5 });
  await select.close();
  await connection.end();
});

check('transactions commit and roll back', async () => {
  const connection = await pool.getConnection();
  await connection.beginTransaction();
  await connection.execute('INSERT INTO player (team_id, nick) VALUES (?, ?)', [2, 'gone']);
  const [[outside]] = await pool.query("SELECT COUNT(*) AS n FROM player WHERE nick = 'gone'");
  assert.equal(outside.n, 0);
  await connection.rollback();
  await connection.beginTransaction();
  await connection.execute('INSERT INTO player (team_id, nick) VALUES (?, ?)', [2, 'kept']);
  await connection.commit();
  connection.release();
  const [[after]] = await pool.query("SELECT SUM(nick = 'kept') AS kept, SUM(nick = 'gone') AS gone FROM player");
  assert.deepEqual([Number(after.kept), Number(after.gone)], [1, 0]);
});

check('errors have number, code and SQLSTATE', async () => {
  let error = await expectError(1062, pool.query("INSERT INTO team (name) VALUES ('red')"));
  assert.deepEqual([error.code, error.sqlState], ['ER_DUP_ENTRY', '23000']);
  error = await expectError(1452, pool.execute('INSERT INTO player (team_id, nick) VALUES (?, ?)', [99, 'x']));
  assert.equal(error.sqlState, '23000');
  await expectError(1451, pool.query('DELETE FROM team WHERE id = 1'));
  error = await expectError(1064, pool.query('SELEKT'));
  assert.deepEqual([error.code, error.sqlState], ['ER_PARSE_ERROR', '42000']);
  await expectError(1064, pool.execute('SELEKT ?', [1]));
  error = await expectError(1146, pool.execute('SELECT * FROM nothing'));
  assert.equal(error.sqlState, '42S02');
  await expectError(1054, pool.query('SELECT nothing FROM team'));
});

check('a conflict at SERIALIZABLE loses no update', async () => {
  await pool.query("UPDATE player SET score = 0 WHERE nick = 'kept'");
  const add = async () => {
    const connection = await mysql.createConnection({ ...server, database });
    try {
      await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE');
      await connection.beginTransaction();
      const [[{ score }]] = await connection.query("SELECT score FROM player WHERE nick = 'kept'");
      await connection.query("UPDATE player SET score = ? WHERE nick = 'kept'", [Number(score) + 1]);
      await connection.commit();
      return 1;
    } catch (error) {
      assert.ok([1213, 1205].includes(error.errno), error.message);
      await connection.rollback();
      return 0;
    } finally {
      await connection.end();
    }
  };
  let done = 0;
  for (let round = 0; round < 10; round += 1) {
    const results = await Promise.all([add(), add(), add()]);
    done += results.reduce((sum, value) => sum + value, 0);
  }
  assert.ok(done >= 10, `only ${done} of 30 went through`);
  const [[{ score }]] = await pool.query("SELECT score FROM player WHERE nick = 'kept'");
  assert.equal(Number(score), done);
});

check('time-outs', async () => {
  const holder = await mysql.createConnection({ ...server, database });
  const waiter = await mysql.createConnection({ ...server, database });
  await holder.beginTransaction();
  await holder.query('SELECT * FROM team WHERE id = 1 FOR UPDATE');
  await waiter.query('SET SESSION innodb_lock_wait_timeout = 1');
  const error = await expectError(1205, waiter.query("UPDATE team SET name = 'x' WHERE id = 1"));
  assert.equal(error.code, 'ER_LOCK_WAIT_TIMEOUT');
  if (!isMariadb) {
    await waiter.query('SET SESSION max_execution_time = 100');
    await expectError(3024, waiter.query('SELECT COUNT(*) FROM team a, team b WHERE SLEEP(5) = 0'));
  }
  await holder.rollback();
  await holder.end();
  await waiter.end();
});

check('streams, nested results, changeUser and ping', async () => {
  const connection = await mysql.createConnection({ ...server, database });
  for (let start = 0; start < 2000; start += 500) {
    const rows = Array.from({ length: 500 }, (_, index) => [1, `n${start + index}`]);
    await connection.query('INSERT INTO player (team_id, nick) VALUES ?', [rows]);
  }
  let count = 0;
  const stream = connection.connection.query('SELECT * FROM player').stream();
  for await (const row of stream) count += row.id > 0 ? 1 : 0;
  assert.ok(count >= 2000, `${count} rows`);
  const [joined] = await connection.query({
    sql: 'SELECT * FROM player p JOIN team t ON t.id = p.team_id LIMIT 1', nestTables: true });
  assert.deepEqual(Object.keys(joined[0]), ['p', 't']);
  await connection.query('SET @remembered = 5');
  await connection.changeUser({ database: 'information_schema' });
  const [[row]] = await connection.query('SELECT DATABASE() AS d, @remembered AS r');
  assert.deepEqual({ ...row }, { d: 'information_schema', r: null });
  await connection.ping();
  await connection.end();
});

check('a wrong password is 1045, also without TLS', async () => {
  // mysql2 asks for the server's key and encrypts the password for it before it is told.
  await expectError(1045, mysql.createConnection({ ...server, password: 'not it' }));
});

check('drop', async () => {
  await pool.end();
  await admin.query(`DROP DATABASE ${database}`);
});

main(async () => {
  if (admin) await admin.end();
});
