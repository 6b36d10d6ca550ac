//! What each process of a run does.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use manxdb_checkout::mailbox::End;
use manxdb_checkout::two_phase::{Line, Manager, Resource, TcpLine, TwoPhase};
use manxdb_checkout::{CheckoutOutcome, OneSided, Published, Shop, draw, published};
use manxdb_core::Random;
use manxdb_rsi::Isolation;

use super::meet::{Asker, Meeting, Server, plan, published as published_plan};
use crate::bench::processes::{until_end, while_others_work, work};
use crate::cli::{CheckoutPart, CheckoutShape, Part, System};
use crate::fault::Fault;

/// The number of the timestamp service among clients of memory.
const SERVICE: u64 = 1 << 32;

/// Runs one process of a run.
///
/// # Errors
/// Another one is not there or is gone, or says what makes no sense.
pub fn part(args: &CheckoutPart) -> Result<ExitCode, Fault> {
    let meeting = Meeting::new(&args.directory, &args.shape);
    let done = match args.part {
        Part::Memory => memory(&meeting, args.number, &args.shape),
        Part::Resource => resource(&meeting, args.number, &args.shape),
        Part::Manager => manager(&meeting, &args.shape),
        Part::Client => client(&meeting, args.number, &args.shape),
    };
    done.map(|()| ExitCode::SUCCESS)
        .map_err(|error| Fault::Other(error.to_string()))
}

/// Memory, until whoever has started it is gone.
fn memory(meeting: &Meeting, number: u16, shape: &CheckoutShape) -> io::Result<()> {
    let bytes = match shape.system {
        System::RsiPublished => published_plan(shape).bytes(),
        _ => plan(shape).map_err(io::Error::other)?.bytes(),
    };
    let _server = meeting.serve(number, bytes)?;
    if shape.system == System::RsiPublished && number == 0 {
        // The timestamp service has the memory that it works on.
        let meeting = meeting.clone();
        thread::spawn(move || {
            let memory = meeting.memories(SERVICE).map_err(|error| error.to_string());
            let served = memory.map(|memory| published::serve(memory, || true));
            eprintln!("the timestamp service: {served:?}");
        });
    }
    until_end()
}

fn resource(meeting: &Meeting, number: u16, shape: &CheckoutShape) -> io::Result<()> {
    let (mine, all) = (usize::from(number), usize::from(shape.servers));
    let resource = Arc::new(Resource::new(mine, all, shape.products));
    let server = Server::Resource(number);
    if shape.system == System::TradSi {
        let listener = meeting.listen(server)?;
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(line) = stream.and_then(TcpLine::new) else {
                    continue;
                };
                answer(&resource, line);
            }
        });
        return until_end();
    }
    let _memory = meeting.mailboxes(server)?;
    for asker in meeting.askers(server) {
        answer(&resource, meeting.line(server, asker, End::Answering)?);
    }
    until_end()
}

/// A thread for a line.
fn answer<L: Line + Send + 'static>(resource: &Arc<Resource>, mut line: L) {
    let resource = Arc::clone(resource);
    thread::spawn(move || {
        if let Err(error) = resource.serve(&mut line) {
            eprintln!("a resource manager's line: {error}");
        }
    });
}

fn manager(meeting: &Meeting, shape: &CheckoutShape) -> io::Result<()> {
    let manager = Arc::new(Manager::default());
    if shape.system == System::TradSi {
        let listener = meeting.listen(Server::Manager)?;
        let meeting = meeting.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let lines = (0..meeting.servers).map(Server::Resource);
                let lines = lines.map(|server| meeting.connect(server)).collect();
                match (stream.and_then(TcpLine::new), lines) {
                    (Ok(client), Ok(lines)) => commit(&manager, client, lines),
                    (Err(error), _) | (_, Err(error)) => eprintln!("a client's line: {error}"),
                }
            }
        });
        return until_end();
    }
    let _memory = meeting.mailboxes(Server::Manager)?;
    for number in 0..meeting.clients {
        let client = meeting.line(Server::Manager, Asker::Client(number), End::Answering)?;
        let lines = (0..meeting.servers).map(|resource| {
            meeting.line(
                Server::Resource(resource),
                Asker::Manager(number),
                End::Asking,
            )
        });
        commit(&manager, client, lines.collect::<io::Result<_>>()?);
    }
    until_end()
}

/// A thread for a client.
fn commit<L: Line + Send + 'static>(manager: &Arc<Manager>, mut client: L, mut lines: Vec<L>) {
    let manager = Arc::clone(manager);
    thread::spawn(move || {
        if let Err(error) = manager.serve(&mut client, &mut lines) {
            eprintln!("a client of the transaction manager: {error}");
        }
    });
}

fn client(meeting: &Meeting, number: u16, shape: &CheckoutShape) -> io::Result<()> {
    match shape.system {
        System::Rsi | System::RsiSerializable => {
            let isolation = match shape.system {
                System::RsiSerializable => Isolation::Serializable,
                _ => Isolation::Snapshot,
            };
            let plan = plan(shape).map_err(io::Error::other)?;
            let memory = meeting.memories(u64::from(number))?;
            let shop = OneSided::new(memory, plan, number, isolation);
            buy(&mut shop.map_err(io::Error::other)?, number, shape)
        }
        System::RsiPublished => {
            let memory = meeting.memories(u64::from(number))?;
            let mut shop = Published::new(memory, published_plan(shape), number);
            buy(&mut shop, number, shape)?;
            while_others_work(|| shop.skip().map_err(io::Error::other))
        }
        System::TradSi => buy(&mut by_tcp(meeting)?, number, shape),
        System::TwoSided => buy(&mut by_mail(meeting, number)?, number, shape),
    }
}

/// A client of two-phase commit, over TCP.
pub(super) fn by_tcp(meeting: &Meeting) -> io::Result<TwoPhase<TcpLine>> {
    let lines = (0..meeting.servers).map(|number| meeting.connect(Server::Resource(number)));
    let lines = lines.collect::<io::Result<_>>()?;
    TwoPhase::new(meeting.connect(Server::Manager)?, lines)
}

/// The same through memory.
pub(super) fn by_mail(meeting: &Meeting, number: u16) -> io::Result<TwoPhase<impl Line>> {
    let line = |server| meeting.line(server, Asker::Client(number), End::Asking);
    let lines = (0..meeting.servers).map(|number| line(Server::Resource(number)));
    let lines = lines.collect::<io::Result<_>>()?;
    TwoPhase::new(line(Server::Manager)?, lines)
}

/// Buys from when it is told to until its time is over.
fn buy(shop: &mut impl Shop, number: u16, shape: &CheckoutShape) -> io::Result<()> {
    let mut random = Random::stream(shape.seed, &[u64::from(number)]);
    let hot = shape.hot.unwrap_or(shape.products).min(shape.products);
    work(shape.seconds, shape.orders_each(), || {
        let basket = draw(&mut random, hot);
        Ok(match shop.buy(basket).map_err(io::Error::other)? {
            CheckoutOutcome::Committed => Some("checkout"),
            CheckoutOutcome::Aborted => None,
        })
    })
}
