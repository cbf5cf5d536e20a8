/** How late the event loop is: what a busy process makes everybody wait, whatever they ask for. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from '../core/telemetry/metrics.ts';

/** @returns ends it */
export function watchEventLoop(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const quantiles = { '0.5': 50, '0.99': 99, '1': 100 };
  metrics.onScrape(() => {
    for (const [quantile, percent] of Object.entries(quantiles)) {
      const ns = delay.count === 0 ? 0 : delay.percentile(percent);
      metrics.set('event_loop_delay_seconds', { quantile }, ns / 1e9);
    }
    delay.reset();
  });
  return () => void delay.disable();
}
