<?php
// PDO (emulated and native prepares) and mysqli.
declare(strict_types=1);

error_reporting(E_ALL);
set_error_handler(function (int $level, string $text, string $file, int $line): bool {
    throw new ErrorException($text, 0, $level, $file, $line);
});
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

define('HOST', getenv('MANXDB_TEST_HOST') ?: '127.0.0.1');
define('PORT', (int) (getenv('MANXDB_TEST_PORT') ?: '3306'));
define('USER', getenv('MANXDB_TEST_USER') ?: 'root');
define('PASSWORD', (string) getenv('MANXDB_TEST_PASSWORD'));
define('DATABASE', getenv('MANXDB_TEST_DATABASE') ?: 'manx_test');
define('IS_MARIADB', getenv('MANXDB_TEST_SERVER') === 'mariadb');

$failed = 0;

function check(string $name, callable $body): void
{
    global $failed;
    try {
        $body();
        echo "PASS $name\n";
    } catch (Throwable $error) {
        $failed++;
        $text = preg_replace('/\s+/', ' ', $error->getMessage());
        echo "FAIL $name: " . get_class($error) . " $text (line {$error->getLine()})\n";
    }
}

function same(mixed $got, mixed $wanted): void
{
    if ($got !== $wanted) {
        throw new Exception('got ' . var_export($got, true) . ', wanted ' . var_export($wanted, true));
    }
}

function fails(int $number, callable $body): void
{
    try {
        $body();
    } catch (PDOException | mysqli_sql_exception $error) {
        $got = $error instanceof PDOException ? $error->errorInfo[1] : $error->getCode();
        if ($got === $number) {
            return;
        }
        throw new Exception("error $got ({$error->getMessage()}), wanted $number");
    }
    throw new Exception("succeeded, wanted error $number");
}

function pdo(array $options = []): PDO
{
    $source = 'mysql:host=' . HOST . ';port=' . PORT . ';dbname=' . DATABASE . ';charset=utf8mb4';
    return new PDO($source, USER, PASSWORD, $options);
}

function connect(?string $database = DATABASE): mysqli
{
    return new mysqli(HOST, USER, PASSWORD, $database, PORT);
}

check('migrate', function () {
    $link = connect(null);
    $link->query('DROP DATABASE IF EXISTS ' . DATABASE);
    $link->query('CREATE DATABASE ' . DATABASE);
    $link->select_db(DATABASE);
    $link->multi_query(
        'CREATE TABLE person (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,'
        . ' name VARCHAR(50) NOT NULL UNIQUE, score DOUBLE, price DECIMAL(10,2), photo LONGBLOB,'
        . ' seen DATETIME(3), flag TINYINT(1) NOT NULL DEFAULT 0) ENGINE=InnoDB;'
        . 'CREATE TABLE note (id INT AUTO_INCREMENT PRIMARY KEY, person_id INT UNSIGNED NOT NULL,'
        . ' FOREIGN KEY (person_id) REFERENCES person (id))'
    );
    while ($link->more_results()) {
        $link->next_result();
    }
});

