"""Lets the tests of the statistics import `planted`,
which holds the judgments they plant.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
