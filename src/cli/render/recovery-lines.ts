/** What `capstan recover` says: what it found, before it changes anything, and what it did. */
import type { WholeFindings, WholeRecovery } from '../../upkeep/recover.ts';

const shownRuns = 20;

function describeDatabase({ other_cluster, last_at, ...found }: WholeFindings): string[] {
  const ahead =
    other_cluster === null
      ? []
      : [
          `the database comes from another cluster: ${other_cluster.events} events and ${other_cluster.instances} instances were brought below this one's transactions`,
        ];
  return [
    ...ahead,
    last_at === null
      ? 'the database is empty'
      : `the database knows of nothing after ${last_at}; what happened later happens again`,
    `${found.open_runs} runs are open, ${found.open_reviews} questions wait for a person, ${found.pending_webhooks} webhooks are to be delivered`,
  ];
}

/** All that are known: afterwards nobody finds them again. */
function describeCalls({ interrupted_calls: calls, open_calls }: WholeFindings): string[] {
  if (calls.length === 0) return [];
  const lines = calls.map(({ run_id, step_id, item, capability, endpoint }) => {
    const unit = `${run_id ?? 'a call by itself'}${step_id === null ? '' : ` ${step_id}`}${item ? ` [${item}]` : ''}`;
    return `  ${unit} → ${capability} at ${endpoint}`;
  });
  const count = Math.max(open_calls, calls.length);
  const more = count > calls.length ? [`  and ${count - calls.length} more`] : [];
  return [
    `${count} calls were under way and may happen twice, with the same Idempotency-Key:`,
    ...lines,
    ...more,
  ];
}

function listKeys(what: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${what}:`, ...ids.map((id) => `  ${id}`)];
}

/** All that are known: the audit log of the database does not name them. */
function describeKeys({ lost_acts: acts }: WholeFindings): string[] {
  if (acts === null)
    return [
      'keys that were revoked or rotated after the backup work again as they did; --audit FILE names them from an audit log that was kept elsewhere',
    ];
  return [
    ...listKeys('keys that were revoked after the backup, and are revoked again', acts.revoked),
    ...listKeys(
      'keys whose former secret works again, because they were rotated after the backup',
      acts.rotated,
    ),
    ...listKeys('keys that were made after the backup, and are gone', acts.made),
  ];
}

export function describeFindings(found: WholeFindings): string[] {
  return [...describeDatabase(found), ...describeCalls(found), ...describeKeys(found)];
}

function listRuns(ids: readonly string[]): string[] {
  const more = ids.length > shownRuns ? [`  and ${ids.length - shownRuns} more`] : [];
  return [...ids.slice(0, shownRuns).map((id) => `  ${id}`), ...more];
}

function describeEnded(ended: readonly string[]): string[] {
  if (ended.length === 0) return [];
  return [
    `${ended.length} runs are open here and have ended in Temporal, which is newer than the database; servers would end them as failed, or never.`,
    'Give the database an empty namespace, or start all open runs anew by capstan recover --restart-all, before a server starts:',
    ...listRuns(ended),
  ];
}

function describeUndeleted(undeleted: readonly string[]): string[] {
  if (undeleted.length === 0) return [];
  return [
    `${undeleted.length} runs were not started anew, because Temporal had not deleted their workflows after five minutes.`,
    'Repeat capstan recover --restart-all before a server starts:',
    ...listRuns(undeleted),
  ];
}

export function describeRecovery(report: WholeRecovery): string[] {
  const { search_attributes: names, search_attributes_fault: fault } = report;
  return [
    ...(fault === null ? [] : [`search attributes could not be registered: ${fault}`]),
    ...(names.length === 0 ? [] : [`search attributes added to Temporal: ${names.join(', ')}`]),
    `started again: ${report.restarted_runs} runs, ${report.restarted_ladders} ladders, ${report.restored_schedules} schedules; ${report.running_runs} runs go on in Temporal`,
    `ended: ${report.ended_sessions} sessions and ${report.ended_login_links} login links of the backup; ${report.revoked_keys.length} keys were revoked again`,
    ...(report.undelivered_starts === 0
      ? []
      : [`${report.undelivered_starts} runs had not been started yet; a server starts them`]),
    ...describeEnded(report.ended_in_temporal),
    ...describeUndeleted(report.undeleted_runs),
  ];
}

/** Whether every open run goes on when servers start. */
export function isWhole({ ended_in_temporal, undeleted_runs }: WholeRecovery): boolean {
  return ended_in_temporal.length === 0 && undeleted_runs.length === 0;
}
