// Runs named checks in order and prints PASS or FAIL for each.
'use strict';

const assert = require('node:assert/strict');

const server = {
  host: process.env.MANXDB_TEST_HOST || '127.0.0.1',
  port: Number(process.env.MANXDB_TEST_PORT || 3306),
  user: process.env.MANXDB_TEST_USER || 'root',
  password: process.env.MANXDB_TEST_PASSWORD || '',
};
const database = process.env.MANXDB_TEST_DATABASE || 'manx_test';
const isMariadb = process.env.MANXDB_TEST_SERVER === 'mariadb';

const registered = [];

function check(name, run) {
  registered.push([name, run]);
}

// The promise fails with one of the error numbers; gives the error.
async function expectError(numbers, promise) {
  const wanted = [].concat(numbers);
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `succeeded, wanted error ${wanted}`);
  const original = error.original || error.parent || error;
  assert.ok(wanted.includes(original.errno), `error ${original.errno} (${error.message}), wanted ${wanted}`);
  return error;
}

async function main(finish) {
  let failed = 0;
  for (const [name, run] of registered) {
    try {
      await run();
      console.log(`PASS ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${String(error && error.message).replace(/\s+/g, ' ').slice(0, 600)}`);
    }
  }
  await finish();
  process.exit(failed ? 1 : 0);
}

module.exports = { assert, check, database, expectError, isMariadb, main, server };
