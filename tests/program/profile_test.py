"""`train --profile` says where a run's time went, as a table for people and a file for tools."""
import json
import unittest

from programs import QUICK, ProgramTest, mlaunch, train


class Profile(ProgramTest):
    def profile(self, command):
        """Runs a command; returns what it prints and the objects of its ranks."""
        done = self.run_program([*command, "--steps", "8", "--profile", "profile.json"])
        ranks = json.loads(self.read("profile.json"))["ranks"]
        for number, rank in enumerate(ranks):
            self.assertEqual((rank["rank"], rank["first_step"], rank["steps"]), (number, 3, 6))
            losses = [row["loss_seconds"] for row in rank["rows"]]
            self.assertEqual(losses, sorted(losses, reverse=True))
            computing = sum(row["seconds"] for row in rank["rows"] if row["queue"] == "compute")
            self.assertLessEqual(computing, rank["seconds_per_step"] * 1.0001)
            busy = next(queue for queue in rank["queues"] if queue["queue"] == "compute")["busy_seconds"]
            self.assertAlmostEqual(computing, busy, delta=1e-6)
            for name in ("fp32_flops", "memory_bytes"):
                self.assertGreater(rank["rates"][name], 0, name)
        return done.stdout, ranks

    def test_one_rank(self):
        printed, (rank,) = self.profile(train(*QUICK))
        self.assertIn("profile of steps 3 to 8", printed)
        self.assertIn("all of it: profile.json", printed)
        products = [row for row in rank["rows"] if row["operation"] == "linear"]
        self.assertGreaterEqual(len(products), 3)
        for row in products:  # each shape runs once per layer and micro-step
            self.assertEqual(row["count"], int(row["count"]))
            rates = rank["rates"]
            bound = max(row["flops"] / rates["fp32_flops"], row["bytes"] / rates["memory_bytes"])
            self.assertGreater(bound, 0)
            self.assertAlmostEqual(row["bound_seconds"] / bound, 1, delta=1e-6)
            self.assertAlmostEqual(row["ratio"] * bound / row["seconds"], 1, delta=1e-6)
            self.assertRegex(row["shape"], r"fp32 \[\d+,\d+\]")
        updates = next(row for row in rank["rows"] if row["operation"] == "adamw")
        self.assertGreater(updates["bytes"], 0)
        table = printed[printed.index("profile of steps"):].splitlines()
        self.assertTrue(all(len(line) <= 100 for line in table[2:]), table)

    def test_two_ranks_in_one_file(self):
        _, ranks = self.profile(mlaunch(2, *QUICK, "--zero", "3", "--param-persistence-threshold", "0"))
        self.assertEqual(len(ranks), 2)
        for rank in ranks:
            gathers = [row for row in rank["rows"] if row["operation"] == "all_gather"]
            self.assertTrue(gathers)
            self.assertEqual({row["queue"] for row in gathers}, {"communication"})

    def test_too_few_steps(self):
        done = self.run_program([*train(*QUICK), "--steps", "2", "--profile", "profile.json"], expect=78)
        self.assertIn("--profile leaves out the first 2 steps and none is left; give --steps 3 or more", done.stderr)


if __name__ == "__main__":
    unittest.main()
