//! The page for buyers: the work and the conditions, then every GPU that meets them, ranked, with where its number comes
//! from.

use compute::catalog::{Confidence, Field, Gpu};
use compute::decide::{Basis, By, Candidate, Decision, KnownFrom, LeftOut, Price, PriceBasis, Reason};
use compute::models::Model;
use compute::shape::Precision;
use eframe::egui;
use eframe::egui::{Align2, Rect, TextStyle, pos2};
use egui_extras::{Column as Width, TableBuilder};

use super::action::Action;
use super::buyer::Buyer;
use super::chart_panel::{choice_ui, combo_ui};
use super::mark::{Paint, interval_ui};
use super::state::State;
use super::{text, theme};
use crate::chart::number::{bytes, three_digits};

/// Width that every column has room in; on a narrower page the table is scrolled.
const TABLE_WIDTH: f32 = 164.0 * theme::GRID;
const ROW_HEIGHT: f32 = 6.0 * theme::GRID;
/// Width kept behind a bar for its value.
const VALUE_WIDTH: f32 = 13.0 * theme::GRID;

/// Draws the page and returns where the picture is that can be exported.
pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) -> Option<Rect> {
    let mut buyer = state.buyer.clone();
    work_ui(ui, &mut buyer);
    conditions_ui(ui, &mut buyer);
    ui.add_space(theme::GRID);
    let picture = ui.available_rect_before_wrap();
    ui.heading(text::decide_question());
    let is_empty = buyer.wish().shares.is_empty();
    match &state.deciding.decision {
        Some(decision) if !is_empty => {
            ui.weak(text::decide_subtitle(&bytes(decision.needed_bytes), decision.candidates.len()));
            ui.add_space(theme::GRID);
            priceless_ui(ui, decision, &mut buyer);
            egui::ScrollArea::horizontal().auto_shrink(false).show(ui, |ui| {
                ui.set_min_width(TABLE_WIDTH);
                table_ui(ui, decision, &mut buyer);
            });
        }
        _ if is_empty => {
            ui.weak(text::decide_nothing());
        }
        _ => {
            ui.weak(text::decide_wait());
        }
    }
    if buyer != state.buyer {
        actions.push(Action::Buy(Box::new(buyer)));
    }
    state.deciding.decision.as_ref().map(|_| picture)
}

/// What is to be computed.
fn work_ui(ui: &mut egui::Ui, buyer: &mut Buyer) {
    ui.horizontal_wrapped(|ui| {
        ui.toggle_value(&mut buyer.is_inferring, text::pass(compute::plan::Pass::Forward));
        ui.toggle_value(&mut buyer.is_training, text::pass(compute::plan::Pass::ForwardBackward));
        ui.separator();
        for model in Model::ALL {
            let mut is_chosen = buyer.shares.contains_key(model.name());
            if ui.checkbox(&mut is_chosen, model.name()).changed() {
                if is_chosen {
                    buyer.shares.insert(model.name().to_owned(), 1.0);
                } else {
                    buyer.shares.remove(model.name());
                }
            }
            if let Some(weight) = buyer.shares.get_mut(model.name()) {
                let drag = egui::DragValue::new(weight).range(0.1..=1000.0).speed(0.1).max_decimals(1).prefix("× ");
                ui.add(drag).accessible_name(text::share_of(model.name())).on_hover_text(text::share_hint());
            }
        }
        ui.separator();
        choice_ui(ui, text::precision(), 64.0, |ui, width| {
            combo_ui(ui, "precision", width, &mut buyer.precision, Precision::ALL, ToString::to_string)
        });
        choice_ui(ui, text::minibatch(), 72.0, |ui, width| {
            let powers = std::iter::successors(Some(1), |minibatch| Some(minibatch * 2)).take(11);
            combo_ui(ui, "minibatch", width, &mut buyer.minibatch, powers, ToString::to_string)
        });
    });
}

/// What a GPU has to meet.
fn conditions_ui(ui: &mut egui::Ui, buyer: &mut Buyer) {
    ui.horizontal_wrapped(|ui| {
        choice_ui(ui, text::budget(), 72.0, |ui, _| limit_ui(ui, &mut buyer.budget, 2000.0, 10.0));
        choice_ui(ui, text::currency(), 48.0, |ui, width| {
            let field = egui::TextEdit::singleline(&mut buyer.currency).desired_width(width).char_limit(6);
            ui.add(field).on_hover_text(text::currency_hint())
        });
        choice_ui(ui, text::least_memory(), 72.0, |ui, _| limit_ui(ui, &mut buyer.memory_gib, 24.0, 1.0));
        choice_ui(ui, text::most_power(), 72.0, |ui, _| limit_ui(ui, &mut buyer.power_watt, 350.0, 5.0));
        choice_ui(ui, text::rank_by(), 136.0, |ui, width| {
            combo_ui(ui, "by", width, &mut buyer.by, [By::Throughput, By::Price, By::Power], |by| {
                ranking(*by).to_owned()
            })
        });
    });
}

