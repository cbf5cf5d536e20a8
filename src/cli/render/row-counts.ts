/** Rows by table, in words: what was deleted, or would be. */

const words: Readonly<Record<string, string>> = {
  run: 'runs',
  open_run: 'of them open',
  step: 'steps and items',
  step_revision: 'corrected inputs',
  attempt: 'attempts',
  attempt_choice: 'choices',
  event: 'events',
  escalation: 'escalations',
  review: 'reviews',
  cached_result: 'cached results',
  budget: 'budgets of runs',
  job: 'jobs',
  media_file: 'media files',
  media_object: 'media files',
  ledger_entry: 'entries of the ledger',
  audit: 'entries of the audit log',
  schedule: 'schedules',
  webhook: 'webhooks',
  skill: 'skills',
  skill_use: 'uses of skills',
  pipeline_version: 'versions of pipelines',
  pipeline_alias: 'aliases of pipelines',
  definition: 'definitions',
  instance: 'instances of capabilities',
  capability_spec: 'specs of capabilities',
  advice_answer: 'kept answers to requests for advice',
  idempotency: 'kept answers under an Idempotency-Key',
  api_key: 'keys that hold it alone',
};

/** @param most as far as they were counted */
export function formatCounts(counts: Readonly<Record<string, number>>, most = Infinity): string[] {
  const rows = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([table, count]) => [count >= most ? `${most}+` : String(count), words[table] ?? table] as const);
  const width = Math.max(0, ...rows.map(([count]) => count.length));
  return rows.map(([count, what]) => `  ${count.padStart(width)}  ${what}`);
}
