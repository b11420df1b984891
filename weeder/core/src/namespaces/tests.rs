mod fairness;
mod model;
mod seed;
mod stories;

use std::time::Duration;

use seed::*;

use super::*;
