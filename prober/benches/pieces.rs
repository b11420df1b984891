//! The pieces of work that are timed and whose instructions are counted: each has one name, and a ground that is not measured.

#![allow(dead_code, reason = "two programs share this file, and one needs no bytes")]

use std::hint::black_box;

use chrono::TimeDelta;

use super::bodies;
use super::work::{self, Shoot};

/// A piece of work on its ground.
pub struct Piece {
    /// The bytes of the body that it reads; 0 where it reads none.
    pub bytes: usize,
    /// Does it once.
    pub work: Box<dyn FnMut()>,
}

/// A piece's name, and what makes its ground.
pub type NamedPiece = (&'static str, fn() -> Piece);

/// All of them.
pub const PIECES: [NamedPiece; 10] = [
    ("decode 5,000 leases, protobuf", || decode(bodies::PROTOBUF, large().protobuf)),
    ("decode 5,000 leases, JSON", || decode(bodies::JSON, large().json)),
    ("copy 5,000 leases, protobuf", || copy(large().protobuf)),
    ("copy 5,000 leases, JSON", || copy(large().json)),
    ("decode a page of 500 nodes, protobuf", || decode_nodes(bodies::nodes_protobuf(500))),
    ("copy a page of 500 nodes, protobuf", || copy(bodies::nodes_protobuf(500))),
    ("verdict on 5,000 leases and Machines", || Piece::on(0, large(), |shoot| work::judge(shoot))),
    ("verdict on 5,000 leases, Machines, nodes", || Piece::on(0, large().with_nodes(), |shoot| work::judge(shoot))),
    ("healthy probe computed, 100 nodes", || probe(100)),
    ("healthy probe computed, 5,000 nodes", || probe(5_000)),
];

impl Piece {
    fn on<T: 'static, R>(bytes: usize, mut ground: T, mut work: impl FnMut(&mut T) -> R + 'static) -> Self {
        Self { bytes, work: Box::new(move || drop(black_box(work(black_box(&mut ground))))) }
    }
}

/// The largest cluster that Kubernetes supports.
fn large() -> Shoot {
    Shoot::new(5_000)
}

fn decode(content_type: &'static str, body: Vec<u8>) -> Piece {
    Piece::on(body.len(), body, move |body| work::decode(content_type, body))
}

fn decode_nodes(body: Vec<u8>) -> Piece {
    Piece::on(body.len(), body, |body| work::decode_nodes(body))
}

fn copy(body: Vec<u8>) -> Piece {
    let copy = Vec::with_capacity(body.len());
    Piece::on(body.len(), (body, copy), |(body, copy)| work::copy(body, copy))
}

/// The body alternates, so that every probe shows renewed leases.
fn probe(count: usize) -> Piece {
    let shoot = Shoot::new(count);
    let other = bodies::leases_protobuf(count, shoot.times.wall - TimeDelta::seconds(20));
    Piece::on(0, (shoot, other), |(shoot, other)| {
        std::mem::swap(&mut shoot.protobuf, other);
        work::probe(shoot)
    })
}
