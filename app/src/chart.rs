//! Charts as pure functions: records and settings in, bars, curves and rows out. Nothing here draws, so everything here is
//! tested without a window.

pub mod efficiency;
pub mod memory;
pub mod number;
pub mod scale;
pub mod series;
pub mod settings;
pub mod table;
pub mod throughput;

mod shown;
