//! The Batchmark program's window.

pub mod gui;
