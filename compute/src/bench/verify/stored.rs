//! Reference outputs of the published networks, one JSON file a model in `datasets/reference/`, embedded in the program
//! and written anew by `batchmark reference`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Answer, VerifyError, reference_answer};
use crate::engine::{EngineKind, cpu};
use crate::graph::Graph;
use crate::models::Model;
use crate::plan::Pass;

/// Stored outputs of one model at [`super::MINIBATCH`], computed by the CPU engine in f32 storage.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    /// Name, version and hash of the definition they were computed for.
    pub(super) definition: String,
    /// Outputs of inference.
    pub(super) forward: Answer,
    /// Outputs of training.
    pub(super) forward_backward: Answer,
}

/// Why the reference outputs could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The CPU engine could not compute them.
    #[error("the reference outputs of {model} can't be computed: {source}")]
    Compute {
        /// The model.
        model: Model,
        /// What went wrong.
        source: VerifyError,
    },
    /// A file can't be written.
    #[error("{path:?} can't be written: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: std::io::Error,
    },
}

/// Stored outputs; absent when there are none for the graph's definition.
pub(super) fn answer(model: Model, pass: Pass, graph: &Graph) -> Option<Answer> {
    let stored = stored(model).filter(|stored| stored.definition == definition(graph))?;
    Some(match pass {
        Pass::Forward => stored.forward,
        Pass::ForwardBackward => stored.forward_backward,
    })
}

/// Computes the outputs of all models with the CPU engine and writes them into folder `dir`, which is made if need be.
/// `progress` is told what is being computed.
///
/// # Errors
/// [`ReferenceError`].
pub fn write_references(dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), ReferenceError> {
    std::fs::create_dir_all(dir).map_err(|source| ReferenceError::Io { path: dir.to_owned(), source })?;
    for model in Model::ALL {
        progress(model.name());
        let graph = model.graph();
        let compute = |pass| {
            reference_answer(EngineKind::Cpu, cpu::DEVICE_ID, &graph, pass)
                .map_err(|source| ReferenceError::Compute { model, source })
        };
        let stored = Stored {
            definition: definition(&graph),
            forward: compute(Pass::Forward)?,
            forward_backward: compute(Pass::ForwardBackward)?,
        };
        let path = dir.join(format!("{model}.json"));
        let json = serde_json::to_string(&stored).expect("plain numbers and strings have a JSON form");
        std::fs::write(&path, json + "\n").map_err(|source| ReferenceError::Io { path, source })?;
    }
    Ok(())
}

/// Name, version and hash of a graph's definition.
pub(super) fn definition(graph: &Graph) -> String {
    format!("{} {}", graph.definition(), graph.definition_hash())
}

/// The embedded file of a model; absent when it does not hold outputs.
pub(super) fn stored(model: Model) -> Option<Stored> {
    let text = match model {
        Model::Alexnet => include_str!("../../../../datasets/reference/alexnet.json"),
        Model::Overfeat => include_str!("../../../../datasets/reference/overfeat.json"),
        Model::VggA => include_str!("../../../../datasets/reference/vgg_a.json"),
        Model::Vgg16 => include_str!("../../../../datasets/reference/vgg16.json"),
        Model::Googlenet => include_str!("../../../../datasets/reference/googlenet.json"),
        Model::Resnet50 => include_str!("../../../../datasets/reference/resnet50.json"),
        Model::Resnet101 => include_str!("../../../../datasets/reference/resnet101.json"),
        Model::Resnet152 => include_str!("../../../../datasets/reference/resnet152.json"),
    };
    serde_json::from_str(text).ok()
}
