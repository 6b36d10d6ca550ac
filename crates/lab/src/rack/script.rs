//! What a protocol sends for a checkout.

use manxdb_core::{Nanos, Random};

use super::System;
use super::costs::{CLIENT_MACHINES, MANAGER, PRODUCT_MACHINES, Prices};

/// Products of an order, and bytes of each; lines of it and the order itself, and bytes of each.
const PRODUCTS: usize = 3;
const PRODUCT: u64 = 1_024;
const LINES: usize = 4;
const LINE: u64 = 128;
/// Bytes of a message that carries no rows, and of what asks for an operation.
const SMALL: u64 = 64;
const ASK: u64 = 32;
const WORD: u64 = 8;

/// What work waits in line for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Station {
    /// A client's own core,
    Client(usize),
    /// a server machine's processors,
    Cpu(usize),
    /// a machine's link to others,
    Out(usize),
    /// from them,
    In(usize),
    /// and all that is between machines.
    Network,
}

/// A step of something on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hop {
    /// Needs a station for so long.
    Work(Station, Nanos),
    /// Is between machines.
    Travel(Nanos),
}

/// Steps one after another.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub hops: Vec<Hop>,
    /// Whether the client waits for its end.
    pub is_awaited: bool,
}

/// Bytes of products that a checkout reads and writes: what the paper's limit of the network counts.
pub(super) const COUNTED_BYTES: u64 = 2 * PRODUCTS as u64 * PRODUCT;

/// What is under way together; the next phase begins when all that is awaited has ended.
pub(super) type Phase = Vec<Flow>;

/// Writes scripts for one client.
#[derive(Debug)]
pub(super) struct Writer {
    system: System,
    prices: Prices,
    number: usize,
    /// Its machine.
    client: usize,
    random: Random,
}

impl Writer {
    pub fn new(system: System, client: u16, seed: u64) -> Self {
        Self {
            system,
            prices: Prices::of(system),
            number: usize::from(client),
            client: usize::from(client) % CLIENT_MACHINES,
            random: Random::stream(seed, &[u64::from(client)]),
        }
    }

    /// A checkout of products that lie anywhere.
    pub fn checkout(&mut self) -> Vec<Phase> {
        let mut anywhere = || {
            let place = self.random.below(PRODUCT_MACHINES as u64);
            CLIENT_MACHINES + usize::try_from(place).unwrap_or(0)
        };
        let products = [(); PRODUCTS].map(|()| anywhere());
        let lines = [(); LINES].map(|()| anywhere());
        match self.system {
            System::Rsi => self.one_sided(products, lines),
            System::TwoSided | System::TradEthernet | System::TradIpoib => {
                self.two_phases(products)
            }
        }
    }

    /// RSI (§4.2): a snapshot, reads, swaps that validate and lock, writes that install and unlock,
    /// and a word that publishes, for which nobody waits.
    fn one_sided(&self, products: [usize; PRODUCTS], lines: [usize; LINES]) -> Vec<Phase> {
        let each = |places: &[usize], asked, answered| -> Phase {
            let operation = |server: &usize| self.operation(*server, asked, answered);
            places.iter().map(operation).collect()
        };
        let mut writes = each(&products, PRODUCT, 0);
        writes.extend(each(&lines, LINE, 0));
        let publish = Flow {
            is_awaited: false,
            ..self.operation(MANAGER, WORD, 0)
        };
        vec![
            each(&[MANAGER], ASK, WORD),
            each(&products, ASK, PRODUCT),
            each(&products, ASK, WORD),
            writes,
            vec![publish],
        ]
    }

    /// An operation on a server's memory: its processors have no part in it.
    fn operation(&self, server: usize, asked: u64, answered: u64) -> Flow {
        let prices = &self.prices;
        Flow {
            hops: vec![
                Hop::Work(Station::Client(self.number), prices.sending(asked)),
                Hop::Work(Station::Out(self.client), prices.carrying(asked)),
                Hop::Work(Station::Network, prices.crossing(asked + answered)),
                Hop::Travel(prices.one_way),
                Hop::Work(Station::In(server), prices.carrying(asked)),
                Hop::Work(Station::Out(server), prices.carrying(answered)),
                Hop::Travel(prices.one_way),
                Hop::Work(Station::In(self.client), prices.carrying(answered)),
            ],
            is_awaited: true,
        }
    }

