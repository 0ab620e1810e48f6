//! Texts with something in them.

use std::path::Path;
use std::time::Duration;

use compute::bench::event::Phase;
use compute::bench::record::{Clock, Status};
use compute::bench::spec::RunSpec;
use compute::bench::suite::Suite;
use compute::plan::Pass;

use super::labels::{no_number, save_as};
use super::{Language, pick, spoken};
use crate::chart::number::{full, three_digits};
use crate::chart::series::Series;
use crate::chart::throughput::{Caution, Sort, Unit};

/// The sentence in the language of this thread; what is in the other one is not formatted.
macro_rules! say {
    ($english:literal, $chinese:literal) => {
        match spoken() {
            Language::English => format!($english),
            Language::Chinese => format!($chinese),
        }
    };
}

/// Label of the button that starts a suite.
pub(in crate::gui) fn run_suite(suite: Suite) -> &'static str {
    match suite {
        Suite::Quick => pick("Run quick test", "运行快速测试"),
        Suite::Standard => pick("Run standard suite", "运行标准测试集"),
        Suite::Sweep => pick("Run minibatch sweep", "运行小批量扫描"),
    }
}

/// Label of the button in an empty window.
pub(in crate::gui) fn run_quick_on(devices: &[String]) -> String {
    let (suite, devices) = (run_suite(Suite::Quick), devices.join(", "));
    say!("{suite} on {devices}", "在 {devices} 上{suite}")
}

/// What a suite measures.
pub(in crate::gui) fn suite_hint(suite: Suite) -> &'static str {
    match suite {
        Suite::Quick => pick(
            "Two networks, both passes, minibatch 16: about a minute on a GPU.",
            "两个网络，两个阶段，小批量 16：在 GPU 上约一分钟。",
        ),
        Suite::Standard => pick(
            "Eight networks, both passes, f32 and the best half precision, minibatch 64.",
            "八个网络，两个阶段，f32 和最佳半精度，小批量 64。",
        ),
        Suite::Sweep => pick(
            "Three networks, both passes, minibatch 1, 2, 4 … up to where memory runs out.",
            "三个网络，两个阶段，小批量 1、2、4……直到显存用尽。",
        ),
    }
}

pub(in crate::gui) fn pass(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => pick("Inference", "推理"),
        Pass::ForwardBackward => pick("Training", "训练"),
    }
}

pub(in crate::gui) fn pass_hint(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => pick("The forward pass.", "前向传播。"),
        Pass::ForwardBackward => {
            pick("Forward and backward pass, without the update of the weights.", "前向和反向传播，不含权重更新。")
        }
    }
}

/// An engine, or a framework that another program measured, by its name in files.
pub(in crate::gui) fn engine(name: &str) -> &str {
    match name {
        "cuda" => "CUDA",
        "wgsl" => "WGSL",
        "cpu" => pick("CPU reference", "CPU 参考实现"),
        "pytorch" => "PyTorch",
        other => other,
    }
}

pub(in crate::gui) fn phase(phase: Phase) -> &'static str {
    pick(
        phase.label(),
        match phase {
            Phase::Open => "正在打开设备",
            Phase::Load => "正在加载",
            Phase::Verify => "正在验证",
            Phase::WarmUp => "正在预热",
            Phase::Measure => "正在测量",
            Phase::Profile => "正在分析",
        },
    )
}

pub(in crate::gui) fn status(status: Status) -> &'static str {
    pick(
        status.label(),
        match status {
            Status::Ok => "成功",
            Status::OutOfMemory => "显存不足",
            Status::ExceedsDeviceLimit => "超出设备限制",
            Status::NotSupported => "不支持",
            Status::Failed => "失败",
            Status::Crashed => "崩溃",
            Status::TimedOut => "超时",
            Status::Cancelled => "已取消",
            Status::Incorrect => "结果不正确",
        },
    )
}

pub(in crate::gui) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::SamplesPerSec => pick("samples/s", "样本/秒"),
        Unit::MsPerIteration => pick("ms/iteration", "毫秒/迭代"),
        Unit::MsPerSample => pick("ms/sample", "毫秒/样本"),
        Unit::TeraFlopPerSec => "TFLOP/s",
        Unit::PeakShare => pick("% of peak", "峰值占比 %"),
        Unit::SamplesPerJoule => pick("samples/J", "样本/焦耳"),
    }
}

