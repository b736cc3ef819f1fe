// Wording errors that name places: torch's sentence, a blank line, where it happened, what to do; and warning
// at the user's line, whatever Python of ours stands between.
#pragma once
#include <vector>

#include "../tensor/source.h"

namespace rl {

struct Place {
  const char* what;  // "It was saved"
  Source source;
};

// `  It was saved at\n    File "train.py", line 3, in step\n      y = x ** 2`
std::string place_text(const Place& place);
std::string with_places(const std::string& sentence, const std::vector<Place>& places,
                        const std::string& advice);
[[noreturn]] void fail_at(PyObject* type, const std::string& sentence, const std::vector<Place>& places,
                          const std::string& advice);

void warn(const std::string& text);
void warn_once(const std::string& text, const char* about = nullptr);  // `about`: what it is once for
}  // namespace rl
