//! The launches of every step of a plan.

use super::launch::{Launch, Lowering};
use super::{average_pool, batch_norm, cast, conv2d, max_pool, softmax};
use crate::engine::EngineError;
use crate::plan::Step;

/// Launches of one step, in the order of execution.
///
/// # Errors
/// [`EngineError::ExceedsDeviceLimit`] when a piece that can't be split is too large for the device,
/// [`EngineError::NotSupported`] for a slice that no kernel takes.
pub(super) fn lower(step: &Step, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    match step {
        Step::Cast(step) => cast::cast(step, context),
        Step::Conv2dForward(step) => {
            let mut launches = conv2d::forward(step, context)?;
            if let Some(statistics) = &step.statistics {
                launches.extend(batch_norm::statistics(&step.y, statistics, context)?);
            }
            Ok(launches)
        }
        Step::Conv2dBackwardData(step) => {
            let mut launches = conv2d::backward_data(step, context)?;
            launches.extend(batch_norm::reductions(&step.dx, &step.epilogue.reductions, context)?);
            Ok(launches)
        }
        Step::Conv2dBackwardWeight(step) => conv2d::backward_weight(step, context),
        Step::BatchNormForward(step) => batch_norm::forward(step, context),
        Step::BatchNormBackward(step) => batch_norm::backward(step, context),
        Step::MaxPoolForward(step) => max_pool::forward(step, context),
        Step::MaxPoolBackward(step) => {
            let mut launches = max_pool::backward(step, context)?;
            launches.extend(batch_norm::reductions(&step.dx, &step.epilogue.reductions, context)?);
            Ok(launches)
        }
        Step::AveragePoolForward(step) => average_pool::forward(step, context),
        Step::AveragePoolBackward(step) => {
            let mut launches = average_pool::backward(step, context)?;
            launches.extend(batch_norm::reductions(&step.dx, &step.epilogue.reductions, context)?);
            Ok(launches)
        }
        Step::CrossEntropy(step) => softmax::cross_entropy(step, context),
    }
}
