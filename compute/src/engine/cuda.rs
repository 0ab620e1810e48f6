//! NVIDIA GPUs through the CUDA driver: cuDNN and cuBLASLt where they are installed, and kernels of our own.

mod kernels;
mod launch;
mod library;
mod nvrtc;
