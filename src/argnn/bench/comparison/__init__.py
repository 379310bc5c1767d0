"""Compare methods on one graph: equal small budgets, one leaderboard, the winner as a model."""
