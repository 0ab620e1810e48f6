//! What the driver reports at any time, kept until someone asks: wgpu's own handler would panic.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::EngineError;

/// Errors that arrived by callback, the first of each kind.
#[derive(Debug, Default)]
pub(super) struct Faults {
    lost: Mutex<Option<String>>,
    uncaptured: Mutex<Option<EngineError>>,
}

impl Faults {
    /// Collects what `device` reports from now on.
    pub(super) fn watch(device: &wgpu::Device) -> Arc<Self> {
        let faults = Arc::new(Self::default());
        let uncaptured = Arc::clone(&faults);
        device.on_uncaptured_error(Arc::new(move |error| {
            lock(&uncaptured.uncaptured).get_or_insert(typed("computing", 0, error));
        }));
        let lost = Arc::clone(&faults);
        device.set_device_lost_callback(move |reason, message| {
            // Dropping a device reports it as destroyed: that is no loss.
            if reason != wgpu::DeviceLostReason::Destroyed {
                lost.lose(&message);
            }
        });
        faults
    }

    /// Notes that the device is gone.
    pub(super) fn lose(&self, reason: &str) {
        lock(&self.lost).get_or_insert_with(|| reason.to_owned());
    }

    /// # Errors
    /// [`EngineError::DeviceLost`] from the loss on; any other error once.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        if let Some(reason) = lock(&self.lost).clone() {
            return Err(EngineError::DeviceLost { reason });
        }
        match lock(&self.uncaptured).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// What a failure really was: whatever fails after the device is gone or out of memory fails because of that, and a
/// device that is lost for want of memory is out of memory.
pub(super) fn explain(error: EngineError, faults: &Faults, requested_bytes: u64) -> EngineError {
    let error = match faults.check() {
        Err(lost @ EngineError::DeviceLost { .. }) => lost,
        // What arrives by callback does not know how much was asked for.
        Err(EngineError::OutOfMemory { what, .. }) if !matches!(error, EngineError::OutOfMemory { .. }) => {
            EngineError::OutOfMemory { requested_bytes, what }
        }
        _ => error,
    };
    match error {
        EngineError::DeviceLost { reason } if reason.to_lowercase().contains("memory") => {
            EngineError::OutOfMemory { requested_bytes, what: format!("an iteration of the plan ({reason})") }
        }
        other => other,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` and returns what it made, or the error that wgpu reported meanwhile on this thread.
///
/// `requested_bytes` and `what` go into the error.
///
/// # Errors
/// [`EngineError::OutOfMemory`], [`EngineError::Failed`].
pub(super) fn scoped<T>(
    device: &wgpu::Device,
    what: &str,
    requested_bytes: u64,
    work: impl FnOnce() -> T,
) -> Result<T, EngineError> {
    let scopes = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory]
        .map(|filter| device.push_error_scope(filter));
    let made = work();
    let mut first = None;
    // Scopes nest: the last one pushed is the first to go.
    for scope in scopes.into_iter().rev() {
        let error = pollster::block_on(scope.pop());
        first = first.or(error);
    }
    match first {
        Some(error) => Err(typed(what, requested_bytes, error)),
        None => Ok(made),
    }
}

fn typed(what: &str, requested_bytes: u64, error: wgpu::Error) -> EngineError {
    match error {
        wgpu::Error::OutOfMemory { .. } => EngineError::OutOfMemory { requested_bytes, what: what.to_owned() },
        wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
            EngineError::Failed { what: what.to_owned(), reason: description }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_after_a_loss_are_the_loss() {
        let failed = EngineError::Failed { what: "reading".into(), reason: "invalid buffer".into() };
        let faults = Faults::default();
        assert_eq!(explain(failed.clone(), &faults, 7), failed);
        faults.lose("unplugged");
        faults.lose("and again");
        assert_eq!(explain(failed.clone(), &faults, 7), EngineError::DeviceLost { reason: "unplugged".into() });
        let faults = Faults::default();
        faults.lose("Not enough memory left.");
        assert!(matches!(explain(failed, &faults, 7), EngineError::OutOfMemory { requested_bytes: 7, .. }));
    }

    #[test]
    fn failures_for_want_of_memory_are_that() {
        let failed = EngineError::Failed { what: "reading".into(), reason: "invalid buffer".into() };
        let full = |requested_bytes| EngineError::OutOfMemory { requested_bytes, what: "computing".into() };
        let faults = Faults::default();
        *lock(&faults.uncaptured) = Some(full(0));
        assert_eq!(explain(failed.clone(), &faults, 7), full(7));
        // One that knows more stays as it is.
        *lock(&faults.uncaptured) = Some(full(0));
        assert_eq!(explain(full(5), &faults, 7), full(5));
        *lock(&faults.uncaptured) = Some(EngineError::Failed { what: "computing".into(), reason: "other".into() });
        assert_eq!(explain(failed.clone(), &faults, 7), failed);
    }
}
