//! Kernels compiled, each once a device.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use rayon::prelude::*;

use super::device::WgslEngine;
use super::error::scoped;
use super::header;
use super::launch::{Kernel, Launch};
use crate::engine::EngineError;

/// What a compiled pipeline is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PipelineKey {
    kernel: Kernel,
    /// For each storage binding whether it is written.
    writable: Vec<bool>,
    has_parameters: bool,
}

/// A kernel ready to be dispatched.
pub(super) struct Pipeline {
    /// The pipeline.
    pub pipeline: wgpu::ComputePipeline,
    /// Layout of its only bind group.
    pub layout: wgpu::BindGroupLayout,
}

impl PipelineKey {
    /// Key of a launch's pipeline.
    pub(super) fn of(launch: &Launch) -> Self {
        Self {
            kernel: launch.kernel.clone(),
            writable: launch.bindings.iter().map(|binding| binding.writable).collect(),
            has_parameters: !launch.parameters.is_empty(),
        }
    }
}

/// Pipelines of all launches, compiled on all cores where they aren't there yet.
///
/// # Errors
/// [`EngineError::Failed`] with the entry point that does not compile.
pub(super) fn compile(
    engine: &WgslEngine,
    launches: &[Launch],
) -> Result<HashMap<PipelineKey, Arc<Pipeline>>, EngineError> {
    let mut wanted: HashMap<PipelineKey, Option<Arc<Pipeline>>> = HashMap::new();
    {
        let known = engine.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        for launch in launches {
            let key = PipelineKey::of(launch);
            let pipeline = known.get(&key).cloned();
            wanted.insert(key, pipeline);
        }
    }
    let made = wanted
        .into_par_iter()
        .map(|(key, pipeline)| match pipeline {
            Some(pipeline) => Ok((key, pipeline)),
            None => create(engine, &key).map(|made| (key, Arc::new(made))),
        })
        .collect::<Result<HashMap<_, _>, _>>()?;
    let mut known = engine.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
    known.extend(made.iter().map(|(key, pipeline)| (key.clone(), Arc::clone(pipeline))));
    Ok(made)
}

fn create(engine: &WgslEngine, key: &PipelineKey) -> Result<Pipeline, EngineError> {
    let entry = key.kernel.entry;
    scoped(&engine.gpu, &format!("compiling {entry}"), 0, || {
        let module = engine.gpu.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(entry),
            source: wgpu::ShaderSource::Wgsl(header::source(&key.kernel).into()),
        });
        let storage = key.writable.iter().map(|&writable| wgpu::BufferBindingType::Storage { read_only: !writable });
        let uniform = key.has_parameters.then_some(wgpu::BufferBindingType::Uniform);
        let entries: Vec<_> = storage
            .chain(uniform)
            .zip(0..)
            .map(|(ty, binding)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
                count: None,
            })
            .collect();
        let layout = engine
            .gpu
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(entry), entries: &entries });
        let pipeline_layout = engine.gpu.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(entry),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = engine.gpu.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                // Kernels write workgroup memory before they read it.
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        Pipeline { pipeline, layout }
    })
}

/// The kernel's name as a record shows it: entry point, element type and constants.
pub(super) fn name(kernel: &Kernel) -> String {
    let element = match kernel.element {
        crate::shape::Element::F16 => "f16",
        _ => "f32",
    };
    let constants = kernel.constants.iter().map(|(name, value)| format!(" {}={value}", name.to_lowercase()));
    format!("{} {element}{}", kernel.entry, constants.collect::<String>())
}
