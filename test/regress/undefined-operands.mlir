// Dims joined with what nobody wrote, or with nothing: no rank waits for it,
// and no memory is kept for it.
// REQUIRES: run
// RUN: split-file %s %t
// RUN: cleave check %t/joined.mlir
// RUN: cleave check %t/nothing.mlir
// RUN: cleave check %t/moved.mlir
// RUN: cleave check %t/trimmed.mlir

//--- joined.mlir
cleave.mesh @m = <["a"=2]>
func.func @forward(
    %x: tensor<6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %later = tensor.empty() : tensor<4xf32>
  %cache = tensor.concat dim(0) %x, %later
    {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
    : (tensor<6xf32>, tensor<4xf32>) -> tensor<10xf32>
  %now = tensor.extract_slice %cache[0] [6] [1]
    : tensor<10xf32> to tensor<6xf32>
  return %now : tensor<6xf32>
}

//--- nothing.mlir
cleave.mesh @m = <["a"=3, "b"=2], ranks=[5, 3, 1, 4, 2, 0]>
func.func @forward(%x: tensor<2x0x2xi32>) -> tensor<2x0x5xi32> {
  %e = tensor.empty()
    {cleave.sharding = #cleave.sharding<@m, [{?}, {}, {"b", "a", ?}]>}
    : tensor<2x0x1xi32>
  %y = tensor.concat dim(2) %x, %e, %x
    : (tensor<2x0x2xi32>, tensor<2x0x1xi32>, tensor<2x0x2xi32>)
    -> tensor<2x0x5xi32>
  return %y : tensor<2x0x5xi32>
}

//--- moved.mlir
cleave.mesh @m = <["b"=2]>
#x = affine_map<(i, k) -> (i, k)>
#window = affine_map<(i, k) -> (k)>
#y = affine_map<(i, k) -> (i)>
func.func @forward(%x: tensor<4x1xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %cut = cleave.constraint %e <@m, [{"b"}]> : tensor<1xf32>
  %low = arith.constant dense<-8.0> : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#x, #window, #y],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %cut : tensor<4x1xf32>, tensor<1xf32>)
      outs(%low : tensor<4xf32>) {
    ^bb0(%v: f32, %shape: f32, %acc: f32):
      %more = arith.maximumf %acc, %v : f32
      linalg.yield %more : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

//--- trimmed.mlir
cleave.mesh @m = <["b"=4]>
#x = affine_map<(i, k) -> (i, k)>
#window = affine_map<(i, k) -> (k)>
#y = affine_map<(i, k) -> (i)>
func.func @forward(%x: tensor<4x2xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %cut = cleave.constraint %e <@m, [{"b"}]> : tensor<2xf32>
  %low = arith.constant dense<-8.0> : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#x, #window, #y],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %cut : tensor<4x2xf32>, tensor<2xf32>)
      outs(%low : tensor<4xf32>) {
    ^bb0(%v: f32, %shape: f32, %acc: f32):
      %more = arith.maximumf %acc, %v : f32
      linalg.yield %more : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
