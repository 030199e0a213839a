# Finds MLIR 22 as installed and defines the helpers of compiler targets.
# Everything links the shared objects named MLIR and LLVM, and nothing else of
# them: naming a static MLIR archive too would bring a second copy of each type.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(LLVM_LINK_LLVM_DYLIB ON)
set(MLIR_LINK_MLIR_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(cleave_mlir INTERFACE)
target_include_directories(cleave_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS}
                                                        ${MLIR_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(cleave_mlir INTERFACE ${llvm_definitions}
                                             -fno-exceptions)
target_link_libraries(cleave_mlir INTERFACE MLIR LLVM)

# One precompiled header of MLIR for all compiler targets.
add_library(cleave_pch STATIC ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
cleave_set_target(cleave_pch)
target_link_libraries(cleave_pch PUBLIC cleave_mlir)
target_precompile_headers(cleave_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)

# cleave_add_library(name SOURCES ... LINK ... DEPENDS ...)
function(cleave_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  cleave_set_target(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} cleave_mlir)
  target_precompile_headers(${name} REUSE_FROM cleave_pch)
  add_dependencies(${name} mlir-headers ${ARG_DEPENDS})
endfunction()

# cleave_add_tool(name SOURCES ... LINK ...): an executable in build/bin. A thin
# main, so it does without the precompiled header (which is not built as PIE).
function(cleave_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  cleave_set_target(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} cleave_mlir)
  add_dependencies(${name} mlir-headers)
  add_dependencies(product ${name})
endfunction()

# cleave_tablegen(file.td out.inc -flags...): mlir-tblgen beside the .td.
macro(cleave_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${ARGN})
endmacro()
