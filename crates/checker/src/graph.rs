//! A directed graph with reasons on its edges: its strong components and shortest cycles. What a
//! reason is, is for those who make the graph.

use std::collections::VecDeque;

/// A set of kinds of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const WRITE_WRITE: Kinds = Kinds(1);
    pub(crate) const WRITE_READ: Kinds = Kinds(2);
    pub(crate) const READ_WRITE: Kinds = Kinds(4);
    pub(crate) const SESSION: Kinds = Kinds(8);
    pub(crate) const TIME: Kinds = Kinds(16);

    pub(crate) const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge<W> {
    pub(crate) to: usize,
    pub(crate) kind: Kinds,
    pub(crate) why: W,
}

/// A step of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hop<W> {
    pub(crate) from: usize,
    pub(crate) edge: Edge<W>,
}

/// Nodes below [`Graph::transactions`] are transactions; the others only pass order on, so that
/// "everyone of these before everyone of those" costs a sum of edges and not a product.
#[derive(Debug)]
pub(crate) struct Graph<W> {
    edges: Vec<Vec<Edge<W>>>,
    transactions: usize,
}

impl<W: Copy> Graph<W> {
    pub(crate) fn new(transactions: usize) -> Self {
        Self {
            edges: vec![Vec::new(); transactions],
            transactions,
        }
    }

    pub(crate) fn transactions(&self) -> usize {
        self.transactions
    }

    /// A node that is no transaction.
    pub(crate) fn add_relay(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// Nothing stands before itself.
    pub(crate) fn add(&mut self, from: usize, to: usize, kind: Kinds, why: W) {
        if from != to {
            self.edges[from].push(Edge { to, kind, why });
        }
    }

    fn edges(&self, from: usize, kinds: Kinds) -> impl Iterator<Item = Edge<W>> + '_ {
        let edges = self.edges[from].iter().copied();
        edges.filter(move |edge| kinds.has(edge.kind))
    }

    /// The components with more than one node (Tarjan), with a stack of our own: a chain of
    /// transactions is as long as the history.
    pub(crate) fn components(&self, kinds: Kinds) -> Vec<Vec<usize>> {
        let mut search = Tarjan::new(self.edges.len());
        for root in 0..self.edges.len() {
            if search.index[root] == UNSEEN {
                search.walk(self, kinds, root);
            }
        }
        search.found
    }

    /// A cycle inside a component: the shortest, as far as [`EFFORT_MAX`] allows to look for it.
    pub(crate) fn shortest_cycle(&self, members: &[usize], kinds: Kinds) -> Option<Vec<Hop<W>>> {
        let mut ways = Ways::within(self.edges.len(), members);
        let mut best: Option<Vec<Hop<W>>> = None;
        for start in members {
            let length_max = best.as_ref().map_or(usize::MAX, |cycle| cycle.len() - 1);
            if length_max < 2 || (best.is_some() && ways.is_tired()) {
                break;
            }
            if let Some(cycle) = ways.shortest(self, *start, *start, kinds, length_max) {
                best = Some(cycle);
            }
        }
        best
    }

    /// A cycle inside a component with one edge of kind `once` and else only `others`: the
    /// shortest, as far as [`EFFORT_MAX`] allows to look for it.
    pub(crate) fn cycle_with_one(
        &self,
        members: &[usize],
        once: Kinds,
        others: Kinds,
    ) -> Option<Vec<Hop<W>>> {
        let mut ways = Ways::within(self.edges.len(), members);
        let mut best: Option<Vec<Hop<W>>> = None;
        for from in members {
            for edge in self.edges(*from, once) {
                let length_max = best.as_ref().map_or(usize::MAX, |cycle| cycle.len() - 2);
                if length_max < 1 || ways.is_tired() {
                    return best;
                }
                let back = ways.shortest(self, edge.to, *from, others, length_max);
                if let Some(back) = back {
                    let mut cycle = vec![Hop { from: *from, edge }];
                    cycle.extend(back);
                    best = Some(cycle);
                }
            }
        }
        best
    }
}

