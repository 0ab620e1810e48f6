//! What goes wrong with the device that draws the window, which wgpu would answer with a panic: errors are remembered and
//! shown, a lost device closes the window. Measuring has devices of its own, in workers.

use std::sync::{Arc, OnceLock};

use eframe::{egui, wgpu};

/// What has gone wrong with the device that draws the window. Copies share what they know.
#[derive(Clone, Debug, Default)]
pub struct DrawingFaults(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    error: OnceLock<String>,
    loss: OnceLock<String>,
}

impl DrawingFaults {
    /// Takes over what `device` reports from now on; `context` is told, so that a frame shows it.
    pub fn watch(&self, device: &wgpu::Device, context: &egui::Context) {
        let (known, repaint) = (Arc::clone(&self.0), context.clone());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            // Only the first is kept: what fails in one frame fails in the next, and each would ask for another frame.
            if known.error.set(in_one_line(&error.to_string())).is_ok() {
                repaint.request_repaint();
            }
        }));
        let (known, repaint) = (Arc::clone(&self.0), context.clone());
        device.set_device_lost_callback(move |reason, message| {
            let message = if message.is_empty() { format!("{reason:?}").to_lowercase() } else { message };
            if known.loss.set(in_one_line(&message)).is_ok() {
                repaint.request_repaint();
            }
        });
    }

    /// The first error; absent when there was none.
    pub fn error(&self) -> Option<&str> {
        self.0.error.get().map(String::as_str)
    }

    /// Why the device was lost; absent when it was not.
    pub fn loss(&self) -> Option<&str> {
        self.0.loss.get().map(String::as_str)
    }
}

/// wgpu's errors are lists of causes over several lines.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
