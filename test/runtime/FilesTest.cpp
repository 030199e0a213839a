//===- FilesTest.cpp - Blocks, .npy files, output files
//--------------------===//
#include "test/runtime/Files.h"
#include "runtime/io/Npy.h"
#include "test/runtime/TestProgram.h"
#include "test/runtime/TestTensor.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

//===----------------------------------------------------------------------===//
// Tensors over a mesh
//===----------------------------------------------------------------------===//

TEST(Blocks, UnevenDimsRoundTrip) {
  TestProgram program({2, 3}, 4096, {5, 3, 1, 0, 2, 4});
  std::vector<float> data(5 * 7);
  std::iota(data.begin(), data.end(), 1.0f);
  GlobalArray array;
  array.data = reinterpret_cast<char *>(data.data());
  array.dtype = CLEAVE_F32;
  array.shape = {5, 7};
  array.setSteps(false);
  std::vector<CleaveAxisRef> a = {{0, 1, 2}}, b = {{1, 1, 3}},
                             both = {a[0], b[0]};
  using Dims = std::vector<std::vector<CleaveAxisRef>>;
  for (const Dims &dims : {Dims{{}, {}}, Dims{a, b}, Dims{b, a}, Dims{both, {}},
                           Dims{{}, {b[0], a[0]}}, Dims{{}, a}})
    roundTrip(TestTensor(CLEAVE_F32, {5, 7}, dims), program.program, array,
              data.size());
}

TEST(Blocks, FirstOwnerWrites) {
  TestProgram program({2, 2});
  Mesh mesh(program.program);
  TestTensor t(CLEAVE_F32, {4}, {{{1, 1, 2}}});
  EXPECT_TRUE(ownsBlock(t.tensor, mesh, 0));
  EXPECT_TRUE(ownsBlock(t.tensor, mesh, 1));
  EXPECT_FALSE(ownsBlock(t.tensor, mesh, 2));
  EXPECT_FALSE(ownsBlock(t.tensor, mesh, 3));
}

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

Status parse(const std::string &bytes, NpyFile *file) {
  return file->parse(bytes.data(), int64_t(bytes.size()));
}

std::string parseError(const std::string &bytes) {
  NpyFile file;
  return parse(bytes, &file).message();
}

TEST(Npy, BothOrdersAndByteOrders) {
  TestProgram program({2});
  TestTensor t(CLEAVE_F32, {2, 3}, {{}, {{0, 1, 2}}});
  std::vector<float> rows = {1, 2, 3, 4, 5, 6}, columns = {1, 4, 2, 5, 3, 6};
  std::string big;
  for (float value : rows) {
    std::string bytes = bytesOf(std::vector<float>{value});
    big.append(bytes.rbegin(), bytes.rend());
  }
  for (const std::string &bytes :
       {npy("<f4", "(2, 3)", bytesOf(rows)),
        npy("<f4", "(2, 3)", bytesOf(rows), "False", 2),
        npy("<f4", "(2, 3)", bytesOf(rows), "False", 3),
        npy("<f4", "(2, 3)", bytesOf(columns), "True"),
        npy(">f4", "(2, 3)", big)}) {
    NpyFile file;
    Status status = parse(bytes, &file);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(checkNpy(file.array, t.tensor, "x").ok());
    roundTrip(t, program.program, file.array, 6);
  }
}

TEST(Npy, ScalarsAndEmptyArrays) {
  NpyFile scalar, empty;
  EXPECT_TRUE(
      parse(npy("<i8", "()", bytesOf(std::vector<int64_t>{7})), &scalar).ok());
  EXPECT_TRUE(scalar.array.shape.empty());
  EXPECT_TRUE(parse(npy("|b1", "(0, 4)", ""), &empty).ok());
  EXPECT_EQ(empty.array.shape, (std::vector<int64_t>{0, 4}));
}

