//! A thread's end of the bounded channel to the window. It never holds the thread up while it works: what must arrive
//! waits here for a place, what the next message makes stale is left out.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use eframe::egui;

use crate::gui::message::Message;

/// How soon the window shows what is not urgent. A window that draws at full speed would disturb the measurement.
const LAZY_REPAINT: Duration = Duration::from_millis(200);

/// A thread's end of the channel.
pub(super) struct Outbox {
    sender: SyncSender<Message>,
    context: egui::Context,
    waiting: VecDeque<Message>,
}

impl Outbox {
    pub(super) fn new(sender: SyncSender<Message>, context: egui::Context) -> Self {
        Self { sender, context, waiting: VecDeque::new() }
    }

    /// Sends a message that must arrive, later if there is no place now.
    pub(super) fn post(&mut self, message: Message) {
        self.waiting.push_back(message);
        self.flush();
        self.context.request_repaint();
    }

    /// Sends a message that must arrive, of many: waits for a place where the window is behind, which shows it soon.
    pub(super) fn post_of_many(&mut self, message: Message) {
        self.waiting.push_back(message);
        for message in self.waiting.drain(..) {
            if self.sender.send(message).is_err() {
                break;
            }
        }
        self.context.request_repaint_after(LAZY_REPAINT);
    }

    /// Sends a message that may be lost when the window is behind.
    pub(super) fn offer(&mut self, message: Message) {
        self.flush();
        // An error means that the window is behind or gone; either way the message is of no use.
        if self.waiting.is_empty() && self.sender.try_send(message).is_ok() {
            self.context.request_repaint_after(LAZY_REPAINT);
        }
    }

    /// Waits until everything is sent or the window is gone, and has it shown; only for when the work is done.
    pub(super) fn wait(&mut self) {
        for message in self.waiting.drain(..) {
            if self.sender.send(message).is_err() {
                break;
            }
        }
        self.context.request_repaint();
    }

    fn flush(&mut self) {
        while let Some(message) = self.waiting.pop_front() {
            if let Err(TrySendError::Full(message)) = self.sender.try_send(message) {
                self.waiting.push_front(message);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn texts(inbox: &std::sync::mpsc::Receiver<Message>) -> Vec<String> {
        inbox.try_iter().map(|message| if let Message::Broken(text) = message { text } else { String::new() }).collect()
    }

    fn message(text: &str) -> Message {
        Message::Broken(text.to_owned())
    }

    #[test]
    fn what_must_arrive_arrives_in_order_and_nothing_holds_the_thread_up() {
        let (sender, inbox) = sync_channel(2);
        let mut outbox = Outbox::new(sender, egui::Context::default());
        for text in ["a", "b", "c", "d"] {
            outbox.post(message(text));
        }
        outbox.offer(message("stale"));
        assert_eq!(texts(&inbox), ["a", "b"]);
        outbox.offer(message("stale"));
        assert_eq!(texts(&inbox), ["c", "d"], "what waits goes first");
        outbox.offer(message("fresh"));
        assert_eq!(texts(&inbox), ["fresh"]);
    }

    #[test]
    fn a_window_that_is_gone_holds_nothing_up() {
        let (sender, inbox) = sync_channel(1);
        let mut outbox = Outbox::new(sender, egui::Context::default());
        drop(inbox);
        for text in ["a", "b", "c"] {
            outbox.post(message(text));
        }
        outbox.wait();
        assert!(outbox.waiting.is_empty());
    }
}
