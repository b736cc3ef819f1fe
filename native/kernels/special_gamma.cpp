// Hurwitz's zeta function, the polygamma functions, and the incomplete gamma functions. Read `zeta` and
// `incomplete_gamma`.
#include <cmath>
#include <iterator>
#include <limits>

#include "special.h"

namespace rl {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

// B(2j) / (2j)!
constexpr double BERNOULLI[] = {0.0833333333333333333,    -0.00138888888888888889,  0.0000330687830687830688,
                                -8.2671957671957672e-7,   2.0876756987868099e-8,    -5.28419013868749318e-10,
                                1.33825365306846788e-11,  -3.38968029632258287e-13, 8.58606205627784456e-15,
                                -2.17486869855806187e-16, 5.50900282836022952e-18,  -1.39544646858125233e-19,
                                3.53470703962946747e-21,  -8.95351742703754685e-23};

// The sum for q > 0: term by term until q + k is large beside s, then Euler and Maclaurin's formula.
double positive_zeta(double s, double q) {
  double sum = 0, w = q;
  for (; w < 12 || w < s; w += 1) {
    double term = std::pow(w, -s);
    sum += term;
    if (term <= sum * 1e-18) return sum;  // also where all terms underflow
  }
  double power = std::pow(w, -s);
  double rest = power * w / (s - 1) + power / 2;
  double factor = s * power / w;
  for (int j = 0; j < int(std::size(BERNOULLI)); j++) {
    double term = BERNOULLI[j] * factor;
    rest += term;
    if (std::fabs(term) < std::fabs(rest) * 1e-18) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
  }
  return sum + rest;
}

// log(1 + u) - u without cancellation.
double log1p_minus(double u) {
  if (std::fabs(u) > 0.4) return std::log1p(u) - u;
  double r = u / (2 + u), square = r * r, sum = 0, power = 1;
  for (int k = 1; k < 20; k++) {
    sum += power / (2 * k + 1);
    power *= square;
    if (power < 1e-18) break;
  }
  return 2 * r * square * sum - u * r;
}

// log(gamma(1 + a)) for |a| <= 0.5, exact also for small a.
constexpr double ZETA_MINUS_1[] = {
    0.644934066848226436,     0.202056903159594285,     0.0823232337111381915,    0.0369277551433699263,
    0.0173430619844491397,    0.00834927738192282684,   0.00407735619794433938,   0.00200839282608221442,
    0.000994575127818085337,  0.000494188604119464559,  0.000246086553308048299,  0.000122713347578489147,
    0.0000612481350587048293, 0.0000305882363070204936, 0.0000152822594086518717, 7.63719763789976227e-6,
    3.81729326499983986e-6,   1.90821271655393893e-6,   9.53962033872796113e-7,   4.76932986787806463e-7,
    2.3845050272773299e-7,    1.19219925965311073e-7,   5.96081890512594796e-8,   2.98035035146522802e-8,
    1.49015548283650412e-8,   7.45071178983542949e-9,   3.72533402478845705e-9,   1.86265972351304901e-9,
    9.31327432419668183e-10,  4.65662906503378407e-10};
double lgamma1p(double a) {
  double sum = 0, power = a;
  for (int k = 2; k < int(std::size(ZETA_MINUS_1)) + 2; k++) {
    power *= -a;
    sum -= ZETA_MINUS_1[k - 2] * power / k;
  }
  return sum - std::log1p(a) + a * (1 - 0.57721566490153286061);
}

double log_gamma(double a) {
  int sign;
  return ::lgamma_r(a, &sign);
}

// x^a exp(-x) / gamma(a + 1), by Stirling's series where the factors alone would overflow or cancel.
double density(double a, double x) {
  if (a < 20) {
    if (x < 700) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
    return std::exp(a * std::log(x) - x - log_gamma(a + 1));
  }
  double z = 1 / (a * a);
  double correction =
      (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) / a;
  double u = (x - a) / a;
  double exponent = a * (u < -0.4 ? std::log(x / a) - u : log1p_minus(u));
  return std::exp(exponent - correction) / std::sqrt(2 * M_PI * a);
}

double lower_series(double a, double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 4000; k++) {
    sum += term *= x / (a + k);
    if (term < sum * 1e-17) break;
  }
  return sum * density(a, x);
}

