/** What a page costs while something happens: frames as they were drawn, and what its own thread computed. */
import type { Page } from 'playwright-core';

export interface Watched {
  readonly frames_per_second: number;
  readonly main_thread_ms_per_frame: number;
  readonly longest_task_ms: number;
}

const begin = `(() => {
  const seen = { began: performance.now(), frames: 0, longest: 0, isOver: false };
  seen.tasks = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longest = Math.max(seen.longest, duration);
  });
  seen.tasks.observe({ entryTypes: ['longtask'] });
  const next = () => {
    seen.frames += 1;
    if (!seen.isOver) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
  window.benchSeen = seen;
})()`;

const end = `(() => {
  const seen = window.benchSeen;
  seen.isOver = true;
  seen.tasks.disconnect();
  return { frames: seen.frames, ms: performance.now() - seen.began, longest: seen.longest };
})()`;

export async function watch(page: Page, act: () => Promise<void>): Promise<Watched> {
  const debug = await page.context().newCDPSession(page);
  await debug.send('Performance.enable');
  const readBusy = async (): Promise<number> => {
    const { metrics } = await debug.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
  };
  const before = await readBusy();
  await page.evaluate(begin);
  await act();
  const { frames, ms, longest } = (await page.evaluate(end)) as {
    frames: number;
    ms: number;
    longest: number;
  };
  const busy = (await readBusy()) - before;
  await debug.detach();
  return {
    frames_per_second: Math.round((frames * 1_000) / ms),
    main_thread_ms_per_frame: Math.round((busy / frames) * 10) / 10,
    longest_task_ms: Math.round(longest),
  };
}
