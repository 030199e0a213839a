#include "passes/propagate/PartialPlacement.h"
namespace cleave { }
