"""Sources: functions that make a flow, in families, exported by the package."""
