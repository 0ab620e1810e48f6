//! What the window does, by its labels.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use batchmark::gui::Language;
use batchmark::gui::action::Effect;
use batchmark::gui::background::Background;
use batchmark::gui::drawing::DrawingFaults;
use batchmark::gui::library::Content;
use batchmark::gui::state::{Export, Tab};
use compute::bench::event::Phase;
use compute::bench::supervisor::{Update, WorkerCommand};
use compute::estimate::{Evidence, Fit};
use eframe::wgpu;

use super::*;

#[test]
fn a_window_opens_before_any_device_was_found() {
    let mut window = open(State::default());
    window.get_by_label("Looking for GPUs…");
    assert!(!is_enabled(&window, "Run quick test"));
    receive(&mut window, Message::Devices(Err("the worker process crashed".into())));
    window.get_by_label("Devices could not be listed: the worker process crashed.");
    assert!(window.query_by_label("Looking for GPUs…").is_none());
}

/// R32: devices that take long to be listed do not hold up the window.
#[cfg(unix)]
#[test]
fn the_first_frame_does_not_wait_for_devices() {
    const DELAY: Duration = Duration::from_secs(10);
    // A worker that says nothing while the folder is there, for the delay at most.
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let script = "i=0; while [ -e \"$0\" ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done";
    let arguments = vec!["-c".into(), script.into(), folder.path().to_string_lossy().into_owned()];
    let worker = WorkerCommand { program: "sh".into(), arguments };

    let began = Instant::now();
    let mut window = Harness::builder().with_size(SIZE).build_eframe(|context| {
        Window::new(&context.egui_ctx, Background::new(context.egui_ctx.clone(), worker, None), Ok(None), Vec::new())
    });
    window.step();
    window.get_by_label("Looking for GPUs…");
    assert!(began.elapsed() < DELAY, "the first frame took {:?}", began.elapsed());

    drop(folder);
    while window.query_by_label_contains("Devices could not be listed").is_none() {
        assert!(began.elapsed() < 6 * DELAY, "the end of the worker goes unnoticed");
        std::thread::sleep(Duration::from_millis(20));
        window.step();
    }
}

/// R27: a software adapter is marked and not chosen. R26: what is chosen is in sight, and can be another.
#[test]
fn devices_are_listed_with_what_is_wrong_with_them() {
    let mut window = open(State::default());
    let mut broken = listing("GTX 480", DeviceKind::Discrete);
    broken.unavailable = Some("the driver is too old".into());
    let found = vec![broken, listing("llvmpipe", DeviceKind::Software), listing("UHD 630", DeviceKind::Integrated)];
    receive(&mut window, Message::Devices(Ok(found)));
    window.get_by_label("the driver is too old");
    window.get_by_label("software");
    assert!(!is_enabled(&window, "GTX 480 · WGSL"));
    assert!(!is_enabled(&window, "llvmpipe · WGSL"));
    assert!(is_enabled(&window, "UHD 630 · WGSL"));
    assert!(is_enabled(&window, "Run quick test"), "the integrated GPU is chosen to begin with");

    click(&mut window, "UHD 630 · WGSL");
    assert!(!is_enabled(&window, "Run quick test"));
    window.get_all_by_label("No device is chosen.").next().expect("the reason is said");
}

/// R26: of several GPUs the one with its own memory is chosen, whatever the system lists first.
#[test]
fn the_discrete_gpu_is_chosen_to_begin_with() {
    let mut window = open(State::default());
    let found = vec![listing("UHD 630", DeviceKind::Integrated), listing("GTX 1660", DeviceKind::Discrete)];
    receive(&mut window, Message::Devices(Ok(found)));
    let toggled = |name: &str| window.get_by_label(name).accesskit_node().toggled();
    assert_eq!(toggled("GTX 1660 · WGSL"), Some(egui::accesskit::Toggled::True));
    assert_eq!(toggled("UHD 630 · WGSL"), Some(egui::accesskit::Toggled::False));
}

/// R27: software Vulkan is no GPU unless the user says so.
#[test]
fn a_software_adapter_alone_runs_only_when_it_is_allowed() {
    let mut window = open(State::default());
    receive(&mut window, Message::Devices(Ok(vec![listing("llvmpipe", DeviceKind::Software)])));
    assert!(!is_enabled(&window, "Run quick test"));
    click(&mut window, "Allow software adapters");
    click(&mut window, "llvmpipe · WGSL");
    assert!(is_enabled(&window, "Run quick test"));
}

