"""What all statistics are computed with: reads, intervals, losses, reasons."""
