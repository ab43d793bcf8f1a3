"""Names of types that modules of every room share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
Row = dict[str, Any]
"""A row of a table of results, by column."""
Records = list[Row]
Ends = tuple[float, float]
"""The low and the high end of an interval, or of a scale."""
Json = dict[str, Any]
"""An object of a JSON document, such as the body of a call."""
Options = dict[str, Any]
"""Settings by their names, such as those of a judge."""
