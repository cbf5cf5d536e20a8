/** Other work on the machine is no fault of what is tested. @returns the processor time since the call, in milliseconds */
export function countProcessorMs(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  };
}
