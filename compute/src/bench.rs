//! The measurement: what a run is, how it is measured and verified, how its record is stored, and how a supervisor gets
//! it from a child process that may crash, hang or be killed.
//!
//! [`spec`] is what determines a run, [`worker`] measures it in the child and sends [`event`]s, [`supervisor`] watches the
//! child, [`record`] is what is stored and [`store`] the file it is stored in.

pub mod compare;
pub mod event;
pub mod export;
pub mod measure;
pub mod origin;
pub mod profile;
pub mod record;
pub mod spec;
pub mod statistics;
pub mod store;
pub mod suite;
pub mod supervisor;
pub mod telemetry;
pub mod verify;
pub mod worker;