#[test]
fn bars_and_outcomes_can_be_read_aloud() {
    let mut window = open(with_files());
    window.get_by_label("alexnet, anna-4090.json: RTX 4090 · WGSL · f32: 10\u{202f}300 samples/s");
    window.get_by_label("resnet50, lab.json: L40S · WGSL · f32: 696 samples/s");
    for mark in
        ["vgg16, lab.json: L40S · WGSL · f16: out of memory", "resnet50, lab.json: L40S · WGSL · f16: not supported"]
    {
        window.get_by_label(mark);
    }
    click(&mut window, "Unit");
    click(&mut window, "ms/iteration");
    window.get_by_label("resnet50, lab.json: L40S · WGSL · f32: 91.9 ms/iteration");
    window.get_by_label("How many milliseconds for one minibatch?");
}

#[test]
fn bars_are_put_in_proportion_and_in_order() {
    let mut window = open(with_files());
    click(&mut window, "Relative to");
    let named = window.get_all_by_label("anna-4090.json: RTX 4090 · WGSL · f32");
    let offered = named.into_iter().find(|node| node.accesskit_node().role() == egui::accesskit::Role::Button);
    offered.expect("the series is offered").click();
    window.run();
    window.get_by_label("alexnet, lab.json: L40S · WGSL · f32: 0.769 ×");
    window.get_by_label("vgg16, lab.json: L40S · WGSL · f16: out of memory");
    window.get_by_label_contains("speed relative to anna-4090.json");
    click(&mut window, "Relative to");
    click(&mut window, "nothing (absolute)");
    click(&mut window, "Logarithmic");
    click(&mut window, "Order");
    click(&mut window, "by name");
    let models: Vec<String> = window.state().state().chart.groups.iter().map(|group| group.model.clone()).collect();
    assert_eq!(models, ["alexnet", "googlenet", "resnet50", "vgg16"]);
}

/// R33, R34: what a series is called and which color it has is the user's.
#[test]
fn a_series_is_named_and_made_the_baseline_from_its_color() {
    let mut window = open(with_files());
    click(&mut window, "Name, color, baseline: RTX 4090 · WGSL · f32");
    type_into(&mut window, "Name in charts", "Anna");
    click(&mut window, "Color 7");
    click(&mut window, "Compare all with this");
    window.get_by_label("alexnet, Anna: 1.00 ×");
    let state = window.state().state();
    let series = state.settings.baseline.clone().expect("it is the baseline");
    assert_eq!(state.library.color(&series), 6);
}

#[test]
fn a_sweep_is_read_out_in_words() {
    let mut window = open(with_files());
    click(&mut window, "Minibatch efficiency");
    window.get_by_label_contains("No model was measured at several minibatches");
    let mut window = open(sweep());
    click(&mut window, "Minibatch efficiency");
    window.get_by_label(
        "RTX 4090 · WGSL · f32: minibatch 4 reaches 100 % of the best throughput, at 4. Beyond 4 each sample takes longer \
         again, by up to 5 %. Memory runs out at 16.",
    );
    window.get_by_label("minibatch 2, RTX 4090 · WGSL · f32: 80 %".replace("minibatch", "Minibatch").as_str()).click();
    window.run();
    window.get_by_label("Details");
}

#[test]
fn memory_is_asked_without_running() {
    let mut state = State::default();
    let mut small = listing("GTX 1050", DeviceKind::Discrete);
    small.device.memory_bytes = Some(2 << 30);
    state.receive(Message::Devices(Ok(vec![small])));
    let mut window = open(state);
    click(&mut window, "Memory");
    window.get_by_label_contains("vgg16, 2.18 GiB at minibatch 64: GTX 1050 (2.00 GiB): does not fit");
    window.get_by_label_contains("alexnet, 329 MiB at minibatch 64: GTX 1050 (2.00 GiB): fits");
    click(&mut window, "Training");
    window.get_by_label_contains("vgg_a, 2.75 GiB at minibatch 64: GTX 1050 (2.00 GiB): does not fit");
}

