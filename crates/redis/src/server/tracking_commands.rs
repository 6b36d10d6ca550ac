//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR.

use std::collections::BTreeSet;

use super::call::Call;
use super::client::{Client, ClientId};
use super::tracking::{Mode, Tracking};
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

const SWITCH_MODE: CommandError = CommandError::text(
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
     re-enabling it with a different mode.",
);
const SWITCH_BROADCAST: CommandError = CommandError::text(
    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
     re-enabling it with a different mode.",
);

/// The options of CLIENT TRACKING.
#[derive(Default)]
struct Options {
    redirect: Option<ClientId>,
    prefixes: Vec<Vec<u8>>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_loopless: bool,
}

impl Options {
    fn of(call: &Call<'_>, command: &Command) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut place = 3;
        while place < command.len() {
            let is = |word: &str| command.is_word(place, word);
            let has_value = place + 1 < command.len();
            match () {
                () if is("BCAST") => options.is_broadcast = true,
                () if is("OPTIN") => options.is_opt_in = true,
                () if is("OPTOUT") => options.is_opt_out = true,
                () if is("NOLOOP") => options.is_loopless = true,
                () if is("REDIRECT") && has_value => {
                    place += 1;
                    options.redirect_to(call, command.arg(place))?;
                }
                () if is("PREFIX") && has_value => {
                    place += 1;
                    options.prefixes.push(command.arg(place).to_vec());
                }
                () => return Err(CommandError::SYNTAX),
            }
            place += 1;
        }
        Ok(options)
    }

    fn redirect_to(&mut self, call: &Call<'_>, number: &[u8]) -> Result<(), CommandError> {
        if self.redirect.is_some() {
            return Err(CommandError::text(
                "ERR A client can only redirect to a single other client",
            ));
        }
        let id = ClientId(u64::try_from(number::parse(number)?).unwrap_or(0));
        if !call.server.clients.contains_key(&id) {
            return Err(CommandError::text(
                "ERR The client ID you want redirect to does not exist",
            ));
        }
        self.redirect = Some(id);
        Ok(())
    }

    fn mode(&self) -> Mode {
        match () {
            () if self.is_broadcast => Mode::Broadcast,
            () if self.is_opt_in => Mode::OptIn,
            () if self.is_opt_out => Mode::OptOut,
            () => Mode::All,
        }
    }

    /// Whether a client may ask for them that tracks with `before`.
    fn check(&self, before: Option<&Tracking>) -> Result<(), CommandError> {
        let before_mode = before.map(|before| before.mode);
        if !self.prefixes.is_empty() && !self.is_broadcast {
            return Err(CommandError::text(
                "ERR PREFIX option requires BCAST mode to be enabled",
            ));
        }
        if before_mode.is_some_and(|mode| (mode == Mode::Broadcast) != self.is_broadcast) {
            return Err(SWITCH_BROADCAST);
        }
        if self.is_broadcast && (self.is_opt_in || self.is_opt_out) {
            return Err(CommandError::text(
                "ERR OPTIN and OPTOUT are not compatible with BCAST",
            ));
        }
        if self.is_opt_in && self.is_opt_out {
            return Err(CommandError::text(
                "ERR You can't specify both OPTIN mode and OPTOUT mode",
            ));
        }
        let switches = self.is_opt_in && before_mode == Some(Mode::OptOut)
            || self.is_opt_out && before_mode == Some(Mode::OptIn);
        if switches {
            return Err(SWITCH_MODE);
        }
        self.check_prefixes(before.map(|before| &before.prefixes))
    }

    /// A key is told once: no prefix of a client begins with another one of it.
    fn check_prefixes(&self, before: Option<&BTreeSet<Vec<u8>>>) -> Result<(), CommandError> {
        let overlaps = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
        let overlap = |one: &[u8], other: &[u8], which: &str| {
            let [one, other] = [one, other].map(String::from_utf8_lossy);
            Err(CommandError::new(format!(
                "ERR Prefix '{one}' overlaps with {which} prefix '{other}'. Prefixes for a single \
                 client must not overlap."
            )))
        };
        for (place, prefix) in self.prefixes.iter().enumerate() {
            let mut held = before.into_iter().flatten();
            if let Some(other) = held.find(|other| overlaps(prefix, other)) {
                return overlap(prefix, other, "an existing");
            }
            let mut behind = self.prefixes[place + 1..].iter();
            if let Some(other) = behind.find(|other| overlaps(prefix, other)) {
                return overlap(prefix, other, "another provided");
            }
        }
        Ok(())
    }
}