/// The chart's question.
pub(in crate::gui) fn question(unit: Unit) -> &'static str {
    match unit {
        Unit::SamplesPerSec => pick("How many images per second?", "每秒多少张图像？"),
        Unit::MsPerIteration => pick("How many milliseconds for one minibatch?", "一个小批量需要多少毫秒？"),
        Unit::MsPerSample => pick("How many milliseconds for one image?", "一张图像需要多少毫秒？"),
        Unit::TeraFlopPerSec => pick("How much arithmetic per second?", "每秒完成多少运算？"),
        Unit::PeakShare => pick("What share of the device's peak?", "达到设备峰值的多少？"),
        Unit::SamplesPerJoule => pick("How many images per joule?", "每焦耳多少张图像？"),
    }
}

/// What the chart shows, below its question.
pub(in crate::gui) fn subtitle(shown: Pass, minibatch: usize, which: Unit, baseline: Option<&str>) -> String {
    let (shown, unit) = (pass(shown), unit(which));
    let better = match (which.is_more_better(), baseline.is_some()) {
        (true, _) | (_, true) => pick("longer is better", "越长越好"),
        (false, false) => pick("shorter is better", "越短越好"),
    };
    match baseline {
        Some(baseline) => say!(
            "{shown}, minibatch {minibatch}, speed relative to {baseline}; {better}. Whiskers: 95% confidence.",
            "{shown}，小批量 {minibatch}，速度相对于 {baseline}；{better}。误差线：95% 置信区间。"
        ),
        None => say!(
            "{shown}, minibatch {minibatch}, in {unit}; {better}. Whiskers: 95% confidence.",
            "{shown}，小批量 {minibatch}，单位 {unit}；{better}。误差线：95% 置信区间。"
        ),
    }
}

pub(in crate::gui) fn order(sort: Sort) -> &'static str {
    match sort {
        Sort::Suite => super::sort_suite(),
        Sort::Name => super::sort_name(),
        Sort::Value => super::sort_value(),
        Sort::Parameters => super::sort_parameters(),
    }
}

/// A series without its source.
pub(in crate::gui) fn series(series: &Series) -> String {
    let device = series.device.as_deref().unwrap_or(pick("device not opened", "设备未打开"));
    let id = series.device_id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    format!("{device}{id} · {} · {}", engine(&series.engine), series.precision)
}

/// A series with its source.
pub(in crate::gui) fn series_of(source: &str, which: &str) -> String {
    format!("{source}: {which}")
}

/// What stands in place of a bar.
pub(in crate::gui) fn mark(which: Status) -> &'static str {
    match which {
        Status::Ok => no_number(),
        _ => status(which),
    }
}

/// A bar for those who don't see it.
pub(in crate::gui) fn bar(model: &str, series: &str, says: &str) -> String {
    format!("{model}, {series}: {says}")
}

/// A value with its unit; without unit where it is a ratio.
pub(in crate::gui) fn value(value: f64, which: Option<Unit>) -> String {
    match which {
        Some(which) => format!("{} {}", three_digits(value), unit(which)),
        None => format!("{} ×", three_digits(value)),
    }
}

/// A value with its unit and all digits.
pub(in crate::gui) fn full_value(value: f64, interval: Option<[f64; 2]>, which: Option<Unit>) -> String {
    let unit = which.map_or("×", unit);
    let value = full(value);
    let Some([low, high]) = interval.map(|bounds| bounds.map(full)) else { return format!("{value} {unit}") };
    say!("{value} {unit} (95% confidence: {low} to {high})", "{value} {unit}（95% 置信区间：{low} 至 {high}）")
}

pub(in crate::gui) fn caution(caution: &Caution) -> String {
    match caution {
        Caution::DefinitionsDiffer { model } => say!(
            "The bars of {model} were measured on different definitions of it and can't be compared.",
            "{model} 的结果条基于不同的模型定义，不能相互比较。"
        ),
    }
}

pub(in crate::gui) fn run(spec: &RunSpec) -> String {
    let (model, pass, precision, minibatch) = (spec.model, pass(spec.pass), spec.precision, spec.minibatch);
    say!(
        "{model} · {pass} · {precision} · minibatch {minibatch}",
        "{model} · {pass} · {precision} · 小批量 {minibatch}"
    )
}

