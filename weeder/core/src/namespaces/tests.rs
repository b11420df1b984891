mod deletions;
mod fairness;
mod model;
mod observing;
mod reconfigure;
mod refusals;
mod rounds;
mod seed;
mod standby;
mod terminations;
mod windows;

use std::time::Duration;

use seed::*;

use super::*;
