package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

var schema = []string{
	`CREATE TABLE shelf (id INT AUTO_INCREMENT PRIMARY KEY, label VARCHAR(30) NOT NULL UNIQUE)`,
	`CREATE TABLE item (
		id BIGINT AUTO_INCREMENT PRIMARY KEY, shelf_id INT NOT NULL, name VARCHAR(60) NOT NULL,
		price DECIMAL(10,2) NOT NULL, weight DOUBLE, made DATE, seen DATETIME(6), raw VARBINARY(40),
		flag TINYINT(1) NOT NULL DEFAULT 0, big BIGINT UNSIGNED, KEY (shelf_id),
		CONSTRAINT item_shelf FOREIGN KEY (shelf_id) REFERENCES shelf (id))`,
}

func open(name string) *sql.DB {
	connector, err := mysql.NewConnector(config(name))
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}

func driverSuite() {
	ctx := context.Background()
	admin := open("")
	defer admin.Close()
	check("driver: migrate", func() error {
		for _, text := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database} {
			if _, err := admin.Exec(text); err != nil {
				return err
			}
		}
		db := open(database)
		defer db.Close()
		for _, text := range schema {
			if _, err := db.Exec(text); err != nil {
				return err
			}
		}
		return nil
	})
	db := open(database)
	defer db.Close()

	check("driver: the compressed protocol", func() error {
		compressed := config(database)
		compressed.MultiStatements = true
		if err := compressed.Apply(mysql.EnableCompression(true)); err != nil {
			return err
		}
		connector, err := mysql.NewConnector(compressed)
		if err != nil {
			return err
		}
		link := sql.OpenDB(connector)
		defer link.Close()
		var name, state string
		if err := link.QueryRow("SHOW STATUS LIKE 'Compression'").Scan(&name, &state); err != nil || state != "ON" {
			return fmt.Errorf("compression is %q: %v", state, err)
		}
		big := strings.Repeat("compressed ", 400_000)
		var back string
		if err := link.QueryRow("SELECT ?", big).Scan(&back); err != nil || back != big {
			return fmt.Errorf("%d of %d bytes: %v", len(back), len(big), err)
		}
		rows, err := link.Query("SELECT 1; SELECT REPEAT('x', 18000000)")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		if !rows.NextResultSet() || !rows.Next() {
			return fmt.Errorf("no second result: %v", rows.Err())
		}
		if err := rows.Scan(&back); err != nil || len(back) != 18_000_000 {
			return fmt.Errorf("%d bytes: %v", len(back), err)
		}
		return nil
	})

	check("driver: prepared insert and select with every type", func() error {
		result, err := db.Exec("INSERT INTO shelf (label) VALUES (?), (?)", "top", "bottom")
		if err != nil {
			return err
		}
		first, _ := result.LastInsertId()
		count, _ := result.RowsAffected()
		seen := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
		_, err = db.Exec("INSERT INTO item (shelf_id, name, price, weight, made, seen, raw, flag, big) VALUES (?,?,?,?,?,?,?,?,?)",
			1, "šroub 🔩", "12.50", 0.1, "2023-01-31", seen, []byte{0, 255}, true, uint64(1<<64-1))
		if err != nil {
			return err
		}
		var name, price string
		var weight float64
		var made, gotSeen time.Time
		var raw []byte
		var flag bool
		var big uint64
		err = db.QueryRow("SELECT name, price, weight, made, seen, raw, flag, big FROM item WHERE id = ?", 1).
			Scan(&name, &price, &weight, &made, &gotSeen, &raw, &flag, &big)
		return all(err, want("first id", first, 1), want("count", count, 2), want("name", name, "šroub 🔩"),
			want("price", price, "12.50"), want("weight", weight, 0.1), want("made", made.Format(time.DateOnly), "2023-01-31"),
			want("seen", gotSeen.Equal(seen), true), want("raw", string(raw), "\x00\xff"), want("flag", flag, true),
			want("big", big, uint64(1<<64-1)))
	})

	check("driver: column types", func() error {
		rows, err := db.Query("SELECT id, name, price, weight, seen, raw FROM item")
		if err != nil {
			return err
		}
		defer rows.Close()
		types, err := rows.ColumnTypes()
		if err != nil {
			return err
		}
		wanted := []string{"BIGINT", "VARCHAR", "DECIMAL", "DOUBLE", "DATETIME", "VARBINARY"}
		for index, column := range types {
			if err := want(column.Name(), column.DatabaseTypeName(), wanted[index]); err != nil {
				return err
			}
		}
		precision, scale, _ := types[2].DecimalSize()
		nullable, _ := types[3].Nullable()
		return all(want("precision", precision, 10), want("scale", scale, 2), want("nullable", nullable, true))
	})

	check("driver: null and no rows", func() error {
		var text sql.NullString
		if err := db.QueryRow("SELECT CAST(? AS CHAR)", nil).Scan(&text); err != nil {
			return err
		}
		err := db.QueryRow("SELECT name FROM item WHERE id = ?", 999).Scan(&text)
		return all(want("valid", text.Valid, false), want("no rows", errors.Is(err, sql.ErrNoRows), true))
	})

	check("driver: a wrong password is 1045, also without TLS", func() error {
		wrong := config(database)
		wrong.Passwd = "not it"
		connector, err := mysql.NewConnector(wrong)
		if err != nil {
			return err
		}
		link := sql.OpenDB(connector)
		defer link.Close()
		return wantError(link.Ping(), 1045)
	})

	check("driver: transactions", func() error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO item (shelf_id, name, price) VALUES (2, 'gone', 1)"); err != nil {
			return err
		}
		if err := tx.Rollback(); err != nil {
			return err
		}
		readOnly, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		_, refused := readOnly.Exec("INSERT INTO item (shelf_id, name, price) VALUES (2, 'no', 1)")
		var count int
		err = readOnly.QueryRow("SELECT COUNT(*) FROM item").Scan(&count)
		return all(err, readOnly.Commit(), wantError(refused, 1792), want("count", count, 1))
	})

	check("driver: errors", func() error {
		_, duplicate := db.Exec("INSERT INTO shelf (label) VALUES ('top')")
		_, orphan := db.Exec("INSERT INTO item (shelf_id, name, price) VALUES (?, 'x', 1)", 77)
		_, parent := db.Exec("DELETE FROM shelf WHERE id = 1")
		_, syntax := db.Exec("SELEKT ?", 1)
		_, tooLong := db.Exec("INSERT INTO shelf (label) VALUES (?)", fmt.Sprintf("%040d", 1))
		return all(wantError(duplicate, 1062), wantError(orphan, 1452), wantError(parent, 1451),
			wantError(syntax, 1064), wantError(tooLong, 1406))
	})

	check("driver: a conflict loses no update", func() error { return conflict(ctx, db) })

	check("driver: time-outs and cancelling", func() error {
		holder, err := db.Begin()
		if err != nil {
			return err
		}
		defer holder.Rollback()
		if _, err := holder.Exec("UPDATE item SET price = 5 WHERE id = 1"); err != nil {
			return err
		}
		waiter, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer waiter.Close()
		if _, err := waiter.ExecContext(ctx, "SET SESSION innodb_lock_wait_timeout = 1"); err != nil {
			return err
		}
		_, late := waiter.ExecContext(ctx, "UPDATE item SET price = 6 WHERE id = 1")
		if err := wantError(late, 1205); err != nil {
			return err
		}
		if !isMariadb {
			if _, err := waiter.ExecContext(ctx, "SET SESSION max_execution_time = 100"); err != nil {
				return err
			}
			var count int
			slow := waiter.QueryRowContext(ctx, "SELECT COUNT(*) FROM item a WHERE SLEEP(5) = 0").Scan(&count)
			if err := wantError(slow, 3024); err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err = db.ExecContext(short, "SELECT SLEEP(5)")
		return want("deadline", errors.Is(err, context.DeadlineExceeded), true)
	})
}

// conflict lets four goroutines add to one row at SERIALIZABLE, retrying retryable errors.
func conflict(ctx context.Context, db *sql.DB) error {
	if _, err := db.Exec("UPDATE item SET price = 0 WHERE id = 1"); err != nil {
		return err
	}
	var group sync.WaitGroup
	failures := make(chan error, 4)
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 10 {
				if err := addOne(ctx, db); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	var price float64
	err := db.QueryRow("SELECT price FROM item WHERE id = 1").Scan(&price)
	return all(err, want("price", price, 40))
}

func addOne(ctx context.Context, db *sql.DB) error {
	for range 500 {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		var price float64
		err = tx.QueryRow("SELECT price FROM item WHERE id = ?", 1).Scan(&price)
		if err == nil {
			_, err = tx.Exec("UPDATE item SET price = ? WHERE id = ?", price+1, 1)
		}
		if err == nil {
			err = tx.Commit()
		} else {
			tx.Rollback()
		}
		if err == nil {
			return nil
		}
		if wantError(err, 1213, 1205) != nil {
			return err
		}
	}
	return errors.New("500 attempts were not enough")
}
