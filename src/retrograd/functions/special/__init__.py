"""Special functions, with SciPy's names; `rg.special`.

Every function has exact gradients of every order in every argument, but for what its docstring
says. Elementwise, with broadcasting and dtype promotion; integers are taken as float32. Computed in
double precision: float32 results are rounded once, and float64 results are within 8 units in the
last place, near zeros of the function within 8 units of its size around, unless the docstring says
more. PyTorch's names stand beside SciPy's where they differ.

>>> import retrograd as rg
>>> x = rg.tensor([0.5, 3.0])
>>> rg.special.gammaln(x)
Tensor([0.5723649, 0.6931472], dtype=float32)
"""

from typing import TYPE_CHECKING

from retrograd.functions.activations import log_sigmoid as log_expit
from retrograd.functions.activations import log_softmax, softmax
from retrograd.functions.elementwise import cbrt, erf, erfc, exp2, expm1, log1p, logaddexp
from retrograd.functions.elementwise import sigmoid as expit
from retrograd.functions.reductions import logsumexp
from retrograd.functions.special.classical import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    betainc,
    betaincc,
    betaln,
    digamma,
    entr,
    erfcinv,
    erfcx,
    erfinv,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    k0,
    k0e,
    k1,
    k1e,
    kl_div,
    log_ndtr,
    logit,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    multigammaln,
    ndtr,
    ndtri,
    polygamma,
    psi,
    rel_entr,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    sinc,
    xlog1py,
    xlogy,
    y0,
    y1,
    zeta,
)
from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.functions.special.distributions import (
        bdtr,
        bdtrc,
        bdtri,
        chdtr,
        chdtrc,
        chdtri,
        fdtr,
        fdtrc,
        fdtri,
        gdtr,
        gdtrc,
        nbdtr,
        nbdtrc,
        nbdtri,
        pdtr,
        pdtrc,
        pdtri,
        stdtr,
        stdtrit,
    )
    from retrograd.functions.special.elementary import (
        boxcox,
        boxcox1p,
        cosdg,
        cosm1,
        cotdg,
        exp10,
        exprel,
        huber,
        inv_boxcox,
        inv_boxcox1p,
        pseudo_huber,
        radian,
        sindg,
        tandg,
    )
    from retrograd.functions.special.gamma_ratios import (
        beta,
        betainccinv,
        betaincinv,
        binom,
        gammainccinv,
        gammaincinv,
        loggamma,
        poch,
        rgamma,
    )
    from retrograd.functions.special.integrals import (
        ellipe,
        ellipk,
        ellipkm1,
        exp1,
        expi,
        expn,
        hyp1f1,
        hyp2f1,
        lpmv,
        spence,
        yn,
        zetac,
    )

# What is rare is imported by the first who asks for it.
LATER_NAMES = {
    name: f"retrograd.functions.special.{module}"
    for module, names in {
        "distributions": (
            "bdtr bdtrc bdtri chdtr chdtrc chdtri fdtr fdtrc fdtri gdtr gdtrc nbdtr "
            "nbdtrc nbdtri pdtr pdtrc pdtri stdtr stdtrit"
        ),
        "elementary": (
            "boxcox boxcox1p cosdg cosm1 cotdg exp10 exprel huber inv_boxcox "
            "inv_boxcox1p pseudo_huber radian sindg tandg"
        ),
        "gamma_ratios": (
            "beta betainccinv betaincinv binom gammainccinv gammaincinv loggamma poch rgamma"
        ),
        "integrals": ("ellipe ellipk ellipkm1 exp1 expi expn hyp1f1 hyp2f1 lpmv spence yn zetac"),
    }.items()
    for name in names.split()
}

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = attach(__name__, {}, LATER_NAMES)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    # gamma and beta
    "beta",
    "betainc",
    "betaincc",
    "betaln",
    "digamma",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "multigammaln",
    "polygamma",
    "psi",
    "zeta",
    # the normal distribution
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "log_ndtr",
    "ndtr",
    "ndtri",
    # Bessel functions
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "j0",
    "j1",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "y0",
    "y1",
    # entropy, logarithms, exponentials
    "cbrt",
    "entr",
    "exp2",
    "expit",
    "expm1",
    "kl_div",
    "log1p",
    "log_expit",
    "log_softmax",
    "logaddexp",
    "logit",
    "logsumexp",
    "rel_entr",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
    # formulas of statistics, angles in degrees
    "boxcox",
    "boxcox1p",
    "cosdg",
    "cosm1",
    "cotdg",
    "exp10",
    "exprel",
    "huber",
    "inv_boxcox",
    "inv_boxcox1p",
    "pseudo_huber",
    "radian",
    "sindg",
    "tandg",
    # integrals and series
    "ellipe",
    "ellipk",
    "ellipkm1",
    "exp1",
    "expi",
    "expn",
    "hyp1f1",
    "hyp2f1",
    "lpmv",
    "spence",
    "yn",
    "zetac",
    # inverses and ratios of gamma functions
    "betainccinv",
    "betaincinv",
    "binom",
    "gammainccinv",
    "gammaincinv",
    "loggamma",
    "poch",
    "rgamma",
    # distributions
    "bdtr",
    "bdtrc",
    "bdtri",
    "chdtr",
    "chdtrc",
    "chdtri",
    "fdtr",
    "fdtrc",
    "fdtri",
    "gdtr",
    "gdtrc",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "pdtr",
    "pdtrc",
    "pdtri",
    "stdtr",
    "stdtrit",
]
