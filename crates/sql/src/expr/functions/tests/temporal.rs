//! Dates and times.

use super::check;
use crate::expr::testing::{i, t, typed};
use crate::types::DataType;

#[test]
fn the_moment_comes_from_the_context() {
    check(vec![
        ("NOW", vec![], "2024-02-29 12:34:56"),
        ("NOW", vec![i(3)], "2024-02-29 12:34:56.789"),
        ("CURDATE", vec![], "2024-02-29"),
        ("CURTIME", vec![], "12:34:56"),
        ("UNIX_TIMESTAMP", vec![], "1709210096"),
        ("NOW", vec![i(7)], "error 1426"),
    ]);
}

#[test]
fn parts_of_dates_and_times() {
    let day = || t("2008-02-03 10:05:03.5");
    check(vec![
        ("YEAR", vec![day()], "2008"),
        ("MONTH", vec![day()], "2"),
        ("DAY", vec![day()], "3"),
        ("HOUR", vec![day()], "10"),
        ("HOUR", vec![t("272:59:59")], "272"),
        ("MICROSECOND", vec![day()], "500000"),
        ("QUARTER", vec![t("2008-04-01")], "2"),
        ("DAYOFWEEK", vec![t("2007-02-03")], "7"),
        ("WEEKDAY", vec![t("2008-02-03")], "6"),
        ("DAYOFYEAR", vec![t("2007-02-03")], "34"),
        ("WEEK", vec![t("2008-02-20")], "7"),
        ("WEEK", vec![t("2008-02-20"), i(1)], "8"),
        ("WEEK", vec![t("2008-12-31"), i(1)], "53"),
        ("WEEKOFYEAR", vec![t("2008-02-20")], "8"),
        ("YEARWEEK", vec![t("1987-01-01")], "198652"),
        ("DAYNAME", vec![t("2007-02-03")], "Saturday"),
        ("MONTHNAME", vec![t("2008-02-03")], "February"),
        ("LAST_DAY", vec![t("2004-02-05")], "2004-02-29"),
        ("TO_DAYS", vec![t("2007-10-07")], "733321"),
        ("FROM_DAYS", vec![i(730_669)], "2000-07-03"),
        ("TO_SECONDS", vec![t("2009-11-29 13:43:32")], "63426721412"),
        (
            "EXTRACT",
            vec![t("YEAR_MONTH"), t("2019-07-02 01:02:03")],
            "201907",
        ),
        (
            "EXTRACT",
            vec![t("DAY_MINUTE"), t("2019-07-02 01:02:03")],
            "20102",
        ),
        ("DATE", vec![t("2003-12-31 01:02:03")], "2003-12-31"),
        (
            "TIME",
            vec![t("2003-12-31 01:02:03.000123")],
            "01:02:03.000123",
        ),
        ("YEAR", vec![t("nonsense")], "NULL !1292"),
    ]);
}

#[test]
fn intervals_are_added_and_taken_away() {
    let date = || typed("2018-05-01", DataType::Date);
    check(vec![
        ("DATE_ADD", vec![date(), i(1), t("DAY")], "2018-05-02"),
        (
            "DATE_ADD",
            vec![date(), i(1), t("HOUR")],
            "2018-05-01 01:00:00",
        ),
        (
            "DATE_SUB",
            vec![t("2018-05-01"), i(1), t("YEAR")],
            "2017-05-01",
        ),
        (
            "DATE_ADD",
            vec![t("2020-12-31 23:59:59"), i(1), t("SECOND")],
            "2021-01-01 00:00:00",
        ),
        (
            "DATE_ADD",
            vec![t("2100-12-31 23:59:59"), t("1:1"), t("MINUTE_SECOND")],
            "2101-01-01 00:01:00",
        ),
        (
            "DATE_SUB",
            vec![t("2025-01-01 00:00:00"), t("1 1:1:1"), t("DAY_SECOND")],
            "2024-12-30 22:58:59",
        ),
        (
            "DATE_ADD",
            vec![t("1900-01-01 00:00:00"), t("-1 10"), t("DAY_HOUR")],
            "1899-12-30 14:00:00",
        ),
        (
            "DATE_ADD",
            vec![t("2019-01-30"), i(1), t("MONTH")],
            "2019-02-28",
        ),
        (
            "DATE_ADD",
            vec![t("9999-12-31"), i(1), t("DAY")],
            "NULL !1441",
        ),
        ("ADDDATE", vec![t("2008-01-02"), i(31)], "2008-02-02"),
        (
            "DATE_ADD",
            vec![t("2024-01-31"), t("1.5"), t("DAY")],
            "2024-02-01",
        ),
        (
            "TIMESTAMPADD",
            vec![t("WEEK"), i(1), t("2003-01-02")],
            "2003-01-09",
        ),
    ]);
}

