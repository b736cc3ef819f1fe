"""Special functions at points of every region their formulas divide the line into, and at its ends.

The expected numbers were computed with mpmath to 40 digits.
"""

import math

import pytest

import rushlight
from rushlight import special

KNOWN = [
    ("i0e", (-3.5,), 0.22280243801077916),
    ("i0e", (0.25,), 0.79101716213971936),
    ("i0e", (19.5,), 0.090939432095156483),
    ("i0e", (20.5,), 0.088664429015745248),
    ("i0e", (700.0,), 0.015081295651531358),
    ("i1", (-3.5,), -6.2058349222583655),
    ("i1", (0.25,), 0.12597910894546793),
    ("i1", (19.5,), 26065069.264457166),
    ("i1", (20.5,), 69170831.679184373),
    ("i1", (700.0,), 1.5285003902339007e302),
    ("i1e", (-3.5,), -0.18739997660304999),
    ("i1e", (20.5,), 0.086474113494087246),
    ("i1e", (1000000.0,), 0.00039894213079803078),
    ("modified_bessel_k0", (1e-05,), 11.628856980944362),
    ("modified_bessel_k0", (0.75,), 0.61058242211646412),
    ("modified_bessel_k0", (1.25,), 0.29760308908410592),
    ("modified_bessel_k0", (19.5,), 9.5848240093128287e-10),
    ("modified_bessel_k0", (20.5,), 3.4400085817085981e-10),
    ("modified_bessel_k0", (600.0,), 1.3558285309948524e-262),
    ("modified_bessel_k1", (1e-05,), 99999.999939355707),
    ("modified_bessel_k1", (0.75,), 0.94958046696214023),
    ("modified_bessel_k1", (1.25,), 0.40212407978419541),
    ("modified_bessel_k1", (19.5,), 9.8275877543638106e-10),
    ("modified_bessel_k1", (20.5,), 3.5229344787112481e-10),
    ("modified_bessel_k1", (600.0,), 1.3569579181128061e-262),
    ("scaled_modified_bessel_k0", (0.75,), 1.2926029977639617),
    ("scaled_modified_bessel_k0", (1.25,), 1.0387368461035981),
    ("scaled_modified_bessel_k0", (10000.0,), 0.012532984717699285),
    ("scaled_modified_bessel_k1", (0.75,), 2.0102618643339222),
    ("scaled_modified_bessel_k1", (1.25,), 1.4035509499005901),
    ("scaled_modified_bessel_k1", (10000.0,), 0.012533611351270506),
    ("bessel_j0", (0.5,), 0.9384698072408129),
    ("bessel_j0", (-7.25,), 0.291996924191779),
    ("bessel_j0", (100.0,), 0.019985850304223122),
    ("bessel_j1", (0.5,), 0.24226845767487389),
    ("bessel_j1", (-7.25,), -0.068581700653131745),
    ("bessel_j1", (100.0,), -0.077145352014112158),
    ("bessel_y0", (0.5,), -0.44451873350670656),
    ("bessel_y0", (7.25,), 0.048422529865202829),
    ("bessel_y0", (100.0,), -0.077244313365083152),
    ("bessel_y1", (0.5,), -1.4714723926702431),
    ("bessel_y1", (7.25,), -0.28934799419758705),
    ("bessel_y1", (100.0,), -0.020372312002759793),
    ("airy_ai", (-30.25,), -0.23690042849155973),
    ("airy_ai", (-10.25,), -0.19540104411200782),
    ("airy_ai", (-9.75,), 0.25262476259634336),
    ("airy_ai", (-5.5,), 0.017781541276574976),
    ("airy_ai", (-0.5,), 0.47572809161053959),
    ("airy_ai", (1.5,), 0.07174949700810541),
    ("airy_ai", (2.25,), 0.023654658557747446),
    ("airy_ai", (2.75,), 0.010269209855011988),
    ("airy_ai", (8.0,), 4.6922076160992316e-8),
    ("airy_ai", (60.0,), 2.7831487094969355e-136),
    ("erfcx", (-20.0,), 1.0442939379528288e174),
    ("erfcx", (-1.5,), 18.653886256262734),
    ("erfcx", (0.5,), 0.61569034419292587),
    ("erfcx", (6.75,), 0.08269505677505306),
    ("erfcx", (7.25,), 0.077099180351259902),
    ("erfcx", (100000.0,), 5.6418958351954681e-6),
    ("ndtr", (-8.0,), 6.2209605742717841e-16),
    ("ndtr", (0.5,), 0.6914624612740131),
    ("ndtr", (3.0,), 0.99865010196836991),
    ("log_ndtr", (-40.0,), -804.60844201375379),
    ("log_ndtr", (-1.5,), -2.7059444008238898),
    ("log_ndtr", (-0.5,), -1.1759117615936186),
    ("log_ndtr", (3.0,), -0.0013508099647481938),
    ("ndtri", (0.001,), -3.0902323061678135),
    ("ndtri", (0.125,), -1.1503493803760082),
    ("ndtri", (0.5625,), 0.1573106846101707),
    ("ndtri", (0.9990234375,), 3.0972690781987845),
    ("zeta", (1.5, 0.25), 10.213055360466601),
    ("zeta", (2.0, 30.0), 0.033895060357739944),
    ("zeta", (4.5, 2.0), 0.054707510761454264),
    ("zeta", (60.0, 3.0), 2.3589825628243266e-29),
    ("polygamma 1", (0.25,), 17.197329154507111),
    ("polygamma 1", (-2.75,), 19.433868949488464),
    ("polygamma 1", (30.0,), 0.033895060357739944),
    ("polygamma 2", (0.25,), -129.32773993753692),
    ("polygamma 2", (-2.75,), -124.11765305971518),
    ("polygamma 2", (30.0,), -0.0011487652037285998),
    ("polygamma 5", (0.25,), 491552.51376768129),
    ("polygamma 5", (-2.75,), 492231.20775210042),
    ("polygamma 5", (30.0,), 1.0726994936161624e-6),
    ("gammainc", (0.001, 0.5), 0.99943993334352925),
    ("gammainc", (0.5, 0.25), 0.52049987781304654),
    ("gammainc", (2.5, 0.75), 0.086930185455604539),
    ("gammainc", (5.0, 9.0), 0.9450363585048951),
    ("gammainc", (30.0, 3.0), 4.2770477214268966e-20),
    ("gammainc", (45.0, 44.0), 0.46002099170018049),
    ("gammainc", (1000.0, 980.0), 0.26560403888218051),
    ("gammainc", (1000.0, 2000.0), 1.0),
    ("gammaincc", (0.001, 0.5), 0.00056006665647074989),
    ("gammaincc", (0.5, 0.25), 0.47950012218695346),
    ("gammaincc", (2.5, 0.75), 0.91306981454439546),
    ("gammaincc", (5.0, 9.0), 0.054963641495104904),
    ("gammaincc", (30.0, 3.0), 1.0),
    ("gammaincc", (45.0, 44.0), 0.53997900829981951),
    ("gammaincc", (1000.0, 980.0), 0.73439596111781949),
    ("gammaincc", (1000.0, 2000.0), 6.8473494596147532e-136),
]


