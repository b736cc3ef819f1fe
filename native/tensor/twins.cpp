// The table behind twins.h. It is empty in nearly every program, so the tests of `any_twins` are all it
// costs.
#include "twins.h"

#include <algorithm>
#include <vector>

namespace rl {
namespace {

std::vector<std::vector<Storage*>> groups;  // none of fewer than two

auto group_of(Storage* s) {
  return std::ranges::find_if(groups,
                              [s](const auto& group) { return std::ranges::find(group, s) != group.end(); });
}

}  // namespace

bool any_twins = false;

void make_twins(Storage* a, Storage* b) {
  if (a == b) return;
  forget_twins(b);
  b->version = a->version;
  auto found = group_of(a);
  if (found == groups.end()) groups.push_back({a, b});
  else found->push_back(b);
  any_twins = true;
}

void count_for_twins(Storage* s) {
  auto found = group_of(s);
  if (found == groups.end()) return;
  for (Storage* twin : *found) twin->version = s->version;
}

void forget_twins(Storage* s) {
  auto found = group_of(s);
  if (found == groups.end()) return;
  std::erase(*found, s);
  if (found->size() < 2) groups.erase(found);
  any_twins = !groups.empty();
}

}  // namespace rl
