//! Libraries built in the test: real files, opened and asked as those of the vendor.

use std::process::Command;

use super::*;
use crate::engine::cuda::driver::Driver;

/// A library for tests that never call into it.
pub(super) fn this_program() -> Library {
    libloading::os::unix::Library::this().into()
}

/// Builds a library of a C text; `None` after saying that there is no C compiler.
fn build(folder: &Path, name: &str, text: &str) -> Option<std::path::PathBuf> {
    let (source, library) = (folder.join("stub.c"), folder.join(name));
    fs::write(&source, text).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
    let Ok(output) = built else {
        eprintln!("skipped: there is no C compiler cc to build a library with");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(library)
}

/// Opens a library for this test alone, so that nothing else in the process finds it.
fn open_alone(part: Part, path: &Path) -> Result<Opened, Refusal> {
    open::open_by(part, &Place::File(path.to_owned()), |path| {
        // SAFETY: the library was built from the text of a test and does nothing when it is loaded.
        unsafe { Library::new(path) }.map_err(|error| error.to_string())
    })
}

/// C text of a library with every function that is used of `part`, except some, and what else is written.
fn stub(part: Part, except: &[&str], text: &str) -> String {
    let written = |name: &str| text.contains(&format!("{name}("));
    let functions = open::functions(part).iter().filter(|name| !except.contains(name) && !written(name));
    let rest: String = functions.map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect();
    format!("#include <string.h>\n{text}\n{rest}")
}

/// C text of a driver for CUDA of a version with two devices, whose `cuInit` returns a status.
fn driver_text(version: u32, status: u32) -> String {
    format!(
        r#"
        int cuDriverGetVersion(int* version) {{ *version = {version}; return 0; }}
        int cuInit(unsigned flags) {{ return {status}; }}
        int cuGetErrorString(int status, const char** text) {{ *text = "the text"; return 0; }}
        int cuDeviceGetCount(int* count) {{ *count = 2; return 0; }}
        int cuDeviceGet(int* device, int ordinal) {{ *device = 10 + ordinal; return 0; }}
        int cuDeviceGetName(char* name, int length, int device) {{
            strncpy(name, device == 10 ? "Fast" : "Slow", length); return 0; }}
        int cuDeviceGetUuid_v2(char* uuid, int device) {{ memset(uuid, device, 16); return 0; }}
        int cuDeviceGetPCIBusId(char* id, int length, int device) {{
            strncpy(id, device == 10 ? "0000:86:00.0" : "0000:3B:00.0", length); return 0; }}
        int cuDeviceTotalMem_v2(size_t* bytes, int device) {{ *bytes = 8ul << 30; return 0; }}
        int cuDeviceGetAttribute(int* value, int attribute, int device) {{
            *value = attribute == 75 ? (device == 10 ? 8 : 7) : attribute == 76 ? (device == 10 ? 6 : 5) :
                     attribute == 16 ? 40 : attribute == 38 ? 4194304 : attribute == 97 ? 65536 : 0; return 0; }}
        int cuEventElapsedTime(float* ms, void* begin, void* end) {{ *ms = 1.5f; return 0; }}
        "#
    )
}

/// Opens a stub of the driver and initializes it.
fn driver(text: &str) -> Option<Result<Driver, String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "libcuda.so.1", &stub(Part::Driver, &[], text))?;
    let opened = open_alone(Part::Driver, &path).unwrap();
    let version = opened.facts.version;
    Some(Driver::new(opened.keep(Part::Driver), version).map_err(|fault| fault.to_string()))
}

/// R18: a driver of 2023, which lacks what later ones have; R22: its list is in an order of its own.
#[test]
fn a_driver_without_the_latest_functions_works() {
    let Some(driver) = driver(&driver_text(12020, 0)) else { return };
    let driver = driver.unwrap();
    assert_eq!(driver.version, (12, 2));
    let devices = driver.devices().unwrap();
    let seen: Vec<_> = devices
        .iter()
        .map(|seen| (seen.name.as_str(), seen.uuid[0], seen.pci_address.as_deref(), seen.facts.capability))
        .collect();
    let expected = [("Fast", 10, Some("0000:86:00.0"), (8, 6)), ("Slow", 11, Some("0000:3b:00.0"), (7, 5))];
    assert_eq!(seen, expected);
    assert_eq!((devices[1].memory_bytes, devices[1].facts.multiprocessors), (8 << 30, 40));
    // SAFETY: the stub does not look at the events.
    let elapsed = unsafe { driver.elapsed_ms(std::ptr::null_mut(), std::ptr::null_mut()) };
    assert_eq!(elapsed, Ok(1.5));
}

