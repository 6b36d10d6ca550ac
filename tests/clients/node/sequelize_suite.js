// Sequelize: models with relations, sync, migrations by its query interface, transactions.
'use strict';

const mysql = require('mysql2/promise');
const { DataTypes, Op, Sequelize, Transaction, fn, col, literal } = require('sequelize');
const { assert, check, database, expectError, isMariadb, main, server } = require('./checks');

let sequelize;
const models = {};

function define() {
  models.Owner = sequelize.define('owner', {
    name: { type: DataTypes.STRING(60), allowNull: false, unique: 'owner_name' },
    born: DataTypes.DATEONLY,
  });
  models.Pet = sequelize.define('pet', {
    id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true },
    kind: { type: DataTypes.ENUM('cat', 'dog', 'manx'), defaultValue: 'manx' },
    weight: DataTypes.DECIMAL(6, 2),
    info: DataTypes.JSON,
    chipped: { type: DataTypes.BOOLEAN, defaultValue: false },
    notes: DataTypes.TEXT,
    visits: { type: DataTypes.INTEGER.UNSIGNED, defaultValue: 0 },
  }, { indexes: [{ fields: ['kind', 'weight'] }], paranoid: true });
  models.Toy = sequelize.define('toy', { name: { type: DataTypes.STRING, unique: true } }, { timestamps: false });
  models.Owner.hasMany(models.Pet, { foreignKey: { allowNull: false }, onDelete: 'RESTRICT' });
  models.Pet.belongsTo(models.Owner);
  models.Pet.belongsToMany(models.Toy, { through: 'pet_toy' });
  models.Toy.belongsToMany(models.Pet, { through: 'pet_toy' });
}

check('authenticate and sync', async () => {
  const admin = await mysql.createConnection(server);
  await admin.query(`DROP DATABASE IF EXISTS ${database}`);
  await admin.query(`CREATE DATABASE ${database}`);
  await admin.end();
  sequelize = new Sequelize(database, server.user, server.password, {
    host: server.host, port: server.port, dialect: 'mysql', logging: false, pool: { max: 5 } });
  await sequelize.authenticate();
  define();
  await sequelize.sync();
  await sequelize.sync();
  const tables = await sequelize.getQueryInterface().showAllTables();
  assert.deepEqual(tables.sort(), ['owners', 'pet_toy', 'pets', 'toys']);
});

check('describe and indexes', async () => {
  const queries = sequelize.getQueryInterface();
  const columns = await queries.describeTable('pets');
  assert.equal(columns.weight.type, 'DECIMAL(6,2)');
  assert.equal(columns.id.primaryKey, true);
  assert.equal(columns.ownerId.allowNull, false);
  const indexes = await queries.showIndex('pets');
  assert.ok(indexes.some((index) => index.name === 'pets_kind_weight'), JSON.stringify(indexes));
  const keys = await queries.getForeignKeyReferencesForTable('pets');
  assert.ok(keys.some((key) => key.columnName === 'ownerId' && key.referencedTableName === 'owners'));
});

check('create with relations', async () => {
  const ann = await models.Owner.create({ name: 'Ann', born: '1990-01-31' });
  const pets = await models.Pet.bulkCreate([
    { kind: 'cat', weight: 4.25, info: { colour: 'black' }, ownerId: ann.id },
    { kind: 'dog', weight: 30, chipped: true, ownerId: ann.id },
  ]);
  const ball = await models.Toy.create({ name: 'ball' });
  await pets[0].addToy(ball);
  await models.Owner.create({ name: 'Bob', pets: [{ notes: 'stubby 🐈' }] }, { include: models.Pet });
  const found = await models.Owner.findOne({
    where: { name: 'Ann' }, include: [{ model: models.Pet, include: models.Toy }],
    order: [[models.Pet, 'weight', 'ASC']] });
  assert.equal(found.born, '1990-01-31');
  assert.deepEqual(found.pets.map((pet) => [pet.kind, pet.weight, pet.toys.length]), [['cat', '4.25', 1], ['dog', '30.00', 0]]);
  assert.deepEqual(found.pets[0].info, { colour: 'black' });
});

check('queries', async () => {
  const { Owner, Pet } = models;
  assert.equal(await Pet.count({ where: { [Op.or]: [{ kind: 'manx' }, { weight: { [Op.gt]: 10 } }] } }), 2);
  const groups = await Pet.findAll({
    attributes: ['ownerId', [fn('COUNT', col('id')), 'n'], [fn('SUM', col('weight')), 'total']],
    group: ['ownerId'], order: [[literal('n'), 'DESC']], raw: true });
  assert.deepEqual(groups.map((row) => Number(row.n)), [2, 1]);
  const { rows, count } = await Owner.findAndCountAll({ include: Pet, limit: 1, order: [['name', 'DESC']], distinct: true });
  assert.deepEqual([count, rows[0].name, rows[0].pets.length], [2, 'Bob', 1]);
  assert.equal(await Pet.max('weight'), 30);
  const withSub = await Owner.findAll({ attributes: ['name',
    [literal('(SELECT COUNT(*) FROM pets WHERE pets.ownerId = owner.id)'), 'n']], order: ['name'], raw: true });
  assert.deepEqual(withSub.map((row) => Number(row.n)), [2, 1]);
  assert.equal((await Owner.findAll({ where: { name: { [Op.like]: 'a%' } } })).length, 1);
});

