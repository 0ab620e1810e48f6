//! How the window looks: neutral surfaces, one accent, a spacing grid of four points, four sizes of type, and series
//! colors that color-blind people can tell apart.

use eframe::egui;
use eframe::egui::{Color32, CornerRadius, FontFamily, FontId, Margin, Stroke, TextStyle, Theme, Visuals, vec2};

/// Distance of the spacing grid in points.
pub(super) const GRID: f32 = 4.0;

/// Series colors for a light and a dark background.
///
/// Source: Okabe and Ito, "Color Universal Design", 2008; black left out, yellow last and darker on light ground.
const SERIES: [(Color32, Color32); 8] = [
    (Color32::from_rgb(0, 114, 178), Color32::from_rgb(58, 150, 214)),
    (Color32::from_rgb(230, 159, 0), Color32::from_rgb(230, 159, 0)),
    (Color32::from_rgb(0, 158, 115), Color32::from_rgb(0, 168, 124)),
    (Color32::from_rgb(204, 121, 167), Color32::from_rgb(204, 121, 167)),
    (Color32::from_rgb(86, 180, 233), Color32::from_rgb(132, 202, 242)),
    (Color32::from_rgb(213, 94, 0), Color32::from_rgb(226, 110, 28)),
    (Color32::from_rgb(120, 120, 120), Color32::from_rgb(160, 160, 160)),
    (Color32::from_rgb(200, 186, 20), Color32::from_rgb(240, 228, 66)),
];

/// Colors before the palette begins anew.
pub(super) const N_COLORS: usize = SERIES.len();

/// The color of a series by its number; past the palette it begins anew, with paler colors every second time.
pub(super) fn series_color(number: usize, is_dark: bool) -> Color32 {
    let (light, dark) = SERIES[number % SERIES.len()];
    let (color, ground) = if is_dark { (dark, Color32::BLACK) } else { (light, Color32::WHITE) };
    let is_pale = number / SERIES.len() % 2 == 1;
    color.lerp_to_gamma(ground, if is_pale { 0.5 } else { 0.0 })
}

/// Sets the look for light and dark, and follows the system in choosing between them.
pub(super) fn install(context: &egui::Context) {
    context.set_theme(egui::ThemePreference::System);
    context.all_styles_mut(|style| {
        let proportional = |size| FontId::new(size, FontFamily::Proportional);
        style.text_styles = [
            (TextStyle::Small, proportional(11.5)),
            (TextStyle::Body, proportional(13.5)),
            (TextStyle::Button, proportional(13.5)),
            (TextStyle::Heading, proportional(19.0)),
            (TextStyle::Monospace, FontId::new(13.0, FontFamily::Monospace)),
        ]
        .into();
        let spacing = &mut style.spacing;
        spacing.item_spacing = vec2(2.0 * GRID, GRID);
        spacing.button_padding = vec2(2.0 * GRID, GRID);
        spacing.interact_size.y = 6.0 * GRID;
        spacing.icon_width = 16.0;
        spacing.icon_width_inner = 10.0;
        spacing.window_margin = Margin::same(16);
        style.animation_time = 0.0;
    });
    for theme in [Theme::Light, Theme::Dark] {
        context.set_visuals_of(theme, visuals(theme));
    }
}

