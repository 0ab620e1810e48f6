//! Compute shaders through wgpu, on any GPU that Vulkan, DX12, Metal or OpenGL reaches.

mod header;
mod launch;
mod layout;
