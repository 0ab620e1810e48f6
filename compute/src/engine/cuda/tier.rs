//! How much of the work vendor libraries do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shape::{UnknownName, parse_name};

/// What the CUDA engine computes with, the most first. A machine takes the first that it has everything for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Convolutions and matrix products by cuDNN and cuBLASLt where they are faster, all else by our kernels.
    #[default]
    Vendor,
    /// Our kernels alone, compiled for the device by NVRTC.
    Own,
    /// Our kernels alone, compiled ahead of time and translated by the driver.
    Ahead,
}

impl Tier {
    /// All tiers.
    pub const ALL: [Self; 3] = [Self::Vendor, Self::Own, Self::Ahead];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::Own => "own",
            Self::Ahead => "ahead",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tier {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("tier", text, &Self::ALL, Self::name)
    }
}
