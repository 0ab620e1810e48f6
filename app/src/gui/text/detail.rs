//! Labels of a record's details.

super::texts! {
    model: "Model", "模型";
    pass: "Pass", "阶段";
    precision: "Precision", "精度";
    minibatch: "Minibatch", "小批量";
    outcome: "Outcome", "结果";
    throughput: "Throughput", "吞吐量";
    median: "Median", "中位数";
    interval: "95% confidence", "95% 置信区间";
    percentiles: "5% to 95%", "5% 至 95%";
    mean: "Mean ± deviation", "均值 ± 标准差";
    iterations: "Iterations", "迭代次数";
    clock: "Clock", "计时来源";
    drift: "Drift", "漂移";
    achieved: "Achieved", "实际算力";
    memory_planned: "Memory planned", "计划显存";
    memory_peak: "Memory peak", "显存峰值";
    verification: "Verification", "正确性验证";
    core_clock: "Core clock", "核心频率";
    power: "Power", "功耗";
    temperature: "Temperature", "温度";
    utilization: "Utilization", "利用率";
    throttled: "Held down by", "降频原因";
    tuning: "Tuning", "调优";
    device: "Device", "设备";
    driver: "Driver", "驱动";
    engine: "Engine", "引擎";
    library: "Library", "库";
    from: "From", "来源";
    started: "Started", "开始时间";
    definition: "Definition", "定义";
    kernels: "Kernels", "内核";
    host: "Host", "主机";
    as_published: "As published", "原始数值";
    title: "Source", "出处";
    authors: "By", "作者";
    date: "Date", "日期";
    address: "Address", "网址";
    licence: "Licence", "许可";
    obtained: "Obtained", "获取方式";
}
