//! placeholder
use serde::{Deserialize, Serialize};
/// What the fake engine plays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {}