double upper_fraction(double a, double x) {  // Lentz's way of evaluating a continued fraction
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 4000; k++) {
    double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    if (std::fabs(d) < 1e-300) d = 1e-300;
    c = b + numerator / c;
    if (std::fabs(c) < 1e-300) c = 1e-300;
    d = 1 / d;
    double change = d * c;
    h *= change;
    if (std::fabs(change - 1) < 1e-16) break;
  }
  return h * density(a, x) * a;
}

// 1 - P for small x, where P is near 1 because a is small.
double upper_series(double a, double x) {
  double sum = 0, power = 1;
  for (int k = 1; k < 60; k++) {
    power *= -x / k;
    double term = power / (a + k);
    sum += term;
    if (std::fabs(term) < 1e-18 * std::fabs(sum)) break;
  }
  double log_size = a * std::log(x) - (a <= 0.5 ? lgamma1p(a) : log_gamma(1 + a));
  return -std::expm1(log_size) - std::exp(log_size) * a * sum;
}

// Temme's expansion for large a and x near a: a normal distribution, corrected by a series in 1/a whose
// coefficients are power series in eta. Derived from DLMF 8.12.
constexpr double TEMME[][18] = {
    {-0.333333333333333333, 0.0833333333333333333, -0.0148148148148148148, 0.00115740740740740741,
     0.0003527336860670194, -0.000178755144032921811, 0.0000391926317852243778, -2.18544851067999216e-6,
     -1.85406221071515996e-6, 8.29671134095308601e-7, -1.76659527368260793e-7, 6.70785354340149858e-9,
     1.0261809784240308e-8, -4.38203601845335319e-9, 9.14769958223679023e-10, -2.55141939949462498e-11,
     -5.83077213255042507e-11, 2.43619480206674162e-11},
    {-0.00185185185185185185, -0.00347222222222222222, 0.0026455026455026455, -0.000990226337448559671,
     0.000205761316872427984, -4.01877572016460905e-7, -0.0000180985503344899778, 7.64916091608111008e-6,
     -1.6120900894563446e-6, 4.64712780280743434e-9, 1.37863344691572096e-7, -5.75254560351770496e-8,
     1.19516285997781473e-8, -1.75432417197476476e-11, -1.00915437106004126e-9, 4.16279299184258264e-10,
     -8.56390702649298064e-11, 6.06721510160475862e-14},
    {0.0041335978835978836, -0.00268132716049382716, 0.000771604938271604938, 2.00938786008230453e-6,
     -0.000107366532263651605, 0.0000529234488291201254, -0.0000127606351886187277, 3.42357873409613807e-8,
     1.37219573090629332e-6, -6.29899213838005502e-7, 1.42806142060642418e-7, -2.0477098421990866e-10,
     -1.40925299108675211e-8, 6.22897408492202203e-9, -1.36704883966171135e-9, 9.4283561590146782e-13,
     1.28722524000893181e-10, -5.56459561343633211e-11},
    {0.000649434156378600823, 0.000229472093621399177, -0.000469189494395255712, 0.000267720632062838853,
     -0.0000756180167188397641, -2.39650511386729665e-7, 0.0000110826541153473024, -5.67495282699159657e-6,
     1.42309007324358839e-6, -2.78610802915281422e-11, -1.69584040919302773e-7, 8.09946490538808236e-8,
     -1.91111684859736541e-8, 2.3928620439808118e-12, 2.06201318154887984e-9, -9.46049666185513217e-10,
     2.15410497757749078e-10, -1.38882333681390305e-14},
    {-0.000861888290916711699, 0.000784039221720066627, -0.00029907248030319018, -1.46384525788434182e-6,
     0.0000664149821546512219, -0.0000396836504717943466, 0.0000113757269706784191, 2.5074972262375328e-10,
     -1.6954149536558306e-6, 8.90750753220530969e-7, -2.29293483400080487e-7, 2.95679413754404905e-11,
     2.88658297427087836e-8, -1.41897394378032194e-8, 3.44635804994648971e-9, -2.30245171745280671e-13,
     -3.94092330280464053e-10, 1.86023389685045019e-10},
    {-0.00033679855336635815, -0.0000697281375836585777, 0.000277275324495939208, -0.000199325705161888477,
     0.0000679778047793720784, 1.41906292064396701e-7, -0.0000135940481897686933, 8.01847025633420154e-6,
     -2.29148117650809517e-6, -3.25247355129845395e-10, 3.4652846491085265e-7, -1.84471871911713433e-7,
     4.82409670378941808e-8, -1.79894667217435153e-14, -6.30619450001352344e-9, 3.16241762877456794e-9,
     -7.84092425369742929e-10, 5.19267916525404072e-15},
    {0.000531307936463992223, -0.000592166437353693883, 0.000270878209671804483, 7.90235323266032787e-7,
     -0.0000815396936756196875, 0.0000561168275310624965, -0.0000183291165828433756, -3.07961345060330478e-9,
     3.46515536880360909e-6, -2.02913273960586037e-6, 5.78879286314900371e-7, 2.33863067382665699e-13,
     -8.82860074633048353e-8, 4.74359588804081278e-8, -1.25454150207103824e-8, 8.64964885801029247e-14,
     1.68460589792640627e-9, -8.57549282357759473e-10},
    {0.000344367606892377671, 0.0000517179090826059219, -0.000334931610811422363, 0.000281269515476323702,
     -0.00010976582244684731, -1.27410090954844854e-7, 0.0000277444515115636442, -0.0000182634888057113327,
     5.7876949497350524e-6, 4.9387589339362704e-10, -1.05953670140260427e-6, 6.16671437611040748e-7,
     -1.75629733590604619e-7, -1.29744732870154387e-12, 2.69542360628896598e-8, -1.4578352908731271e-8,
     3.887645959386175e-9, -3.88100225101941213e-17},
    {-0.000652623918595309419, 0.00083949872067208728, -0.000438297098541721005, -6.96909145842055197e-7,
     0.000166448466420675478, -0.000127835176797692186, 0.0000462995326369130429, 4.55790986792270771e-9,
     -0.0000105952711258051955, 6.78334290486516662e-6, -2.10754766662588042e-6, -1.7213731432817145e-11,
     3.77358774161109793e-7, -2.18675067001228666e-7, 6.22022880401892691e-8, 6.59770382673300061e-16,
     -9.59038649742568577e-9, 5.21321449228080777e-9},
    {-0.00059676129019274625, -0.0000720489541602001056, 0.000678230883766732836, -0.000640147526026275845,
     0.000277501076343287045, 1.8197008380465151e-7, -0.0000847950711706850318, 0.0000610519208250153102,
     -0.0000210739201834048624, -8.85858901412559939e-10, 4.52845359538053771e-6, -2.84278150225044079e-6,
     8.70823417786464117e-7, 3.68861018717069655e-12, -1.5344695190702061e-7, 8.86246677879069498e-8,
     -2.51848123018268173e-8, -1.02259120982150924e-14},
    {0.00133244544948006564, -0.00191443849856547753, 0.00110893691345966373, 9.93240412264229897e-7,
     -0.00050874501293093199, 0.000427350566653928843, -0.000168588537679107988, -8.1301893922784998e-9,
     0.0000452844023705621471, -0.0000312705367478173403, 0.0000104498682853033801, 4.84352262656809256e-11,
     -2.1482565873456258e-6, 1.32936970109749202e-6, -4.0295693092101029e-7, -1.75678776663232906e-13,
     7.01450431636682571e-8, -4.04078773499948298e-8},
    {0.00157972766073083496, 0.000162516262783915817, -0.00206334210355432763, 0.00213896861856890982,
     -0.00101085593912630032, -3.99127055299192009e-7, 0.000362350250847646912, -0.000281439014637121541,
     0.000104495133364958872, 2.12114184918302975e-9, -0.0000257794172519478418, 0.0000172818189560404625,
     -5.64137738729042816e-6, -1.10243201057761742e-11, 1.12232244188951747e-6, -6.8693396379526735e-7,
     2.06532369754148873e-7, 4.67147724098385069e-14},
    {-0.00407251211951401665, 0.00640336283380806979, -0.00404101610816766177, -2.18373280286623298e-6,
     0.00217404418012546386, -0.00197004405184188915, 0.000835954697479624578, 1.94454475671096548e-8,
     -0.000257793871204216963, 0.000190099873681393035, -0.0000676964999374389648, -1.44406296664265724e-10,
     0.000015712512518742269, -0.0000103040087447768932, 3.30451776740138705e-6, 7.98297602423257109e-13,
     -6.40977941493130036e-7, 3.88946247613000557e-7},
    {-0.00594757793839930028, -0.000540164767892604515, 0.00879104135507678982, -0.00985763155878561252,
     0.00501346950310215379, 1.28075217862218747e-6, -0.00206260193427546834, 0.00171091285735230581,
     -0.000676953127141337987, -6.90115456765621332e-9, 0.000188551281439959016, -0.000133952156634919685,
     0.0000462631830335280387, 4.00342306133213515e-11, -0.0000102556529214940326, 6.61208637279765104e-6,
     -2.09130220272530082e-6, -2.09517756496038206e-13},
    {0.0174020277875227115, -0.0295278809456991205, 0.0200458755714027988, 7.02895159669034071e-6,
     -0.0123754210713431477, 0.0119762934442352545, -0.00541560384665185253, -6.32908933964186161e-8,
     0.00188551181290050645, -0.00147347327482500096, 0.000555158100977083867, 5.24068344125506625e-10,
     -0.000143579135357848355, 0.0000991812932249432967, -0.0000334608347494783109, -3.57558372910989653e-12,
     7.15608519606300762e-6, -4.5516802628155526e-6},
};
double uniform(double a, double x, bool upper) {
  double exponent = -log1p_minus((x - a) / a);  // eta^2 / 2
  double eta = std::copysign(std::sqrt(2 * exponent), x - a), side = upper ? 1 : -1;
  double sum = 0, scale = 1;
  for (auto& row : TEMME) {
    double inner = 0;
    for (int n = 17; n >= 0; n--) inner = inner * eta + row[n];
    sum += inner * scale;
    scale /= a;
    if (scale < 1e-20) break;
  }
  double tail = 0.5 * std::erfc(side * eta * std::sqrt(a / 2));
  return tail + side * std::exp(-a * exponent) / std::sqrt(2 * M_PI * a) * sum;
}

