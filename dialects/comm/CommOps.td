//===- CommOps.td - The comm dialect ------------------------*- tablegen -*-===//
#ifndef CLEAVE_DIALECTS_COMM_OPS
#define CLEAVE_DIALECTS_COMM_OPS

include "dialects/cleave/CleaveAttrs.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Comm_Dialect : Dialect {
  let name = "comm";
  let cppNamespace = "::cleave::comm";
  let summary = "Communication between ranks, seen from one rank";
  let description = [{
    What one rank does with the others of its group. Types are those of one
    rank's blocks. A group is the ranks whose mesh coordinates differ only in
    the op's axes; a member's index is its row-major index over them.

    The collectives are pure: all ranks run the same program, so a collective
    that is removed, moved or shared is so on all of them. Every op carries the
    cause of its being.
  }];
  let dependentDialects = ["::cleave::CleaveDialect"];
  let useDefaultAttributePrinterParser = 1;
}

def Comm_CauseAttr : AttrDef<Comm_Dialect, "Cause"> {
  let mnemonic = "cause";
  let summary = "Why a communication is there";
  let description = [{
    `op`: the op that needs it; `value`: the value that moves, by its name in
    the model; `why`: which cut made it necessary; `remedy`: the change of an
    annotation that would remove it, or empty.

    Example:
    {{example test/dialects/comm/ops.mlir#cause}}
  }];
  let parameters = (ins StringRefParameter<>:$op, StringRefParameter<>:$value,
                        StringRefParameter<>:$why,
                        StringRefParameter<>:$remedy);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Comm_ReductionKind : I32EnumAttr<"Reduction", "reduction kind", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>,
    I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>,
    I32EnumAttrCase<"umax", 4>, I32EnumAttrCase<"umin", 5>,
    I32EnumAttrCase<"maxnum", 6>, I32EnumAttrCase<"minnum", 7>,
    I32EnumAttrCase<"And", 8, "and">, I32EnumAttrCase<"Or", 9, "or">,
    I32EnumAttrCase<"Xor", 10, "xor">]> {
  let cppNamespace = "::cleave::comm";
}

class Comm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Comm_Dialect, mnemonic, traits>;

class Comm_Collective<string mnemonic, list<Trait> traits = []>
    : Comm_Op<mnemonic, !listconcat(traits, [
        Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>])> {
  let results = (outs AnyStaticShapeTensor:$result);
}

def Comm_AllReduceOp : Comm_Collective<"all_reduce", [
    AllTypesMatch<["input", "result"]>]> {
  let summary = "reduction over the members, known to each";
  let description = [{
    Element-wise reduction of the members' inputs, in the order of the members.

    Constraints:
    (C1) The axes are axes of the mesh, none twice.
    (C2) The kind fits the element type (bitwise kinds: integers).

    Example:
    {{example test/dialects/comm/ops.mlir#all_reduce}}
  }];
  let arguments = (ins Comm_ReductionKind:$kind, AnyStaticShapeTensor:$input,
                       FlatSymbolRefAttr:$mesh, Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $kind $input `over` $mesh custom<Axes>($axes) (`cause` `=` $cause^)?
    attr-dict `:` type($result)
  }];
}

def Comm_AllGatherOp : Comm_Collective<"all_gather"> {
  let summary = "blocks of all members, joined along a dim";
  let description = [{
    The result's dim `dim` holds the members' inputs in their order.

    Constraints:
    (C1) The axes are axes of the mesh, none twice.
    (C2) `dim` is a dim of the input.
    (C3) The result has the input's type, but n times as much along `dim`.

    Example:
    {{example test/dialects/comm/ops.mlir#all_gather}}
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$dim,
                       FlatSymbolRefAttr:$mesh, Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $input `dim` $dim `over` $mesh custom<Axes>($axes) (`cause` `=` $cause^)?
    attr-dict `:` type($input) `->` type($result)
  }];
}

def Comm_ReduceScatterOp : Comm_Collective<"reduce_scatter"> {
  let summary = "reduction over the members, each getting one part";
  let description = [{
    Reduces as `all_reduce` does; member i gets part i along `dim`.

    Constraints:
    (C1) The axes are axes of the mesh, none twice.
    (C2) `dim` is a dim of the input.
    (C3) The input has the result's type, but n times as much along `dim`.
    (C4) The kind fits the element type.

    Example:
    {{example test/dialects/comm/ops.mlir#reduce_scatter}}
  }];
  let arguments = (ins Comm_ReductionKind:$kind, AnyStaticShapeTensor:$input,
                       I64Attr:$dim, FlatSymbolRefAttr:$mesh,
                       Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $kind $input `dim` $dim `over` $mesh custom<Axes>($axes)
    (`cause` `=` $cause^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Comm_AllToAllOp : Comm_Collective<"all_to_all"> {
  let summary = "cut moved from one dim to another";
  let description = [{
    Splits `split_dim` into n parts, sends part j to member j, and joins what
    arrives along `concat_dim` in the order of the members.

    Constraints:
    (C1) The axes are axes of the mesh, none twice.
    (C2) Both dims are dims of the input, and differ.
    (C3) The input's `split_dim` is a multiple of n.
    (C4) The result has a n-th along `split_dim` and n times `concat_dim`.

    Example:
    {{example test/dialects/comm/ops.mlir#all_to_all}}
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$split_dim,
                       I64Attr:$concat_dim, FlatSymbolRefAttr:$mesh,
                       Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $input `split` $split_dim `concat` $concat_dim `over` $mesh
    custom<Axes>($axes) (`cause` `=` $cause^)? attr-dict
    `:` type($input) `->` type($result)
  }];
}

def Comm_PermuteOp : Comm_Collective<"permute", [
    AllTypesMatch<["input", "result"]>]> {
  let summary = "whole blocks handed to other members";
  let description = [{
    The member whose index over `source` is k sends its block to the member
    whose index over `axes` is k.

    Constraints:
    (C1) The axes are axes of the mesh, none twice; `source` likewise.
    (C2) Both lists have as many members.

    Example:
    {{example test/dialects/comm/ops.mlir#permute}}
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Cleave_AxesAttr:$source,
                       FlatSymbolRefAttr:$mesh, Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $input `from` custom<Axes>($source) `over` $mesh custom<Axes>($axes)
    (`cause` `=` $cause^)? attr-dict `:` type($result)
  }];
}

def Comm_RealignOp : Comm_Collective<"realign", [
    AllTypesMatch<["init", "result"]>]> {
  let summary = "boundaries of blocks moved along a dim";
  let description = [{
    The general halo exchange: what slices, pads and joins a dim that is cut,
    and what moves an uneven dim between two cuts. Seen globally, index j of the
    result's dim takes index offset + j*stride of the input's where that lies
    inside it, and keeps the value of `init` elsewhere. The input's dim has
    `in_size` indices in blocks over `source`, the result's has `out_size`
    in blocks over `axes`. A rank's data outside a block's valid part is
    neither sent nor written.

    Constraints:
    (C1) The axes are axes of the mesh, none twice; `source` likewise.
    (C2) `dim` is a dim of the input, and all other dims are equal in both.
    (C3) The blocks cover their sizes: n * block >= size.
    (C4) The stride is at least 1.

    Example:
    {{example test/dialects/comm/ops.mlir#realign}}
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, AnyStaticShapeTensor:$init,
                       I64Attr:$dim, I64Attr:$in_size, I64Attr:$out_size,
                       I64Attr:$offset, I64Attr:$stride,
                       Cleave_AxesAttr:$source, FlatSymbolRefAttr:$mesh,
                       Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $input `into` $init `dim` $dim `size` $in_size `to` $out_size
    `offset` $offset `stride` $stride `from` custom<Axes>($source)
    `over` $mesh custom<Axes>($axes) (`cause` `=` $cause^)? attr-dict
    `:` type($input) `->` type($result)
  }];
}

def Comm_SliceOp : Comm_Collective<"slice"> {
  let summary = "own part of what each member holds, without traffic";
  let description = [{
    Member i keeps part i along `dim`.

    Constraints:
    (C1) The axes are axes of the mesh, none twice.
    (C2) `dim` is a dim of the input.
    (C3) The input has the result's type, but n times as much along `dim`.

    Example:
    {{example test/dialects/comm/ops.mlir#slice}}
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$dim,
                       FlatSymbolRefAttr:$mesh, Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $input `dim` $dim `over` $mesh custom<Axes>($axes) (`cause` `=` $cause^)?
    attr-dict `:` type($input) `->` type($result)
  }];
}

def Comm_CoordinateOp : Comm_Op<"coordinate", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "index of this rank over axes";
  let description = [{
    Row-major index of this rank over the axes. The only value that differs
    between ranks without having been computed from data; it must not decide a
    branch around a communication.

    Constraints:
    (C1) The axes are axes of the mesh, none twice.

    Example:
    {{example test/dialects/comm/ops.mlir#coordinate}}
  }];
  let arguments = (ins FlatSymbolRefAttr:$mesh, Cleave_AxesAttr:$axes);
  let results = (outs Index:$result);
  let assemblyFormat = "`over` $mesh custom<Axes>($axes) attr-dict";
}

class Comm_Transfer<string mnemonic> : Comm_Op<mnemonic, [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Comm_SendOp : Comm_Transfer<"send"> {
  let summary = "block sent along an axis";
  let description = [{
    Sends the block to the rank whose coordinate on the axis is larger by
    `delta`. The other rank runs the matching `comm.recv`.

    Constraints:
    (C1) The axes name one axis of the mesh.
    (C2) `delta` is not 0 and smaller than the axis.

    Example:
    {{example test/dialects/comm/ops.mlir#transfers}}
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$delta,
                       FlatSymbolRefAttr:$mesh, Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let assemblyFormat = [{
    $input `delta` $delta `over` $mesh custom<Axes>($axes)
    (`cause` `=` $cause^)? attr-dict `:` type($input)
  }];
}

def Comm_RecvOp : Comm_Transfer<"recv"> {
  let summary = "block received along an axis";
  let description = [{
    Receives from the rank whose coordinate on the axis is larger by `delta`.

    Constraints:
    (C1) The axes name one axis of the mesh.
    (C2) `delta` is not 0 and smaller than the axis.

    Example:
    {{example test/dialects/comm/ops.mlir#transfers}}
  }];
  let arguments = (ins I64Attr:$delta, FlatSymbolRefAttr:$mesh,
                       Cleave_AxesAttr:$axes,
                       OptionalAttr<Comm_CauseAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    `delta` $delta `over` $mesh custom<Axes>($axes) (`cause` `=` $cause^)?
    attr-dict `:` type($result)
  }];
}

#endif // CLEAVE_DIALECTS_COMM_OPS
