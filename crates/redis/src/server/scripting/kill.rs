//! SCRIPT KILL, and what scripts have logged.

use crate::error::CommandError;
use crate::resp::Reply;
use crate::server::Server;

impl Server {
    /// What scripts wrote with redis.log since the last time: levels 0 (debug) to 3 (warning), and texts.
    pub fn take_script_log(&mut self) -> Vec<(i64, String)> {
        std::mem::take(&mut self.scripts.lines)
    }

    /// SCRIPT KILL.
    pub(crate) fn kill_script(&mut self) -> Result<Reply, CommandError> {
        match &mut self.running {
            None => Err(CommandError::text(
                "NOTBUSY No scripts in execution right now.",
            )),
            Some(running) if running.has_written => Err(CommandError::text(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way using \
                 the SHUTDOWN NOSAVE command.",
            )),
            Some(running) => {
                self.scripts.kills += u64::from(!running.is_killed);
                running.is_killed = true;
                Ok(Reply::OK)
            }
        }
    }
}
