/** Actions on several runs, as the audit log has them. */
import type { AuditEntry } from '@capstan/core/contracts/access';
import type { Json } from '@capstan/core/contracts/primitives';

export interface BulkAction {
  /** `Repeated 12 runs, 2 refused` */
  readonly title: string;
  /** `label=batch=7, state=failed`; empty for chosen runs. */
  readonly filter: string;
  /** The changed terms: `priority batch, budget_ceiling_usd 3`. */
  readonly request: string;
  /** New runs if there are any, else the changed ones. */
  readonly runs: readonly string[];
}

const words: Readonly<Record<string, string>> = {
  'runs.cancelled': 'Cancelled',
  'runs.repeated': 'Repeated',
  'runs.raised': 'Raised the budget of',
};

function textsIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

function pairsIn(value: Json | undefined, join: string): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return '';
  return Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .map(([name, one]) => `${name}${join}${typeof one === 'string' ? one : JSON.stringify(one)}`)
    .join(', ');
}

export function toBulkAction({ action, data }: Pick<AuditEntry, 'action' | 'data'>): BulkAction {
  const [changed, made, refused] = [textsIn(data.runs), textsIn(data.new_runs), textsIn(data.refused)];
  const count = `${changed.length} ${changed.length === 1 ? 'run' : 'runs'}`;
  const left = refused.length === 0 ? '' : `, ${refused.length} refused`;
  return {
    title: `${words[action] ?? action} ${count}${left}`,
    filter: pairsIn(data.filter, '='),
    request: pairsIn(data.request, ' '),
    runs: made.length > 0 ? made : changed,
  };
}