foreach (['emulated' => true, 'native' => false] as $kind => $emulated) {
    $options = [PDO::ATTR_EMULATE_PREPARES => $emulated];

    check("PDO, $kind prepares: a row there and back", function () use ($options, $kind) {
        $pdo = pdo($options);
        $insert = $pdo->prepare('INSERT INTO person (name, score, price, photo, seen, flag)'
            . ' VALUES (:name, :score, :price, :photo, :seen, :flag)');
        $insert->bindValue(':photo', "\0\xff'\\", PDO::PARAM_LOB);
        $insert->bindValue(':flag', true, PDO::PARAM_BOOL);
        foreach ([':name' => "Ø'\\\"$kind", ':score' => 1.5, ':price' => '12.30',
            ':seen' => '2024-02-29 12:13:14.567'] as $name => $value) {
            $insert->bindValue($name, $value);
        }
        $insert->execute();
        $select = $pdo->prepare('SELECT * FROM person WHERE id = ? LIMIT ?');
        $select->bindValue(1, (int) $pdo->lastInsertId(), PDO::PARAM_INT);
        $select->bindValue(2, 1, PDO::PARAM_INT);
        $select->execute();
        $row = $select->fetch(PDO::FETCH_ASSOC);
        unset($row['id']);
        same($row, ['name' => "Ø'\\\"$kind", 'score' => 1.5, 'price' => '12.30',
            'photo' => "\0\xff'\\", 'seen' => '2024-02-29 12:13:14.567', 'flag' => 1]);
    });

    check("PDO, $kind prepares: transactions", function () use ($options) {
        $pdo = pdo($options);
        $pdo->beginTransaction();
        $pdo->exec("INSERT INTO person (name) VALUES ('gone')");
        $pdo->rollBack();
        same((int) $pdo->query("SELECT COUNT(*) FROM person WHERE name = 'gone'")->fetchColumn(), 0);
        $pdo->beginTransaction();
        $pdo->exec('CREATE TABLE IF NOT EXISTS made (a INT)');
        same($pdo->inTransaction(), false);
    });

    check("PDO, $kind prepares: errors", function () use ($options) {
        $pdo = pdo($options);
        fails(1062, fn () => $pdo->exec("INSERT INTO person (name) VALUES ('twice'), ('twice')"));
        fails(1452, fn () => $pdo->prepare('INSERT INTO note (person_id) VALUES (?)')->execute([999]));
        $pdo->exec('INSERT INTO note (person_id) SELECT MIN(id) FROM person');
        fails(1451, fn () => $pdo->exec('DELETE FROM person'));
        fails(1064, fn () => $pdo->query('SELEKT 1'));
        fails(1146, fn () => $pdo->query('SELECT * FROM nowhere'));
    });

    check("PDO, $kind prepares: unbuffered rows and what tools show", function () use ($options) {
        $pdo = pdo($options + [PDO::MYSQL_ATTR_INIT_COMMAND => "SET time_zone = '+00:00'"]);
        $pdo->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);
        $open = $pdo->query('SELECT 1 UNION SELECT 2');
        $open->fetch();
        $open->closeCursor();
        foreach (['SHOW TABLES', 'SHOW FULL COLUMNS FROM person', 'SHOW CREATE TABLE person',
            'SHOW INDEX FROM person', 'SHOW TABLE STATUS', 'SHOW MASTER STATUS',
            'EXPLAIN SELECT * FROM person', 'SHOW WARNINGS'] as $text) {
            $shown = $pdo->prepare($text);
            $shown->execute();
            $shown->fetchAll();
        }
    });
}

check('mysqli: information about a statement', function () {
    $link = connect();
    $link->query("INSERT INTO person (name) VALUES ('a'), ('b'), ('c')");
    same($link->info, 'Records: 3  Duplicates: 0  Warnings: 0');
    $link->query("UPDATE person SET score = 9 WHERE name IN ('a', 'b')");
    same([$link->affected_rows, $link->info], [2, 'Rows matched: 2  Changed: 2  Warnings: 0']);
    $link->query("SELECT SQL_CALC_FOUND_ROWS id FROM person WHERE name IN ('a', 'b', 'c') LIMIT 1")->free();
    same($link->query('SELECT FOUND_ROWS()')->fetch_row()[0], '3');
});

check('mysqli: several results, then an error', function () {
    $link = connect();
    $link->multi_query('SELECT 1; SET @a = 5; SELECT @a; SELEKT');
    $seen = [];
    fails(1064, function () use ($link, &$seen) {
        do {
            if ($result = $link->store_result()) {
                $seen[] = $result->fetch_row()[0];
            }
        } while ($link->more_results() && $link->next_result());
    });
    same($seen, ['1', '5']);
});

check('mysqli: long data, bound results, a cursor', function () {
    $link = connect();
    $insert = $link->prepare('INSERT INTO person (name, photo) VALUES (?, ?)');
    [$name, $photo] = ['long', null];
    $insert->bind_param('sb', $name, $photo);
    for ($part = 0; $part < 5; $part++) {
        $insert->send_long_data(1, str_repeat("\0a", 50000));
    }
    $insert->execute();
    $select = $link->prepare('SELECT name, LENGTH(photo) FROM person WHERE name = ?');
    $select->bind_param('s', $name);
    $select->execute();
    same($select->get_result()->fetch_row(), ['long', 500000]);
    $all = $link->prepare('SELECT id FROM person');
    $all->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
    $all->execute();
    $all->bind_result($id);
    $count = 0;
    while ($all->fetch()) {
        $count++;
    }
    same($count, 6);
});