#[test]
fn the_newer_clock_is_taken_where_it_exists() {
    let text = "int cuEventElapsedTime_v2(float* ms, void* begin, void* end) { *ms = 2.5f; return 0; }";
    let Some(driver) = driver(&(driver_text(12080, 0) + text)) else { return };
    // SAFETY: the stub does not look at the events.
    let elapsed = unsafe { driver.unwrap().elapsed_ms(std::ptr::null_mut(), std::ptr::null_mut()) };
    assert_eq!(elapsed, Ok(2.5));
}

#[test]
fn a_driver_that_gives_no_device_says_what_to_do() {
    for (status, expected) in [
        (100, "the NVIDIA driver (CUDA 12.4) has no device; check that nvidia-smi lists the GPU"),
        (34, "take the folder \"stubs\" out of LD_LIBRARY_PATH"),
        (803, "restart the machine"),
        (999, "can't be initialized: the text (status 999)"),
    ] {
        let Some(driver) = driver(&driver_text(12040, status)) else { return };
        let said = driver.err().unwrap();
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    let none = driver_text(12040, 0).replace("*count = 2", "*count = 0");
    let Some(driver) = driver(&none) else { return };
    assert!(driver.unwrap().devices().unwrap_err().to_string().contains("has no device"));
}

#[test]
fn libraries_state_their_versions() {
    let cases = [
        (Part::Driver, "int cuDriverGetVersion(int* v) { *v = 13000; return 0; }", (13, 0), None),
        (Part::Nvrtc, "int nvrtcVersion(int* a, int* b) { *a = 12; *b = 9; return 0; }", (12, 9), Some(12)),
        (Part::CublasLt, "size_t cublasLtGetVersion(void) { return 130100; }", (13, 1), Some(13)),
        (
            Part::Cudnn,
            "size_t cudnnGetVersion(void) { return 91400; } size_t cudnnGetCudartVersion(void) { return 12080; }",
            (9, 14),
            Some(12),
        ),
        (Part::Cudnn, "size_t cudnnGetVersion(void) { return 8907; }", (8, 9), None),
    ];
    for (part, text, version, cuda_major) in cases {
        let folder = tempfile::tempdir().unwrap();
        let Some(path) = build(folder.path(), "lib.so", &stub(part, &[], text)) else { return };
        let facts = open_alone(part, &path).unwrap().facts;
        assert_eq!(facts, Facts { version, cuda_major, lacks: None }, "{part:?}");
        let missing = open::functions(part)[1];
        let Some(path) = build(folder.path(), "old.so", &stub(part, &[missing], text)) else { return };
        assert_eq!(open_alone(part, &path).unwrap().facts.lacks, Some(missing), "{part:?}");
    }
}

#[test]
fn what_is_no_library_of_this_kind_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = build(folder.path(), "libcuda.so.1", "int other(void) { return 0; }") else { return };
    let refusal = |part| open_alone(part, &path).err();
    assert_eq!(refusal(Part::Driver), Some(Refusal::Broken("it lacks the function cuDriverGetVersion".to_owned())));
    assert_eq!(refusal(Part::Cudnn), Some(Refusal::Broken("it lacks the function cudnnGetVersion".to_owned())));
    // A toolkit's stub answers everything with one status.
    let text = "int cuDriverGetVersion(int* version) { return 34; }";
    let Some(path) = build(folder.path(), "stub.so", text) else { return };
    let refusal = open_alone(Part::Driver, &path).err();
    assert!(matches!(&refusal, Some(Refusal::Broken(text)) if text.contains("toolkit's stub")), "{refusal:?}");
    // By name: there is none.
    let absent = open::open(Part::Cudnn, &Place::Loader("libcudnn-of-no-version.so.9".to_owned())).err();
    assert_eq!(absent, Some(Refusal::Absent));
}
