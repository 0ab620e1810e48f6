//! Candidates of convolutions, fully connected layers among them.

mod following;
mod vendor;
