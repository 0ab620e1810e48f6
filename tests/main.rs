//! Tests of the whole: the program as it is started, the window as it is seen, the tree as it is laid out.

mod background;
mod cli;
mod pytorch;
mod scale;
mod smoke;
mod supervisor;
mod tree;
mod window;
