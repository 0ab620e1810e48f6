//! The chart as a picture, exactly as it is seen: as points from the window's own frame, as vectors from the shapes that
//! were painted in it.

use std::fmt::Write as _;

use eframe::egui;
use eframe::egui::epaint::{ClippedShape, ColorMode, PathShape, RectShape, Stroke, TextShape};
use eframe::egui::{Color32, Rect, Shape};

/// The part of a frame's picture that lies in `area`, in points; as PNG.
///
/// # Errors
/// What the encoder reports.
pub(super) fn png(image: &egui::ColorImage, area: Rect, pixels_per_point: f32) -> Result<Vec<u8>, String> {
    let [width, height] = image.size.map(|side| side as f32 / pixels_per_point);
    let frame = Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(width, height));
    let part = image.region(&area.intersect(frame), Some(pixels_per_point));
    let [width, height] = part.size.map(|side| side as u32);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
    writer.write_image_data(part.as_raw()).map_err(|error| error.to_string())?;
    drop(writer);
    Ok(bytes)
}

/// The shapes that were painted in `area`, in points; as SVG. Text stays text, so that it can be searched and edited.
pub(super) fn svg(shapes: &[ClippedShape], area: Rect, background: Color32) -> String {
    let size = area.size();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
         font-family=\"Ubuntu, 'Noto Sans CJK SC', sans-serif\">\n<rect width=\"100%\" height=\"100%\" {2}/>\n",
        size.x.round(),
        size.y.round(),
        fill(background)
    );
    for ClippedShape { clip_rect, shape, .. } in shapes {
        if clip_rect.intersects(area) {
            shape_svg(&mut out, shape, area.intersect(*clip_rect), area);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Writes a shape where it is within `clip`, which is cut off at the picture's edge and, for bars, at the clip's.
fn shape_svg(out: &mut String, shape: &Shape, clip: Rect, area: Rect) {
    if !shape.visual_bounding_rect().intersects(clip) {
        return;
    }
    let at = |point: egui::Pos2| (point.x - area.left(), point.y - area.top());
    match shape {
        Shape::Vec(shapes) => shapes.iter().for_each(|shape| shape_svg(out, shape, clip, area)),
        Shape::Rect(RectShape { rect, corner_radius, fill: color, stroke: edge, .. }) => {
            let rect = rect.intersect(clip);
            let (x, y) = at(rect.min);
            let _ = writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" rx=\"{}\" {} {}/>",
                rect.width(),
                rect.height(),
                corner_radius.nw,
                fill(*color),
                stroke(*edge)
            );
        }
        Shape::LineSegment { points, stroke: line } => {
            let ([x1, x2], [y1, y2]) = ([at(points[0]).0, at(points[1]).0], [at(points[0]).1, at(points[1]).1]);
            let line = stroke(*line);
            let _ = writeln!(out, "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" {line}/>");
        }
        Shape::Circle(circle) => {
            let (x, y) = at(circle.center);
            let (radius, inside, edge) = (circle.radius, fill(circle.fill), stroke(circle.stroke));
            let _ = writeln!(out, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\" {inside} {edge}/>");
        }
        Shape::Path(PathShape { points, closed, fill: inside, stroke: line }) => {
            let points: Vec<String> = points.iter().map(|p| format!("{:.2},{:.2}", at(*p).0, at(*p).1)).collect();
            let element = if *closed { "polygon" } else { "polyline" };
            let color = match line.color {
                ColorMode::Solid(color) => color,
                ColorMode::UV(_) => Color32::TRANSPARENT,
            };
            let (inside, line) = (fill(*inside), stroke(Stroke::new(line.width, color)));
            let _ = writeln!(out, "<{element} points=\"{}\" {inside} {line}/>", points.join(" "));
        }
        Shape::Text(text) if text.angle != 0.0 => {
            let (x, y) = at(text.pos);
            let _ = writeln!(out, "<g transform=\"rotate({:.2} {x:.2} {y:.2})\">", text.angle.to_degrees());
            text_svg(out, text, area);
            out.push_str("</g>\n");
        }
        Shape::Text(text) => text_svg(out, text, area),
        // Nothing in a chart is painted with these.
        _ => {}
    }
}

fn text_svg(out: &mut String, text: &TextShape, area: Rect) {
    // Texts of charts have one format.
    let Some(format) = text.galley.job.sections.first().map(|section| &section.format) else { return };
    for row in &text.galley.rows {
        let color = text.override_text_color.unwrap_or(format.color);
        let color = if color == Color32::PLACEHOLDER { text.fallback_color } else { color };
        let ascent = row.row.glyphs.first().map_or(0.0, |glyph| glyph.pos.y);
        let (x, y) = (text.pos.x + row.pos.x - area.left(), text.pos.y + row.pos.y + ascent - area.top());
        let line: String = row.row.glyphs.iter().map(|glyph| glyph.chr).collect();
        let _ = writeln!(
            out,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{}\" textLength=\"{:.2}\" lengthAdjust=\"spacingAndGlyphs\" \
             xml:space=\"preserve\" {}>{}</text>",
            format.font_id.size,
            // As wide as it is seen, whichever font there is.
            row.row.size.x,
            fill(color),
            escaped(line.trim_end())
        );
    }
}

fn fill(color: Color32) -> String {
    paint("fill", color)
}

fn stroke(stroke: Stroke) -> String {
    if stroke.is_empty() {
        return String::new();
    }
    format!("{} stroke-width=\"{:.2}\"", paint("stroke", stroke.color), stroke.width)
}

/// A color as an attribute; fully transparent is none.
fn paint(attribute: &str, color: Color32) -> String {
    let [r, g, b, a] = color.to_srgba_unmultiplied();
    match a {
        0 => format!("{attribute}=\"none\""),
        255 => format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\""),
        _ => format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\" {attribute}-opacity=\"{:.3}\"", f32::from(a) / 255.0),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use eframe::egui::{pos2, vec2};

    use super::*;

    #[test]
    fn shapes_outside_of_the_picture_are_left_out_and_text_is_escaped() {
        let area = Rect::from_min_size(pos2(100.0, 50.0), vec2(200.0, 100.0));
        let bar = |x: f32| Shape::rect_filled(Rect::from_min_size(pos2(x, 60.0), vec2(20.0, 10.0)), 0.0, Color32::RED);
        let shapes = [bar(110.0), bar(10.0)].map(|shape| ClippedShape::new(Rect::EVERYTHING, shape));
        let svg = svg(&shapes, area, Color32::WHITE);
        assert_eq!(svg.matches("<rect").count(), 2, "the ground and one bar: {svg}");
        assert!(
            svg.contains("<rect x=\"10.00\" y=\"10.00\" width=\"20.00\" height=\"10.00\" rx=\"0\" fill=\"#ff0000\"")
        );
        assert_eq!(escaped("a<b & c"), "a&lt;b &amp; c");
    }

    #[test]
    fn a_picture_is_cut_out_of_the_frame() {
        let mut image = egui::ColorImage::filled([40, 20], Color32::WHITE);
        image[(10, 10)] = Color32::RED;
        let area = Rect::from_min_size(pos2(5.0, 5.0), vec2(4.0, 3.0));
        let bytes = png(&image, area, 2.0).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut points = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut points).unwrap();
        assert_eq!((reader.info().width, reader.info().height, &points[..4]), (8, 6, [255, 0, 0, 255].as_slice()));
    }
}
