// mt19937, its state as bytes, and which compilation of the bulk loops is used. Start at `Generator::refill`.
#include <cmath>
#include <cstring>
#include <random>

#include "elementwise.h"
#include "random.h"
#include "random_bulk.h"

namespace rl {

namespace baseline {
extern const RandomBulk random_bulk_table;
}
#if RL_HAVE_AVX2
namespace avx2 {
extern const RandomBulk random_bulk_table;
}
#endif

const RandomBulk& random_bulk() {
#if RL_HAVE_AVX2
  static const bool has_avx2 = std::strcmp(cpu_capability(), "AVX2") == 0;
  if (has_avx2) return avx2::random_bulk_table;
#endif
  return baseline::random_bulk_table;
}

void Generator::seed(uint64_t seed) {
  initial_seed_ = seed;
  words_[0] = uint32_t(seed);
  for (int i = 1; i < END; i++) words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + uint32_t(i);
  next_ = END;
  fresh_ = true;
  has_normal_ = false;
  next_normal_ = 0;
}

void Generator::refill() {
  random_bulk().refill(words_);
  next_ = 0;
  fresh_ = false;
}

void Generator::fill(uint32_t* out, int64_t n) {
  while (n > 0) {
    if (next_ == END) refill();
    int64_t take = n < END - next_ ? n : END - next_;
    random_bulk().temper(out, words_ + next_, take);
    next_ += int(take);
    out += take;
    n -= take;
  }
}

double Generator::normal() {
  if (has_normal_) {
    has_normal_ = false;
    double sample = next_normal_;
    next_normal_ = 0;
    return sample;
  }
  double angle = 2 * 3.14159265358979323846 * uniform();
  double radius = std::sqrt(-2 * std::log1p(-uniform()));
  next_normal_ = radius * std::sin(angle);
  has_normal_ = true;
  return radius * std::cos(angle);
}

// The bytes are those of a C struct that torch inherited; `x`, `rho` and the float at the end are always zero
// here.
namespace {
struct StateBytes {
  uint64_t initial_seed;
  int32_t left;  // draws until the words are used up, plus one; 1 when fresh
  int32_t seeded;
  uint64_t next;
  uint64_t words[Generator::END];
  double normal_x, next_normal, normal_rho;
  int32_t has_normal, padding;
  float next_float_normal;
  int32_t has_float_normal;
};
static_assert(sizeof(StateBytes) == Generator::STATE_BYTES);
}  // namespace

void Generator::get_state(uint8_t* bytes) const {
  StateBytes state = {};
  state.initial_seed = initial_seed_;
  state.left = END + 1 - next_;
  state.seeded = 1;
  state.next = fresh_ ? 0 : next_;
  for (int i = 0; i < END; i++) state.words[i] = words_[i];
  state.next_normal = next_normal_;
  state.has_normal = has_normal_;
  std::memcpy(bytes, &state, sizeof state);
}

bool Generator::set_state(const uint8_t* bytes) {
  StateBytes state;
  std::memcpy(&state, bytes, sizeof state);
  bool fresh = state.left == 1 && state.next == 0;
  if (state.seeded == 0 || state.left < 1 || state.left > END || state.next > END) return false;
  if (!fresh && state.next + uint64_t(state.left) != END + 1) return false;  // would read past the words
  initial_seed_ = state.initial_seed;
  next_ = fresh ? END : int(state.next);
  fresh_ = fresh;
  for (int i = 0; i < END; i++) words_[i] = uint32_t(state.words[i]);
  has_normal_ = state.has_normal != 0;
  next_normal_ = has_normal_ ? state.next_normal : 0;
  return true;
}

void Generator::copy_state(const Generator& other) {
  std::memcpy(words_, other.words_, sizeof words_);
  next_ = other.next_;
  fresh_ = other.fresh_;
  initial_seed_ = other.initial_seed_;
  has_normal_ = other.has_normal_;
  next_normal_ = other.next_normal_;
}

uint64_t nondeterministic_seed() {
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

Generator& default_generator() {
  static Generator generator(nondeterministic_seed());
  return generator;
}

}  // namespace rl
