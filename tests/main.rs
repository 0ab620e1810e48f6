//! Tests of the whole program and of its source tree.

mod cli;
mod tree;