TEST(Npy, DamagedFiles) {
  EXPECT_EQ(parseError(""), "not a whole .npy file: it does not start with the "
                            "magic string");
  EXPECT_EQ(parseError(std::string("\x93NUMPY\x09\x00\x10\x00", 10)),
            "version 9 of the .npy format; versions 1 to 3 are known");
  EXPECT_EQ(parseError(std::string("\x93NUMPY\x01\x00\x10", 9)),
            "not a whole .npy file: the header is cut off");
  EXPECT_EQ(parseError(std::string("\x93NUMPY\x01\x00\xff\xff{", 11)),
            "not a whole .npy file: the header is cut off");
  EXPECT_EQ(parseError(std::string("\x93NUMPY\x01\x00\x02\x00{}", 12)),
            "not a whole .npy file: the header is no dictionary of 'descr', "
            "'fortran_order' and 'shape'");
  EXPECT_EQ(parseError(npy("<c8", "(1,)", "12345678")),
            "the element type is '<c8'; f2, f4, f8, i1, i2, i4, i8 and b1 are "
            "known");
  EXPECT_EQ(parseError(npy("<f4", "(3, 4)", "123")),
            "not a whole .npy file: an array of 3x4 f32 needs 48 bytes, the "
            "file has 3");
  EXPECT_EQ(parseError(npy("<f4", "(4611686018427387904, 4)", "")),
            "not a whole .npy file: an array of 4611686018427387904x4 f32 does "
            "not fit any file");
}

TEST(Npy, WrongShapesAndTypes) {
  TestTensor f32(CLEAVE_F32, {2, 3}, {{}, {}}), bf16(CLEAVE_BF16, {2}, {{}}),
      f16(CLEAVE_F16, {2}, {{}}), i1(CLEAVE_I1, {2}, {{}});
  auto error = [](const TestTensor &t, uint32_t dtype,
                  std::vector<int64_t> shape) {
    GlobalArray array;
    array.dtype = dtype;
    array.shape = std::move(shape);
    return checkNpy(array, t.tensor, "input 'x' from 'x.npy'").message();
  };
  EXPECT_EQ(error(f32, CLEAVE_F32, {3, 2}),
            "input 'x' from 'x.npy' has shape 3x2, the program expects 2x3");
  EXPECT_EQ(error(f32, CLEAVE_F32, {}),
            "input 'x' from 'x.npy' has shape scalar, the program expects 2x3");
  EXPECT_EQ(error(f32, CLEAVE_F64, {2, 3}),
            "input 'x' from 'x.npy' has type f64, the program expects f32");
  EXPECT_EQ(error(bf16, CLEAVE_F16, {2}),
            "input 'x' from 'x.npy' has type f16, the program expects f32 for "
            "its bf16");
  EXPECT_EQ(error(f16, CLEAVE_I8, {2}),
            "input 'x' from 'x.npy' has type i8, the program expects f16 (or "
            "f32)");
  EXPECT_EQ(error(i1, CLEAVE_I8, {2}),
            "input 'x' from 'x.npy' has type i8, the program expects i1");
  EXPECT_EQ(error(bf16, CLEAVE_F32, {2}), "");
  EXPECT_EQ(error(f16, CLEAVE_F32, {2}), "");
}

TEST(Npy, HeaderIsReadBack) {
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{}, {5}, {5, 0}, {1, 2, 3, 4}}) {
    std::string header =
        npyHeader(CLEAVE_F16, shape.data(), int64_t(shape.size()));
    EXPECT_EQ(header.size() % 64, 0u);
    NpyFile file;
    ASSERT_TRUE(parse(header + std::string(64, '\0'), &file).ok());
    EXPECT_EQ(file.array.shape, shape);
    EXPECT_EQ(file.array.dtype, uint32_t(CLEAVE_F16));
  }
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

TEST(Dtype, HalvesWidenAndNarrowBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float wide = f16ToFloat(uint16_t(bits));
    EXPECT_EQ(std::isnan(wide), (bits & 0x7fff) > 0x7c00);
    if (!std::isnan(wide)) {
      ASSERT_EQ(floatToF16(wide), bits);
    }
    float other = bf16ToFloat(uint16_t(bits));
    if (!std::isnan(other)) {
      ASSERT_EQ(floatToBf16(other), bits);
    }
  }
}

