//===- Comm.h - The comm dialect -------------------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECTS_COMM_COMM_H
#define CLEAVE_DIALECTS_COMM_COMM_H

#include "dialects/cleave/Cleave.h"

#include "dialects/comm/CommDialect.h.inc"
#include "dialects/comm/CommEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/comm/CommAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/comm/CommOps.h.inc"

namespace cleave::comm {

inline Reduction toAttrEnum(ReductionKind kind) {
  return static_cast<Reduction>(kind);
}
inline ReductionKind toKind(Reduction kind) {
  return static_cast<ReductionKind>(kind);
}

} // namespace cleave::comm

#endif // CLEAVE_DIALECTS_COMM_COMM_H
