//! What only the built program can show.

mod supervisor;
