//===- CleaveDialect.td - Meshes and shardings -------------*- tablegen -*-===//
#ifndef CLEAVE_DIALECTS_CLEAVE_DIALECT
#define CLEAVE_DIALECTS_CLEAVE_DIALECT

include "mlir/IR/OpBase.td"

def Cleave_Dialect : Dialect {
  let name = "cleave";
  let cppNamespace = "::cleave";
  let summary = "Meshes, shardings and hints on how to cut a model";
  let description = [{
    The words in which a model says how it is cut. A `cleave.mesh` names the
    axes of the ranks; a `#cleave.sharding` says how one tensor lies on them.
    A sharding stands on function arguments and results and, as the discardable
    attribute `cleave.sharding`, on any op with tensor results: a list for
    several results, with `unit` for those that have none. Two more attributes
    tell what an argument of a public function is:

    * `cleave.weight = "name"`: a weight, loaded once under that name;
    * `cleave.state = "name"`: state that persists between calls, replaced by
      the result that bears the same attribute.

    Constraints:
    (C1) `cleave.sharding` on an op is a sharding, or a list with one entry per
         result; on an argument or result it is a sharding.
    (C2) `cleave.weight` stands on arguments, `cleave.state` on arguments and
         results; both are names in quotes, and not both on one argument.
    (C3) The result with the `cleave.state` of an argument has its type.
    (C4) Nothing else begins with `cleave.`, but for `cleave.global_type`, the
         type of the whole tensor, which partitioning puts on the arguments and
         results of functions.

    The ops are hints to propagation. None of them survives partitioning.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

#endif // CLEAVE_DIALECTS_CLEAVE_DIALECT