// The smaller of both parts is computed, the other is one minus it.
double incomplete_gamma(double a, double x, bool upper) {
  if (a >= 40 && std::fabs(x - a) < 0.3 * a) return uniform(a, x, upper);
  if (x > 1.1 ? x >= a : x <= 0.5 ? -0.4 / std::log(x) >= a : 1.1 * x >= a) {
    double q = x > 1.1 ? upper_fraction(a, x) : upper_series(a, x);
    return upper ? q : 1 - q;
  }
  double p = lower_series(a, x);
  return upper ? 1 - p : p;
}

// For results of single precision: sums end at 1e-13, the series does for all but tails and large numbers
// (what 1 - P loses in double is not seen), and gamma(a + 1) is Stirling's series behind a few factors.
double rough_density(double a, double x) {
  double z = a + 1, factors = 1;
  for (; z < 8; z += 1) factors *= z;
  double y = 1 / z, w = y * y;
  double correction = y * (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w * (1.0 / 1680 - w / 1188))));
  constexpr double HALF_LOG_2PI = 0.91893853320467274178;
  return std::exp(a * std::log(x) - x - ((z - 0.5) * std::log(z) - z + HALF_LOG_2PI + correction)) * factors;
}

double rough_incomplete_gamma(double a, double x, bool upper) {
  bool series = a < 20 && a > 1e-3 && (upper ? x < a + 5 : x < a + 12);
  if (!series) return incomplete_gamma(a, x, upper);
  double sum = 1, term = 1;
  for (int k = 1; k < 400; k++) {
    sum += term *= x / (a + k);
    if (term < sum * 1e-13) break;
  }
  double p = sum * rough_density(a, x);
  if (!upper) return p;
  return p < 0.998 ? 1 - p : incomplete_gamma(a, x, true);
}

