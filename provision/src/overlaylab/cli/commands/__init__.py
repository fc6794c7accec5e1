"""One file per subcommand; each defines ``command``, a click command or group."""
