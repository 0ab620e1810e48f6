//! Products as fully connected layers and 1x1 convolutions have them, in every precision, against sums in f64.

use super::*;
use crate::engine::cuda::fixture::{self, Gpu};

fn matrix(rows: u64, columns: u64, row: u64, element: Element) -> Matrix {
    Matrix { rows, columns, row, element, alignment: 16 }
}

/// Sizes of a layer: positions, input channels, output channels, and channels behind each row of the activations.
#[derive(Clone, Copy)]
struct Layer {
    positions: u64,
    inputs: u64,
    outputs: u64,
    gap: u64,
}

/// A layer's products by name.
fn products(layer: &Layer, precision: Precision) -> Vec<(&'static str, Product)> {
    let Layer { positions, inputs, outputs, gap } = *layer;
    let element = precision.storage();
    let x = matrix(positions, inputs, inputs + gap, element);
    let y = matrix(positions, outputs, outputs + gap, element);
    let w = matrix(outputs, inputs, inputs, element);
    let forward = Product {
        a: x,
        transpose_a: false,
        b: w,
        transpose_b: true,
        c: None,
        d: y,
        alpha: 1.0,
        bias: None,
        relu: false,
        precision,
    };
    let backward_data = Product { a: y, b: w, transpose_b: false, d: x, ..forward };
    let dw = matrix(outputs, inputs, inputs, Element::F32);
    let backward_weight =
        Product { a: y, transpose_a: true, b: x, transpose_b: false, d: dw, alpha: 1.0 / 1024.0, ..forward };
    let single = Some(Element::F32);
    let mut products = vec![
        ("forward", forward),
        ("forward relu", Product { relu: true, ..forward }),
        ("forward bias relu", Product { bias: single, relu: true, ..forward }),
        ("forward sum bias relu", Product { bias: single, relu: true, c: Some(y), ..forward }),
        ("backward data", backward_data),
        ("backward data added", Product { c: Some(x), ..backward_data }),
        ("backward weight", backward_weight),
    ];
    if element != Element::F32 {
        let bias = Some(element);
        products.push(("forward half bias relu", Product { bias, relu: true, ..forward }));
        products.push(("forward sum half bias relu", Product { bias, relu: true, c: Some(y), ..forward }));
    }
    products
}

fn bytes(matrix: &Matrix) -> usize {
    (matrix.rows * matrix.row) as usize * matrix.element.bytes()
}

/// Values of a matrix without the gaps.
fn values(name: &str, matrix: &Matrix) -> Vec<f32> {
    fixture::random_values(name, (matrix.rows * matrix.columns) as usize, matrix.element)
}

fn spread(values: &[f32], matrix: &Matrix) -> Vec<u8> {
    let rows = values.chunks(matrix.columns as usize).flat_map(|row| {
        let gap = (matrix.row - matrix.columns) as usize;
        row.iter().copied().chain(std::iter::repeat_n(f32::NAN, gap))
    });
    fixture::encode(&rows.collect::<Vec<_>>(), matrix.element)
}

fn gather(bytes: &[u8], matrix: &Matrix) -> Vec<f32> {
    let values = fixture::decode(bytes, matrix.element);
    values.chunks(matrix.row as usize).flat_map(|row| row[..matrix.columns as usize].to_vec()).collect()
}

/// The product of the values in f64.
fn expected(product: &Product, [a, b, c, bias]: [&[f32]; 4]) -> Vec<f64> {
    let depth = if product.transpose_a { product.a.rows } else { product.a.columns } as usize;
    let element = |values: &[f32], matrix: &Matrix, is_transposed: bool, row: usize, column: usize| {
        let (row, column) = if is_transposed { (column, row) } else { (row, column) };
        f64::from(values[row * matrix.columns as usize + column])
    };
    let columns = product.d.columns as usize;
    let result = |at: usize| {
        let (row, column) = (at / columns, at % columns);
        let terms = (0..depth).map(|k| {
            element(a, &product.a, product.transpose_a, row, k) * element(b, &product.b, product.transpose_b, k, column)
        });
        let mut sum = f64::from(product.alpha) * terms.sum::<f64>();
        sum += product.c.map_or(0.0, |_| f64::from(c[at]));
        sum += product.bias.map_or(0.0, |_| f64::from(bias[column]));
        if product.relu { sum.max(0.0) } else { sum }
    };
    (0..product.d.rows as usize * columns).map(result).collect()
}

