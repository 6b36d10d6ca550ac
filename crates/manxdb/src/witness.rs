//! A witness's carrier, and `manxdb witness` without a cluster: flags tell what it is a witness of.

use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use manxdb_curp::ViewTokens;
use manxdb_curp::ids::{Epoch, View, Wlv};
use manxdb_witness::kind::{BPFFS, Place};
use manxdb_witness::{Carrier, CarrierError, CarrierKind, open, open_or_fall_back, xdp};

use crate::cli::{CarrierChoice, WitnessArgs};
use crate::fault::Fault;
use crate::process::{random_u64, start_log_of_environment, stop_signal};

/// The carrier that somebody wants, and what may be done to get one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierWish {
    /// Which.
    pub kind: CarrierKind,
    /// Where datagrams come in.
    pub interface: Option<String>,
    /// Whether the next best will do.
    pub fallback: bool,
    /// Where maps are pinned.
    pub bpffs: PathBuf,
    /// Whether records in the kernel outlive an orderly end of the process.
    pub keeps: bool,
}

impl Default for CarrierWish {
    /// A process.
    fn default() -> Self {
        Self {
            kind: CarrierKind::User,
            interface: None,
            fallback: false,
            bpffs: PathBuf::from(BPFFS),
            keeps: false,
        }
    }
}

impl CarrierWish {
    /// Where such a carrier is.
    ///
    /// # Errors
    /// The interface is missing.
    pub fn place(&self, address: SocketAddr, cluster: u64, life: u64) -> Result<Place, Fault> {
        let interface = match &self.interface {
            Some(interface) => interface.clone(),
            None if self.kind == CarrierKind::User => String::new(),
            None => {
                return Err(Fault::Config(format!(
                    "--carrier {} needs --interface: the network interface at which datagrams to {address} \
                     come in, such as eth0, or lo for 127.0.0.1",
                    self.kind
                )));
            }
        };
        Ok(Place {
            interface,
            address,
            cluster,
            life,
            bpffs: self.bpffs.clone(),
        })
    }

    fn open(&self, place: &Place) -> Result<Box<dyn Carrier>, Fault> {
        let opened = if self.fallback {
            open_or_fall_back(self.kind, place, |kind, error| {
                tracing::warn!(carrier = %kind, %error, "this carrier cannot be had: taking the next best");
            })
        } else {
            open(self.kind, place)
        };
        opened.map_err(|error| refused(self.kind, &error))
    }

    /// A carrier in the kernel for a node of a cluster; nothing when the node's own process carries its
    /// witness, since that has a socket for datagrams already.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub fn in_kernel(
        &self,
        address: SocketAddr,
        cluster: u64,
        life: u64,
    ) -> Result<Option<CarrierInKernel>, Fault> {
        let mut wish = self.clone();
        while wish.kind.is_in_kernel() {
            let place = wish.place(address, cluster, life)?;
            let error = match open(wish.kind, &place) {
                Ok(carrier) => return Ok(Some(CarrierInKernel { carrier, place })),
                Err(error) => error,
            };
            let next = wish.kind.next().filter(|_| wish.fallback);
            let Some(next) = next else {
                return Err(refused(wish.kind, &error));
            };
            tracing::warn!(carrier = %wish.kind, %error, "this carrier cannot be had: taking the next best");
            wish.kind = next;
        }
        Ok(None)
    }
}

/// A carrier in the kernel, and where it is.
pub struct CarrierInKernel {
    /// Looks after its views.
    pub carrier: Box<dyn Carrier>,
    /// Where.
    pub place: Place,
}

fn refused(kind: CarrierKind, error: &CarrierError) -> Fault {
    Fault::Other(format!("no witness in carrier {kind}: {error}"))
}

/// Runs a witness of no cluster until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(args: &WitnessArgs) -> Result<ExitCode, Fault> {
    let wish = CarrierWish {
        kind: args.carrier.map_or(CarrierKind::User, CarrierChoice::kind),
        interface: args.interface.clone(),
        fallback: args.fallback,
        bpffs: args.bpffs.clone(),
        keeps: true,
    };
    start_log_of_environment("info")?;
    let place = wish.place(args.listen, 0, 1)?;
    if args.remove {
        return remove(wish.kind, &place);
    }
    let stop = stop_signal()?;
    let mut carrier = wish.open(&place)?;
    let tokens = begin(&mut *carrier, args)?;
    announce(&*carrier, args, tokens);
    report_until(stop, &*carrier, args.report_seconds)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes away what a witness has left in the kernel.
///
/// # Errors
/// The kernel's.
pub fn remove(kind: CarrierKind, place: &Place) -> Result<ExitCode, Fault> {
    if kind.is_in_kernel() {
        xdp::take_away(kind, place).map_err(|error| refused(kind, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Begins the view of the flags, or goes on with it.
fn begin(carrier: &mut dyn Carrier, args: &WitnessArgs) -> Result<ViewTokens, Fault> {
    let (epoch, wlv) = args.view;
    let view = View {
        epoch: Epoch(epoch),
        wlv: Wlv(wlv),
    };
    if let Some(tokens) = carrier.tokens(view) {
        return Ok(tokens);
    }
    let given = |token: Option<u64>| token.map_or_else(random_u64, Ok);
    let tokens = ViewTokens {
        record: given(args.record_token)?,
        gc: given(args.gc_token)?,
    };
    if tokens.record == tokens.gc {
        return Err(Fault::Config(
            "--record-token and --gc-token are equal: then clients could collect what they did not sync"
                .to_owned(),
        ));
    }
    if carrier.serve(view, tokens) {
        return Ok(tokens);
    }
    Err(Fault::Other(format!(
        "the witness does not serve view {epoch}.{wlv}: it serves as many as it can (`manxdb witness \
         --remove`, with the same flags, ends them)"
    )))
}

fn announce(carrier: &dyn Carrier, args: &WitnessArgs, tokens: ViewTokens) {
    let (epoch, wlv) = args.view;
    println!(
        "witness at {}, carrier {}, durability: memory",
        carrier.address(),
        carrier.kind()
    );
    println!(
        "view {epoch}.{wlv}, record token {}, gc token {}",
        tokens.record, tokens.gc
    );
    if carrier.kind().is_in_kernel() {
        println!(
            "records outlive this process; `manxdb witness --remove`, with the same flags, takes them away"
        );
    }
}

fn report_until(
    mut stop: std::os::unix::net::UnixStream,
    carrier: &dyn Carrier,
    seconds: u64,
) -> Result<(), Fault> {
    let io = |error| Fault::io("cannot wait for a signal", error);
    stop.set_read_timeout(Some(Duration::from_secs(seconds)))
        .map_err(io)?;
    let mut said = carrier.counts();
    loop {
        match stop.read(&mut [0]) {
            Ok(_) => {
                tracing::info!(datagrams = %carrier.counts(), "stopped");
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue, // by the signal
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(io(error)),
        }
        let counts = carrier.counts();
        if counts != said {
            tracing::info!(datagrams = %counts, "so far");
            said = counts;
        }
    }
}
