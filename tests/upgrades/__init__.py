"""What each version of the formats wrote: targets, checkpoints, specs, receipts; and loads that go on from there."""
