//===- Loop.h - Values of loops while they are built -----------*- C++ -*-===//
#ifndef CLEAVE_DSL_LOOP_H
#define CLEAVE_DSL_LOOP_H

#include "dsl/Maker.h"

namespace cleave::dsl {

/// A region inside of the current one, which becomes the current one.
Region *openRegion(Entry &entry, const std::string &scope);
/// The loops around the current region in whose scope a path lies, from the
/// outermost in.
std::vector<Region *> loopsOver(const Entry &entry, const std::string &path);
/// The dims of all turns' part: those of the loops, and then the turn's.
Dims stacked(const std::vector<Region *> &loops, const Dims &dims);
/// What a turn has of an argument that has the loops' dims in front.
Node *partOf(Maker &maker, Node *stack, const std::vector<Region *> &loops);
/// The state of a loop, which goes from turn to turn.
LoopState &stateOf(Maker &maker, const std::string &path, Region &loop);

} // namespace cleave::dsl

#endif // CLEAVE_DSL_LOOP_H
