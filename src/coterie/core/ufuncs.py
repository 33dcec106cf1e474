"""Functions of SciPy as ufuncs, which arrays of other types can replace by the protocols of NumPy.

With SCIPY_ARRAY_API=1, the functions of `scipy.special` are wrappers that convert their arguments to NumPy arrays.
"""

from inspect import unwrap
from typing import Any

from scipy import special

entr: Any = unwrap(special.entr)
gammaln: Any = unwrap(special.gammaln)
xlog1py: Any = unwrap(special.xlog1py)
xlogy: Any = unwrap(special.xlogy)