fn visuals(theme: Theme) -> Visuals {
    let is_dark = theme == Theme::Dark;
    let gray = Color32::from_gray;
    let pick = |light: u8, dark: u8| gray(if is_dark { dark } else { light });
    let mut visuals = theme.default_visuals();
    let accent = if is_dark { Color32::from_rgb(88, 166, 230) } else { Color32::from_rgb(0, 95, 160) };

    visuals.panel_fill = pick(247, 28);
    visuals.window_fill = pick(252, 36);
    visuals.extreme_bg_color = pick(255, 20);
    visuals.faint_bg_color = pick(241, 34);
    visuals.window_stroke = Stroke::new(1.0, pick(210, 60));
    visuals.hyperlink_color = accent;
    visuals.selection.bg_fill = if is_dark { Color32::from_rgb(28, 82, 128) } else { Color32::from_rgb(196, 222, 243) };
    visuals.selection.stroke = Stroke::new(1.0, if is_dark { gray(240) } else { Color32::from_rgb(0, 60, 110) });
    visuals.error_fg_color = if is_dark { Color32::from_rgb(255, 140, 120) } else { Color32::from_rgb(176, 32, 16) };
    visuals.warn_fg_color = if is_dark { Color32::from_rgb(240, 190, 90) } else { Color32::from_rgb(138, 84, 0) };
    visuals.weak_text_color = Some(pick(96, 158));

    let widgets = &mut visuals.widgets;
    widgets.noninteractive.bg_stroke = Stroke::new(1.0, pick(220, 52));
    widgets.noninteractive.fg_stroke = Stroke::new(1.0, pick(32, 214));
    widgets.inactive.fg_stroke = Stroke::new(1.0, pick(32, 220));
    widgets.inactive.weak_bg_fill = pick(233, 50);
    widgets.inactive.bg_fill = pick(225, 58);
    widgets.hovered.weak_bg_fill = pick(224, 62);
    widgets.hovered.bg_stroke = Stroke::new(1.0, pick(170, 96));
    widgets.active.weak_bg_fill = pick(212, 74);
    for widget in [
        &mut widgets.noninteractive,
        &mut widgets.inactive,
        &mut widgets.hovered,
        &mut widgets.active,
        &mut widgets.open,
    ] {
        widget.corner_radius = CornerRadius::same(4);
        widget.expansion = 0.0;
    }
    visuals
}

/// The one button of a view that is meant to be pressed.
pub(super) fn primary_button(ui: &egui::Ui, label: &str) -> egui::Button<'static> {
    let fill = if ui.visuals().dark_mode { Color32::from_rgb(24, 98, 158) } else { Color32::from_rgb(0, 95, 160) };
    egui::Button::new(egui::RichText::new(label).color(Color32::WHITE)).fill(fill)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast of two colors. Source: WCAG 2.1, "contrast ratio".
    fn contrast(a: Color32, b: Color32) -> f32 {
        let luminance = |color: Color32| {
            let [r, g, b, _] = egui::Rgba::from(color).to_array();
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn text_can_be_read_and_bars_can_be_seen() {
        for theme in [Theme::Light, Theme::Dark] {
            let visuals = visuals(theme);
            for text in [visuals.text_color(), visuals.weak_text_color(), visuals.error_fg_color, visuals.warn_fg_color]
            {
                assert!(contrast(text, visuals.panel_fill) >= 4.5, "{theme:?} {text:?}");
            }
            for number in 0..SERIES.len() {
                let color = series_color(number, visuals.dark_mode);
                assert!(contrast(color, visuals.panel_fill) >= 1.8, "{theme:?} series {number}");
            }
        }
    }

    /// Numbers stand below each other digit by digit.
    #[test]
    fn digits_are_all_of_one_width() {
        let context = egui::Context::default();
        install(&context);
        let mut widths = Vec::new();
        let mut output = context.run_ui(egui::RawInput::default(), |ui| {
            for style in [TextStyle::Small, TextStyle::Body, TextStyle::Heading] {
                let font = style.resolve(ui.style());
                let width = |digit: char| ui.ctx().fonts_mut(|fonts| fonts.glyph_width(&font, digit));
                widths.push(('0'..='9').map(width).collect::<Vec<f32>>());
            }
        });
        output.textures_delta.clear();
        for digits in widths {
            assert!(digits.iter().all(|width| *width == digits[0] && *width > 0.0), "{digits:?}");
        }
    }

    #[test]
    fn neighboring_series_differ() {
        for number in 0..2 * SERIES.len() {
            assert_ne!(series_color(number, false), series_color(number + 1, false));
        }
    }
}