/// A limit that is off, or a number.
fn limit_ui(ui: &mut egui::Ui, limit: &mut Option<f64>, proposal: f64, speed: f64) -> egui::Response {
    let Some(value) = limit else {
        let any = ui.button(text::any());
        if any.clicked() {
            *limit = Some(proposal);
        }
        return any;
    };
    let drag = ui.add(egui::DragValue::new(value).range(1.0..=1e7).speed(speed).max_decimals(0));
    if ui.small_button("×").on_hover_text(text::no_limit()).clicked() {
        *limit = None;
    }
    drag
}

fn ranking(by: By) -> &'static str {
    match by {
        By::Throughput => text::by_throughput(),
        By::Price => text::by_price(),
        By::Power => text::by_power(),
    }
}

fn table_ui(ui: &mut egui::Ui, decision: &Decision, buyer: &mut Buyer) {
    let longest = decision.candidates.iter().map(upper).fold(0.0, f64::max);
    ui.spacing_mut().item_spacing.x = 2.0 * theme::GRID;
    let table = TableBuilder::new(ui)
        .striped(true)
        .cell_layout(egui::Layout::left_to_right(egui::Align::Center))
        .column(Width::exact(20.0))
        .column(Width::initial(148.0).at_least(96.0).clip(true).resizable(true))
        .column(Width::remainder().at_least(100.0).clip(true))
        .column(Width::exact(60.0))
        .column(Width::exact(56.0))
        .column(Width::exact(56.0))
        .column(Width::exact(56.0))
        .column(Width::exact(48.0))
        .column(Width::initial(84.0).at_least(64.0).clip(true).resizable(true));
    let heads = [
        "",
        text::column_gpu(),
        text::unit(crate::chart::settings::Unit::SamplesPerSec),
        text::column_price(),
        text::column_per_price(),
        text::column_per_watt(),
        text::column_memory(),
        text::column_power(),
        text::column_evidence(),
    ];
    let table = table.header(ROW_HEIGHT, |mut header| {
        for head in heads {
            header.col(|ui| {
                ui.add(egui::Label::new(egui::RichText::new(head).strong()).truncate());
            });
        }
    });
    table.body(|body| {
        body.rows(ROW_HEIGHT, decision.candidates.len(), |mut row| {
            let place = row.index();
            let candidate = &decision.candidates[place];
            row.col(|ui| {
                ui.weak((place + 1).to_string());
            });
            row.col(|ui| gpu_ui(ui, candidate));
            row.col(|ui| bar_ui(ui, candidate, longest));
            row.col(|ui| price_ui(ui, candidate.gpu, candidate.price.as_ref(), buyer));
            row.col(|ui| number_ui(ui, candidate.per_price.map(|rate| rate * 1000.0)));
            row.col(|ui| number_ui(ui, candidate.per_watt));
            row.col(|ui| {
                ui.label(candidate.gpu.memory_bytes.map_or("–".to_owned(), |count| format!("{} GiB", count >> 30)));
            });
            row.col(|ui| {
                ui.label(candidate.gpu.tdp_watt.map_or("–".to_owned(), |power| format!("{power:.0} W")));
            });
            row.col(|ui| evidence_ui(ui, candidate));
        });
    });
}

/// GPUs that only their price keeps out, folded up, so that it can be given or corrected.
fn priceless_ui(ui: &mut egui::Ui, decision: &Decision, buyer: &mut Buyer) {
    let is_about_price = |left: &&LeftOut| matches!(left.reason, Reason::NoPrice | Reason::Budget);
    let left_out: Vec<&LeftOut> = decision.left_out.iter().filter(is_about_price).collect();
    if left_out.is_empty() {
        return;
    }
    let title = text::left_out_by_price(left_out.len());
    egui::CollapsingHeader::new(title).id_salt("priceless").show(ui, |ui| {
        let height = ui.available_height() * 0.4;
        egui::ScrollArea::vertical().max_height(height).auto_shrink([false, true]).show(ui, |ui| {
            ui.horizontal_wrapped(|ui| {
                for left in left_out {
                    let price = buyer.prices().of(left.gpu);
                    ui.label(&left.gpu.name);
                    price_ui(ui, left.gpu, price.as_ref(), buyer);
                    ui.add_space(2.0 * theme::GRID);
                }
            });
        });
    });
}

/// The most that a candidate may reach.
fn upper(candidate: &Candidate) -> f64 {
    candidate.interval.map_or(candidate.throughput_per_sec, |[_, high]| high)
}

fn number_ui(ui: &mut egui::Ui, number: Option<f64>) {
    ui.label(number.map_or("–".to_owned(), three_digits));
}