/// CLIENT TRACKING.
pub(super) fn tracking(call: &mut Call<'_>, command: &Command) -> Answer {
    let options = Options::of(call, command)?;
    let id = call.id;
    if command.is_word(2, "OFF") {
        call.server.end_tracking(id);
        return Ok(Reply::OK);
    }
    if !command.is_word(2, "ON") {
        return Err(CommandError::SYNTAX);
    }
    let before = call.client().tracking.as_deref();
    options.check(before)?;
    let mut prefixes = before.map_or_else(BTreeSet::new, |before| before.prefixes.clone());
    if options.is_broadcast {
        prefixes.extend(options.prefixes.iter().cloned());
        if options.prefixes.is_empty() {
            prefixes.insert(Vec::new());
        }
    }
    for prefix in &prefixes {
        call.server.tracked.listen(prefix, id);
    }
    call.server.tracked.clients.insert(id);
    let tracking = Tracking {
        mode: options.mode(),
        redirect: options.redirect,
        is_broken: false,
        is_loopless: options.is_loopless,
        has_said: false,
        prefixes,
    };
    call.client_mut().tracking = Some(Box::new(tracking));
    Ok(Reply::OK)
}

/// CLIENT CACHING.
pub(super) fn caching(call: &mut Call<'_>, command: &Command) -> Answer {
    let mode = call
        .client()
        .tracking
        .as_ref()
        .map(|tracking| tracking.mode);
    let refused = |why| Err(CommandError::text(why));
    if !matches!(mode, Some(Mode::OptIn | Mode::OptOut)) {
        return refused(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
             OPTOUT mode enabled",
        );
    }
    match () {
        () if command.is_word(2, "YES") && mode == Some(Mode::OptIn) => {}
        () if command.is_word(2, "NO") && mode == Some(Mode::OptOut) => {}
        () if command.is_word(2, "YES") => {
            return refused(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            );
        }
        () if command.is_word(2, "NO") => {
            return refused(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            );
        }
        () => return Err(CommandError::SYNTAX),
    }
    if let Some(tracking) = &mut call.client_mut().tracking {
        tracking.has_said = true;
    }
    Ok(Reply::OK)
}

/// The connection that is told instead of a client: 0 when it is told itself, -1 when nobody is.
pub(super) fn redirection(client: &Client) -> i64 {
    match &client.tracking {
        None => -1,
        Some(tracking) => tracking.redirect.map_or(0, |id| id.0.cast_signed()),
    }
}

/// CLIENT TRACKINGINFO.
pub(super) fn info(client: &Client) -> Reply {
    let (mut flags, mut prefixes) = (Vec::new(), Vec::new());
    if let Some(tracking) = &client.tracking {
        flags.push("on");
        let (mode, said) = match tracking.mode {
            Mode::All => (None, ""),
            Mode::Broadcast => (Some("bcast"), ""),
            Mode::OptIn => (Some("optin"), "caching-yes"),
            Mode::OptOut => (Some("optout"), "caching-no"),
        };
        flags.extend(mode);
        flags.extend(tracking.has_said.then_some(said));
        flags.extend(tracking.is_loopless.then_some("noloop"));
        flags.extend(tracking.is_broken.then_some("broken_redirect"));
        prefixes.extend(tracking.prefixes.iter().map(Reply::bulk));
    } else {
        flags.push("off");
    }
    let flags = flags.into_iter().map(Reply::bulk).collect();
    Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(flags)),
        (Reply::bulk("redirect"), Reply::Integer(redirection(client))),
        (Reply::bulk("prefixes"), Reply::Array(prefixes)),
    ])
}
