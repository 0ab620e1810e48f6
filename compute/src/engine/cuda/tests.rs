//! What the tests of this engine share: a device to run on, a compiler for kernels.