/// A run and what it runs on.
pub(in crate::gui) fn run_on(spec: &RunSpec) -> String {
    format!("{} · {} · {}", run(spec), spec.device, engine(spec.engine.name()))
}

pub(in crate::gui) fn run_place(place: usize, of: usize) -> String {
    say!("Run {place} of {of}", "第 {place} 项，共 {of} 项")
}

pub(in crate::gui) fn more(count: usize) -> String {
    say!("and {count} more", "以及另外 {count} 项")
}

pub(in crate::gui) fn iterations(done: usize, of: Option<usize>) -> String {
    match of {
        Some(of) => say!("iteration {done} of {of}", "第 {done} 次迭代，共 {of} 次"),
        None => say!("iteration {done}", "第 {done} 次迭代"),
    }
}

/// A duration, no more exact than it is known.
fn about(time: Duration) -> String {
    let secs = time.as_secs();
    let (tens, minutes, hours) = (secs.div_ceil(10) * 10, secs.div_ceil(60), secs as f64 / 3600.0);
    match secs {
        0..60 => say!("about {tens} s", "约 {tens} 秒"),
        60..5400 => say!("about {minutes} min", "约 {minutes} 分钟"),
        _ => say!("about {hours:.1} h", "约 {hours:.1} 小时"),
    }
}

pub(in crate::gui) fn time_left(left: Duration) -> String {
    if left.as_secs() < 10 {
        return pick("a few seconds left", "还剩几秒").to_owned();
    }
    let about = about(left);
    say!("{about} left", "还剩{about}")
}

/// How long a choice of runs will take at most.
pub(in crate::gui) fn estimate(runs: usize, longest: Duration) -> String {
    let longest = about(longest);
    say!("{runs} runs, {longest} at most", "{runs} 项运行，最多{longest}")
}

pub(in crate::gui) fn throughput(per_sec: f64) -> String {
    value(per_sec, Some(Unit::SamplesPerSec))
}

/// What came of a queue.
pub(in crate::gui) fn run_summary(tally: &[(Status, usize)], n_runs: usize) -> String {
    let parts: Vec<String> = tally.iter().map(|(which, count)| format!("{count} {}", status(*which))).collect();
    let parts = parts.join(pick(", ", "，"));
    let runs = if n_runs == 1 { "1 run has".to_owned() } else { format!("{n_runs} runs have") };
    if parts.is_empty() {
        say!("{runs} ended.", "{n_runs} 项运行已结束。")
    } else {
        say!("{runs} ended: {parts}.", "{n_runs} 项运行已结束：{parts}。")
    }
}

pub(in crate::gui) fn not_a_minibatch(word: &str, largest: usize) -> String {
    say!(
        "{word:?} is no minibatch; whole numbers from 1 to {largest} are.",
        "{word:?} 不是有效的小批量，请填写 1 到 {largest} 的整数。"
    )
}

pub(in crate::gui) fn not_saved(reason: &str) -> String {
    let save_as = save_as();
    say!(
        "Results could not be saved: {reason}. They are kept in memory; “{save_as}” tries another place.",
        "结果无法保存：{reason}。结果保留在内存中；可用“{save_as}”换一个位置。"
    )
}

pub(in crate::gui) fn broken(what: &str) -> String {
    say!("A part of the program stopped unexpectedly: {what}.", "程序的一部分意外停止：{what}。")
}

pub(in crate::gui) fn drawing_failed(reason: &str) -> String {
    say!(
        "The window could not be drawn in full; runs go on and are saved. The system says: {reason}",
        "窗口无法完整绘制；运行会继续并保存。系统提示：{reason}"
    )
}

pub(in crate::gui) fn saved_at(path: &Path) -> String {
    let path = path.display();
    say!("Saved to {path}", "已保存到 {path}")
}

pub(in crate::gui) fn exported_to(path: &Path) -> String {
    let path = path.display();
    say!("Exported to {path}", "已导出到 {path}")
}

pub(in crate::gui) fn not_exported(path: &Path, reason: &str) -> String {
    let path = path.display();
    say!("{path} could not be written: {reason}.", "无法写入 {path}：{reason}。")
}

