//===- CleaveOps.td - Ops of the cleave dialect ------------*- tablegen -*-===//
#ifndef CLEAVE_DIALECTS_CLEAVE_OPS
#define CLEAVE_DIALECTS_CLEAVE_OPS

include "dialects/cleave/CleaveAttrs.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Cleave_Op<string mnemonic, list<Trait> traits = []>
    : Op<Cleave_Dialect, mnemonic, traits>;

def Cleave_MeshOp : Cleave_Op<"mesh", [Symbol]> {
  let summary = "named mesh of ranks";
  let description = [{
    Gives a mesh a name that shardings refer to.

    Example:
    {{example test/dialects/cleave/ops.mlir#mesh}}
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Cleave_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name `=` $mesh attr-dict";
}

def Cleave_ConstraintOp : Cleave_Op<"constraint", [
    Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "sharding of a value at one place";
  let description = [{
    The value has this sharding from here on: closed dims exactly so. Where the
    producer has another one, the value is moved here. A constraint that
    propagation adds says in `because` what for.

    Constraints:
    (C1) The sharding fits the type (see `#cleave.sharding`).

    Example:
    {{example test/dialects/cleave/ops.mlir#constraint}}
  }];
  let arguments = (ins AnyRankedTensor:$input, Cleave_ShardingAttr:$sharding,
                       OptionalAttr<StrAttr>:$because);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input custom<ShardingBody>($sharding) attr-dict `:` type($result)
  }];
}

def Cleave_Direction : I32EnumAttr<"BarrierDirection", "way propagation may pass", [
    I32EnumAttrCase<"None", 0, "NONE">,
    I32EnumAttrCase<"Forward", 1, "FORWARD">,
    I32EnumAttrCase<"Backward", 2, "BACKWARD">,
    I32EnumAttrCase<"Both", 3, "BOTH">]> {
  let cppNamespace = "::cleave";
}

def Cleave_BarrierOp : Cleave_Op<"barrier", [
    Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "stop to propagation";
  let description = [{
    Lets shardings pass only from operand to result (FORWARD), only from result
    to operand (BACKWARD), not at all (NONE), or both ways (BOTH).

    Example:
    {{example test/dialects/cleave/ops.mlir#barrier}}
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       Cleave_Direction:$allowed_direction);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `allowed_direction` `` `=` `` $allowed_direction attr-dict
    `:` type($result)
  }];
}

def Cleave_GroupOp : Cleave_Op<"group", []> {
  let summary = "member of a group with one sharding";
  let description = [{
    All values of one group of a function get the same sharding.

    Constraints:
    (C1) The id is not negative.
    (C2) All members of a group have the same shape.

    Example:
    {{example test/dialects/cleave/ops.mlir#group}}
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$group_id);
  let assemblyFormat = [{
    $input `group_id` `` `=` `` $group_id attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

#endif // CLEAVE_DIALECTS_CLEAVE_OPS
