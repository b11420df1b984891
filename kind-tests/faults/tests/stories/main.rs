//! Whole agents beside a seed and a shoot in memory, on tokio's paused clock: stories in words.

#[cfg(test)]
mod deleting;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod prober;
#[cfg(test)]
mod rehearsal;
#[cfg(test)]
mod status;
#[cfg(test)]
mod weeder;
#[cfg(test)]
mod wrongs;
