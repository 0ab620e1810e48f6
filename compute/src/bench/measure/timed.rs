//! Iterations on the clock: the first, those of warm-up, and those that count.

use super::Failure;
use super::remarks;
use crate::bench::event::Event;
use crate::bench::spec::Bounds;
use crate::bench::statistics::median;
use crate::engine::{Engine, EngineError, Session, Timing};
use crate::plan::Plan;

/// Seconds that the iterations between two signs of life take together, where one does not take longer.
const BATCH_SECS: f64 = 0.1;
/// Iterations that are always measured.
const LEAST_ITERATIONS: usize = 3;
/// Relative difference within which two successive windows agree.
///
/// A device that heats up slows down by about one percent a second (a Titan X, soumith/convnet-benchmarks issue 71, from
/// 10 to 13 ms in half a minute); windows of two seconds see that, and a hundred iterations would not.
const AGREEMENT: f64 = 0.01;
/// Longest window in seconds.
const WINDOW_SECS: f64 = 2.0;
/// Windows that the time bound has room for.
const WINDOWS: f64 = 20.0;
/// Share of the time bound that warm-up may take.
const WARM_UP_SHARE: f64 = 0.6;

/// A session whose iterations are being timed.
pub(super) struct Timed<'a> {
    engine: &'a dyn Engine,
    session: &'a mut dyn Session,
    plan: &'a Plan,
    bounds: Bounds,
    emit: &'a mut dyn FnMut(Event),
    begun_secs: f64,
    /// Whether each iteration is followed by a read, since the session does not wait for the device by itself.
    reads_to_wait: bool,
    latest_secs: f64,
    warm_up_iterations: usize,
    first_window_ms: Vec<f64>,
    /// Remarks made on the way.
    pub(super) notes: Vec<String>,
}

/// Measured times in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// On the device's clock; fewer than iterations when it was not always there.
    pub(super) device_ms: Vec<f64>,
    /// On the host's clock.
    pub(super) host_ms: Vec<f64>,
    /// Host times of the first window of warm-up.
    pub(super) first_window_ms: Vec<f64>,
    /// Iterations of warm-up.
    pub(super) warm_up_iterations: usize,
}

