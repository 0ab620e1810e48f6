//! What the window writes for others: the shown records as a table or result file, the chart as a picture.

use std::collections::BTreeSet;
use std::path::PathBuf;

use compute::bench::export::{Format, Source as Named, records};
use compute::bench::record::ResultFile;
use compute::bench::store;

use super::action::Effect;
use super::state::{Export, NoticeKind, State, Tab};
use super::text;
use crate::chart::series::{RecordRef, Source, SourceId};
use crate::chart::throughput::Bar;

/// What writes an export.
pub(super) fn export(state: &mut State, kind: Export, path: PathBuf) -> Vec<Effect> {
    if matches!(kind, Export::Png | Export::Svg) {
        return vec![Effect::Picture { kind, path }];
    }
    let shown = shown(state);
    if shown.is_empty() {
        state.notify(NoticeKind::Info, text::nothing_to_export());
        return Vec::new();
    }
    let content = match kind {
        Export::Csv => table(state, &shown, Format::Csv).into_bytes(),
        Export::Markdown => table(state, &shown, Format::Markdown).into_bytes(),
        _ => match serde_json::to_vec_pretty(&result_file(state, &shown)) {
            Ok(content) => content,
            Err(error) => {
                state.notify(NoticeKind::Problem, text::not_exported(&path, &error.to_string()));
                return Vec::new();
            }
        },
    };
    vec![Effect::Write { path, content }]
}

/// The records behind what the page shows: the bars, the curves, or the selected rows, all of them where none is.
fn shown(state: &State) -> Vec<RecordRef> {
    match state.tab {
        Tab::Throughput | Tab::Memory => {
            state.chart.groups.iter().flat_map(|group| &group.bars).filter_map(Bar::record).collect()
        }
        Tab::Efficiency => {
            let curves = state.efficiency.curves.iter();
            curves
                .flat_map(|curve| curve.points.iter().map(|point| point.record).chain(curve.edge.map(|e| e.1)))
                .collect()
        }
        Tab::Table => selected_rows(state),
        // The ranking is no record of anybody's; it is exported as a picture.
        Tab::Decide => Vec::new(),
    }
}

/// The table's selected rows, all of them where none is.
pub(super) fn selected_rows(state: &State) -> Vec<RecordRef> {
    let is_all = state.selected_rows.is_empty();
    state.rows.iter().copied().filter(|row| is_all || state.selected_rows.contains(row)).collect()
}

/// Records as a table in a format for people or programs.
pub(super) fn table(state: &State, shown: &[RecordRef], format: Format) -> String {
    let parts: Vec<(Source<'_>, ResultFile)> = parts(state, shown);
    let named: Vec<Named<'_>> = parts.iter().map(|(source, file)| Named { name: source.name, file }).collect();
    records(&named).render(format)
}

/// Records of several sources as one file, each device once.
fn result_file(state: &State, shown: &[RecordRef]) -> ResultFile {
    let mut parts = parts(state, shown).into_iter().map(|(_, file)| file);
    let Some(mut all) = parts.next() else { return ResultFile::default() };
    for file in parts {
        all.edited |= file.edited;
        for mut record in file.records {
            let device = record.device.and_then(|index| file.devices.get(index));
            record.device = device.map(|device| store::index_in(&mut all, device, &file.host));
            all.records.push(record);
        }
    }
    all
}

/// What is shown of each source, as a file of its own.
fn parts<'a>(state: &'a State, shown: &[RecordRef]) -> Vec<(Source<'a>, ResultFile)> {
    let mut ids: Vec<SourceId> = shown.iter().map(|record| record.source).collect();
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    ids.into_iter()
        .filter_map(|id| {
            let source = state.library.source(id)?;
            let own = shown.iter().filter(|record| record.source == id);
            let records = own.filter_map(|record| source.file.records.get(record.index).cloned()).collect();
            let file = ResultFile { records, ..without_records(source.file) };
            Some((source, file))
        })
        .collect()
}

/// A file without its records, and so without their digest.
fn without_records(file: &ResultFile) -> ResultFile {
    let ResultFile { schema, created, program, host, devices, records: _, digest: _, edited, extra } = file;
    ResultFile {
        schema: schema.clone(),
        created: created.clone(),
        program: program.clone(),
        host: host.clone(),
        devices: devices.clone(),
        records: Vec::new(),
        digest: None,
        edited: *edited,
        extra: extra.clone(),
    }
}