const UNSEEN: usize = usize::MAX;

struct Tarjan {
    index: Vec<usize>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Tarjan {
    fn new(nodes: usize) -> Self {
        Self {
            index: vec![UNSEEN; nodes],
            low: vec![0; nodes],
            on_stack: vec![false; nodes],
            stack: Vec::new(),
            next: 0,
            found: Vec::new(),
        }
    }

    fn enter(&mut self, node: usize) {
        self.index[node] = self.next;
        self.low[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
    }

    /// Depth-first from `root`; `path` holds each open node and which of its edges comes next.
    fn walk<W>(&mut self, graph: &Graph<W>, kinds: Kinds, root: usize) {
        self.enter(root);
        let mut path = vec![(root, 0)];
        while let Some((node, next_edge)) = path.last_mut() {
            let node = *node;
            let Some(edge) = graph.edges[node].get(*next_edge) else {
                path.pop();
                self.leave(node, path.last().map(|(parent, _)| *parent));
                continue;
            };
            *next_edge += 1;
            if !kinds.has(edge.kind) {
                continue;
            }
            if self.index[edge.to] == UNSEEN {
                self.enter(edge.to);
                path.push((edge.to, 0));
            } else if self.on_stack[edge.to] {
                self.low[node] = self.low[node].min(self.index[edge.to]);
            }
        }
    }

    fn leave(&mut self, node: usize, parent: Option<usize>) {
        if self.low[node] == self.index[node] {
            let mut component = Vec::new();
            while let Some(member) = self.stack.pop() {
                self.on_stack[member] = false;
                component.push(member);
                if member == node {
                    break;
                }
            }
            if component.len() > 1 {
                component.sort_unstable();
                self.found.push(component);
            }
        }
        if let Some(parent) = parent {
            self.low[parent] = self.low[parent].min(self.low[node]);
        }
    }
}

/// Edges looked at in one component before a search takes what it has. Only a badly broken history
/// has a component so large, and for that any proof will do.
const EFFORT_MAX: usize = 2_000_000;

/// Breadth-first searches inside one component, with memory that is used again.
struct Ways<W> {
    inside: Vec<bool>,
    /// The search that saw a node last, and how it got there.
    seen: Vec<usize>,
    came: Vec<Option<Hop<W>>>,
    searches: usize,
    /// Edges looked at.
    effort: usize,
}

impl<W: Copy> Ways<W> {
    fn is_tired(&self) -> bool {
        self.effort > EFFORT_MAX
    }

    fn within(nodes: usize, members: &[usize]) -> Self {
        let mut inside = vec![false; nodes];
        for member in members {
            inside[*member] = true;
        }
        Self {
            inside,
            seen: vec![0; nodes],
            came: vec![None; nodes],
            searches: 0,
            effort: 0,
        }
    }

    /// The shortest way of 1 to `length_max` hops.
    fn shortest(
        &mut self,
        graph: &Graph<W>,
        from: usize,
        to: usize,
        kinds: Kinds,
        length_max: usize,
    ) -> Option<Vec<Hop<W>>> {
        self.searches += 1;
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((at, length)) = queue.pop_front() {
            if length == length_max {
                return None;
            }
            for edge in graph.edges(at, kinds) {
                self.effort += 1;
                if !self.inside[edge.to] || self.seen[edge.to] == self.searches {
                    continue;
                }
                self.seen[edge.to] = self.searches;
                self.came[edge.to] = Some(Hop { from: at, edge });
                if edge.to == to {
                    return Some(self.trace(from, to));
                }
                queue.push_back((edge.to, length + 1));
            }
        }
        None
    }

    fn trace(&self, from: usize, to: usize) -> Vec<Hop<W>> {
        let mut hops = Vec::new();
        let mut at = to;
        while let Some(hop) = self.came[at] {
            hops.push(hop);
            at = hop.from;
            if at == from {
                break;
            }
        }
        hops.reverse();
        hops
    }
}
