//! Fixed texts.

super::texts! {
    this_machine: "This machine", "本机";

    // Toolbar.
    open: "Open…", "打开…";
    open_hint: "Add result files to the library. Files can also be dropped onto the window.", "将结果文件加入结果库，也可以把文件拖到窗口中。";
    save_as: "Save as…", "另存为…";
    save_as_hint: "Save this session's results as a file of your own.", "把本次会话的结果存为自己的文件。";
    nothing_to_save: "This session has no results yet.", "本次会话还没有结果。";
    saved_in_memory: "Results are only in memory", "结果仅在内存中";
    export: "Export", "导出";
    export_png: "Chart as PNG…", "图表存为 PNG…";
    export_svg: "Chart as SVG…", "图表存为 SVG…";
    export_csv: "Shown results as CSV…", "所示结果存为 CSV…";
    export_markdown: "Shown results as Markdown…", "所示结果存为 Markdown…";
    export_results: "Shown results as a result file…", "所示结果存为结果文件…";
    nothing_to_export: "Nothing is shown.", "没有显示任何内容。";
    view: "View", "视图";
    language: "Language", "语言 Language";
    theme_system: "Like the system", "跟随系统";
    theme_light: "Light", "浅色";
    theme_dark: "Dark", "深色";
    scale: "Size", "界面大小";
    recent: "Recent", "最近";
    tab_throughput: "Throughput", "吞吐量";
    tab_efficiency: "Minibatch efficiency", "小批量效率";
    tab_memory: "Memory", "显存";
    tab_table: "Table", "表格";

    // Devices.
    looking: "Looking for GPUs…", "正在查找 GPU…";
    no_device: "No device was found.", "未找到设备。";
    only_processor: "No GPU can be used here, so the reference on the processor is. It is slow.", "此处没有可用的 GPU，因此使用处理器上的参考实现，速度很慢。";
    look_again: "Look again", "重新查找";
    software: "software", "软件实现";
    unavailable: "unavailable", "不可用";
    allow_software: "Allow software adapters", "允许软件适配器";
    allow_software_hint: "A software adapter computes on the processor. Its numbers say nothing about a GPU.", "软件适配器在处理器上计算，其数据不代表任何 GPU。";
    software_refused: "This adapter computes on the processor, not on a GPU.", "该适配器在处理器而不是 GPU 上计算。";

    // Running.
    custom: "Custom run…", "自定义运行…";
    run_while_looking: "Devices are still being looked for.", "仍在查找设备。";
    run_while_running: "A run is going.", "正在运行。";
    run_without_device_list: "The search for devices failed.", "查找设备失败。";
    run_without_device: "No device can be used.", "没有可用的设备。";
    run_without_choice: "No device is chosen.", "未选择设备。";
    run_only_software: "Only a software adapter was found. Allow it to run on it all the same.", "只找到软件适配器。如仍要运行，请先允许它。";
    nothing_to_run: "Nothing of this can be run on the chosen devices.", "所选设备上无法运行其中任何一项。";
    cancel_current: "Cancel current", "取消当前";
    cancel_all: "Cancel all", "全部取消";
    cancelling: "cancelling", "正在取消";
    starting: "starting", "正在启动";
    time_left_unknown: "time left not known yet", "剩余时间未知";
    progress: "Progress of all runs", "全部运行的进度";
    finished_runs: "Finished", "已完成";
    skipped: "skipped", "已跳过";
    next_runs: "Next", "接下来";

    // Custom run.
    custom_title: "Custom run", "自定义运行";
    models: "Models", "模型";
    passes: "Passes", "阶段";
    precisions: "Precisions", "精度";
    minibatches: "Minibatches", "小批量";
    minibatches_hint: "such as 16, 64", "例如 16, 64";
    max_seconds: "At most", "最多";
    max_seconds_suffix: " s a run", " 秒（每次运行）";
    start: "Start", "开始";
    cancel: "Cancel", "取消";
    custom_without_model: "Choose at least one model.", "请至少选择一个模型。";
    custom_without_pass: "Choose at least one pass.", "请至少选择一个阶段。";
    custom_without_precision: "Choose at least one precision.", "请至少选择一种精度。";
    custom_without_minibatch: "Give at least one minibatch, such as 16.", "请至少填写一个小批量，例如 16。";

    // Library.
    this_session: "This session", "本次会话";
    files: "Files", "文件";
    no_files: "Drop result files here, or add them by path.", "把结果文件拖到这里，或按路径添加。";
    loading: "reading…", "正在读取…";
    path_field: "Path of a result file", "结果文件的路径";
    path_hint: "path of a result file", "结果文件的路径";
    add: "Add", "添加";
    no_open_dialog: "This system offers no file dialog. Type or paste a path into the field under Files, or drop files onto the window.", "本系统没有文件对话框。请在“文件”下的输入框中填写路径，或把文件拖到窗口中。";
    no_records: "holds no results", "不含结果";
    drop_files: "Drop to add to the library", "松开即可加入结果库";
    label_file: "Click to give it a label.", "点击可设置标签。";
    file_label: "Label", "标签";
    published: "Published", "已发表的结果";
    published_hint: "Figures that others published, with their sources. They are part of the program.", "他人发表的数据及其出处，随程序提供。";
    comparison_2017: "2017: GPU × framework", "2017：GPU × 框架";
    comparison_2017_hint: "In the place of Addfor's comparison of 2017, whose figures are pictures: DLInfBench's on the same GPUs with the frameworks of that year, inference at minibatch 64.", "代替 2017 年 Addfor 的对比（其数据为图片）：DLInfBench 在相同 GPU 上用当年框架的推理结果，小批量 64。";
    comparison_2019: "2019: framework × precision", "2019：框架 × 精度";
    comparison_2019_hint: "In the place of Synced's comparison of 2019, whose figures are pictures: NVIDIA's on a V100, inference at minibatch 32.", "代替 2019 年机器之心的对比（其数据为图片）：NVIDIA 在 V100 上的推理结果，小批量 32。";
    empty_published: "Or look at what others published:", "也可以看看他人发表的结果：";
    given_device: "GPU that it was measured on", "测量所用的 GPU";
    given_precision: "Precision", "精度";
    given_minibatch: "Minibatch", "小批量";
    unknown_device: "The file does not state the GPU; click its name above to set it.", "文件未注明 GPU；点击上方名称设置。";
    unknown_precision: "The file does not state the precision; click its name above to set it.", "文件未注明精度；点击上方名称设置。";
    unknown_minibatch: "The file does not state the minibatch; click its name above to set it.", "文件未注明小批量；点击上方名称设置。";
    series_name: "Name in charts", "图表中的名称";
    series_color: "Color", "颜色";
    use_as_baseline: "Compare all with this", "以此为基准比较";
    drop_baseline: "No baseline", "取消基准";
    edit_series: "Name, color, baseline", "名称、颜色、基准";

    // Chart.
    precision: "Precision", "精度";
    all_precisions: "all", "全部";
    minibatch: "Minibatch", "小批量";
    model: "Model", "模型";
    unit_label: "Unit", "单位";
    sort: "Order", "排序";
    sort_suite: "of the suite", "按测试集";
    sort_name: "by name", "按名称";
    sort_value: "by value", "按数值";
    sort_parameters: "by size of the model", "按模型大小";
    logarithmic: "Logarithmic", "对数刻度";
    relative: "Relative to", "相对于";
    absolute: "nothing (absolute)", "无（绝对值）";
    not_measured: "not measured", "未测量";
    no_number: "no usable number", "没有可用数值";
    empty_title: "How fast does this machine train and run deep networks?", "这台机器训练和运行深度网络有多快？";
    empty_text: "The quick test measures two networks, both passes, in about a minute on a GPU. Its bars appear here one by one and are saved as they do.", "快速测试在 GPU 上约一分钟内测量两个网络的两个阶段。结果条会逐个出现在这里，并随即保存。";
    empty_or: "Or open result files to look at the numbers of other machines.", "也可以打开结果文件，查看其他机器的数据。";
    nothing_shown: "No results for this choice. Choose another pass, or show a series in the library.", "此选择没有结果。请换一个阶段，或在结果库中显示某个系列。";

    // Minibatch efficiency.
    efficiency_axis: "share of the series' best throughput", "占该系列最佳吞吐量的比例";
    ms_per_sample_axis: "ms per sample", "每样本毫秒数";
    minibatch_axis: "minibatch", "小批量";
    memory_edge: "out of memory", "显存不足";
    nothing_swept: "No model was measured at several minibatches. “Run minibatch sweep” does that; or open the file of a sweep.", "没有模型在多个小批量下测量过。请点击“运行小批量扫描”，或打开扫描的结果文件。";
    efficiency_question: "Which minibatch is large enough?", "多大的小批量才够？";

    // Memory.
    memory_question: "What fits into the memory?", "显存放得下什么？";
    memory_subtitle: "Bytes that a run needs by its plan: parameters, activations, gradients. Workspace of libraries comes on top.", "按计划计算的所需字节数：参数、激活值、梯度。库的工作区另计。";
    fits: "fits", "放得下";
    does_not_fit: "does not fit", "放不下";
    memory_largest: "Largest minibatch", "最大小批量";
    memory_no_device: "No device with known memory; the lines of common sizes are shown.", "没有已知显存的设备，仅显示常见容量的刻度线。";

    // Decide.
    tab_decide: "Decide", "选购";
    decide_question: "Which GPU for this work?", "这项工作该选哪块 GPU？";
    decide_nothing: "Choose at least one network, and inference, training or both.", "请至少选择一个网络，并选择推理、训练或两者。";
    decide_wait: "Estimating…", "正在估算…";
    share_hint: "Its share of the samples.", "该网络占样本的比例。";
    budget: "Budget", "预算";
    currency: "in", "货币";
    currency_hint: "Prices at launch are known in USD alone; in another currency your own prices count.", "首发价格仅有美元；其他货币请填写您自己的价格。";
    least_memory: "Memory at least (GiB)", "显存至少（GiB）";
    most_power: "Power at most (W)", "功耗至多（W）";
    any: "any", "不限";
    no_limit: "No limit", "不限";
    rank_by: "Rank by", "排名依据";
    by_throughput: "throughput", "吞吐量";
    by_price: "throughput for the price", "单位价格吞吐量";
    by_power: "throughput for the power", "单位功耗吞吐量";
    column_gpu: "GPU", "显卡";
    column_price: "Price", "价格";
    column_per_price: "per 1000", "每 1000";
    column_per_watt: "per watt", "每瓦";
    column_memory: "Memory", "显存";
    column_power: "Power", "功耗";
    column_evidence: "Numbers are", "数据来源";
    field_matrix: "peak of the matrix units", "矩阵单元峰值";
    field_bandwidth: "bandwidth", "带宽";
    price_given: "Your price. Drag or click to change it; 0 takes it back.", "您填写的价格。拖动或点击可修改，填 0 则撤回。";
    price_unknown: "No price is known. Drag or click to give one.", "价格未知。拖动或点击可填写。";
    measured_here: "measured here", "本机测得";
    from_file: "from a file", "来自文件";
    published_figure: "published", "已发表";
    estimated: "estimated", "估算";

    // Table.
    search: "Search", "搜索";
    columns: "Columns", "列";
    copy_markdown: "Copy as Markdown", "复制为 Markdown";
    copy_csv: "Copy as CSV", "复制为 CSV";
    select_all: "Select all", "全选";
    select_none: "Select none", "取消选择";
    column_source: "Source", "来源";
    column_device: "Device", "设备";
    column_engine: "Engine", "引擎";
    column_model: "Model", "模型";
    column_pass: "Pass", "阶段";
    column_precision: "Precision", "精度";
    column_minibatch: "Minibatch", "小批量";
    column_outcome: "Outcome", "结果";
    column_throughput: "samples/s", "样本/秒";
    column_median: "Median (ms)", "中位数（ms）";
    column_deviation: "Deviation (ms)", "标准差（ms）";
    column_flops: "TFLOP/s", "TFLOP/s（万亿次/秒）";
    column_planned: "Planned (GiB)", "计划（GiB）";
    column_peak: "Peak (GiB)", "峰值（GiB）";
    column_started: "Started", "开始时间";
    nothing_found: "No result matches.", "没有匹配的结果。";

    // Details.
    details: "Details", "详细信息";
    close_details: "Close details", "关闭详细信息";
    histogram: "Times of all iterations", "全部迭代用时的分布";
    timeline: "Times in the order of the iterations", "按迭代顺序的用时";
    differences: "Differences to the baseline", "与基准的差异";
    no_differences: "None in driver, libraries, clocks and definition.", "驱动、库、频率和定义均无差异。";

    // File dialogs.
    result_files: "Batchmark results", "Batchmark 结果";
    all_files: "All files", "所有文件";

    // Questions.
    close_while_running: "Runs are still going.", "仍有运行在进行。";
    close_while_running_text: "Finished runs are saved. The one being measured and those behind it will be cancelled.", "已完成的运行已保存。正在测量的和排在后面的将被取消。";
    close_unsaved: "Results are not saved.", "结果尚未保存。";
    close_unsaved_text: "They are only in memory and will be lost.", "它们仅在内存中，将会丢失。";
    close_anyway: "Close anyway", "仍然关闭";
    keep_open: "Keep open", "保持打开";
    save_title: "Save results", "保存结果";
    export_title: "Export", "导出到文件";
    save_path: "Path to save to", "保存路径";
    save: "Save", "保存";
}
