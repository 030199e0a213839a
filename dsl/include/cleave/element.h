//===- element.h - Element types of tensors --------------------*- C++ -*-===//
#ifndef CLEAVE_ELEMENT_H
#define CLEAVE_ELEMENT_H

namespace cleave {
inline namespace lang {

/// What a tensor consists of.
enum class Element : unsigned char { f32, bf16, f16, f64, i32, i64, i8, i1 };
using enum Element;

} // namespace lang
} // namespace cleave

#endif // CLEAVE_ELEMENT_H