@pytest.mark.parametrize("name, point, expected", KNOWN)
def test_known_values(name, point, expected):
    args = [rushlight.tensor(number, dtype=rushlight.float64) for number in point]
    if name.startswith("polygamma"):
        name, n = name.split()
        args.insert(0, int(n))
    got = getattr(special, name)(*args).item()
    assert abs(got - expected) <= 2e-13 * abs(expected)


# Both sides of every seam, beside the zeros at 1 and 2, and of those below -2.
LGAMMA = [
    (2.0**-1000, 693.14718055994531),
    (2.0**-60, 41.588830833596719),
    (0.015625, 4.1500633736539388),
    (0.25, 1.2880225246980775),
    (0.5 + 2**-20, 0.57236307037786235),
    (0.75, 0.20328095143129537),
    (1 - 2**-20, 5.5047650267370524e-7),
    (1 + 2**-20, -5.5047500661488668e-7),
    (1.25, -0.098271836421813161),
    (1.5, -0.12078223763524522),
    (2 - 2**-20, -4.0319826848018476e-7),
    (2 + 2**-20, 4.0319885504430155e-7),
    (2.4375, 0.24170306649034579),
    (2.5625, 0.32957841924710282),
    (3.5, 1.2009736023470742),
    (7.25, 7.0521854507385394),
    (8.4375, 9.41950604145084),
    (8.5, 9.5492672573009977),
    (9.75, 12.242204940050763),
    (30.5, 72.953471184169408),
    (2.0**20, 13487767.947523311),
    (2.0**60, 4.6795735914903112e19),
    (-(2.0**-60), 41.588830833596719),
    (-0.25, 1.589575312551186),
    (-0.984375, 4.165811730622078),
    (-1.5, 0.86004701537648101),
    (-2.25, 0.55550154502064747),
    (-2.453125, 0.0059844275577701969),
    (-2.75, 0.0044878975359557733),
    (-3.140625, 0.023231022946504234),
    (-5.5, -4.5178321740077414),
    (-8.4375, -10.388060490141798),
    (-8.5, -10.544603534947868),
    (-9.25, -11.876720195346673),
    (-9 - 2**-14, -3.0979043823813755),
    (-40.5, -111.02964715732848),
]


def test_lgamma_to_its_last_places():
    points, expected = zip(*LGAMMA, strict=True)
    double = rushlight.tensor(points, dtype=rushlight.float64).lgamma().tolist()
    for x, got, exact in zip(points, double, expected, strict=True):
        assert abs(got - exact) <= 2 * math.ulp(exact), x
    single = rushlight.tensor(points[1:]).lgamma()  # rounded once; 2**-1000 is no float
    assert single.tolist() == rushlight.tensor(expected[1:]).tolist()


