//! When the nodes of light shoots renew their leases, as a function of the time: no renewal is ever carried out.
//!
//! Node i of n renews in the i-th of n equal parts of a beat, somewhere in that part, and each shoot begins its beats at a moment
//! of its own. So the moment at which a verdict can fall is spread over a hundredth of a beat with 100 nodes, whatever the moment
//! of the outage.

/// Microseconds since 1970.
pub type Micros = i64;

/// Microseconds of a second.
pub const SECOND: Micros = 1_000_000;
/// The share of the grace period after which a lease counts as expired (rule 47), and the share of expired leases from which on
/// there is an outage (rule 22).
const EXPIRY: f64 = 0.75;
const FRACTION: f64 = 0.6;

/// How the nodes of one shoot renew.
#[derive(Clone, Debug)]
pub struct Heart {
    beat: Micros,
    /// When in a beat each node renews.
    phases: Vec<Micros>,
    outage: Option<Outage>,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    cut: Micros,
    healed: Option<Micros>,
}

impl Heart {
    /// The heart of this shoot, of `nodes` nodes that renew once in `beat`.
    pub fn new(shoot: usize, nodes: usize, beat: Micros) -> Self {
        let begin = scatter(shoot as u64, u64::MAX);
        let part = |node: usize| (node as f64 + scatter(shoot as u64, node as u64)) / nodes as f64;
        let phases = (0..nodes).map(|node| ((begin + part(node)).fract() * beat as f64) as Micros).collect();
        Self { beat, phases, outage: None }
    }

    /// From this moment on no node reaches its API server.
    pub fn cut(&mut self, at: Micros) {
        self.outage = Some(Outage { cut: at, healed: None });
    }

    /// From this moment on each node renews again when its phase wants it.
    pub fn heal(&mut self, at: Micros) {
        if let Some(outage) = &mut self.outage {
            outage.healed = Some(at);
        }
    }

    /// When each node has last renewed, as seen at `now`.
    pub fn renewed(&self, now: Micros) -> impl Iterator<Item = Micros> + '_ {
        self.phases.iter().map(move |&phase| {
            let last = |at: Micros| at - (at - phase).rem_euclid(self.beat);
            match self.outage {
                Some(Outage { cut, healed: Some(healed) }) if last(now) < healed => last(cut.min(now)),
                Some(Outage { cut, healed: None }) => last(cut.min(now)),
                _ => last(now),
            }
        })
    }

    /// The first moment at which the verdict can fall if nothing is renewed after `now`: when enough of the leases are expired.
    pub fn verdict(&self, now: Micros, grace: Micros) -> Micros {
        let enough = (1..=self.phases.len()).find(|&count| count as f64 / self.phases.len() as f64 >= FRACTION);
        self.expiry(now, enough.unwrap_or(self.phases.len()), grace)
    }

    /// When the `count`-th oldest lease expires if nothing is renewed after `now`.
    pub fn expiry(&self, now: Micros, count: usize, grace: Micros) -> Micros {
        let mut renewed: Vec<Micros> = self.renewed(now).collect();
        renewed.sort_unstable();
        let oldest = renewed.get(count.saturating_sub(1)).or(renewed.last()).copied().unwrap_or(now);
        oldest + (grace as f64 * EXPIRY) as Micros
    }
}

pub fn now() -> Micros {
    chrono::Utc::now().timestamp_micros()
}

/// A number from 0 to 1 that looks random and is the same in every run and process (splitmix64).
fn scatter(a: u64, b: u64) -> f64 {
    let mut mixed = a.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(b).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Micros = 10 * SECOND;
    const GRACE: Micros = 40 * SECOND;
    const NOW: Micros = 1_700_000_000 * SECOND;

    #[test]
    fn healthy_nodes_have_renewed_within_a_beat_each_at_its_own_phase() {
        let heart = Heart::new(7, 100, BEAT);
        let mut renewed: Vec<Micros> = heart.renewed(NOW).collect();
        assert!(renewed.iter().all(|&at| at <= NOW && NOW - at < BEAT), "{renewed:?}");
        renewed.sort_unstable();
        assert!(renewed.windows(2).all(|pair| pair[1] - pair[0] <= BEAT / 50), "{renewed:?}");
        assert_ne!(renewed, Heart::new(8, 100, BEAT).renewed(NOW).collect::<Vec<_>>());
    }

    #[test]
    fn in_an_outage_nothing_is_renewed_until_each_node_beats_again() {
        let mut heart = Heart::new(7, 100, BEAT);
        heart.cut(NOW);
        let before: Vec<Micros> = heart.renewed(NOW).collect();
        assert_eq!(heart.renewed(NOW + 60 * SECOND).collect::<Vec<_>>(), before);
        heart.heal(NOW + 60 * SECOND);
        let half = NOW + 65 * SECOND;
        let renewed = heart.renewed(half).filter(|&at| at >= NOW + 60 * SECOND).count();
        assert!((45..=55).contains(&renewed), "{renewed}");
        assert!(heart.renewed(NOW + 70 * SECOND).all(|at| at >= NOW + 60 * SECOND));
    }

    #[test]
    fn the_verdict_falls_when_the_sixtieth_of_a_hundred_leases_expires() {
        let mut heart = Heart::new(3, 100, BEAT);
        heart.cut(NOW);
        let verdict = heart.verdict(NOW + 5 * SECOND, GRACE);
        let expired = |at: Micros| heart.renewed(at).filter(|&renewed| renewed + 30 * SECOND <= at).count();
        assert_eq!([expired(verdict - 1), expired(verdict)], [59, 60]);
        // The 60th oldest of 100 that renew evenly is 4 s old.
        assert!((verdict - NOW - 26 * SECOND).abs() < SECOND / 5, "{}", verdict - NOW);
    }
}
