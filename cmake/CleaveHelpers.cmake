# Helpers shared by every folder: compiler cache, linker, warnings, tests.

find_program(CLEAVE_CCACHE ccache)
if(CLEAVE_CCACHE)
  # Precompiled headers hit the cache only with this sloppiness.
  set(launcher ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CLEAVE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(CLEAVE_LLD NAMES ld.lld-22 ld.lld)
if(CLEAVE_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(--ld-path=${CLEAVE_LLD})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(SHELL:-Xclang SHELL:-fno-pch-timestamp)
endif()

# What the driver can do: `plan` is all it says about a model, `run` is
# executables and `cleave check`. Tests and pages that need more are left out.
set(CLEAVE_FEATURES plan run)

# What a user runs, without the tests: tools, and the libraries that compiled
# programs link.
add_custom_target(product)

# The project's include root: "dialects/cleave/Cleave.h", "passes/Passes.h".
function(cleave_set_target name)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}
                                            ${PROJECT_BINARY_DIR})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  # g++ 12 warns wrongly of its own library (-Wrestrict), so its warnings stay
  # warnings.
  if(DEFINED ENV{CI} AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${name} PRIVATE -Werror
      # What libstdc++ 12 itself uses of C++17.
      -Wno-error=deprecated-declarations)
  endif()
endfunction()

# cleave_add_test(name SOURCES ... LINK ... [LABELS ...]): a GoogleTest program
# that is one ctest entry.
function(cleave_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  cleave_set_target(${name})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/bin)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()
