// Layer norm and then softmax along a dim that is cut over three ranks, 7 + 7
// + 6 of 20: each rank reduces its part, and four all-reduces of one number a
// row join them: two sums (mean, variance), one maximum, one sum. The last
// rank's block has one column of padding, which no reduction may see.
cleave.mesh @three = <["tp"=3]>

#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#cols = affine_map<(i, j) -> (j)>

func.func @forward(
    %x: tensor<6x20xf32>
      {cleave.sharding = #cleave.sharding<@three, [{}, {"tp"}]>} loc("x"),
    %gain: tensor<20xf32> {cleave.weight = "gain"} loc("gain"),
    %shift: tensor<20xf32> {cleave.weight = "shift"} loc("shift"))
    -> (tensor<6x20xf32>
          {cleave.sharding = #cleave.sharding<@three, [{}, {"tp"}]>}) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %n = arith.constant 20.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %full = tensor.empty() : tensor<6x20xf32>
  %row = tensor.empty() : tensor<6xf32>
  %row_zero = linalg.fill ins(%zero : f32) outs(%row : tensor<6xf32>)
    -> tensor<6xf32>
  %row_lowest = linalg.fill ins(%lowest : f32) outs(%row : tensor<6xf32>)
    -> tensor<6xf32>

  %sum = linalg.reduce ins(%x : tensor<6x20xf32>)
    outs(%row_zero : tensor<6xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    } loc("sum")
  %centered = linalg.generic {
      indexing_maps = [#all, #rows, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<6x20xf32>, tensor<6xf32>)
      outs(%full : tensor<6x20xf32>) {
    ^bb0(%value: f32, %total: f32, %out: f32):
      %mean = arith.divf %total, %n : f32
      %c = arith.subf %value, %mean : f32
      linalg.yield %c : f32
  } -> tensor<6x20xf32> loc("centered")
  %squares = linalg.generic {
      indexing_maps = [#all, #rows],
      iterator_types = ["parallel", "reduction"]}
      ins(%centered : tensor<6x20xf32>) outs(%row_zero : tensor<6xf32>) {
    ^bb0(%value: f32, %acc: f32):
      %sq = arith.mulf %value, %value : f32
      %s = arith.addf %sq, %acc : f32
      linalg.yield %s : f32
  } -> tensor<6xf32> loc("squares")
  %normed = linalg.generic {
      indexing_maps = [#all, #rows, #cols, #cols, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%centered, %squares, %gain, %shift
          : tensor<6x20xf32>, tensor<6xf32>, tensor<20xf32>, tensor<20xf32>)
      outs(%full : tensor<6x20xf32>) {
    ^bb0(%value: f32, %total: f32, %g: f32, %b: f32, %out: f32):
      %variance = arith.divf %total, %n : f32
      %safe = arith.addf %variance, %eps : f32
      %scale = math.rsqrt %safe : f32
      %unit = arith.mulf %value, %scale : f32
      %gained = arith.mulf %unit, %g : f32
      %shifted = arith.addf %gained, %b : f32
      linalg.yield %shifted : f32
  } -> tensor<6x20xf32> loc("normed")

  %largest = linalg.reduce ins(%normed : tensor<6x20xf32>)
    outs(%row_lowest : tensor<6xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %m = arith.maximumf %in, %acc : f32
      linalg.yield %m : f32
    } loc("largest")
  %powers = linalg.generic {
      indexing_maps = [#all, #rows, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%normed, %largest : tensor<6x20xf32>, tensor<6xf32>)
      outs(%full : tensor<6x20xf32>) {
    ^bb0(%value: f32, %max: f32, %out: f32):
      %d = arith.subf %value, %max : f32
      %e = math.exp %d : f32
      linalg.yield %e : f32
  } -> tensor<6x20xf32> loc("powers")
  %total = linalg.reduce ins(%powers : tensor<6x20xf32>)
    outs(%row_zero : tensor<6xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    } loc("total")
  %y = linalg.generic {
      indexing_maps = [#all, #rows, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%powers, %total : tensor<6x20xf32>, tensor<6xf32>)
      outs(%full : tensor<6x20xf32>) {
    ^bb0(%value: f32, %sum_of_row: f32, %out: f32):
      %q = arith.divf %value, %sum_of_row : f32
      linalg.yield %q : f32
  } -> tensor<6x20xf32> loc("y")
  return %y : tensor<6x20xf32>
}
