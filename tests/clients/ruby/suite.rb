# frozen_string_literal: true

# ActiveRecord over mysql2: migrations, schema.rb, relations, transactions, locks.

require 'active_record'
require 'mysql2'
require 'stringio'

DATABASE = ENV.fetch('MANXDB_TEST_DATABASE', 'manx_test')
IS_MARIADB = ENV['MANXDB_TEST_SERVER'] == 'mariadb'
SERVER = {
  adapter: 'mysql2', host: ENV.fetch('MANXDB_TEST_HOST', '127.0.0.1'),
  port: ENV.fetch('MANXDB_TEST_PORT', '3306').to_i, username: ENV.fetch('MANXDB_TEST_USER', 'root'),
  password: ENV.fetch('MANXDB_TEST_PASSWORD', ''), encoding: 'utf8mb4', pool: 8
}.freeze
ActiveRecord::Migration.verbose = false
$failed = 0

def check(name)
  yield
  puts "PASS #{name}"
rescue StandardError => e
  $failed += 1
  line = e.backtrace.grep(/suite\.rb/).first
  puts "FAIL #{name}: #{e.class} #{e.message.gsub(/\s+/, ' ')[0, 500]} (#{line})"
end

def same(got, wanted)
  raise "got #{got.inspect}, wanted #{wanted.inspect}" unless got == wanted
end

def fails(kind)
  yield
rescue kind
  nil
else
  raise "succeeded, wanted #{kind}"
end

def connect(**more)
  ActiveRecord::Base.establish_connection(SERVER.merge(database: DATABASE, **more))
  ActiveRecord::Base.connection
end

def recreate_database
  ActiveRecord::Base.establish_connection(SERVER)
  ActiveRecord::Base.connection.recreate_database(DATABASE, charset: 'utf8mb4')
  connect
end

def dumped_schema
  dump = StringIO.new
  ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, dump)
  dump.string
end

class First < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, comment: 'who writes' do |t|
      t.string :name, null: false, limit: 80
      t.text :bio
      t.boolean :active, default: true, null: false
      t.decimal :money, precision: 12, scale: 3, default: '1.5'
      t.json :prefs unless IS_MARIADB
      t.binary :raw
      t.datetime :seen, precision: 6
      t.references :boss, foreign_key: { to_table: :authors, on_delete: :nullify }
      t.integer :lock_version, default: 0
      t.timestamps
      t.index :name, unique: true
      t.index %i[active money], order: { money: :desc }
      t.virtual :shouted, type: :string, as: 'upper(`name`)', stored: true
    end
    create_table :books do |t|
      t.references :author, null: false, foreign_key: true
      t.string :title, collation: 'utf8mb4_bin'
      t.text :body, size: :long
      t.unsigned_integer :pages
      t.string :type
      t.check_constraint '`pages` < 100000', name: 'few_pages'
    end
    create_table(:places, primary_key: %i[a b]) { |t| %i[a b].each { |key| t.integer key } }
  end
end

class Second < ActiveRecord::Migration[6.1]
  def up
    add_column :books, :isbn, :string, after: :title
    rename_column :books, :isbn, :code
    change_column :books, :code, :string, limit: 20, null: false, default: 'x'
    add_index :books, :code
    rename_index :books, 'index_books_on_code', 'by_code'
    change_column_null :books, :code, true
    change_table(:books, bulk: true) do |t|
      t.integer :copies
      t.index :copies
    end
    rename_table :places, :corners
    remove_index :books, name: 'by_code'
  end
end

class Author < ActiveRecord::Base
  has_many :books, dependent: :destroy
  belongs_to :boss, class_name: 'Author', optional: true
end

class Book < ActiveRecord::Base
  belongs_to :author
end

class Novel < Book; end

check('migrate') do
  recreate_database
  First.migrate(:up)
  Second.migrate(:up)
  same ActiveRecord::Base.connection.primary_keys('corners'), %w[a b]
  same ActiveRecord::Base.connection.foreign_key_exists?(:books, :authors), true
end

check('schema.rb loads to the same schema') do
  schema = dumped_schema
  recreate_database
  eval(schema) # rubocop:disable Security/Eval
  # Loading adds a table of its own, and says the character set of each.
  bare = ->(text) { text.gsub(/, charset: "\w+", collation: "\w+"/, '').gsub(/version: [\d_]+/, '').lines }
  same bare[dumped_schema] - bare[schema], []
  same bare[schema] - bare[dumped_schema], []
end