// The results that no formula is needed for; false if one is.
bool settled_gamma(double a, double x, double at_zero, double at_infinity, double& result) {
  if (x < 0 || a < 0) result = NOT_A_NUMBER;
  else if (a == 0) result = x > 0 ? at_infinity : NOT_A_NUMBER;
  else if (x == 0) result = at_zero;
  else if (a == INF) result = x == INF ? NOT_A_NUMBER : at_zero;
  else if (x == INF) result = at_infinity;
  else if (a != a || x != x) result = NOT_A_NUMBER;
  else return false;
  return true;
}

}  // namespace

double zeta(double s, double q) {
  if (s == 1) return INF;
  if (s < 1) return NOT_A_NUMBER;
  if (q <= 0) {
    if (q == std::floor(q)) return INF;
    if (s != std::floor(s)) return NOT_A_NUMBER;
    if (s == INF) return INF;
    // The terms below zero, counted away from it, are two zeta functions of positive numbers.
    // From the nearest whole number, so that the smaller of both is exact.
    double off = q - std::round(q), above = off > 0 ? off : 1 + off, below = off > 0 ? 1 - off : -off;
    double sign = std::fmod(s, 2) == 0 ? 1 : -1;
    return (positive_zeta(s, above) + sign * positive_zeta(s, below)) - sign * positive_zeta(s, 1 - q);
  }
  if (q == INF || s != s || q != q) return NOT_A_NUMBER;
  if (s == INF) return q == 1 ? 1 : q < 1 ? INF : NOT_A_NUMBER;
  return positive_zeta(s, q);
}