impl<'a> Timed<'a> {
    pub(super) fn new(
        engine: &'a dyn Engine,
        session: &'a mut dyn Session,
        plan: &'a Plan,
        bounds: Bounds,
        emit: &'a mut dyn FnMut(Event),
    ) -> Self {
        let begun_secs = engine.now_secs();
        Self {
            engine,
            session,
            plan,
            bounds,
            emit,
            begun_secs,
            reads_to_wait: false,
            latest_secs: BATCH_SECS,
            warm_up_iterations: 0,
            first_window_ms: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn emit(&mut self, event: Event) {
        (self.emit)(event);
    }

    /// Computes one iteration, which may still compile or tune something and enters no statistics, and finds out
    /// whether the session waits for the device: if it doesn't, the first read afterwards takes longer than the second.
    /// Returns the logits.
    pub(super) fn first_iteration(&mut self) -> Result<Vec<f32>, Failure> {
        let timings = self.run(1)?;
        let submitted = self.engine.now_secs();
        let logits = self.session.read(self.plan.logits)?;
        let read_once = self.engine.now_secs();
        self.session.read(self.plan.logits)?;
        let read_twice = self.engine.now_secs();
        let waited = (read_once - submitted) - (read_twice - read_once);
        let claimed: f64 = timings.iter().map(|timing| timing.host_secs).sum();
        // A first read may cost a millisecond more than the next.
        if waited > 0.2 * claimed && waited > 2e-3 {
            self.reads_to_wait = true;
            self.notes.push(remarks::returned_early());
            self.latest_secs = claimed + waited;
        }
        self.warm_up_iterations = 1;
        Ok(logits)
    }

    /// Iterates until two successive windows agree or the time bound's share is used up.
    pub(super) fn warm_up(&mut self) -> Result<(), Failure> {
        let window_secs = WINDOW_SECS.min(self.bounds.max_seconds / WINDOWS);
        let mut before: Option<f64> = None;
        while self.elapsed_secs() < self.bounds.max_seconds * WARM_UP_SHARE {
            let mut window = Vec::new();
            let mut secs = 0.0;
            while secs < window_secs {
                let timings = self.batch(usize::MAX)?;
                secs += timings.iter().map(|timing| timing.host_secs).sum::<f64>();
                window.extend(timings.iter().map(|timing| timing.host_secs * 1e3));
                self.warm_up_iterations += timings.len();
                self.progress(self.warm_up_iterations, None);
            }
            let now = median(&window);
            if self.first_window_ms.is_empty() {
                self.first_window_ms = window;
            }
            if before.is_some_and(|before| (now / before - 1.0).abs() <= AGREEMENT) {
                return Ok(());
            }
            before = Some(now);
        }
        self.notes.push(remarks::not_settled(self.warm_up_iterations));
        Ok(())
    }

    /// Measures as many iterations as asked for, fewer only when the time bound says so.
    pub(super) fn measure(&mut self) -> Result<Samples, Failure> {
        let asked = self.bounds.iterations.max(LEAST_ITERATIONS);
        let mut samples = Samples::default();
        while samples.host_ms.len() < asked {
            if samples.host_ms.len() >= LEAST_ITERATIONS && self.elapsed_secs() >= self.bounds.max_seconds {
                self.notes.push(remarks::cut_short(samples.host_ms.len(), asked, self.bounds.max_seconds));
                break;
            }
            let timings = self.batch(asked - samples.host_ms.len())?;
            samples.host_ms.extend(timings.iter().map(|timing| timing.host_secs * 1e3));
            samples.device_ms.extend(timings.iter().filter_map(|timing| timing.device_secs).map(|secs| secs * 1e3));
            self.progress(samples.host_ms.len(), Some(asked));
        }
        // Some remarks of a session come with its iterations.
        self.notes.extend(self.session.notes());
        samples.first_window_ms = std::mem::take(&mut self.first_window_ms);
        samples.warm_up_iterations = self.warm_up_iterations;
        Ok(samples)
    }

    fn elapsed_secs(&self) -> f64 {
        self.engine.now_secs() - self.begun_secs
    }

    fn progress(&mut self, iterations: usize, of: Option<usize>) {
        self.emit(Event::Progress { iterations, of, latest_ms: self.latest_secs * 1e3 });
    }

    /// As many iterations as take about [`BATCH_SECS`], at least one and at most `most`.
    fn batch(&mut self, most: usize) -> Result<Vec<Timing>, Failure> {
        let fitting = (BATCH_SECS / self.latest_secs) as usize;
        let iterations = fitting.clamp(1, 10_000).min(most);
        if self.reads_to_wait {
            // One by one: the mean of several, repeated, would look like times without scatter.
            return (0..iterations).map(|_| self.read_iteration()).collect();
        }
        self.run(iterations)
    }

    /// One iteration that is waited for by a read, whose own time does not count.
    fn read_iteration(&mut self) -> Result<Timing, Failure> {
        let begun = self.engine.now_secs();
        let device_secs = self.run(1)?[0].device_secs;
        let computed = self.engine.now_secs();
        self.session.read(self.plan.logits)?;
        let read_once = self.engine.now_secs();
        self.session.read(self.plan.logits)?;
        let read_secs = (self.engine.now_secs() - read_once).min(read_once - computed);
        self.latest_secs = read_once - begun - read_secs;
        Ok(Timing { device_secs, host_secs: self.latest_secs })
    }

    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, Failure> {
        let timings = self.session.run(iterations)?;
        if timings.len() != iterations {
            let reason = format!("{iterations} iterations gave {} times", timings.len());
            return Err(EngineError::Failed { what: "timing".to_owned(), reason }.into());
        }
        let latest = timings.last().map_or(0.0, |timing| timing.host_secs);
        if !timings.iter().all(|timing| timing.host_secs.is_finite() && timing.host_secs > 0.0) {
            return Err(Failure::NoMeasurement(format!("an iteration took {latest} s, which is not a positive time")));
        }
        self.latest_secs = latest;
        Ok(timings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{Fake, Script, StepTime};
    use crate::engine::{self, Memory};
    use crate::models::Model;
    use crate::ops::BufferId;
    use crate::plan::Pass;
    use crate::shape::Precision;

    /// A session that has something to say after its second iteration.
    struct Late<'a> {
        inner: Box<dyn Session + 'a>,
        iterations: usize,
    }

    impl Session for Late<'_> {
        fn write(&mut self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError> {
            self.inner.write(buffer, values)
        }

        fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
            self.iterations += iterations;
            self.inner.run(iterations)
        }

        fn profile(&mut self, repetitions: usize) -> Result<Vec<engine::StepTime>, EngineError> {
            self.inner.profile(repetitions)
        }

        fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, EngineError> {
            self.inner.read(buffer)
        }

        fn memory(&self) -> Memory {
            self.inner.memory()
        }

        fn kernels(&self) -> Vec<String> {
            self.inner.kernels()
        }

        fn notes(&self) -> Vec<String> {
            (self.iterations >= 2).then(|| "late".to_owned()).into_iter().collect()
        }
    }

    fn measured(script: &Script) -> (Samples, Vec<String>) {
        let engine = Fake::open(script, "fake-0").unwrap();
        let graph = Model::Alexnet.graph();
        let plan = Plan::new(&graph, Pass::Forward, Precision::F32, 2).unwrap();
        let mut session = Late { inner: engine.load(&plan).unwrap(), iterations: 0 };
        let emit = &mut |_| {};
        let mut timed = Timed::new(&engine, &mut session, &plan, Bounds::default(), emit);
        timed.first_iteration().unwrap();
        timed.warm_up().unwrap();
        (timed.measure().unwrap(), timed.notes)
    }

    #[test]
    fn remarks_made_while_iterating_are_kept() {
        assert_eq!(measured(&Script::default()).1, ["late"]);
    }

    /// R01: an engine that is waited for by reads has as many times as iterations, and not a batch's mean for each.
    #[test]
    fn iterations_that_are_waited_for_have_their_own_times() {
        let step = StepTime::Constant { ms: 20.0 };
        let (samples, _) = measured(&Script { returns_early: true, step, noise: 0.1, ..Script::default() });
        let differing = samples.host_ms.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(differing + 5 > samples.host_ms.len(), "{:?}", samples.host_ms);
    }
}