/// Its name; pointed at, what the catalog says and how sure that is.
fn gpu_ui(ui: &mut egui::Ui, candidate: &Candidate) {
    let gpu = candidate.gpu;
    let name = ui.add(egui::Label::new(&gpu.name).truncate());
    let unsure: Vec<&str> = [
        (Field::PeakMatrix, text::field_matrix()),
        (Field::Bandwidth, text::field_bandwidth()),
        (Field::Memory, text::column_memory()),
        (Field::Tdp, text::column_power()),
        (Field::LaunchPrice, text::column_price()),
    ]
    .into_iter()
    .filter_map(|(field, name)| (gpu.confidence_of(field) == Confidence::Recalled).then_some(name))
    .collect();
    let recalled = if unsure.is_empty() { String::new() } else { format!("\n{}", text::recalled(&unsure.join(", "))) };
    let launch = gpu.launch.as_deref().unwrap_or("–");
    name.on_hover_text(format!("{} {}, {launch}\n{}{recalled}", gpu.vendor, gpu.architecture, gpu.source));
}

fn estimated_in_words(per_sec: f64, [low, high]: [f64; 2]) -> String {
    text::estimated_between(&three_digits(per_sec), &three_digits(low), &three_digits(high))
}

/// A bar of the throughput, hatched with its interval where it is estimated.
fn bar_ui(ui: &mut egui::Ui, candidate: &Candidate, longest: f64) {
    let area = ui.available_rect_before_wrap();
    let (row, response) = ui.allocate_exact_size(area.size(), egui::Sense::hover());
    let x = |value: f64| row.left() + (row.width() - VALUE_WIDTH).max(1.0) * (value / longest.max(1e-9)) as f32;
    let bar = Rect::from_min_max(
        pos2(row.left(), row.top() + theme::GRID),
        pos2(x(candidate.throughput_per_sec), row.bottom() - theme::GRID),
    );
    let paint = Paint::plain(theme::series_color(0, ui.visuals().dark_mode));
    paint.bar_of(ui, candidate.interval.is_some(), bar);
    let mut end = bar.right();
    if let Some([low, high]) = candidate.interval {
        interval_ui(ui, row.center().y, x(low), x(high));
        end = end.max(x(high));
    }
    let value = three_digits(candidate.throughput_per_sec);
    let says = match candidate.interval {
        Some(interval) => estimated_in_words(candidate.throughput_per_sec, interval),
        None => value.clone(),
    };
    response
        .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, format!("{}: {says}", candidate.gpu.name)));
    let at = pos2(end + 1.5 * theme::GRID, row.center().y);
    let font = TextStyle::Small.resolve(ui.style());
    ui.painter().text(at, Align2::LEFT_CENTER, value, font, ui.visuals().strong_text_color());
    response.on_hover_text(says);
}

/// Its price, which can be changed; one at launch is pale, since it is a hint.
fn price_ui(ui: &mut egui::Ui, gpu: &Gpu, price: Option<&Price>, buyer: &mut Buyer) {
    let name = &gpu.name;
    let hint = price.map(|price| match &price.basis {
        PriceBasis::Given => text::price_given().to_owned(),
        PriceBasis::AtLaunch(month) => text::price_at_launch(month.as_deref().unwrap_or("–")),
    });
    let is_hint = price.is_none_or(|price| price.basis != PriceBasis::Given);
    let mut amount = price.map_or(0.0, |price| price.amount);
    // Another GPU may take this place while the price is changed.
    ui.push_id(name, |ui| {
        if is_hint {
            ui.visuals_mut().override_text_color = Some(ui.visuals().weak_text_color());
        }
        let drag = egui::DragValue::new(&mut amount).range(0.0..=1e7).speed(5.0).max_decimals(0);
        let drag =
            drag.custom_formatter(|amount, _| if amount > 0.0 { format!("{amount:.0}") } else { "–".to_owned() });
        let response = ui.add(drag).accessible_name(text::price_of(name));
        if response.changed() {
            if amount > 0.0 {
                buyer.prices.insert(name.clone(), amount);
            } else {
                buyer.prices.remove(name);
            }
        }
        response.on_hover_text(hint.unwrap_or_else(|| text::price_unknown().to_owned()));
    });
}

/// Where its numbers come from: in a word, at length where it is pointed at.
fn evidence_ui(ui: &mut egui::Ui, candidate: &Candidate) {
    let words = candidate.figures.iter().map(|figure| match &figure.basis {
        Basis::Known { from, software, source } => {
            let word = match from {
                KnownFrom::Measured => text::measured_here(),
                KnownFrom::File => text::from_file(),
                KnownFrom::Published => text::published_figure(),
            };
            (word, format!("{}: {software}, {source}", three_digits(figure.throughput_per_sec)))
        }
        Basis::Estimated { interval, basis } => {
            (text::estimated(), format!("{}; {basis}", estimated_in_words(figure.throughput_per_sec, *interval)))
        }
    });
    let all: Vec<(&str, String)> = words.collect();
    let mut short: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
    short.dedup();
    let long: Vec<&str> = all.iter().map(|(_, long)| long.as_str()).collect();
    ui.add(egui::Label::new(short.join(", ")).truncate()).on_hover_text(long.join("\n"));
}