// The sum of 1 / (x + k)^2 for x > 0: ten terms, then Euler and Maclaurin's series for the rest.
static double trigamma(double x) {
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  double y = 1 / x, z = y * y;
  double series =
      z * (1.0 / 6 - z * (1.0 / 30 -
                          z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * 7 / 6))))));
  return sum + y * (1 + 0.5 * y + series);
}

double polygamma(int64_t n, double x) {
  if (n == 1 && std::isinf(x)) return x > 0 ? 0 : NOT_A_NUMBER;
  if (n == 1 && x > 0) return trigamma(x);
  return (n % 2 ? 1 : -1) * std::tgamma(double(n) + 1) * zeta(double(n) + 1, x);
}

double igamma(double a, double x) {
  double result;
  return settled_gamma(a, x, 0, 1, result) ? result : incomplete_gamma(a, x, false);
}

double igammac(double a, double x) {
  double result;
  return settled_gamma(a, x, 1, 0, result) ? result : incomplete_gamma(a, x, true);
}

double rough_igamma(double a, double x) {
  double result;
  return settled_gamma(a, x, 0, 1, result) ? result : rough_incomplete_gamma(a, x, false);
}

double rough_igammac(double a, double x) {
  double result;
  return settled_gamma(a, x, 1, 0, result) ? result : rough_incomplete_gamma(a, x, true);
}

}  // namespace rl
