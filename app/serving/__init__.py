"""`inkling serve`: the engine for other programs on this machine, over HTTP on the loopback interface."""
