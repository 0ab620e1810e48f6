//! Charts as pure functions: records and settings in, bars out. Nothing here draws, so everything here is tested without
//! a window.

pub mod number;
pub mod scale;
pub mod series;
pub mod throughput;
