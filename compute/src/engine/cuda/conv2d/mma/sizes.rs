//! Sizes of convolutions as their kernels take them.

use crate::engine::cuda::launch::Lowering;
use crate::ops::View;
use crate::ops::conv2d::Window;

/// Largest side of a window.
const MAX_WINDOW: usize = 15;

/// Sizes of a convolution, channels padded.
pub(super) struct Sizes {
    pub(super) h: u32,
    pub(super) w: u32,
    pub(super) c: u32,
    pub(super) p: u32,
    pub(super) q: u32,
    pub(super) k: u32,
    pub(super) n: u32,
    pub(super) window: Window,
}

impl Sizes {
    /// A fully connected layer over a whole buffer becomes a window of one position with more channels, unless something
    /// else of the input's shape has to be taken by channels (`may_flatten`). None where the kernels do not reach.
    pub(super) fn new(x: &View, y: &View, window: Window, may_flatten: bool, lowering: &Lowering) -> Option<Self> {
        let mut sizes = Self {
            h: x.shape.h as u32,
            w: x.shape.w as u32,
            c: lowering.padded(x.shape.c),
            p: y.shape.h as u32,
            q: y.shape.w as u32,
            k: lowering.padded(y.shape.c),
            n: x.shape.n as u32,
            window,
        };
        if may_flatten && x.is_whole() && (window.r, window.s) == (x.shape.h, x.shape.w) && window.pad == 0 {
            sizes.c *= sizes.h * sizes.w;
            (sizes.h, sizes.w) = (1, 1);
            sizes.window = Window { r: 1, s: 1, stride: 1, pad: 0 };
        }
        (sizes.window.r.max(sizes.window.s) <= MAX_WINDOW).then_some(sizes)
    }

    /// Elements from one position to the next of `view`, which this convolution reads as positions of `channels`.
    pub(super) fn row(&self, view: &View, channels: u32, lowering: &Lowering) -> u32 {
        if view.is_whole() { channels } else { lowering.row(view) }
    }

    pub(super) fn taps(&self) -> u32 {
        (self.window.r * self.window.s) as u32
    }

    /// Side of the window in both directions, stride and padding.
    pub(super) fn window_words(&self) -> [u32; 4] {
        let Window { r, s, stride, pad } = self.window;
        [r, s, stride, pad].map(|value| value as u32)
    }
}