check('mysqli: another user on the same connection', function () {
    $link = connect();
    $link->query('SET @a = 1');
    $link->change_user(USER, PASSWORD, DATABASE);
    same($link->query('SELECT @a')->fetch_row()[0], null);
    fails(1045, fn () => $link->change_user('nobody', 'wrong', DATABASE));
});

check('mysqli: a read-only transaction and savepoints', function () {
    $link = connect();
    $link->begin_transaction(MYSQLI_TRANS_START_READ_ONLY);
    fails(1792, fn () => $link->query("INSERT INTO person (name) VALUES ('no')"));
    $link->rollback();
    $link->begin_transaction();
    $link->savepoint('here');
    $link->query("INSERT INTO person (name) VALUES ('undone')");
    $link->query('ROLLBACK TO here');
    $link->commit();
    same($link->query("SELECT COUNT(*) FROM person WHERE name = 'undone'")->fetch_row()[0], '0');
});

check('mysqli: one of two in a deadlock gets 1213', function () {
    [$one, $two] = [connect(), connect()];
    $one->begin_transaction();
    $two->begin_transaction();
    $one->query("UPDATE person SET score = 1 WHERE name = 'a'");
    $two->query("UPDATE person SET score = 1 WHERE name = 'b'");
    $numbers = [];
    $one->query("UPDATE person SET score = 2 WHERE name = 'b'", MYSQLI_ASYNC);
    foreach ([fn () => $two->query("UPDATE person SET score = 2 WHERE name = 'a'"),
        fn () => $one->reap_async_query()] as $step) {
        try {
            $step();
            $two->rollback();
        } catch (mysqli_sql_exception $error) {
            $numbers[] = $error->getCode();
        }
    }
    same($numbers, [1213]);
});

check('mysqli: time-outs', function () {
    [$holder, $waiter] = [connect(), connect()];
    $holder->begin_transaction();
    $holder->query("UPDATE person SET score = 3 WHERE name = 'a'");
    $waiter->query('SET SESSION innodb_lock_wait_timeout = 1');
    fails(1205, fn () => $waiter->query("UPDATE person SET score = 4 WHERE name = 'a'"));
    if (!IS_MARIADB) {
        $endless = 'COUNT(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b,'
            . ' information_schema.COLUMNS c';
        fails(3024, fn () => $waiter->query("SELECT /*+ MAX_EXECUTION_TIME(50) */ $endless"));
    }
});

check('PDO and mysqli: the compressed protocol', function () {
    $pdo = pdo([PDO::MYSQL_ATTR_COMPRESS => true, PDO::ATTR_EMULATE_PREPARES => false]);
    same($pdo->query("SHOW STATUS LIKE 'Compression'")->fetch(PDO::FETCH_NUM), ['Compression', 'ON']);
    $big = str_repeat('squeezed ', 400000);
    $statement = $pdo->prepare('SELECT ?, LENGTH(?)');
    $statement->execute([$big, $big]);
    same($statement->fetch(PDO::FETCH_NUM) == [$big, 3600000], true);
    same(strlen($pdo->query("SELECT REPEAT('x', 18000000)")->fetchColumn()), 18000000);
    $link = mysqli_init();
    $link->real_connect(HOST, USER, PASSWORD, DATABASE, PORT, null, MYSQLI_CLIENT_COMPRESS);
    $link->multi_query("SELECT 1; SELECT REPEAT('y', 100000); SELECT 3");
    $lengths = [];
    do {
        $lengths[] = strlen($link->store_result()->fetch_row()[0]);
    } while ($link->more_results() && $link->next_result());
    same($lengths, [1, 100000, 1]);
    fails(1146, fn () => $link->query('SELECT * FROM nowhere'));
    same($link->query('SELECT 5')->fetch_row(), ['5']);
});

exit($failed ? 1 : 0);
