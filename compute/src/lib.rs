//! The models, plans, engines and measurement behind Batchmark.
//!
//! Reading order: [`shape`] and [`ops`] say what a tensor and an operation are, [`graph`] chains operations into a
//! network, [`models`] holds the eight networks of the suite, [`plan`] turns a graph into a flat list of fused,
//! device-independent steps, [`engine`] runs a plan on a device, and [`mod@bench`] measures a run in a child process and
//! stores its record. Beside them, [`catalog`] says what is known of GPUs, and [`published`] holds what other benchmarks
//! measured on them; [`estimate`] says from both what a GPU may reach that nobody measured.
//!
//! This crate knows no window and no argument parser, and prints nothing: what it has to say is a value.

pub mod bench;
pub mod catalog;
pub mod decide;
pub mod engine;
pub mod estimate;
pub mod graph;
pub mod import;
pub mod models;
pub mod ops;
pub mod plan;
pub mod published;
pub mod random;
pub mod shape;
