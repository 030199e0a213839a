//===- Files.h - Small files for tests --------------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_RUNTIME_FILES_H
#define CLEAVE_TEST_RUNTIME_FILES_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace cleave::rt::test {

/// A folder that goes away with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    char pattern[] = "/tmp/cleave-test-XXXXXX";
    folder = mkdtemp(pattern);
  }
  ~TemporaryFolder() {
    int ignored = std::system(("rm -rf " + folder).c_str());
    (void)ignored;
  }
  std::string path(const std::string &name) const {
    return folder + "/" + name;
  }
  const std::string &root() const { return folder; }

private:
  std::string folder;
};

inline void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename T> std::string bytesOf(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

/// A .npy file of version 1, as NumPy writes it.
inline std::string npy(const std::string &descr, const std::string &shape,
                       const std::string &data,
                       const std::string &order = "False", int version = 1) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order +
                       ", 'shape': " + shape + ", }";
  size_t prefix = version == 1 ? 10 : 12;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += char(version);
  out += '\0';
  for (size_t i = 0; i < prefix - 8; ++i)
    out += char((header.size() >> (8 * i)) & 255);
  return out + header + data;
}

/// A safetensors file with this header and data.
inline std::string safetensors(const std::string &header,
                               const std::string &data) {
  uint64_t size = header.size();
  return std::string(reinterpret_cast<const char *>(&size), 8) + header + data;
}

} // namespace cleave::rt::test

#endif // CLEAVE_TEST_RUNTIME_FILES_H
