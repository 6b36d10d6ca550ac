//! SET: a text of members in the order of the list, and the bits that stand for them.
//!
//! A value travels as its text (`a,c`), which is unique for each choice of members because none
//! has a comma. Only the empty member alone would look like no member: it travels as [`EMPTY_ALONE`],
//! and whoever shows it or takes it for a text makes it empty.
//!
//! Where MySQL computes with it or sorts it, it is a number whose
//! lowest bit is the first member.

use super::collate::text_equal;
use super::data_type::Collation;

/// Members a SET can have: one a bit.
pub const SET_MEMBERS_MAX: usize = 64;

/// The empty member alone: twice the empty member, as a list that is read.
pub const EMPTY_ALONE: &str = ",";

/// The number of a SET's text, which is one of ours: spelled as the members are.
#[must_use]
pub fn set_bits(members: &[String], text: &str) -> u64 {
    if text.is_empty() {
        return 0;
    }
    text.split(',').fold(0, |bits, part| {
        let place = members.iter().position(|member| member == part);
        bits | place.map_or(0, bit)
    })
}

/// The text of a SET's number; bits behind the last member are nothing.
#[must_use]
pub fn set_text(members: &[String], bits: u64) -> String {
    let chosen: Vec<&str> = members
        .iter()
        .enumerate()
        .filter(|(place, _)| bits & bit(*place) != 0)
        .map(|(_, member)| member.as_str())
        .collect();
    if chosen == [""] {
        return EMPTY_ALONE.to_string();
    }
    chosen.join(",")
}

/// The number of a list as written, in any order, and whether every part of it is a member.
#[must_use]
pub(super) fn read_set(members: &[String], text: &str, collation: Collation) -> (u64, bool) {
    let text = text.trim_end_matches(' ');
    if text.is_empty() {
        return (0, true);
    }
    let mut bits = 0;
    let mut complete = true;
    for part in text.split(',') {
        match members
            .iter()
            .position(|member| text_equal(collation, member, part))
        {
            Some(place) => bits |= bit(place),
            None => complete = false,
        }
    }
    (bits, complete)
}

/// The number with every bit of `count` members.
#[must_use]
pub(super) fn all_members(count: usize) -> u64 {
    (0..count).map(bit).fold(0, |all, one| all | one)
}

fn bit(place: usize) -> u64 {
    u32::try_from(place)
        .ok()
        .and_then(|place| 1u64.checked_shl(place))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("m{n}")).collect()
    }

    #[test]
    fn a_text_and_its_number_are_two_forms_of_one_value() {
        for count in [1, 2, 63, 64] {
            let members = members(count);
            for bits in [0, 1, all_members(count), all_members(count) / 3] {
                assert_eq!(set_bits(&members, &set_text(&members, bits)), bits);
            }
        }
        assert_eq!(all_members(64), u64::MAX);
    }

    #[test]
    fn an_empty_member_counts_beside_others() {
        let members = vec!["a".to_string(), String::new()];
        assert_eq!(set_text(&members, 0b11), "a,");
        assert_eq!(set_bits(&members, "a,"), 0b11);
        assert_eq!(read_set(&members, "a,", Collation::Bin), (0b11, true));
        assert_eq!(set_text(&members, 0b10), EMPTY_ALONE);
        assert_eq!(set_bits(&members, EMPTY_ALONE), 0b10);
        assert_eq!(
            read_set(&members, EMPTY_ALONE, Collation::Bin),
            (0b10, true)
        );
    }

    #[test]
    fn what_is_written_counts_in_any_order_and_case() {
        let members = members(3);
        let read = |text| read_set(&members, text, Collation::GeneralCi);
        assert_eq!(read("M2,m0"), (0b101, true));
        assert_eq!(read("m1,m1  "), (0b10, true));
        assert_eq!(read(""), (0, true));
        assert_eq!(read("m1,none"), (0b10, false));
        assert_eq!(read("m1,"), (0b10, false));
    }
}
