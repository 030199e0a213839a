//===- DispatchOps.td - The dispatch dialect -----------------*- tablegen -*-===//
#ifndef CLEAVE_DIALECTS_DISPATCH_OPS
#define CLEAVE_DIALECTS_DISPATCH_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dispatch_Dialect : Dialect {
  let name = "dispatch";
  let cppNamespace = "::cleave::dispatch";
  let summary = "Calls of fused kernels, and where their buffers lie";
  let description = [{
    From the phase `dispatch` on, the work of a function is done by kernels:
    private functions with the attribute `dispatch.kernel` that end in one
    destination per result. What is left in the function is calls of them,
    communication, calls, loops, scalars and views.

    The phase `memory` adds where everything lies:

    * `dispatch.at = [#dispatch.at<frame, 128>]`, on ops and arguments: the
      place of each result;
    * `dispatch.frame_bytes` on functions: what a call of it needs;
    * `dispatch.frame` on `func.call`: where the callee's frame lies;
    * `dispatch.scratch` on `dispatch.call`: where the kernel's temporaries lie;
    * `dispatch.ties` on functions: pairs of an argument and the result that
      takes over its buffer.
  }];
  let useDefaultAttributePrinterParser = 1;
}

def Dispatch_PlaceBase : I32EnumAttr<"PlaceBase", "what a place is counted from", [
    I32EnumAttrCase<"frame", 0>, I32EnumAttrCase<"resident", 1>,
    I32EnumAttrCase<"arg", 2>, I32EnumAttrCase<"result", 3>,
    I32EnumAttrCase<"constant", 4>, I32EnumAttrCase<"none", 5>]> {
  let cppNamespace = "::cleave::dispatch";
}

def Dispatch_AtAttr : AttrDef<Dispatch_Dialect, "At"> {
  let mnemonic = "at";
  let summary = "The place of a tensor";
  let description = [{
    `frame`: `value` bytes into the frame of the call. `resident`: bytes into
    the weights and states. `arg`, `result`: the buffer of this argument or
    result of the function, which the caller owns. `constant`: lies in the
    program. `none`: nobody needs it.
  }];
  let parameters = (ins EnumParameter<Dispatch_PlaceBase>:$base, "int64_t":$value);
  let assemblyFormat = "`<` $base `,` $value `>`";
}

class Dispatch_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dispatch_Dialect, mnemonic, !listconcat(traits, [Pure])>;

def Dispatch_CallOp : Dispatch_Op<"call", [
    AttrSizedOperandSegments,
    RangedTypesMatchWith<"results have the types of the destinations", "dests",
        "results", "llvm::make_range($_self.begin(), $_self.end())">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call of a kernel";
  let description = [{
    Runs the kernel on `inputs`; result i takes the place of `dests` i. A
    destination that is a `tensor.empty` only says the type. Any other is read:
    the kernel starts from its content, and later readers of the old content
    need a copy.

    Constraints:
    (C1) The callee is a function with the attribute `dispatch.kernel`.
    (C2) Its arguments are the inputs, then the destinations.
    (C3) The results have the types of the destinations.

    Example:
    ```mlir
    %1 = dispatch.call @add(%a, %b) into (%0)
           : (tensor<4xf32>, tensor<4xf32>) into (tensor<4xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$inputs,
                       Variadic<AnyStaticShapeTensor>:$dests);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $inputs `)` `into` ` ` `(` $dests `)` attr-dict
    `:` `(` type($inputs) `)` `into` ` ` `(` type($dests) `)`
  }];
  let builders = [OpBuilder<(ins "llvm::StringRef":$callee,
                                 "mlir::ValueRange":$inputs,
                                 "mlir::ValueRange":$dests)>];
}

def Dispatch_CopyOp : Dispatch_Op<"copy", [
    AllTypesMatch<["input", "result"]>]> {
  let summary = "copy of a tensor into a buffer of its own";
  let description = [{
    The same value in another place. The phase `memory` inserts it where a
    buffer is overwritten while its old content is still needed, and where a
    value must end in a given place.

    Example:
    ```mlir
    %1 = dispatch.copy %0 : tensor<4xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

#endif // CLEAVE_DIALECTS_DISPATCH_OPS
