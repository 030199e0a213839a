// The command line of `cleave` for a model: smollm2-model MODEL_DIR plan ...
#include "Llama.h"
#include <cstdio>
int main(int argc, char **argv) {
  std::vector<std::string> warnings;
  auto config =
      llama::readConfig(std::string(argv[1]) + "/config.json", warnings);
  if (!config) {
    puts(config.error().c_str());
    return 1;
  }
  auto m = llama::makeModel(*config, {});
  return cleave::driver(argc - 1, argv + 1, m,
                        llama::makePlan(*config, {1, 3}));
}
