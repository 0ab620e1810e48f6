//! NVIDIA GPUs through the CUDA driver: cuDNN and cuBLASLt where they are installed, and kernels of our own.

mod conv2d;
#[expect(unsafe_code, reason = "cuBLASLt is a C library")]
mod cublaslt;
#[expect(unsafe_code, reason = "cuDNN is a C library")]
mod cudnn;
#[cfg(test)]
#[expect(unsafe_code, reason = "memory of the device is handed to C libraries")]
mod fixture;
mod launch;
#[expect(unsafe_code, reason = "C libraries are handed addresses on the device")]
mod vendor;