#[test]
fn the_table_is_searched_sorted_and_copied() {
    let mut window = open(with_files());
    click(&mut window, "Table");
    window.get_by_label("16 of 16, 0 selected");
    type_into(&mut window, "Search", "l40s f32");
    window.get_by_label("4 of 16, 0 selected");
    click(&mut window, "samples/s");
    let rows = window.state().state().rows.clone();
    let models =
        rows.iter().map(|row| window.state().state().library.record(*row).expect("it is there").1.model.clone());
    assert_eq!(models.collect::<Vec<_>>(), ["alexnet", "resnet50", "vgg16", "googlenet"], "no number comes last");
    click(&mut window, "Select all");
    window.get_by_label("4 of 16, 4 selected");
    window.get_by_label("Copy as Markdown").click();
    // A click takes a frame, what comes of it another.
    let copied = (0..4).find_map(|_| {
        window.step();
        window.output().platform_output.commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        })
    });
    let copied = copied.expect("something was copied");
    assert!(copied.lines().count() == 6 && copied.contains("| alexnet"), "{copied}");
}

/// What the window says in one language it says in the other, at once and everywhere but in names and remarks.
#[test]
fn the_language_changes_at_once() {
    let mut window = open(State::default());
    window.get_by_label("Looking for GPUs…");
    let look = batchmark::gui::state::Look { language: Language::Chinese, ..window.state().state().look };
    let context = window.ctx.clone();
    // Without a font for it the harness refuses to draw; what is said is known all the same.
    window.state_mut().act(&context, Action::Look(look));
    let refusal = window.state().state().run_refusal();
    assert_eq!(refusal, Some("仍在查找设备。"));
    let look = batchmark::gui::state::Look { language: Language::English, ..look };
    window.state_mut().act(&context, Action::Look(look));
    assert_eq!(window.state().state().run_refusal(), Some("Devices are still being looked for."));
}

#[test]
fn exports_are_written_where_the_user_says() {
    let mut state = with_files();
    let write = |state: &mut State, export| {
        let effects = state.apply(Action::ExportTo(export, "/elsewhere/chart".into()));
        match effects.into_iter().next() {
            Some(Effect::Write { content, .. }) => String::from_utf8(content).expect("a text"),
            other => panic!("{other:?}"),
        }
    };
    assert!(write(&mut state, Export::Csv).lines().count() == 17, "a header and every bar");
    assert!(write(&mut state, Export::Markdown).starts_with('|'));
    let together: ResultFile = serde_json::from_str(&write(&mut state, Export::Results)).expect("a result file");
    assert_eq!((together.records.len(), together.devices.len()), (16, 2), "each device once");
    assert_eq!(together.devices[together.records[15].device.expect("it has one")].name, "L40S");
    if let Content::Loaded(loaded) = &mut state.library.files[1].content {
        loaded.file.host.cpu = "another processor".into();
    }
    let together: ResultFile = serde_json::from_str(&write(&mut state, Export::Results)).expect("a result file");
    let hosts = together.devices.iter().map(|device| device.extra.get("host").map(|host| host["cpu"].clone()));
    assert_eq!(hosts.collect::<Vec<_>>(), [None, Some("another processor".into())], "whose device it is stays known");

    let mut window = open(state);
    receive(&mut window, Message::NoExportDialog(Export::Png, "/home/me/chart.png".into()));
    window.get_by_label("Path to save to");
    click(&mut window, "Cancel");
    receive(&mut window, Message::ExportFailed { path: "/full/a.csv".into(), reason: "no space left".into() });
    window.get_by_label("/full/a.csv could not be written: no space left.");
}

#[test]
fn a_file_that_changes_is_read_anew_and_one_that_is_handed_over_is_added() {
    let mut state = with_files();
    let changed = PathBuf::from("/results/lab.json");
    assert_eq!(state.receive(Message::FileChanged(changed.clone())), [Effect::Load(vec![changed])]);
    assert_eq!(state.receive(Message::FileChanged("/results/other.json".into())), []);
    let new = PathBuf::from("/results/new.json");
    let effects = state.receive(Message::HandedOver(vec![new.clone()]));
    assert_eq!(effects, [Effect::Load(vec![new.clone()]), Effect::Focus]);
    assert_eq!(state.recent[0], new);
    assert_eq!(state.receive(Message::HandedOver(Vec::new())), [Effect::Focus], "a second start shows the first");
}