TEST(Dtype, NarrowingRoundsToNearestEven) {
  EXPECT_EQ(floatToBf16(1.00390625f), 0x3f80); // halfway, down to even
  EXPECT_EQ(floatToBf16(1.01171875f), 0x3f82); // halfway, up to even
  EXPECT_EQ(floatToF16(2049.0f), floatToF16(2048.0f));
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(floatToF16(0x1p-25f), 0); // halfway to the smallest
  EXPECT_EQ(floatToF16(0x1.8p-25f), 1);
  EXPECT_EQ(floatToBf16(NAN) & 0x7fff, 0x7fc0);
  EXPECT_EQ(floatToF16(NAN) & 0x7c00, 0x7c00);
  EXPECT_NE(floatToF16(NAN) & 0x3ff, 0);
}

TEST(Dtype, ConvertCountsValuesThatOverflow) {
  float in[4] = {1, 70000, INFINITY, -1e30f};
  uint16_t out[4];
  EXPECT_EQ(convert({reinterpret_cast<char *>(out), CLEAVE_F16, 2},
                    {reinterpret_cast<const char *>(in), CLEAVE_F32, 4}, 4),
            2);
}

TEST(Dtype, BooleansBecomeZeroOrOne) {
  char in[4] = {0, 1, 2, -1}, out[4];
  convert({out, CLEAVE_I1, 1}, {in, CLEAVE_I1, 1}, 4);
  EXPECT_EQ(std::string(out, 4), std::string("\0\1\1\1", 4));
}

//===----------------------------------------------------------------------===//
// Mapped files
//===----------------------------------------------------------------------===//

/// Pages of files that this process has in its tables.
int64_t sharedPages() {
  int64_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

TEST(MappedFile, ReleasedPagesAreNobodysMemory) {
  constexpr int64_t kPages = 2048;
  TemporaryFolder folder;
  std::string path = folder.path("large");
  writeFile(path, std::string(kPages * 4096, 'x'));
  MappedFile file;
  ASSERT_TRUE(file.open(path).ok());
  auto count = [&] {
    return std::count(file.data(), file.data() + file.size(), 'x');
  };
  EXPECT_EQ(count(), kPages * 4096);
  int64_t before = sharedPages();
  file.release();
  EXPECT_LT(sharedPages(), before - kPages / 2);
  EXPECT_EQ(count(), kPages * 4096); // they come back
}

//===----------------------------------------------------------------------===//
// Output files
//===----------------------------------------------------------------------===//

TEST(OutputFile, OldFileStaysWhenTheDiskIsFull) {
  TemporaryFolder folder;
  std::string path = folder.path("y.npy");
  writeFile(path, "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before, small{1024, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &before);
  small.rlim_max = before.rlim_max;
  setrlimit(RLIMIT_FSIZE, &small);
  {
    OutputFile file;
    EXPECT_EQ(file.create(path, 4096, "1").message(),
              "cannot write '" + path + "': file too large");
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(readFile(path), "old");
  EXPECT_NE(access((path + ".1.tmp").c_str(), F_OK), 0);
}

TEST(OutputFile, FullDeviceIsAnError) {
  OutputFile file;
  ASSERT_TRUE(file.create("/dev/full", 16, "1").ok());
  EXPECT_EQ(file.commit().message(),
            "cannot write '/dev/full': no space left on device");
}

TEST(OutputFile, ReplacesOnlyAtCommit) {
  TemporaryFolder folder;
  std::string path = folder.path("y"), link = folder.path("link");
  writeFile(path, "old");
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  for (bool commits : {false, true}) {
    OutputFile file;
    char *data;
    ASSERT_TRUE(file.create(link, 3, "1").ok());
    ASSERT_TRUE(file.map(&data).ok());
    std::memcpy(data, "new", 3);
    EXPECT_EQ(readFile(path), "old");
    if (commits) {
      EXPECT_TRUE(file.commit().ok());
    }
  }
  EXPECT_EQ(readFile(path), "new");
  EXPECT_EQ(readFile(link), "new");
}

TEST(OutputFile, MissingFolder) {
  OutputFile file;
  EXPECT_EQ(file.create("/nowhere/y.npy", 3, "1").message(),
            "cannot write '/nowhere/y.npy': no such file or directory");
}

} // namespace
