package main

import (
	"errors"
	"time"

	driver "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// Company has employees.
type Company struct {
	ID        uint
	Name      string `gorm:"size:80;uniqueIndex"`
	Employees []Employee
}

// Employee belongs to a company and speaks languages.
type Employee struct {
	gorm.Model
	CompanyID uint
	Company   Company
	Name      string `gorm:"size:60;index:by_name"`
	Salary    float64
	Hired     *time.Time
	Active    bool        `gorm:"default:true"`
	Languages []*Language `gorm:"many2many:employee_languages"`
}

// Language is spoken by employees.
type Language struct {
	ID   uint
	Code string `gorm:"size:8;unique"`
}

// employeeLater is Employee after a migration.
type employeeLater struct {
	gorm.Model
	CompanyID uint
	Name      string `gorm:"size:90;index:by_name"`
	Salary    float64
	Hired     *time.Time
	Active    bool   `gorm:"default:true"`
	Nick      string `gorm:"size:20;not null;default:none"`
}

func (employeeLater) TableName() string { return "employees" }

func gormSuite() {
	var db *gorm.DB
	check("gorm: migrate", func() error {
		var err error
		db, err = gorm.Open(driver.New(driver.Config{DSN: config(database).FormatDSN()}),
			&gorm.Config{Logger: logger.Discard, TranslateError: true})
		if err != nil {
			return err
		}
		return db.AutoMigrate(&Company{}, &Language{}, &Employee{})
	})
	if db == nil {
		return
	}
	check("gorm: migrating again changes nothing", func() error {
		err := db.AutoMigrate(&Company{}, &Language{}, &Employee{})
		migrator := db.Migrator()
		return all(err, want("index", migrator.HasIndex(&Employee{}, "by_name"), true),
			want("constraint", migrator.HasConstraint(&Company{}, "Employees"), true),
			want("column", migrator.HasColumn(&Employee{}, "salary"), true))
	})
	check("gorm: create with relations", func() error {
		english, czech := &Language{Code: "en"}, &Language{Code: "cs"}
		hired := time.Date(2020, 5, 6, 7, 8, 9, 0, time.UTC)
		company := Company{Name: "Manx", Employees: []Employee{
			{Name: "Ann", Salary: 100.5, Hired: &hired, Languages: []*Language{english, czech}},
			{Name: "Bob", Salary: 50, Languages: []*Language{english}},
		}}
		err := db.Create(&company).Error
		var found Company
		second := db.Preload("Employees.Languages").First(&found, "name = ?", "Manx").Error
		if err := all(err, second, want("employees", len(found.Employees), 2)); err != nil {
			return err
		}
		return all(want("languages", len(found.Employees[0].Languages), 2),
			want("hired", found.Employees[0].Hired.Equal(hired), true),
			want("active", found.Employees[1].Active, true))
	})
	check("gorm: queries", func() error {
		var names []string
		err := db.Model(&Employee{}).Where("salary BETWEEN ? AND ?", 10, 200).Order("name DESC").Pluck("name", &names).Error
		var total struct {
			Name  string
			Total float64
			N     int
		}
		second := db.Model(&Employee{}).Select("companies.name, SUM(salary) AS total, COUNT(*) AS n").
			Joins("JOIN companies ON companies.id = employees.company_id").Group("companies.name").
			Having("SUM(salary) > ?", 1).Scan(&total).Error
		var joined []Employee
		third := db.Joins("Company").Where("Company.name = ?", "Manx").Find(&joined).Error
		return all(err, second, third, want("names", len(names), 2), want("first", names[0], "Bob"),
			want("total", total.Total, 150.5), want("n", total.N, 2), want("joined", joined[0].Company.Name, "Manx"))
	})
	check("gorm: update, upsert, delete", func() error {
		updated := db.Model(&Employee{}).Where("name = ?", "Bob").Update("salary", gorm.Expr("salary + ?", 25))
		upsert := db.Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"code"})}).
			Create(&Language{Code: "en"}).Error
		var employee Employee
		err := db.Clauses(clause.Locking{Strength: "UPDATE"}).First(&employee, "name = ?", "Bob").Error
		deleted := db.Delete(&employee)
		var count, with int64
		db.Model(&Employee{}).Count(&count)
		db.Unscoped().Model(&Employee{}).Count(&with)
		return all(updated.Error, upsert, err, deleted.Error, want("updated", updated.RowsAffected, 1),
			want("salary", employee.Salary, 75), want("count", count, 1), want("with deleted", with, 2))
	})
	check("gorm: transactions and savepoints", func() error {
		stop := errors.New("stop")
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Language{Code: "de"}).Error; err != nil {
				return err
			}
			inner := tx.Transaction(func(nested *gorm.DB) error {
				nested.Create(&Language{Code: "fr"})
				return stop
			})
			return want("inner", errors.Is(inner, stop), true)
		})
		outer := db.Transaction(func(tx *gorm.DB) error {
			tx.Create(&Language{Code: "it"})
			return stop
		})
		var codes []string
		db.Model(&Language{}).Order("code").Pluck("code", &codes)
		return all(err, want("outer", errors.Is(outer, stop), true), want("codes", len(codes), 3), want("second", codes[1], "de"))
	})
	check("gorm: errors", func() error {
		duplicate := db.Create(&Company{Name: "Manx"}).Error
		orphan := db.Omit("Company").Create(&Employee{Name: "x", CompanyID: 999}).Error
		return all(want("duplicate", errors.Is(duplicate, gorm.ErrDuplicatedKey), true),
			want("orphan", errors.Is(orphan, gorm.ErrForeignKeyViolated), true),
			want("parent", errors.Is(db.Exec("DELETE FROM companies").Error, gorm.ErrForeignKeyViolated), true),
			wantError(db.Exec("SELEKT").Error, 1064))
	})
	check("gorm: a later migration", func() error {
		if err := db.AutoMigrate(&employeeLater{}); err != nil {
			return err
		}
		var later employeeLater
		err := db.First(&later, "name = ?", "Ann").Error
		return all(err, want("nick", later.Nick, "none"), db.Migrator().DropColumn(&employeeLater{}, "nick"),
			db.Migrator().RenameColumn(&employeeLater{}, "name", "full_name"),
			db.Migrator().DropTable("employee_languages", "employees", "languages", "companies"))
	})
}
