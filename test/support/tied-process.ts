/** Loaded before a program, to end it with the process that started it, even when that is killed. */
process.once('disconnect', () => process.exit());
process.channel?.unref();
