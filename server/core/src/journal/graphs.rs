//! What a replayed graph consists of, as far as the journal saw it made.

use std::collections::BTreeMap;

use cublame_journal::read::{Call, GraphRow};
use cublame_journal::{GraphKind, Journal, Kind};

/// The graphs of a journal.
pub struct Graphs<'a> {
    rows: &'a [GraphRow],
    /// For each executable graph the rows that made or changed it, in order: how many rows there were by then.
    made: BTreeMap<u64, Vec<(u64, usize)>>,
}

/// The nodes of a replayed graph.
pub struct Nodes<'a> {
    pub rows: Vec<&'a GraphRow>,
    /// The driver counts no more nodes than are known.
    pub complete: bool,
}

/// Graphs within graphs, at most.
const DEPTH: usize = 16;

impl<'a> Graphs<'a> {
    pub fn of(journal: &'a Journal) -> Graphs<'a> {
        let mut made: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
        for (index, row) in journal.graphs.iter().enumerate() {
            if matches!(row.kind, GraphKind::Instantiated | GraphKind::Updated) {
                made.entry(row.second).or_default().push((row.number, index));
            }
        }
        Graphs { rows: &journal.graphs, made }
    }

    /// The row that made the graph that a call launches, or changed it last. Handles are given again, so the last one
    /// before the call is meant.
    pub fn made(&self, call: &Call) -> Option<usize> {
        let made = self.made.get(&call.handle).filter(|_| call.kind == Kind::Graph)?;
        made.iter().rev().find(|(number, _)| *number < call.number).map(|(_, index)| *index)
    }

    /// The nodes of the graph that the row at `made` is about.
    pub fn nodes(&self, made: usize) -> Nodes<'a> {
        let mut nodes = Nodes { rows: Vec::new(), complete: true };
        if let Some(row) = self.rows.get(made) {
            // A node that was changed may run another kernel than the one that was seen.
            let changed = |other: &GraphRow| other.kind == GraphKind::Changed && [0, row.second].contains(&other.first);
            nodes.complete = !self.rows.iter().any(changed);
            self.collect(row.first, made, DEPTH, &mut nodes);
        }
        nodes
    }

    /// Adds the nodes of `graph` as it was at row `before`.
    fn collect(&self, graph: u64, before: usize, depth: usize, nodes: &mut Nodes<'a>) {
        let earlier = &self.rows[..before];
        if depth == 0 {
            nodes.complete = false;
            return;
        }
        // An older graph of the same handle was another: this one begins with its capture or with being cloned.
        let begin = earlier
            .iter()
            .rposition(|row| matches!(row.kind, GraphKind::Captured | GraphKind::Cloned) && row.second == graph);
        let mut known = match begin.map(|index| (index, earlier[index])) {
            Some((index, row)) if row.kind == GraphKind::Cloned => {
                return self.collect(row.first, index, depth - 1, nodes);
            }
            Some((index, row)) => {
                let of_capture = |other: &&GraphRow| {
                    matches!(other.kind, GraphKind::CapturedKernel | GraphKind::CapturedOther)
                        && other.first == row.first
                };
                let captured: Vec<&GraphRow> = earlier[..index].iter().filter(of_capture).collect();
                nodes.rows.extend(&captured);
                captured.len() as u64
            }
            None => 0,
        };
        for row in earlier[begin.unwrap_or(0)..].iter().filter(|row| row.first == graph) {
            match row.kind {
                GraphKind::AddedKernel | GraphKind::AddedOther => nodes.rows.push(row),
                GraphKind::Child => self.collect(row.second, before, depth - 1, nodes),
                _ => continue,
            }
            known += 1;
        }
        // The nodes are counted when the graph is instantiated, in the row after that one.
        let counts = |row: &&GraphRow| row.kind == GraphKind::Nodes && row.first == graph;
        let count = self.rows[before..].iter().find(counts).or_else(|| earlier.iter().rfind(counts));
        nodes.complete &= count.is_none_or(|row| row.second <= known);
    }
}
