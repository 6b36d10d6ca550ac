//! The arguments of searches.

use super::area::{GeoArea, GeoShape};
use super::place::{self, GeoPlace};
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::objects::ZSet;

/// Which command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE.
    SearchStore,
    /// GEORADIUS, and whether it only reads.
    Radius(bool),
    /// GEORADIUSBYMEMBER, and whether it only reads.
    RadiusByMember(bool),
}

/// A search.
#[derive(Debug, Default)]
pub struct Query {
    middle: Option<GeoPlace>,
    from_member: bool,
    shape: Option<GeoShape>,
    /// Metres of the unit that distances are told in.
    pub unit_metres: f64,
    /// Whether each has its distance, its bits, its place.
    pub with: (bool, bool, bool),
    /// Nearest first, or farthest first.
    pub is_ascending: Option<bool>,
    /// How many at most.
    pub limit: Option<usize>,
    /// Whether any will do, not only the nearest.
    pub any: bool,
    /// The place of the key that the result goes to, and whether distances are its scores.
    pub store: Option<(usize, bool)>,
}

/// The place of a member.
fn place_of(zset: Option<&ZSet>, member: &[u8]) -> Result<Option<GeoPlace>, CommandError> {
    let Some(zset) = zset else { return Ok(None) };
    let score = zset.score(member).ok_or(CommandError::text(
        "ERR could not decode requested zset member",
    ))?;
    Ok(Some(GeoPlace::of_score(score)))
}

fn size(text: &[u8], refused: &'static str) -> Result<f64, CommandError> {
    number::float(text).ok_or(CommandError::text(refused))
}

fn circle(radius: &[u8], unit: &[u8]) -> Result<(GeoShape, f64), CommandError> {
    let radius = size(radius, "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err(CommandError::text("ERR radius cannot be negative"));
    }
    let metres = place::metres_of(unit)?;
    Ok((GeoShape::Circle(radius * metres), metres))
}

fn rectangle(width: &[u8], height: &[u8], unit: &[u8]) -> Result<(GeoShape, f64), CommandError> {
    let width = size(width, "ERR need numeric width")?;
    let height = size(height, "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::text("ERR height or width cannot be negative"));
    }
    let metres = place::metres_of(unit)?;
    Ok((GeoShape::Box(width * metres, height * metres), metres))
}

impl Query {
    /// The search that `command` asks of the set at its source key, if there is one.
    ///
    /// # Errors
    /// Redis's texts.
    pub fn parse(command: &Command, form: Form, zset: Option<&ZSet>) -> Result<Self, CommandError> {
        let mut query = Self::default();
        let mut place = match form {
            Form::Search => 2,
            Form::SearchStore => {
                query.store = Some((1, false));
                3
            }
            Form::Radius(_) => {
                query.middle = Some(GeoPlace::parse(command.arg(2), command.arg(3))?);
                query.set_shape(circle(command.arg(4), command.arg(5))?);
                6
            }
            Form::RadiusByMember(_) => {
                query.middle = place_of(zset, command.arg(2))?;
                query.set_shape(circle(command.arg(3), command.arg(4))?);
                5
            }
        };
        while place < command.len() {
            let taken = query.common_option(command, place)?;
            place += match (taken, form) {
                (0, Form::Search | Form::SearchStore) => {
                    query.search_option(command, place, form, zset)?
                }
                (0, Form::Radius(false) | Form::RadiusByMember(false)) => {
                    query.store_option(command, place)?
                }
                (0, _) => return Err(CommandError::SYNTAX),
                (taken, _) => taken,
            };
        }
        query.check(command, form)?;
        Ok(query)
    }

    fn set_shape(&mut self, (shape, metres): (GeoShape, f64)) {
        self.shape = Some(shape);
        self.unit_metres = metres;
    }

    /// Words of an option that every search has; 0: it is none.
    fn common_option(&mut self, command: &Command, place: usize) -> Result<usize, CommandError> {
        match () {
            () if command.is_word(place, "WITHDIST") => self.with.0 = true,
            () if command.is_word(place, "WITHHASH") => self.with.1 = true,
            () if command.is_word(place, "WITHCOORD") => self.with.2 = true,
            () if command.is_word(place, "ANY") => self.any = true,
            () if command.is_word(place, "ASC") => self.is_ascending = Some(true),
            () if command.is_word(place, "DESC") => self.is_ascending = Some(false),
            () if command.is_word(place, "COUNT") && place + 1 < command.len() => {
                let count = number::parse(command.arg(place + 1))?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                self.limit = Some(count.ok_or(CommandError::text("ERR COUNT must be > 0"))?);
                return Ok(2);
            }
            () => return Ok(0),
        }
        Ok(1)
    }

    fn search_option(
        &mut self,
        command: &Command,
        place: usize,
        form: Form,
        zset: Option<&ZSet>,
    ) -> Result<usize, CommandError> {
        let left = command.len() - place - 1;
        let (has_middle, has_shape) = (
            self.middle.is_some() || self.from_member,
            self.shape.is_some(),
        );
        match () {
            () if command.is_word(place, "FROMMEMBER") && left >= 1 && !has_middle => {
                self.middle = place_of(zset, command.arg(place + 1))?;
                self.from_member = true;
                Ok(2)
            }
            () if command.is_word(place, "FROMLONLAT") && left >= 2 && !has_middle => {
                let found = GeoPlace::parse(command.arg(place + 1), command.arg(place + 2))?;
                self.middle = Some(found);
                Ok(3)
            }
            () if command.is_word(place, "BYRADIUS") && left >= 2 && !has_shape => {
                self.set_shape(circle(command.arg(place + 1), command.arg(place + 2))?);
                Ok(3)
            }
            () if command.is_word(place, "BYBOX") && left >= 3 && !has_shape => {
                let (width, height) = (command.arg(place + 1), command.arg(place + 2));
                self.set_shape(rectangle(width, height, command.arg(place + 3))?);
                Ok(4)
            }
            () if command.is_word(place, "STOREDIST") && form == Form::SearchStore => {
                self.store = Some((1, true));
                Ok(1)
            }
            () => Err(CommandError::SYNTAX),
        }
    }

    fn store_option(&mut self, command: &Command, place: usize) -> Result<usize, CommandError> {
        let is_distance = command.is_word(place, "STOREDIST");
        if (is_distance || command.is_word(place, "STORE")) && place + 1 < command.len() {
            self.store = Some((place + 1, is_distance));
            return Ok(2);
        }
        Err(CommandError::SYNTAX)
    }

    fn check(&self, command: &Command, form: Form) -> Result<(), CommandError> {
        let name = String::from_utf8_lossy(command.name()).into_owned();
        let has_with = self.with.0 || self.with.1 || self.with.2;
        if self.store.is_some() && has_with {
            let what = match form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(CommandError::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        if self.middle.is_none()
            && !self.from_member
            && matches!(form, Form::Search | Form::SearchStore)
        {
            return Err(CommandError::new(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if self.shape.is_none() {
            return Err(CommandError::new(format!(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {name}"
            )));
        }
        if self.any && self.limit.is_none() {
            return Err(CommandError::text(
                "ERR the ANY argument requires COUNT argument",
            ));
        }
        Ok(())
    }

    /// What is searched; `None` when there is no set, and so no middle.
    #[must_use]
    pub fn area(&self) -> Option<GeoArea> {
        Some(GeoArea {
            middle: self.middle?,
            shape: self.shape?,
        })
    }
}