pub(in crate::gui) fn settings_set_aside(reason: &str, at: &Path) -> String {
    let at = at.display();
    say!(
        "The settings of the last session could not be read ({reason}); they were set aside as {at}.",
        "无法读取上次会话的设置（{reason}），已另存为 {at}。"
    )
}

pub(in crate::gui) fn search_failed(reason: &str) -> String {
    say!("Devices could not be listed: {reason}.", "无法列出设备：{reason}。")
}

pub(in crate::gui) fn remove_file(name: &str) -> String {
    say!("Remove {name} from the library", "从结果库中移除 {name}")
}

pub(in crate::gui) fn decide_subtitle(needed: &str, count: usize) -> String {
    say!(
        "The work needs {needed} by its plans. {count} GPUs meet every condition. Hatched: estimated, with its 90% interval.",
        "按计划需要 {needed}。{count} 块 GPU 满足全部条件。斜线表示估算值及其 90% 区间。"
    )
}

pub(in crate::gui) fn left_out_by_price(count: usize) -> String {
    say!("{count} more without a known price or above the budget", "另有 {count} 块价格未知或超出预算")
}

pub(in crate::gui) fn share_of(model: &str) -> String {
    say!("Share of {model}", "{model} 的比例")
}

pub(in crate::gui) fn price_of(gpu: &str) -> String {
    say!("Price of {gpu}", "{gpu} 的价格")
}

pub(in crate::gui) fn price_at_launch(month: &str) -> String {
    say!(
        "Price at launch in {month}, a hint: nobody may ask for it today. Drag or click to give yours.",
        "{month} 的首发价格，仅供参考。拖动或点击可填写您的价格。"
    )
}

pub(in crate::gui) fn recalled(fields: &str) -> String {
    say!("From general knowledge, not from a source at hand: {fields}.", "来自一般常识，无直接出处：{fields}。")
}

pub(in crate::gui) fn estimated_between(value: &str, low: &str, high: &str) -> String {
    say!("about {value}, estimated; 90% interval {low} to {high}", "约 {value}（估算），90% 区间 {low} 至 {high}")
}

pub(in crate::gui) fn reading(done: usize, all: usize) -> String {
    say!("Reading files: {done} of {all}", "正在读取文件：{done} / {all}")
}

pub(in crate::gui) fn no_published(reason: &str) -> String {
    say!("The published results can't be shown: {reason}.", "无法显示已发表的结果：{reason}。")
}

pub(in crate::gui) fn doubtful(reason: &str) -> String {
    say!("This figure is doubtful and takes no part in rankings: {reason}.", "此数据可疑，不参与排名：{reason}。")
}

pub(in crate::gui) fn edit(series: &str) -> String {
    let edit = super::edit_series();
    say!("{edit}: {series}", "{edit}：{series}")
}

pub(in crate::gui) fn color(number: usize) -> String {
    let color = super::series_color();
    format!("{color} {number}")
}

pub(in crate::gui) fn dismiss(text: &str) -> String {
    say!("Dismiss: {text}", "关闭提示：{text}")
}

pub(in crate::gui) fn verification(is_passed: bool, error: Option<f64>, tolerance: f64) -> String {
    let verdict = if is_passed { pick("passed", "通过") } else { pick("failed", "未通过") };
    let error = error.map(|error| say!(", error {error:.1e}", "，误差 {error:.1e}")).unwrap_or_default();
    say!("{verdict}{error}, tolerance {tolerance:.0e}", "{verdict}{error}，容差 {tolerance:.0e}")
}

pub(in crate::gui) fn range_ms(low: f64, high: f64) -> String {
    let (low, high) = (full(low), full(high));
    say!("{low} to {high} ms", "{low} 至 {high} ms")
}

pub(in crate::gui) fn throttled(reason: &str, share: f64) -> String {
    let percent = share * 100.0;
    say!("{reason}, {percent:.0} % of the time", "{reason}，占时间的 {percent:.0} %")
}

pub(in crate::gui) fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Device => pick("device", "设备"),
        Clock::Host => pick("host", "主机"),
    }
}

/// What a difference to the baseline says.
pub(in crate::gui) fn difference(what: &str, here: &str, there: &str) -> String {
    say!("{what}: {here}, there {there}", "{what}：此处 {here}，基准 {there}")
}