@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64])
def test_lgamma_at_its_poles_and_ends(dtype):
    ends = (0.0, -0.0, -1.0, -7.0, -9.0, -1e30, math.inf, -math.inf)
    assert values(rushlight.lgamma, *ends, dtype=dtype) == [math.inf] * len(ends)
    largest = rushlight.finfo(dtype).max
    assert values(rushlight.lgamma, largest, dtype=dtype) == [math.inf]
    assert values(rushlight.lgamma, 1.0, 2.0, dtype=dtype) == [0, 0]
    assert math.isnan(values(rushlight.lgamma, math.nan, dtype=dtype)[0])


def values(function, *points, dtype=rushlight.float64):
    return function(rushlight.tensor(points, dtype=dtype)).tolist()


def test_at_the_ends():
    inf = math.inf
    assert values(special.ndtri, 0, 1) == [-inf, inf]
    assert all(map(math.isnan, values(special.ndtri, -0.1, 1.1, math.nan)))
    assert values(special.entr, -1, 0) == [-inf, 0]
    assert values(special.erfcx, -30, inf, -inf) == [inf, 0, inf]
    assert values(special.modified_bessel_k0, 0, inf) == [inf, 0]
    assert values(special.bessel_y1, 0) == [-inf]
    assert values(special.i0e, inf, -inf) == [0, 0]
    assert all(map(math.isnan, values(special.bessel_y0, -1) + values(special.modified_bessel_k1, -1)))
    zeros, infinities = rushlight.zeros(3), rushlight.full((3,), inf)
    a = rushlight.tensor([0.5, 2.0, 1e9])
    assert special.gammainc(a, zeros).tolist() == special.gammaincc(a, infinities).tolist() == [0, 0, 0]
    assert special.gammainc(infinities, a).tolist() == [0, 0, 0]
    assert special.gammainc(zeros, a).tolist() == [1, 1, 1]
    assert special.gammainc(-a, a).isnan().all() and special.gammainc(a, -a).isnan().all()
    assert special.zeta(rushlight.tensor([1.0, 2.0]), rushlight.tensor([3.0, -2.0])).tolist() == [inf, inf]
    assert special.zeta(rushlight.tensor([0.5, 2.5]), rushlight.tensor([3.0, -2.5])).isnan().all()


def test_incomplete_gamma_functions_add_up_to_one():
    a = rushlight.logspace(-3, 8, 200, dtype=rushlight.float64)
    for ratio in (0.1, 0.9, 0.999, 1.0, 1.001, 1.2, 5.0):
        total = special.gammainc(a, a * ratio) + special.gammaincc(a, a * ratio)
        assert (total - 1).abs().max().item() < 1e-12


def test_degrees_of_polynomials():
    x = rushlight.tensor([0.25], dtype=rushlight.float64)
    for name in dir(special):
        if "polynomial" in name and not name.startswith("_"):
            function = getattr(special, name)
            degrees = rushlight.tensor([-3.0, -0.5, 0.0, 2.9, 2.0, math.nan])
            result = function(x, degrees).tolist()
            assert result[:3] == [0, 1, 1] and result[3] == result[4] and result[5] == 0, name


def test_what_torch_refuses():
    x = rushlight.tensor([1.5], requires_grad=True)
    y = rushlight.tensor([2.5])
    for result, what in (
        (special.zeta(x, y), "zeta"),
        (rushlight.igamma(x, y), "igamma: input"),
        (rushlight.igammac(x, y), "igammac: input"),
    ):
        with pytest.raises(NotImplementedError, match=f"the derivative for '{what}' is not implemented"):
            result.sum().backward()
    assert not special.bessel_j0(x).requires_grad
    with pytest.raises(NotImplementedError, match="\"airy_ai_cpu\" not implemented for 'Half'"):
        special.airy_ai(y.half())
    with pytest.raises(RuntimeError, match="does not support negative n"):
        rushlight.polygamma(-1, y)
    with pytest.raises(TypeError, match=r"igamma\(\): argument 'other' \(position 2\) must be Tensor"):
        rushlight.igamma(y, 2.0)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        rushlight.mvlgamma(y, 0)


def test_zeta_ends_where_all_its_terms_underflow():
    assert rushlight.special.zeta(rushlight.tensor(1e18), rushlight.tensor(2.5)) == 0
    assert rushlight.polygamma(2**63 - 1, rushlight.tensor(3.0)).isnan()


@pytest.mark.parametrize("name", ["igamma", "igammac"])
@pytest.mark.parametrize("sizes", [(1e-6, 1e-2), (1e-2, 1.0), (0.1, 5.0), (1.0, 25.0), (15.0, 60.0)])
def test_incomplete_gamma_of_single_precision_is_rounded_once(name, sizes):
    """The shorter sums of single precision give what those of double precision give, rounded."""
    rushlight.manual_seed(0)
    function = getattr(rushlight, name)
    a = rushlight.empty(4000).uniform_(*sizes)
    spread, far = rushlight.rand(4000), rushlight.rand(4000)
    for x in (a * (0.5 + spread), 12 * spread, a + 5 + 25 * far):
        exact, found = function(a.double(), x.double()), function(a, x)
        unit = (exact.float().nextafter(rushlight.tensor(2.0)) - exact.float()).double()
        seen = exact > 1e-37
        assert ((found.double() - exact).abs() / unit)[seen].max() < 0.502