#[test]
fn every_algorithm_agrees_with_sums_in_f64() {
    let Some(gpu) = Gpu::open() else { return };
    let library = match CublasLt::new() {
        Ok(library) => library,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let layers = [
        Layer { positions: 7, inputs: 96, outputs: 40, gap: 0 },
        Layer { positions: 245, inputs: 64, outputs: 32, gap: 16 },
    ];
    let mut wrong = Vec::new();
    for layer in layers {
        for precision in Precision::ALL {
            for (name, product) in products(&layer, precision) {
                let label = format!("{}x{}x{} {precision} {name}", layer.positions, layer.inputs, layer.outputs);
                let matmuls = library.matmuls(&product, 32 << 20).expect("the library answers");
                let errors = check(&gpu, &library, &product, &matmuls);
                let largest = errors.iter().flatten().fold(0.0_f64, |most, &error| most.max(error));
                eprintln!("{label}: {} algorithms, error {largest:.1e}", matmuls.len());
                let tolerance = match precision {
                    Precision::F32 => 3e-6,
                    Precision::Tf32 | Precision::F16 => 2e-3,
                    Precision::Bf16 => 1e-2,
                };
                for (matmul, error) in matmuls.iter().zip(errors) {
                    if error.as_ref().map_or(true, |&error| error > tolerance) {
                        wrong.push(format!("{label}: {}: {error:?}", matmul.name));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(gpu: &Gpu, library: &CublasLt, product: &Product, matmuls: &[Matmul]) -> Vec<Result<f64, String>> {
    let summand = product.c.unwrap_or(product.d);
    let (a, b, c) = (values("a", &product.a), values("b", &product.b), values("c", &summand));
    let bias_element = product.bias.unwrap_or(Element::F32);
    let bias = fixture::random_values("bias", product.d.columns as usize, bias_element);
    let expected = expected(product, [&a, &b, &c, &bias]);
    let (a, b) = (gpu.upload(&spread(&a, &product.a)), gpu.upload(&spread(&b, &product.b)));
    let (c, bias) = (gpu.upload(&spread(&c, &summand)), gpu.upload(&fixture::encode(&bias, bias_element)));
    let error = |matmul: &Matmul| {
        let d = gpu.poisoned(bytes(&product.d) as u64);
        let workspace = gpu.poisoned(matmul.workspace_bytes);
        let operands = Operands { a: a.address, b: b.address, c: c.address, d: d.address, bias: bias.address };
        // SAFETY: the memory is as large as the matrices say and lives until the stream is done.
        unsafe { matmul.enqueue(library, gpu.stream(), operands, workspace.address) }
            .map_err(|error| error.to_string())?;
        gpu.wait()?;
        Ok(fixture::normalized_error(&gather(&gpu.download(&d), &product.d), &expected))
    };
    matmuls.iter().map(error).collect()
}

/// Times of every algorithm for layers of the networks at minibatch 64. Prints; asserts nothing.
#[test]
#[ignore = "measures for ten seconds"]
fn times_of_layers() {
    let Some(gpu) = Gpu::open() else { return };
    let library = CublasLt::new().expect("cuBLASLt");
    let layers = [
        ("vgg fc6", Layer { positions: 64, inputs: 25088, outputs: 4096, gap: 0 }),
        ("vgg fc8", Layer { positions: 64, inputs: 4096, outputs: 1000, gap: 0 }),
        ("resnet 1x1 64 to 256 at 56", Layer { positions: 64 * 56 * 56, inputs: 64, outputs: 256, gap: 0 }),
        ("resnet 1x1 1024 to 256 at 14", Layer { positions: 64 * 14 * 14, inputs: 1024, outputs: 256, gap: 0 }),
    ];
    for precision in Precision::ALL {
        for (name, layer) in layers {
            for (operation, product) in products(&layer, precision) {
                let matmuls = library.matmuls(&product, 32 << 20).expect("the library answers");
                let memory = [product.a, product.b, product.c.unwrap_or(product.d), product.d]
                    .map(|matrix| gpu.upload(&vec![0; bytes(&matrix)]));
                let bias = gpu.upload(&vec![0; product.d.columns as usize * 4]);
                let workspace = gpu.uninitialized(32 << 20);
                let [a, b, c, d] = memory.each_ref().map(|memory| memory.address);
                let operands = Operands { a, b, c, d, bias: bias.address };
                // SAFETY: the memory is as large as the matrices say and lives until the stream is done.
                let enqueue =
                    |matmul: &Matmul| unsafe { matmul.enqueue(&library, gpu.stream(), operands, workspace.address) };
                let time = |matmul: &Matmul| gpu.time(|| enqueue(matmul)).unwrap_or(f64::INFINITY);
                let mut times: Vec<_> = matmuls.iter().map(|matmul| (time(matmul), &matmul.name)).collect();
                let first = times.first().map_or(0.0, |(time, _)| time * 1e6);
                times.sort_by(|a, b| a.0.total_cmp(&b.0));
                let flops = 2.0 * (layer.positions * layer.inputs * layer.outputs) as f64;
                if let Some((time, algorithm)) = times.first() {
                    eprintln!(
                        "{precision} {name} {operation}: {} algorithms, first {first:.1} us, best {:.1} us {:.0} TF {algorithm}",
                        times.len(),
                        time * 1e6,
                        flops / time / 1e12
                    );
                } else {
                    eprintln!("{precision} {name} {operation}: none");
                }
            }
        }
    }
}
