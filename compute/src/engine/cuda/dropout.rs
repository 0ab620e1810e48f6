//! Launches of dropout.

use super::columns::Tiling;
use super::launch::{Launch, Lowering};
use crate::ops::View;
use crate::ops::dropout::Dropping;

/// Dropout of a view in place.
pub(super) fn dropout(x: &View, dropping: &Dropping, lowering: &Lowering) -> Launch {
    let plane = (x.shape.h * x.shape.w) as u32;
    let Dropping { key, threshold, scale } = *dropping;
    let parameters = [x.shape.c as u32, lowering.row(x), plane, key, threshold, scale.to_bits()];
    Tiling::elementwise(x, lowering).launch("dropout", "dropout", vec![lowering.view(x)], parameters)
}
