// Go's clients end to end: go-sql-driver through database/sql, and GORM on top of it.
//
// Prints PASS or FAIL for each check, as all suites do.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

var (
	database  = env("MANXDB_TEST_DATABASE", "manx_test")
	isMariadb = os.Getenv("MANXDB_TEST_SERVER") == "mariadb"
	failed    = false
)

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// config is the driver's configuration for one database ("" for none).
func config(name string) *mysql.Config {
	config := mysql.NewConfig()
	config.User = env("MANXDB_TEST_USER", "root")
	config.Passwd = os.Getenv("MANXDB_TEST_PASSWORD")
	config.Net = "tcp"
	config.Addr = net.JoinHostPort(env("MANXDB_TEST_HOST", "127.0.0.1"), env("MANXDB_TEST_PORT", "3306"))
	config.DBName = name
	config.ParseTime = true
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		panic(err)
	}
	return config
}

// check runs one named check and prints its line.
func check(name string, run func() error) {
	err := func() (err error) {
		defer func() {
			if caught := recover(); caught != nil {
				err = fmt.Errorf("panic: %v", caught)
			}
		}()
		return run()
	}()
	if err != nil {
		failed = true
		fmt.Printf("FAIL %s: %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Printf("PASS %s\n", name)
}

// want fails when got differs from wanted.
func want[T comparable](what string, got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("%s: got %v, wanted %v", what, got, wanted)
	}
	return nil
}

// wantError fails unless err is a server error with one of the numbers.
func wantError(err error, numbers ...uint16) error {
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		return fmt.Errorf("got %v, wanted error %v", err, numbers)
	}
	for _, number := range numbers {
		if server.Number == number {
			return nil
		}
	}
	return fmt.Errorf("error %d (%s), wanted %v", server.Number, server.Message, numbers)
}

// all gives the first error.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	driverSuite()
	gormSuite()
	if failed {
		os.Exit(1)
	}
}
