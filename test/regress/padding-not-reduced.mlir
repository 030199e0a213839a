// A maximum over a dim of 10 cut into blocks of 3 does not see the padding of
// the last one, though every element is negative.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<10xi32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) -> tensor<i32> {
  %mask = arith.constant -2147483648 : i32
  %lowest = arith.constant -2147483648 : i32
  %cut = tensor.empty() : tensor<10xi32>
  %negative = linalg.map ins(%x : tensor<10xi32>) outs(%cut : tensor<10xi32>)
    (%in: i32, %out: i32) {
      %n = arith.ori %in, %mask : i32
      linalg.yield %n : i32
    }
  %empty = tensor.empty() : tensor<i32>
  %init = linalg.fill ins(%lowest : i32) outs(%empty : tensor<i32>)
    -> tensor<i32>
  %y = linalg.reduce { arith.maxsi }
    ins(%negative : tensor<10xi32>) outs(%init : tensor<i32>) dimensions = [0]
  return %y : tensor<i32>
}