check('update, increment, upsert, soft delete', async () => {
  const { Owner, Pet, Toy } = models;
  const [changed] = await Pet.update({ chipped: true }, { where: { kind: 'cat' } });
  assert.equal(changed, 1);
  const cat = await Pet.findOne({ where: { kind: 'cat' } });
  await cat.increment('visits', { by: 3 });
  await cat.reload();
  assert.equal(cat.visits, 3);
  await Toy.upsert({ name: 'ball' });
  await Toy.bulkCreate([{ name: 'ball' }, { name: 'mouse' }], { ignoreDuplicates: true });
  assert.equal(await Toy.count(), 2);
  const [, created] = await Owner.findOrCreate({ where: { name: 'Cid' } });
  assert.equal(created, true);
  await cat.destroy();
  assert.equal(await Pet.count(), 2);
  await cat.restore();
  assert.equal(await Pet.count(), 3);
});

check('transactions', async () => {
  const { Owner } = models;
  await assert.rejects(sequelize.transaction(async (transaction) => {
    await Owner.create({ name: 'Gone' }, { transaction });
    throw new Error('stop');
  }), /stop/);
  assert.equal(await Owner.count({ where: { name: 'Gone' } }), 0);
  await sequelize.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (transaction) => {
    await Owner.create({ name: 'Kept' }, { transaction });
    assert.equal(await Owner.count({ where: { name: 'Kept' }, transaction }), 1);
  });
  assert.equal(await Owner.count({ where: { name: 'Kept' } }), 1);
});

check('errors become Sequelize errors', async () => {
  const { Owner, Pet } = models;
  let error = await expectError(1062, Owner.create({ name: 'Ann' }));
  assert.equal(error.name, 'SequelizeUniqueConstraintError');
  assert.deepEqual(Object.keys(error.fields), ['name']);
  error = await expectError(1452, Pet.create({ ownerId: 999 }));
  assert.equal(error.name, 'SequelizeForeignKeyConstraintError');
  assert.equal(error.table, 'owners');
  error = await expectError(1451, Owner.destroy({ where: { name: 'Ann' } }));
  assert.equal(error.name, 'SequelizeForeignKeyConstraintError');
  await expectError(1064, sequelize.query('SELEKT 1'));
});

check('a conflict loses no update, a wait ends with 1205', async () => {
  const { Owner } = models;
  const ann = await Owner.findOne({ where: { name: 'Ann' } });
  const add = () => sequelize.transaction(
    { isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (transaction) => {
      const pet = await models.Pet.findOne({ where: { ownerId: ann.id, kind: 'dog' }, transaction });
      await pet.update({ visits: pet.visits + 1 }, { transaction });
    });
  let done = 0;
  for (let round = 0; round < 10; round += 1) {
    const results = await Promise.allSettled([add(), add()]);
    for (const result of results) {
      if (result.status === 'fulfilled') done += 1;
      else assert.ok([1213, 1205].includes(result.reason.original?.errno), String(result.reason));
    }
  }
  const dog = await models.Pet.findOne({ where: { kind: 'dog' } });
  assert.equal(dog.visits, done);
  assert.ok(done >= 10, `only ${done} of 20`);
  const holder = await sequelize.transaction();
  await Owner.findOne({ where: { id: ann.id }, lock: holder.LOCK.UPDATE, transaction: holder });
  const waiter = await sequelize.transaction();
  await sequelize.query('SET SESSION innodb_lock_wait_timeout = 1', { transaction: waiter });
  await expectError(1205, sequelize.query(`UPDATE owners SET name = 'X' WHERE id = ${ann.id}`, { transaction: waiter }));
  if (!isMariadb) {
    await sequelize.query('SET SESSION max_execution_time = 100', { transaction: waiter });
    await expectError(3024, sequelize.query('SELECT COUNT(*) FROM owners a, owners b WHERE SLEEP(5) = 0', { transaction: waiter }));
  }
  await holder.rollback();
  await waiter.rollback();
});

check('a migration changes a table with rows', async () => {
  const queries = sequelize.getQueryInterface();
  await queries.addColumn('pets', 'rank', { type: DataTypes.INTEGER, allowNull: false, defaultValue: 7 });
  await queries.changeColumn('pets', 'notes', { type: DataTypes.STRING(300) });
  await queries.renameColumn('pets', 'info', 'details');
  await queries.addIndex('pets', ['rank'], { name: 'pet_rank' });
  await queries.addConstraint('pets', { fields: ['chipped', 'id'], type: 'unique', name: 'pet_once' });
  await queries.addColumn('toys', 'ownerId', { type: DataTypes.INTEGER, references: { model: 'owners', key: 'id' }, onDelete: 'SET NULL' });
  const [rows] = await sequelize.query('SELECT `rank`, details, notes FROM pets ORDER BY notes DESC');
  assert.deepEqual(rows.map((row) => row.rank), [7, 7, 7]);
  assert.equal(rows[0].notes, 'stubby 🐈');
  await queries.removeIndex('pets', 'pet_rank');
  await queries.removeConstraint('pets', 'pet_once');
  await queries.removeColumn('pets', 'rank');
  await queries.removeColumn('toys', 'ownerId');
  await queries.renameTable('toys', 'playthings');
  assert.ok((await queries.showAllTables()).includes('playthings'));
  await queries.renameTable('playthings', 'toys');
});

check('drop', async () => {
  await sequelize.drop();
  assert.deepEqual(await sequelize.getQueryInterface().showAllTables(), []);
});

main(async () => {
  if (sequelize) await sequelize.close();
});
