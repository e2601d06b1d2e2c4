"""Ten harms of a seed, among them one of each kind, to one run over three hosts; bench/soak.py does hundreds."""
import unittest

from harm import Harmed, Scenario

SEED = 423  # of few long harms


class Soak(Harmed):
    # Faults 1, 7, 10, 11, 12, 13.
    def test_a_run_endures_ten_harms(self):
        events, record = self.endure(Scenario.draw(SEED, count=10, longest_s=6.0))
        self.assertEqual(len(events), 10)
        self.assertEqual(record["wrong"], [], record)


if __name__ == "__main__":
    unittest.main()
