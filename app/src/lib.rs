//! The Batchmark program: the window and what it draws.
//!
//! [`chart`] turns records into bars and knows no window; [`gui`] is the window. Measuring, storing and listing devices
//! belong to the `compute` crate.

pub mod chart;
pub mod gui;