    /// Trad-SI (§4.1, Figure 5a): reads, a commit request, two phases over the machines concerned;
    /// the client hears of it while the second one runs. Timestamps are the manager's own.
    fn two_phases(&self, products: [usize; PRODUCTS]) -> Vec<Phase> {
        let reads = products.map(|server| {
            let mut hops = self.message(self.client, server, SMALL);
            hops.extend(self.message(server, self.client, PRODUCT));
            awaited(hops)
        });
        let inserted = LINES as u64 * LINE;
        let written = PRODUCTS as u64 * PRODUCT + inserted;
        let request = awaited(self.message(self.client, MANAGER, SMALL + written));
        let mut concerned = products.to_vec();
        concerned.sort_unstable();
        concerned.dedup();
        let shares = concerned.iter().map(|server| {
            let own = products.iter().filter(|one| *one == server).count() as u64 * PRODUCT;
            // An order goes where one of its products is.
            let order = if *server == products[0] { inserted } else { 0 };
            (*server, own + order)
        });
        let prepares = shares.map(|(server, bytes)| {
            let mut hops = self.message(MANAGER, server, SMALL + bytes);
            hops.extend(self.message(server, MANAGER, SMALL));
            awaited(hops)
        });
        let mut decides: Phase = concerned
            .iter()
            .map(|server| self.decide(*server))
            .collect();
        decides.push(awaited(self.message(MANAGER, self.client, SMALL)));
        vec![reads.into(), vec![request], prepares.collect(), decides]
    }

    fn decide(&self, server: usize) -> Flow {
        let mut hops = self.message(MANAGER, server, SMALL);
        hops.extend(self.message(server, MANAGER, SMALL));
        Flow {
            hops,
            is_awaited: false,
        }
    }

    /// Who handles messages on a machine: a client has a core to itself.
    fn processor(&self, machine: usize) -> Station {
        if machine < CLIENT_MACHINES {
            Station::Client(self.number)
        } else {
            Station::Cpu(machine)
        }
    }

    fn message(&self, from: usize, to: usize, bytes: u64) -> Vec<Hop> {
        let prices = &self.prices;
        vec![
            Hop::Work(self.processor(from), prices.sending(bytes)),
            Hop::Work(Station::Out(from), prices.carrying(bytes)),
            Hop::Work(Station::Network, prices.crossing(bytes)),
            Hop::Travel(prices.one_way),
            Hop::Work(Station::In(to), prices.carrying(bytes)),
            Hop::Work(self.processor(to), prices.receiving(bytes)),
        ]
    }
}

fn awaited(hops: Vec<Hop>) -> Flow {
    Flow {
        hops,
        is_awaited: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that a processor handles.
    fn handled(phases: &[Phase], processor: Station) -> usize {
        let hops = phases.iter().flatten().flat_map(|flow| &flow.hops);
        let own = hops.filter(|hop| matches!(hop, Hop::Work(one, _) if *one == processor));
        own.count()
    }

    #[test]
    fn a_manager_handles_as_many_messages_as_published() {
        let mut writer = Writer::new(System::TradEthernet, 0, 1);
        for _ in 0..100 {
            let phases = writer.checkout();
            let concerned = phases[2].len();
            // One of the client and one to it, four with each resource manager.
            assert_eq!(handled(&phases, Station::Cpu(MANAGER)), 2 + 4 * concerned);
        }
    }

    #[test]
    fn one_sided_operations_need_no_servers() {
        let phases = Writer::new(System::Rsi, 5, 1).checkout();
        assert_eq!(handled(&phases, Station::Client(5)), 1 + 3 + 3 + 7 + 1);
        for server in CLIENT_MACHINES..=MANAGER {
            assert_eq!(handled(&phases, Station::Cpu(server)), 0);
        }
        let awaited = |phase: &Phase| phase.iter().filter(|flow| flow.is_awaited).count();
        let awaited: Vec<usize> = phases.iter().map(awaited).collect();
        assert_eq!(awaited, [1, 3, 3, 7, 0]);
    }
}
