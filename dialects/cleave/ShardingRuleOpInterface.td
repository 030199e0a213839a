//===- ShardingRuleOpInterface.td ---------------------------*- tablegen -*-===//
#ifndef CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE
#define CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::cleave";
  let description = [{
    Says how the dims of an op's tensors correspond, and how the op is computed
    on one rank. Any project can attach it to its own ops as an external model;
    an op that computes each index independently needs `getShardingRule` only.
  }];
  let methods = [
    InterfaceMethod<[{
        The factors of this op. Operands that aren't ranked tensors have no
        dims in it.
      }], "::cleave::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
        Whether results are partial of this kind when just these operands are:
        reducing the operands first gives the same as reducing the result.
        Addition lets two partial sums through; a product lets one through.
      }], "bool", "passesPartial",
      (ins "::cleave::ReductionKind":$kind,
           "const ::llvm::SmallBitVector &":$partialOperands),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        Builds the op on one rank. `local` has the operands as blocks that lie
        as the factor axes imply. Returns one value per result, of the block
        type that the factor axes imply.
      }], "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>",
      "partition", (ins "::cleave::LocalBuilder &":$local),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::cleave::partitionByCloning($_op, local);
      }]>
  ];
}

#endif // CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE
