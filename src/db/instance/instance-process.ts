/** What is known of the process behind an instance: how long it runs, and what calls have shown of it. */
import type { Db } from '../connect.ts';

export async function recordUptime(db: Db, instanceId: string, uptimeMs: number): Promise<void> {
  await db.raw('update instance set uptime_ms = ?, uptime_at = now() where instance_id = ?', [
    uptimeMs,
    instanceId,
  ]);
}

/** Breaker and speed as of an instance that was never called. */
export async function forgetCalls(db: Db, instanceId: string): Promise<void> {
  await db.raw(
    `update instance set breaker_until = null, breaker_openings = 0, duration_ms = null, deviation_ms = null,
       mean_cost_usd = null, success_count = 0, failure_count = 0
     where instance_id = ?`,
    [instanceId],
  );
}