#[test]
fn moments_have_differences() {
    check(vec![
        (
            "TIMESTAMPDIFF",
            vec![t("MONTH"), t("2003-02-01"), t("2003-05-01")],
            "3",
        ),
        (
            "TIMESTAMPDIFF",
            vec![t("YEAR"), t("2002-05-01"), t("2001-01-01")],
            "-1",
        ),
        (
            "TIMESTAMPDIFF",
            vec![t("MINUTE"), t("2003-02-01"), t("2003-05-01 12:05:55")],
            "128885",
        ),
        (
            "DATEDIFF",
            vec![t("2007-12-31 23:59:59"), t("2007-12-30")],
            "1",
        ),
        (
            "TIMEDIFF",
            vec![
                t("2008-12-31 23:59:59.000001"),
                t("2008-12-30 01:01:01.000002"),
            ],
            "46:58:57.999999",
        ),
        (
            "TIMEDIFF",
            vec![t("10:00:00"), t("2008-01-01 00:00:00")],
            "NULL",
        ),
        (
            "ADDTIME",
            vec![t("2007-12-31 23:59:59.999999"), t("1 1:1:1.000002")],
            "2008-01-02 01:01:01.000001",
        ),
        ("SUBTIME", vec![t("10:00:00"), t("01:00:00")], "09:00:00"),
    ]);
}

#[test]
fn moments_are_made_of_numbers_and_brought_to_other_zones() {
    check(vec![
        ("MAKEDATE", vec![i(2011), i(32)], "2011-02-01"),
        ("MAKETIME", vec![i(12), i(15), i(30)], "12:15:30"),
        ("SEC_TO_TIME", vec![i(2378)], "00:39:38"),
        ("TIME_TO_SEC", vec![t("22:23:00")], "80580"),
        ("PERIOD_ADD", vec![i(200_801), i(2)], "200803"),
        ("PERIOD_DIFF", vec![i(200_802), i(200_703)], "11"),
        (
            "CONVERT_TZ",
            vec![t("2004-01-01 12:00:00"), t("+00:00"), t("+10:00")],
            "2004-01-01 22:00:00",
        ),
        (
            "CONVERT_TZ",
            vec![t("2004-07-01 12:00:00"), t("GMT"), t("Europe/Berlin")],
            "2004-07-01 14:00:00",
        ),
        (
            "UNIX_TIMESTAMP",
            vec![t("2015-11-13 10:20:19.012")],
            "1447410019.012",
        ),
        (
            "FROM_UNIXTIME",
            vec![i(1_447_430_881)],
            "2015-11-13 16:08:01",
        ),
        (
            "FROM_UNIXTIME",
            vec![i(1_447_430_881), t("%Y %D %M")],
            "2015 13th November",
        ),
        (
            "TIMESTAMP",
            vec![t("2003-12-31 12:00:00"), t("12:00:00")],
            "2004-01-01 00:00:00",
        ),
    ]);
}

#[test]
fn dates_are_formatted_and_read() {
    check(vec![
        (
            "DATE_FORMAT",
            vec![t("2009-10-04 22:23:00"), t("%W %M %Y")],
            "Sunday October 2009",
        ),
        (
            "DATE_FORMAT",
            vec![t("1900-10-04 22:23:00"), t("%D %y %a %d %m %b %j")],
            "4th 00 Thu 04 10 Oct 277",
        ),
        (
            "DATE_FORMAT",
            vec![t("1997-10-04 22:23:00"), t("%H %k %I %r %T %S %w")],
            "22 22 10 10:23:00 PM 22:23:00 00 6",
        ),
        ("DATE_FORMAT", vec![t("1999-01-01"), t("%X %V")], "1998 52"),
        ("DATE_FORMAT", vec![t("2006-06-00"), t("%d")], "00"),
        ("DATE_FORMAT", vec![t("2006-06-01"), t("")], "NULL"),
        (
            "TIME_FORMAT",
            vec![t("100:00:00"), t("%H %k %h %I %l")],
            "100 100 04 04 4",
        ),
        (
            "STR_TO_DATE",
            vec![t("01,5,2013"), t("%d,%m,%Y")],
            "2013-05-01",
        ),
        (
            "STR_TO_DATE",
            vec![t("May 1, 2013"), t("%M %d,%Y")],
            "2013-05-01",
        ),
        (
            "STR_TO_DATE",
            vec![t("a09:30:17"), t("a%h:%i:%s")],
            "09:30:17",
        ),
        (
            "STR_TO_DATE",
            vec![t("2013-05-01 10:11:12"), t("%Y-%m-%d %H:%i:%s")],
            "2013-05-01 10:11:12",
        ),
        ("STR_TO_DATE", vec![t("abc"), t("%Y")], "NULL !1411"),
    ]);
}
