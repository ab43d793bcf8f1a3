"""Do the tests and intervals of this package, and the papers', do what they promise?

Studies without an effect, and with a planted one, are simulated and handed to the very
functions that the chapters use. How often a test rejects where there is nothing is its
size, how often an interval holds the planted value is its coverage. The tallies are
kept on disk piece by piece, so a study that was stopped goes on where it was.
"""

from studies.validity.record import PIECE as PIECE
from studies.validity.record import cell_names as cell_names
from studies.validity.record import record_validity as record_validity
from studies.validity.record import validity as validity