#[test]
fn a_series_that_is_not_shown_leaves_the_chart() {
    let mut window = open(with_files());
    let bar = "alexnet, anna-4090.json: RTX 4090 · WGSL · f32: 10\u{202f}300 samples/s";
    window.get_by_label(bar);
    click(&mut window, "RTX 4090 · WGSL · f32");
    assert!(window.query_by_label(bar).is_none());
    click(&mut window, "Remove lab.json from the library");
    window.get_by_label("alexnet, RTX 4090 · WGSL · f16: 20\u{202f}600 samples/s");
}

#[test]
fn a_pass_without_results_says_so() {
    let mut window = open(with_files());
    click(&mut window, "Training");
    window.get_by_label_contains("No results for this choice");
    click(&mut window, "Inference");
    assert!(window.query_by_label_contains("No results for this choice").is_none());
}

#[test]
fn a_bar_opens_its_details() {
    let mut window = open(with_files());
    click(&mut window, "googlenet, lab.json: L40S · WGSL · f32: crashed");
    window.get_by_label("Details");
    window.get_by_label("the driver says so");
    click(&mut window, "Close details");
    assert!(window.query_by_label("Details").is_none());
}

/// R05: what differs between two machines of one card is named beside the bar.
#[test]
fn differences_to_the_baseline_are_named() {
    let mut state = State::default();
    for (path, version) in [("/results/old.json", "8.9"), ("/results/new.json", "9.14")] {
        let mut loaded = file("RTX 4090", 1.0);
        for record in &mut loaded.file.records {
            record.libraries.insert("cudnn".into(), version.into());
        }
        state.apply(Action::AddFiles(vec![path.into()]));
        state.receive(Message::Loaded { path: path.into(), result: Ok(Box::new(loaded)) });
    }
    state.settings.baseline = Some(state.library.files[0].series[0].clone());
    let mut window = open(state);
    let bar = window.get_by_label_contains("alexnet, new.json: RTX 4090 · WGSL · f32");
    bar.click();
    window.run();
    window.get_by_label("Differences to the baseline");
    window.get_by_label("cudnn: 9.14, there 8.9");
    assert!(window.query_by_label_contains("Device: ").is_none(), "what is equal is not named");
}

#[test]
fn a_queue_is_followed_and_cancelled() {
    let mut window = open(running());
    receive(&mut window, Message::Run(Update::Started { index: 0 }));
    receive(&mut window, Message::Run(Update::Phase { index: 0, phase: Phase::Measure }));
    receive(&mut window, Message::Run(Update::Progress { index: 0, iterations: 40, of: Some(100), latest_ms: 1.0 }));
    window.get_by_label("Run 1 of 4");
    window.get_by_label("measuring, iteration 40 of 100");
    window.get_by_label("Progress of all runs");
    assert!(!is_enabled(&window, "Run quick test"), "one queue at a time");

    click(&mut window, "Cancel current");
    assert!(!is_enabled(&window, "Cancel current"));
    assert!(is_enabled(&window, "Cancel all"));
    click(&mut window, "Cancel all");
    assert!(!is_enabled(&window, "Cancel all"));
    receive(&mut window, Message::RunEnded);
    assert!(window.query_by_label("Cancel all").is_none());
}

#[test]
fn results_of_a_run_stand_beside_the_files_at_once() {
    let mut window = open(running());
    receive(&mut window, Message::Run(Update::Started { index: 1 }));
    let Loaded { file, .. } = file("RTX 4090", 2.0);
    let (record, device) = (Box::new(file.records[6].clone()), Some(Box::new(file.devices[0].clone())));
    receive(&mut window, Message::Run(Update::Finished { index: 1, record, device }));
    window.get_by_label("resnet50, This machine: RTX 4090 · WGSL · f32: 453 samples/s");
    assert!(is_enabled(&window, "Save as…"));
}

