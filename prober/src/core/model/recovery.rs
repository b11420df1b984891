//! From wherever the model has come to: when nothing goes wrong any more, does everything come right?

use super::{ENDED, Flow, Left, Memory, Part, Replica, Stand, World};

const NOTHING: Left = Left { turns: 0, edits: 0, crashes: 0, losses: 0 };
/// More writes than any way back takes.
const WRITES: usize = 6;

/// Whether a new leader that sees everything as it is brings the object to where it should be, whatever is still on its way.
pub fn recovers(world: &World, flow: &Flow) -> Result<(), String> {
    let mut calm = *world;
    calm.replicas.iter_mut().for_each(|replica| *replica = ENDED);
    calm.network.iter_mut().flatten().for_each(|request| request.awaited = false);
    for place in [0, 1] {
        calm = calm.deliver(place, false, flow.rules)?;
    }
    calm.left = NOTHING;
    let from = calm;
    if flow.recovered.borrow().contains(&from) {
        return Ok(());
    }
    let stand = if calm.outage { Stand::Down } else { Stand::Up };
    for _ in 0..WRITES {
        calm.replicas[0] = Replica { runs: true, leads: true, stand, view: calm.object, fresh: true, flow: None };
        let Some(next) = flow.decide(&calm, 0) else { break };
        if next.network[0].is_none() {
            at_rest(&calm)?;
            flow.recovered.borrow_mut().insert(from);
            return Ok(());
        }
        calm = next.deliver(0, true, flow.rules)?;
        if calm.network[0].is_some_and(|request| request.part == Part::Second) {
            calm = calm.deliver(0, true, flow.rules)?;
        }
    }
    Err(format!("no end of writing: {calm:?}"))
}

/// What is wrong with an object that nothing is to be done about any more.
fn at_rest(world: &World) -> Result<(), String> {
    let object = world.object;
    let wrong = match (object.ignored, world.outage) {
        (true, _) => object.marker.then_some("ignored, and marked"),
        (false, true) if object.replicas > 0 => Some("still up in an outage"),
        (false, true) if object.marker && object.memory == Memory::Says(0) => Some("0 is remembered"),
        (false, true) => None,
        (false, false) if object.replicas == 0 => Some("still at 0 though the nodes are well"),
        (false, false) if object.marker => Some("still marked though the nodes are well"),
        (false, false) => None,
    };
    wrong.map_or(Ok(()), |wrong| Err(format!("at rest, and {wrong}: {object:?}")))
}
