//! Finds where the objects of a list begin and end, without looking into them.

use std::fmt::Display;

use kube::Error;
use serde::de::Error as _;

/// The longest object that is read. kube-apiserver takes none above 3 MiB, which escapes make six
/// times as long at most.
const MAX_OBJECT: usize = 32 << 20;
/// The most that is kept of a list beside its objects: its version, and where it goes on.
const MAX_LIST_END: usize = 1 << 20;
/// The least room that is made at once.
const BLOCK: usize = 16 << 10;

/// Depth of the objects of a list: within the list, and its array.
const ITEM_DEPTH: usize = 2;

/// Bytes that come piece by piece. Room is made for them a block at a time: doubled, it would take
/// three times their size for a moment.
#[derive(Default)]
pub(super) struct Pieces(Vec<u8>);

impl Pieces {
    pub(super) fn push(&mut self, bytes: &[u8]) -> kube::Result<()> {
        let Self(all) = self;
        let length = all.len() + bytes.len();
        if length > MAX_OBJECT {
            let message = format!("an object is longer than {} MiB", MAX_OBJECT >> 20);
            return Err(malformed(message));
        }
        if length > all.capacity() {
            all.reserve_exact(bytes.len().next_multiple_of(BLOCK));
        }
        all.extend_from_slice(bytes);
        Ok(())
    }

    /// All of them in one.
    pub(super) fn joined(&self) -> &[u8] {
        &self.0
    }

    /// Forgets them. Of the memory no more than a block is kept.
    pub(super) fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to(BLOCK);
    }
}

/// Takes a list of the API apart: its objects one by one, and what stands beside them.
///
/// Whatever comes is passed to [`Self::next`] until that returns `None`; at the end of the body
/// [`Self::end`] has the list without its objects.
#[derive(Default)]
pub(super) struct ListFramer {
    place: Place,
    depth: Depth,
    object: Pieces,
    rest: Vec<u8>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    BesideItems,
    BetweenItems,
    InItem,
}

/// Depth of a place in JSON.
#[derive(Default)]
struct Depth {
    count: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Depth {
    fn pass(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.count += 1,
            b'}' | b']' => self.count = self.count.saturating_sub(1),
            _ => {}
        }
    }
}

impl ListFramer {
    /// Returns the next object that is complete, and leaves in `piece` what follows it.
    pub(super) fn next(&mut self, piece: &mut &[u8]) -> kube::Result<Option<&[u8]>> {
        loop {
            match self.place {
                Place::BesideItems => self.pass_rest(piece)?,
                Place::BetweenItems => self.pass_separators(piece)?,
                Place::InItem => {
                    if self.pass_object(piece)? {
                        self.place = Place::BetweenItems;
                        return Ok(Some(self.object.joined()));
                    }
                }
            }
            if piece.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The list without its objects; not JSON if its end is missing.
    pub(super) fn end(&self) -> &[u8] {
        &self.rest
    }

    fn pass_rest(&mut self, piece: &mut &[u8]) -> kube::Result<()> {
        while let Some((byte, later)) = piece.split_first() {
            *piece = later;
            self.depth.pass(*byte);
            if self.rest.len() == MAX_LIST_END {
                return Err(malformed("a list is too long beside its objects"));
            }
            self.rest.push(*byte);
            if *byte == b'[' && self.depth.count == ITEM_DEPTH && begins_items(&self.rest) {
                self.place = Place::BetweenItems;
                break;
            }
        }
        Ok(())
    }

    fn pass_separators(&mut self, piece: &mut &[u8]) -> kube::Result<()> {
        while let Some((byte, later)) = piece.split_first() {
            match byte {
                b',' | b' ' | b'\n' | b'\r' | b'\t' => *piece = later,
                b'{' => {
                    self.object.clear();
                    self.place = Place::InItem;
                    break;
                }
                b']' => {
                    self.place = Place::BesideItems;
                    break;
                }
                _ => return Err(malformed("a list holds something else than objects")),
            }
        }
        Ok(())
    }

    /// True if the object ends in this piece.
    fn pass_object(&mut self, piece: &mut &[u8]) -> kube::Result<bool> {
        let mut bytes = piece.iter();
        let is_complete = bytes.any(|byte| {
            self.depth.pass(*byte);
            self.depth.count == ITEM_DEPTH
        });
        let (of_object, later) = piece.split_at(piece.len() - bytes.len());
        *piece = later;
        self.object.push(of_object)?;
        Ok(is_complete)
    }
}

/// True if this ends with the beginning of a field `items`.
fn begins_items(mut rest: &[u8]) -> bool {
    for end in ["[", ":", "\"items\""] {
        let Some(before) = rest.trim_ascii_end().strip_suffix(end.as_bytes()) else {
            return false;
        };
        rest = before;
    }
    matches!(rest.trim_ascii_end().last(), Some(b'{' | b','))
}

fn malformed(message: impl Display) -> Error {
    Error::SerdeError(serde_json::Error::custom(message))
}

#[cfg(test)]
mod tests;