check('rows there and back') do
  raw = "\0\xff'".b
  seen = Time.utc(2024, 2, 29, 1, 2, 3.5)
  author = Author.create!(name: 'Iris 🔩', bio: 'b' * 60_000, raw: raw, seen: seen, money: '3.125')
  author.update!(prefs: { 'a' => [1, nil] }) unless IS_MARIADB
  author.reload
  same [author.raw, author.seen, author.money, author.shouted], [raw, seen, BigDecimal('3.125'), 'IRIS 🔩']
  same author.prefs, { 'a' => [1, nil] } unless IS_MARIADB
  3.times { |pages| Novel.create!(author: author, title: "t#{pages}", pages: pages) }
  same Author.includes(:books).references(:books).where(books: { pages: [0, 1] }).map(&:name), ['Iris 🔩']
end

check('queries') do
  same Book.group(:type).count, { 'Novel' => 3 }
  same Book.order(pages: :desc).limit(1).offset(1).pluck(:title), ['t1']
  same Book.where('pages > ?', 1).or(Book.where(title: 't0')).count, 2
  same Author.where.missing(:books).count, 0
  same Book.where(author: Author.where(active: true)).sum(:pages), 3
  Book.in_batches(of: 2).update_all(copies: 1)
  Book.joins(:author).update_all(copies: 6)
  same Book.distinct.pluck(:copies), [6]
  Book.where(pages: 1..).explain
end

check('many at once') do
  now = { created_at: Time.now, updated_at: Time.now }
  Author.insert_all([{ name: 'a1', **now }, { name: 'a1', **now }, { name: 'a2', **now }])
  Author.upsert_all([{ name: 'a1', bio: 'again', **now }])
  same Author.where(name: %w[a1 a2]).order(:name).pluck(:name, :bio), [%w[a1 again], ['a2', nil]]
end

check('transactions') do
  Author.transaction do
    Author.create!(name: 'outer')
    Author.transaction(requires_new: true) do
      Author.create!(name: 'inner')
      raise ActiveRecord::Rollback
    end
  end
  same Author.where(name: %w[outer inner]).pluck(:name), ['outer']
  %i[serializable repeatable_read read_committed].each { |level| Author.transaction(isolation: level) { Author.first } }
end

check('locks and versions') do
  author = Author.first
  author.with_lock { author.update!(bio: 'x') }
  late = Author.find(author.id)
  author.update!(bio: 'y')
  fails(ActiveRecord::StaleObjectError) { late.update!(bio: 'z') }
end

check('errors') do
  now = { created_at: Time.now, updated_at: Time.now }
  fails(ActiveRecord::RecordNotUnique) { Author.insert_all!([{ name: 'a1', **now }]) }
  fails(ActiveRecord::InvalidForeignKey) { Book.new(author_id: 999_999).save!(validate: false) }
  fails(ActiveRecord::InvalidForeignKey) { Author.where(id: Book.first.author_id).delete_all }
  fails(ActiveRecord::NotNullViolation) { Author.new.save!(validate: false) }
  fails(ActiveRecord::ValueTooLong) { Author.create!(name: 'x' * 100) }
  fails(ActiveRecord::RangeError) { Book.connection.execute('UPDATE books SET pages = 99999999999') }
  fails(ActiveRecord::StatementInvalid) { Book.connection.execute('SELEKT') }
end

check('one of two in a deadlock is told') do
  ids = Author.where(name: %w[a1 a2]).order(:name).ids
  ready = [Queue.new, Queue.new]
  threads = [0, 1].map do |at|
    Thread.new do
      Author.transaction do
        Author.where(id: ids[at]).update_all(bio: 'one')
        ready[1 - at] << true
        ready[at].pop
        Author.where(id: ids[1 - at]).update_all(bio: 'two')
      end
      :won
    rescue ActiveRecord::Deadlocked
      :lost
    ensure
      ActiveRecord::Base.connection_handler.clear_active_connections!
    end
  end
  same threads.map(&:value).sort, %i[lost won]
end

check('time-outs') do
  unless IS_MARIADB
    crowd = Author.from('information_schema.COLUMNS a, information_schema.COLUMNS b, information_schema.COLUMNS c')
    fails(ActiveRecord::StatementTimeout) { crowd.optimizer_hints('MAX_EXECUTION_TIME(50)').count(:all) }
  end
  Author.transaction do
    id = Author.lock.first.id
    other = Thread.new do
      Author.connection.execute('SET SESSION innodb_lock_wait_timeout = 1')
      fails(ActiveRecord::LockWaitTimeout) { Author.where(id: id).update_all(bio: 'late') }
    ensure
      ActiveRecord::Base.connection_pool.remove(Author.connection)
    end
    other.value
  end
end

check('prepared statements') do
  connect(prepared_statements: true)
  same Author.where(name: 'a1', active: true).limit(1).offset(0).pluck(:name), ['a1']
  same Author.create!(name: 'prepared', money: 1.25).reload.money, BigDecimal('1.25')
end

exit($failed.zero? ? 0 : 1)
