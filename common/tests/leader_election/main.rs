//! Candidates for leadership against an API server in memory, as its clients see each other.

#[cfg(test)]
mod bed;
#[cfg(test)]
mod events;
#[cfg(test)]
mod leading;
#[cfg(test)]
mod schedules;
