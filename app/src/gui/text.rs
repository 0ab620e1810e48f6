//! Every text that the window shows, in one place and in every language. Names of devices and files, reasons and remarks
//! come with the results, as they were written.
//!
//! [`labels`] holds what is fixed, [`sentences`] what has something in it, [`detail`] the labels of a record.

pub(super) mod detail;
mod labels;
mod sentences;

use std::cell::Cell;

use serde::{Deserialize, Serialize};

pub(super) use labels::*;
pub(super) use sentences::*;

/// The program's name, the same in every language.
pub(super) const TITLE: &str = "Batchmark";

/// A language of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Simplified Chinese.
    #[serde(rename = "zh")]
    Chinese,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Its name in itself.
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Chinese => "简体中文",
        }
    }

    /// What the system is set to, as far as it says; English otherwise.
    pub fn of_system() -> Self {
        let set = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(|name| std::env::var(name).ok());
        if set.is_some_and(|value| value.starts_with("zh")) { Self::Chinese } else { Self::English }
    }
}

thread_local! {
    static SPOKEN: Cell<Language> = const { Cell::new(Language::English) };
}

/// Sets the language of this thread, the one that draws; other threads speak English, to the log alone.
pub(super) fn speak(language: Language) {
    SPOKEN.set(language);
}

/// The language of this thread.
pub(super) fn spoken() -> Language {
    SPOKEN.get()
}

/// The one of two texts that is in the language of this thread.
fn pick<T>(english: T, chinese: T) -> T {
    match spoken() {
        Language::English => english,
        Language::Chinese => chinese,
    }
}

/// Defines texts by name, one line a language: a text that lacks one does not compile. All of them are listed for tests.
macro_rules! texts {
    ($($(#[doc = $doc:literal])* $name:ident: $english:literal, $chinese:literal;)*) => {
        $($(#[doc = $doc])* pub(in crate::gui) fn $name() -> &'static str { crate::gui::text::pick($english, $chinese) })*

        #[cfg(test)]
        pub(super) const ALL: &[[&str; 3]] = &[$([stringify!($name), $english, $chinese]),*];
    };
}
use texts;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_chinese(text: &str) -> bool {
        text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
    }

    #[test]
    fn every_text_is_there_in_every_language() {
        for [name, english, chinese] in ALL.iter().chain(detail::ALL) {
            assert!(!english.is_empty() && !is_chinese(english), "{name}: {english:?}");
            assert!(is_chinese(chinese), "{name}: {chinese:?}");
            let ends = |text: &str| (text.ends_with('…'), text.ends_with(['.', '。']));
            assert_eq!(ends(english), ends(chinese), "{name}: both are a sentence, or lead on, or neither");
        }
    }

    #[test]
    fn a_thread_speaks_one_language_at_a_time() {
        speak(Language::Chinese);
        assert_eq!((open(), pass(compute::plan::Pass::Forward)), ("打开…", "推理"));
        assert_eq!(std::thread::spawn(open).join().unwrap(), "Open…");
        speak(Language::English);
        assert_eq!(open(), "Open…");
    }
}