#[test]
fn closing_while_a_run_is_going_asks_once() {
    let mut window = open(running());
    let request = |window: &mut Harness<'_, Window>| {
        let root = window.input_mut().viewports.get_mut(&egui::ViewportId::ROOT).expect("the window is there");
        root.events.push(egui::ViewportEvent::Close);
        window.step();
        let input = window.input_mut();
        input.viewports.get_mut(&egui::ViewportId::ROOT).expect("the window is there").events.clear();
        window.run();
    };
    request(&mut window);
    window.get_by_label("Runs are still going.");
    click(&mut window, "Keep open");
    assert!(window.query_by_label("Runs are still going.").is_none());

    request(&mut window);
    request(&mut window);
    let commands = &window.output().viewport_output[&egui::ViewportId::ROOT].commands;
    assert!(!commands.contains(&egui::ViewportCommand::CancelClose), "it is asked once, not twice");
}

/// A window on a device of its own, which it is told about.
fn open_on_device(state: State) -> (Harness<'static, Window>, wgpu::Device) {
    let mut device = None;
    let mut window = Harness::builder().with_size(SIZE).wgpu().build_eframe(|context| {
        let drawing = DrawingFaults::default();
        let render = context.wgpu_render_state.as_ref().expect("the harness draws with wgpu");
        drawing.watch(&render.device, &context.egui_ctx);
        device = Some(render.device.clone());
        Window::with_state(&context.egui_ctx, state).drawn_by(drawing)
    });
    window.run();
    (window, device.expect("the window was made"))
}

#[test]
fn a_file_is_labeled() {
    let mut window = open(with_files());
    window.get_by_label("lab.json: L40S · WGSL · f32");
    click(&mut window, "lab.json");
    type_into(&mut window, "Label", "The lab's server");
    window.get_by_label("The lab's server: L40S · WGSL · f32");
    let state = window.state().state();
    let entry = state.library.files.iter().find(|entry| entry.path.ends_with("lab.json")).expect("it is there");
    assert_eq!(entry.label(), Some("The lab's server"));
}

/// A window that knows what others published.
fn with_published() -> State {
    let mut state = State::default();
    let sets = compute::published::sets().expect("they are part of the program");
    state.receive(Message::Published(Ok(sets)));
    state
}

#[test]
fn published_results_are_hidden_until_a_comparison_is_asked_for() {
    let mut window = open(with_published());
    window.get_by_label("How fast does this machine train and run deep networks?");
    window.get_all_by_label("2017: GPU × framework").next().expect("it is offered").click();
    window.run();
    window.get_by_label("vgg16, GeForce GTX 1080 · Caffe git 1464368 · f32: 230 samples/s").click();
    window.run();
    window.get_by_label("230.176 images_per_s, VGG-16, inference, fp32, 224x224");
    window.get_by_label("Apache-2.0");
    click(&mut window, "2019: framework × precision");
    window.get_by_label("resnet50, Tesla V100 SXM2 16 GB · PyTorch NGC 21.03 · f16: 2 150 samples/s");
    // A restart finds them as they were left.
    let kept = batchmark::gui::preferences::Preferences::of(window.state().state());
    let mut again = State::default();
    kept.restore(&mut again);
    let sets = compute::published::sets().expect("they are part of the program");
    again.receive(Message::Published(Ok(sets)));
    again.refresh();
    assert_eq!(again.chart.series.len(), window.state().state().chart.series.len());
}

#[test]
fn a_buyer_gets_a_ranking_that_says_where_numbers_come_from() {
    let mut state = with_published();
    state.apply(Action::Turn(Tab::Decide));
    let mut window = open(state);
    let sets = compute::published::sets().expect("they are part of the program");
    let evidence: Vec<Evidence> = sets.iter().flat_map(|set| Evidence::of(&set.file)).collect();
    receive(&mut window, Message::Fitted(Arc::new(Fit::new(&evidence))));
    let names = |window: &Harness<'_, Window>| -> Vec<String> {
        let decision = window.state().state().deciding.decision.as_ref().expect("it can be made");
        decision.candidates.iter().map(|candidate| candidate.gpu.name.clone()).collect()
    };
    let all = names(&window);
    assert!(all.len() > 20, "{all:?}");
    // The budget is off until it is asked for.
    window.get_by_role_and_label(egui::accesskit::Role::Button, "Budget").click();
    window.run();
    let few = names(&window);
    assert!(!few.is_empty() && few.len() < all.len(), "{few:?}");
    let first = few[0].clone();
    window.get_by_label(&format!("Price of {first}"));
    // A price of the user's counts from then on.
    let mut buyer = window.state().state().buyer.clone();
    buyer.prices.insert(first.clone(), 5000.0);
    let context = window.ctx.clone();
    window.state_mut().act(&context, Action::Buy(Box::new(buyer)));
    window.run();
    assert!(!names(&window).contains(&first), "it is above the budget now");
}

