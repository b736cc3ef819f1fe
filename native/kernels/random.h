// The random number generator and the loops that sample from it.
//
// After the same seed, every function here gives the numbers that torch's CPU generator gives, on any
// processor: the generator is mt19937, one draw is 32 bits, and what a sample makes of its draws (how many,
// in which order, with which rounding) is stated at each function. Read `Generator` first, then Note [draws]
// in random_uniform.cpp.
//
// The functions write through a Span of any strides; elements are visited in the order of memory, innermost
// stride first, as torch does. The caller has checked parameters and overlap, and holds `Generator::mutex`.
#pragma once
#include <mutex>

#include "kernels.h"

namespace rl {

class Generator {
 public:
  static constexpr uint64_t DEFAULT_SEED = 67280421310721;  // what a new torch.Generator() starts from
  static constexpr size_t STATE_BYTES = 5056;

  explicit Generator(uint64_t seed = DEFAULT_SEED) { this->seed(seed); }
  // The sequence depends on the low 32 bits only; initial_seed() remembers all 64.
  void seed(uint64_t seed);
  uint64_t initial_seed() const { return initial_seed_; }

  uint32_t random() {
    if (next_ == END) refill();
    return temper(words_[next_++]);
  }
  uint64_t random64() {  // the first draw is the high half
    uint64_t high = random();
    return high << 32 | random();
  }
  double uniform() { return double(random64() & ((1ull << 53) - 1)) * 0x1p-53; }  // in [0, 1)
  // Box-Muller in double; of the two samples it makes, one is kept for the next call (and in the state).
  double normal();
  // The next `n` draws at once.
  void fill(uint32_t* out, int64_t n);

  // The state as the bytes of torch.get_rng_state().
  void get_state(uint8_t* bytes) const;
  // False, and nothing changed, if the bytes cannot be the state of a generator.
  bool set_state(const uint8_t* bytes);
  void copy_state(const Generator& other);

  std::mutex mutex;

  static uint32_t temper(uint32_t x) {
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680u;
    x ^= x << 15 & 0xefc60000u;
    return x ^ x >> 18;
  }
  static constexpr int END = 624;

 private:
  void refill();

  uint32_t words_[END];
  int next_;    // the word that the next draw takes; END if the words are used up
  bool fresh_;  // seeded, and nothing drawn yet: torch writes this differently into the state
  uint64_t initial_seed_;
  bool has_normal_;
  double next_normal_;
};

// The generator that is used when none is given. It starts from a seed of the operating system's.
Generator& default_generator();
// 64 bits from the operating system.
uint64_t nondeterministic_seed();

// Contiguous normals from this many on are made in blocks; fewer, and strided ones, one by one.
constexpr int64_t NORMAL_BLOCK = 16;

void random_uniform(Generator& g, const Span& out, double low, double high);  // floating dtypes
void random_normal(Generator& g, const Span& out, double mean, double std);   // floating dtypes
void random_log_normal(Generator& g, const Span& out, double mean, double std);
void random_cauchy(Generator& g, const Span& out, double median, double sigma);
void random_exponential(Generator& g, const Span& out, double lambd);

// Integers low, ..., low + range - 1 in any real dtype; a range of 0 stands for all of int64.
void random_integers(Generator& g, const Span& out, int64_t low, uint64_t range);
// What Tensor.random_() without bounds does: 0 up to the largest value (of the mantissa) of the dtype.
void random_full(Generator& g, const Span& out);
// A float dtype cannot hold every int64: the bounds that keep a sample, once rounded, inside [low, high).
int64_t random_low_bound(DType dtype, int64_t low);
int64_t random_high_bound(DType dtype, int64_t high);
// The integers below out.sizes[0] in random order. One dimension, any real dtype.
void random_permutation(Generator& g, const Span& out);

void random_geometric(Generator& g, const Span& out, double p);
void random_bernoulli(Generator& g, const Span& out, double p);
// One probability for each element: `p` has the shape of `out` and a floating dtype.
void random_bernoulli(Generator& g, const Span& out, const Span& p);
// Whether all elements of `p` are in [0, 1]. A NaN is not.
bool are_probabilities(const Span& p);
void random_poisson(Generator& g, const Span& out, const Span& rate);
void random_binomial(Generator& g, const Span& out, const Span& count, const Span& prob);

// Category numbers: `weights` is (rows, categories), `out` is (rows, samples) of int64. The result is torch's
// error sentence if the weights are no distribution (then nothing was drawn or written), else null.
const char* random_multinomial(Generator& g, const Span& out, const Span& weights);
// The same without replacement: the categories whose exponential waiting times, sped up by their weights, end
// first. `scratch` has the shape, dtype and layout of `weights`.
const char* random_multinomial_distinct(Generator& g, const Span& out, const Span& weights,
                                        const Span& scratch);

}  // namespace rl
