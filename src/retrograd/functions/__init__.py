"""The array library: functions of tensors, by topic, that build nodes."""
