//! The Batchmark program: its command line, its window, and what the window draws.
//!
//! [`chart`] turns records into bars and knows no window; [`gui`] is the window; [`cli`] is everything with arguments.
//! Measuring, storing and listing devices belong to the `compute` crate.

pub mod chart;
pub mod cli;
pub mod gui;
