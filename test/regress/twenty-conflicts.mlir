// One op with 20 operands, cut in six different ways: decided at once, not by
// trying all combinations.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=2]>
#id = affine_map<(i, j) -> (i, j)>

func.func @forward(
    %x0: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"b"}]>},
    %x1: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {}]>},
    %x2: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>},
    %x3: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %x4: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %x5: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>},
    %x6: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"b"}]>},
    %x7: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {}]>},
    %x8: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>},
    %x9: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %x10: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %x11: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>},
    %x12: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"b"}]>},
    %x13: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {}]>},
    %x14: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>},
    %x15: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %x16: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %x17: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>},
    %x18: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"b"}]>},
    %x19: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {}]>}) -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11, %x12, %x13, %x14, %x15, %x16, %x17, %x18, %x19
        : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%empty : tensor<8x8xf32>) {
    ^bb0(%v0: f32, %v1: f32, %v2: f32, %v3: f32, %v4: f32, %v5: f32, %v6: f32, %v7: f32, %v8: f32, %v9: f32, %v10: f32, %v11: f32, %v12: f32, %v13: f32, %v14: f32, %v15: f32, %v16: f32, %v17: f32, %v18: f32, %v19: f32, %old: f32):
      %s1 = arith.addf %v0, %v1 : f32
      %s2 = arith.addf %s1, %v2 : f32
      %s3 = arith.addf %s2, %v3 : f32
      %s4 = arith.addf %s3, %v4 : f32
      %s5 = arith.addf %s4, %v5 : f32
      %s6 = arith.addf %s5, %v6 : f32
      %s7 = arith.addf %s6, %v7 : f32
      %s8 = arith.addf %s7, %v8 : f32
      %s9 = arith.addf %s8, %v9 : f32
      %s10 = arith.addf %s9, %v10 : f32
      %s11 = arith.addf %s10, %v11 : f32
      %s12 = arith.addf %s11, %v12 : f32
      %s13 = arith.addf %s12, %v13 : f32
      %s14 = arith.addf %s13, %v14 : f32
      %s15 = arith.addf %s14, %v15 : f32
      %s16 = arith.addf %s15, %v16 : f32
      %s17 = arith.addf %s16, %v17 : f32
      %s18 = arith.addf %s17, %v18 : f32
      %s19 = arith.addf %s18, %v19 : f32
      linalg.yield %s19 : f32
  } -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
