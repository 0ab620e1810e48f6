//! Batchmark: measures how fast a GPU trains and runs deep networks.

fn main() -> std::io::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return compute::bench::worker::serve_process();
    }
    Ok(())
}
