//! The system's font for scripts that the bundled one has not. It is large, so it is looked for only when it is needed.

use eframe::egui;
use eframe::egui::epaint::text::{FontInsert, FontPriority, InsertFontFamily};
use eframe::egui::{FontData, FontFamily};
use fontdb::{Database, Family, Query, Source};

/// Fonts with Chinese, Japanese and Korean characters as systems have them, the most readable first.
const FAMILIES: [&str; 12] = [
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Heiti SC",
    "SimHei",
    "AR PL UMing CN",
];

/// Adds the font to those that `context` draws with; nothing happens where the system has none.
pub(super) fn add_fallback(context: &egui::Context) {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let Some((bytes, index)) = find(&fonts) else { return };
    let data = FontData { index, ..FontData::from_owned(bytes) };
    let families = [FontFamily::Proportional, FontFamily::Monospace]
        .map(|family| InsertFontFamily { family, priority: FontPriority::Lowest });
    context.add_font(FontInsert::new("system", data, families.to_vec()));
    context.request_repaint();
}

/// A font's file and its place in it.
fn find(fonts: &Database) -> Option<(Vec<u8>, u32)> {
    let query = |name| fonts.query(&Query { families: &[Family::Name(name)], ..Query::default() });
    let id = FAMILIES.into_iter().find_map(query)?;
    match fonts.face_source(id)? {
        (Source::File(path), index) => Some((std::fs::read(path).ok()?, index)),
        (Source::Binary(bytes), index) => Some((bytes.as_ref().as_ref().to_vec(), index)),
        #[expect(unreachable_patterns, reason = "memory-mapped fonts, where another crate turns the feature on")]
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R36: Chinese and Japanese file names can be read where the system has a font for them.
    #[test]
    fn the_font_has_the_characters_of_file_names() {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let Some((bytes, index)) = find(&fonts) else { return eprintln!("skipped: the system has no such font") };
        let context = egui::Context::default();
        let data = FontData { index, ..FontData::from_owned(bytes) };
        let family = InsertFontFamily { family: FontFamily::Proportional, priority: FontPriority::Lowest };
        context.add_font(FontInsert::new("system", data, vec![family]));
        for _ in 0..2 {
            let mut output = context.run_ui(egui::RawInput::default(), |_| {});
            output.textures_delta.clear();
        }
        let font = egui::FontId::proportional(14.0);
        assert!(context.fonts_mut(|fonts| fonts.has_glyphs(&font, "結果_测试.json")));
    }
}
