//===- CleaveAttrs.td - Attributes of the cleave dialect ---*- tablegen -*-===//
#ifndef CLEAVE_DIALECTS_CLEAVE_ATTRS
#define CLEAVE_DIALECTS_CLEAVE_ATTRS

include "dialects/cleave/CleaveDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Cleave_Attr<string name, string mnem> : AttrDef<Cleave_Dialect, name> {
  let mnemonic = mnem;
  let hasCustomAssemblyFormat = 1;
}

def Cleave_MeshAxisAttr : Cleave_Attr<"MeshAxis", "axis"> {
  let summary = "Named axis of a mesh with its size";
  let description = [{
    Written `"tp"=4` inside a mesh.
  }];
  let parameters = (ins StringRefParameter<"axis name">:$name,
                        "int64_t":$size);
}

def Cleave_MeshAttr : Cleave_Attr<"Mesh", "mesh"> {
  let summary = "Named axes and the order of the ranks";
  let description = [{
    Axes from major to minor. Without `ranks`, rank i sits at row-major
    coordinate i; with it, `ranks[i]` does.

    Constraints:
    (C1) Axis names are not empty and differ from each other.
    (C2) Sizes are at least 1, and their product fits into 31 bits.
    (C3) `ranks` is a permutation of 0 to the number of ranks - 1.

    Example: `#cleave.mesh<["pp"=2, "tp"=4]>`,
    `#cleave.mesh<["a"=2, "b"=2], ranks=[0, 2, 1, 3]>`.
  }];
  let parameters = (ins ArrayRefParameter<"MeshAxisAttr">:$axes,
                        OptionalArrayRefParameter<"int64_t">:$ranks);
  let genVerifyDecl = 1;
}

def Cleave_AxisRefAttr : Cleave_Attr<"AxisRef", "axis_ref"> {
  let summary = "Axis or sub-axis of a mesh";
  let description = [{
    `"a"` is the whole axis. `"a":(2)3` is the sub-axis of size 3 after the
    first 2 shards: coordinate c of an axis of size 12 has the digit
    (c / 2) % 3. A whole axis has `pre` 1 and `size` 0.
  }];
  let parameters = (ins StringRefParameter<"axis name">:$name,
                        "int64_t":$pre, "int64_t":$size);
  let builders = [AttrBuilder<(ins "llvm::StringRef":$name), [{
    return $_get($_ctxt, name, 1, 0);
  }]>];
}

def Cleave_AxesAttr : Cleave_Attr<"Axes", "axes"> {
  let summary = "List of axes from major to minor";
  let description = [{
    Example: `#cleave.axes<["a", "b":(1)2]>`.
  }];
  let parameters = (ins OptionalArrayRefParameter<"AxisRefAttr">:$refs);
}

def Cleave_DimShardingAttr : Cleave_Attr<"DimSharding", "dim"> {
  let summary = "How one dim of a tensor is cut";
  let description = [{
    Axes from major to minor. `{"a"}` is closed: exactly so. `{"a", ?}` is open:
    propagation may append axes. `p1` after it is a priority: 0, the default, is
    propagated first. `priority` -1 means not given.
  }];
  let parameters = (ins OptionalArrayRefParameter<"AxisRefAttr">:$axes,
                        "bool":$open, "int64_t":$priority);
}

def Cleave_ShardingAttr : Cleave_Attr<"Sharding", "sharding"> {
  let summary = "How one tensor lies on a mesh";
  let description = [{
    One entry per dim; axes that stay replicated whatever propagation finds; and
    axes over which the tensor is partial, so that each rank holds a summand.

    A dim of size d that is cut into n shards has blocks of ceil(d/n): the last
    shards are shorter or empty.

    Constraints, checked where the attribute is used:
    (C1) The mesh is a `cleave.mesh` of the module.
    (C2) Every axis is one of the mesh.
    (C3) A sub-axis `(pre)size` has pre >= 1, size > 1, and pre * size divides
         the size of its axis.
    (C4) No axis or overlapping sub-axis occurs twice, whether in dims,
         `replicated` or `partial`.
    (C5) There are as many entries as the tensor has dims.
    (C6) The tensor has a static shape.
    (C7) The kind of `partial` fits the element type: bitwise and unsigned kinds
         are for integers, `maxnum` and `minnum` for floats.

    Example:
    `#cleave.sharding<@pod, [{"dp", ?}, {"tp"}p1], replicated={"pp"}>`,
    `#cleave.sharding<@pod, [{}, {} ], partial=sum{"tp"}>`.
  }];
  let parameters = (ins "mlir::FlatSymbolRefAttr":$mesh,
                        OptionalArrayRefParameter<"DimShardingAttr">:$dims,
                        OptionalArrayRefParameter<"AxisRefAttr">:$replicated,
                        StringRefParameter<"reduction kind">:$kind,
                        OptionalArrayRefParameter<"AxisRefAttr">:$partial);
}

#endif // CLEAVE_DIALECTS_CLEAVE_ATTRS
