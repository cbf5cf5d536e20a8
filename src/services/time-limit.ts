/**
 * What the work gives, or what `late` gives or throws when the time is over before. Work that is late goes on, and how
 * it ends is not heard any more. The timer keeps no process alive.
 */
export async function within<Result, Late>(
  work: Promise<Result>,
  ms: number,
  late: () => Late,
): Promise<Result | Late> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms).unref();
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
