// Ten images of 8x8 on four ranks, 3 + 3 + 3 + 1: cut by batch, a model needs
// no communication at all. Each image is cut into four patches of 4x4, a layer
// looks at each patch, and a second one at the mean over the patches.
cleave.mesh @quad = <["dp"=4]>

func.func @forward(
    %images: tensor<10x8x8xf32>
      {cleave.sharding = #cleave.sharding<@quad, [{"dp"}, {}, {}]>}
      loc("images"),
    %first: tensor<16x24xf32> {cleave.weight = "first"} loc("first"),
    %second: tensor<24x10xf32> {cleave.weight = "second"} loc("second"))
    -> (tensor<10x10xf32>
          {cleave.sharding = #cleave.sharding<@quad, [{"dp"}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %quarter = arith.constant 0.25 : f32

  // [image, y, x] to [image, patch, pixel]
  %split = tensor.expand_shape %images [[0], [1, 2], [3, 4]]
    output_shape [10, 2, 4, 2, 4]
    : tensor<10x8x8xf32> into tensor<10x2x4x2x4xf32> loc("split")
  %turned_empty = tensor.empty() : tensor<10x2x2x4x4xf32>
  %turned = linalg.transpose ins(%split : tensor<10x2x4x2x4xf32>)
    outs(%turned_empty : tensor<10x2x2x4x4xf32>)
    permutation = [0, 1, 3, 2, 4] loc("turned")
  %patches = tensor.collapse_shape %turned [[0], [1, 2], [3, 4]]
    : tensor<10x2x2x4x4xf32> into tensor<10x4x16xf32> loc("patches")

  // active = relu(patches first), for each patch
  %h_empty = tensor.empty() : tensor<10x4x24xf32>
  %h_init = linalg.fill ins(%zero : f32) outs(%h_empty : tensor<10x4x24xf32>)
    -> tensor<10x4x24xf32>
  %h = linalg.contract
    indexing_maps = [affine_map<(b, p, n, k) -> (b, p, k)>,
                     affine_map<(b, p, n, k) -> (k, n)>,
                     affine_map<(b, p, n, k) -> (b, p, n)>]
    ins(%patches, %first : tensor<10x4x16xf32>, tensor<16x24xf32>)
    outs(%h_init : tensor<10x4x24xf32>) -> tensor<10x4x24xf32> loc("h")
  %active = linalg.map { arith.maximumf }
    ins(%h, %h_init : tensor<10x4x24xf32>, tensor<10x4x24xf32>)
    outs(%h_empty : tensor<10x4x24xf32>) loc("active")

  // mean over the patches of each image
  %sum_empty = tensor.empty() : tensor<10x24xf32>
  %sum_init = linalg.fill ins(%zero : f32) outs(%sum_empty : tensor<10x24xf32>)
    -> tensor<10x24xf32>
  %sum = linalg.reduce ins(%active : tensor<10x4x24xf32>)
    outs(%sum_init : tensor<10x24xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    } loc("sum")
  %mean = linalg.map ins(%sum : tensor<10x24xf32>)
    outs(%sum_empty : tensor<10x24xf32>)
    (%in: f32, %out: f32) {
      %m = arith.mulf %in, %quarter : f32
      linalg.yield %m : f32
    } loc("mean")

  // mean second
  %y_empty = tensor.empty() : tensor<10x10xf32>
  %y_init = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<10x10xf32>)
    -> tensor<10x10xf32>
  %y = linalg.matmul ins(%mean, %second : tensor<10x24xf32>, tensor<24x10xf32>)
    outs(%y_init : tensor<10x10xf32>) -> tensor<10x10xf32> loc("y")
  return %y : tensor<10x10xf32>
}