/// Few bars stand upright, many lie below each other; each can be reached in both.
#[test]
fn bars_stand_where_they_fit() {
    let is_upright = |window: &Harness<'_, Window>, label: &str| {
        let bar = window.get_by_label(label).rect();
        bar.height() > bar.width()
    };
    let mut window = open(with_files());
    assert!(!is_upright(&window, "vgg16, lab.json: L40S · WGSL · f32: 502 samples/s"));
    click(&mut window, "Remove anna-4090.json from the library");
    assert!(is_upright(&window, "vgg16, L40S · WGSL · f32: 502 samples/s"));
}

/// R37: an error of the device that draws the window is shown, once, and ends nothing.
#[test]
fn an_error_while_drawing_is_shown() {
    let (mut window, device) = open_on_device(with_files());
    let broken =
        wgpu::BufferDescriptor { label: None, size: 3, usage: wgpu::BufferUsages::empty(), mapped_at_creation: true };
    for _ in 0..2 {
        // No buffer is without a use; without a handler this panics.
        drop(device.create_buffer(&broken));
        window.run();
    }
    window.get_by_label_contains("Dismiss: The window could not be drawn in full").click();
    window.run();
    drop(device.create_buffer(&broken));
    window.run();
    assert!(window.query_by_label_contains("could not be drawn in full").is_none(), "once is enough");
    window.get_by_label("lab.json");
}

/// R37: a lost device closes the window without a question, which nobody could see.
#[test]
fn a_lost_device_closes_the_window() {
    let (mut window, device) = open_on_device(running());
    device.destroy();
    device.poll(wgpu::PollType::Poll).expect("a lost device can be asked");
    window.step();
    let commands = &window.output().viewport_output[&egui::ViewportId::ROOT].commands;
    assert!(commands.contains(&egui::ViewportCommand::Close), "{commands:?}");
    assert!(window.query_by_label("Run quick test").is_none(), "there is nothing to draw it with");
}

#[test]
fn a_failed_file_says_why_and_the_others_load() {
    let mut window = open(with_files());
    let path = PathBuf::from("/results/broken.json");
    let context = window.ctx.clone();
    window.state_mut().act(&context, Action::AddFiles(vec![path.clone()]));
    let reason = "line 3: a number was expected";
    receive(&mut window, Message::Loaded { path, result: Err(reason.into()) });
    window.get_by_label("broken.json");
    window.get_by_label(reason);
    window.get_by_label("lab.json");
}

#[test]
fn files_come_by_path_and_by_dropping() {
    let mut window = open(State::default());
    type_into(&mut window, "Path of a result file", "/results/typed.json");
    click(&mut window, "Add");
    window.get_by_label("typed.json");

    window.input_mut().dropped_files.push(Arc::new(Dropped(PathBuf::from("/results/dropped.json"))));
    window.run();
    window.get_by_label("dropped.json");
}

#[test]
fn without_a_file_dialog_the_path_field_is_pointed_at() {
    let mut window = open(State::default());
    receive(&mut window, Message::NoOpenDialog);
    window.get_all_by_label_contains("offers no file dialog").next().expect("it is said");
    assert!(window.get_by_label("Path of a result file").is_focused());
}

#[test]
fn a_custom_run_is_checked_while_it_is_filled_in() {
    let mut window = open(with_files());
    click(&mut window, "Custom run…");
    assert!(is_enabled(&window, "Start"));
    type_into(&mut window, "Minibatches", ", many");
    window.get_by_label_contains("\"many\" is no minibatch");
    assert!(!is_enabled(&window, "Start"));
    click(&mut window, "Cancel");
    assert!(window.query_by_label("Start").is_none());
}

#[test]
fn a_window_with_nothing_going_on_comes_to_rest() {
    let mut window = open(with_files());
    window.run();
    let output = &window.output().viewport_output[&egui::ViewportId::ROOT];
    assert!(output.repaint_delay > Duration::from_secs(3600), "{:?}", output.repaint_delay);
}

/// A file that was dropped onto the window.
#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &std::path::Path {
        &self.0
    }
    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("the window reads by path".to_owned())
    }
}