/// The smallest minibatch that is nearly as good as the best one.
pub(in crate::gui) fn enough(series: &str, minibatch: usize, efficiency: f64, best: usize) -> String {
    let percent = efficiency * 100.0;
    say!(
        "{series}: minibatch {minibatch} reaches {percent:.0} % of the best throughput, at {best}.",
        "{series}：小批量 {minibatch} 达到最佳吞吐量（小批量 {best}）的 {percent:.0} %。"
    )
}

/// Where throughput falls although the minibatch grows.
pub(in crate::gui) fn bend(minibatch: usize, loss: f64) -> String {
    let percent = loss * 100.0;
    say!(
        "Beyond {minibatch} each sample takes longer again, by up to {percent:.0} %.",
        "超过 {minibatch} 后每个样本的用时又变长，最多 {percent:.0} %。"
    )
}

/// Where memory ran out.
pub(in crate::gui) fn edge(minibatch: usize) -> String {
    say!("Memory runs out at {minibatch}.", "小批量 {minibatch} 时显存不足。")
}

/// What the samples that a larger minibatch adds cost.
pub(in crate::gui) fn marginal(ms: f64) -> String {
    let ms = three_digits(ms);
    say!("each added sample costs {ms} ms", "每增加一个样本需 {ms} 毫秒")
}

pub(in crate::gui) fn efficiency_subtitle(model: &str, shown: Pass) -> String {
    let shown = pass(shown);
    say!(
        "{model}, {shown}. Bars: throughput at a minibatch ÷ the series' best. Below: time of one sample.",
        "{model}，{shown}。条形：该小批量的吞吐量 ÷ 该系列最佳吞吐量。下方：每样本用时。"
    )
}

pub(in crate::gui) fn needs(bytes: &str, minibatch: usize) -> String {
    say!("{bytes} at minibatch {minibatch}", "小批量 {minibatch} 时需 {bytes}")
}

pub(in crate::gui) fn rows(shown: usize, of: usize, selected: usize) -> String {
    say!("{shown} of {of}, {selected} selected", "{shown} / {of}，已选 {selected}")
}

/// A start that could not open a window.
pub(in crate::gui) fn no_window(reason: &str) -> String {
    say!(
        "Batchmark could not open its window: {reason}\n\nIt can measure without a window; on a terminal, type:\n    batchmark run --suite quick\nWhere the graphics driver is at fault, the processor can draw the window:\n    LIBGL_ALWAYS_SOFTWARE=1 WGPU_BACKEND=gl batchmark",
        "Batchmark 无法打开窗口：{reason}\n\n没有窗口也可以测量，请在终端中输入：\n    batchmark run --suite quick\n如果是显卡驱动的问题，可以由处理器绘制窗口：\n    LIBGL_ALWAYS_SOFTWARE=1 WGPU_BACKEND=gl batchmark"
    )
}

/// A window whose device was lost.
pub(in crate::gui) fn drawing_lost(reason: &str) -> String {
    say!("the device that draws it was lost ({reason})", "绘制窗口的设备已丢失（{reason}）")
}

/// A window that was open and could not go on.
pub(in crate::gui) fn window_stopped(reason: &str) -> String {
    say!(
        "Batchmark's window stopped unexpectedly: {reason}\n\nResults of finished runs are saved.",
        "Batchmark 的窗口意外停止：{reason}\n\n已完成运行的结果已保存。"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_no_more_exact_than_it_is_known() {
        let cases = [
            (3, "a few seconds left"),
            (11, "about 20 s left"),
            (61, "about 2 min left"),
            (5399, "about 90 min left"),
            (9000, "about 2.5 h left"),
        ];
        for (secs, expected) in cases {
            assert_eq!(time_left(Duration::from_secs(secs)), expected);
        }
    }

    #[test]
    fn a_start_without_window_names_the_command_line() {
        assert!(no_window("no display").contains("batchmark run --suite quick"));
    }

    #[test]
    fn a_summary_names_what_went_wrong() {
        let text = run_summary(&[(Status::Ok, 3), (Status::OutOfMemory, 1)], 4);
        assert_eq!(text, "4 runs have ended: 3 ok, 1 out of memory.");
        assert_eq!(run_summary(&[(Status::Ok, 1)], 1), "1 run has ended: 1 ok.");
    }
}
