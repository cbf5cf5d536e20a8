/** Loaded before a program that is to end when the process that started it does, also when that is killed. */
process.once('disconnect', () => process.exit());
process.channel?.unref();
