/** The search parameters of every page. */
import type { CallOutcome } from '@capstan/core/contracts/call';
import type { CostPeriod } from '@capstan/core/contracts/money';
import type { ReviewKind } from '@capstan/core/contracts/review';
import type { RunState } from '@capstan/core/contracts/run';
import type { Awaiting } from '@capstan/core/contracts/run-step';
import { dayIn, flagIn, numberIn, oneIn, type RawSearch, textIn } from './shared/search.ts';

export const runStates: readonly RunState[] = [
  'queued',
  'running',
  'paused',
  'cancelling',
  'succeeded',
  'failed',
  'cancelled',
];
export const awaitings: readonly Awaiting[] = [
  'review',
  'budget',
  'capability',
  'time',
  'run',
  'slot',
  'retry',
  'callback',
  'event',
];
/** Of runs that another run repeats: without them, or only those. */
export const repeats = ['none', 'only'] as const;
export const reviewKinds: readonly ReviewKind[] = ['escalation', 'skill', 'budget', 'ops', 'step'];
export const costPeriods: readonly CostPeriod[] = [
  'day',
  'yesterday',
  'week',
  'last_7_days',
  'month',
  'last_month',
  'last_30_days',
  'all',
];
export const runViews = ['graph', 'timeline', 'log', 'input', 'output', 'files'] as const;
export const stepTabs = ['result', 'attempts', 'decision', 'money', 'ladder', 'log'] as const;
export const capabilityTabs = ['fleet', 'why', 'try', 'decisions', 'spec'] as const;
export const settingsTabs = [
  'access',
  'sessions',
  'projects',
  'webhooks',
  'hooks',
  'secrets',
  'audit',
  'limits',
  'theme',
] as const;
export const groupings = ['capability', 'model', 'pipeline', 'endpoint', 'key', 'user', 'label'] as const;

/** All of them are optional. */
function loose<Search extends object>(search: Search): Partial<Search> {
  return search;
}

export function runsSearch(raw: RawSearch) {
  return loose({
    state: oneIn(raw, 'state', runStates),
    awaiting: oneIn(raw, 'awaiting', awaitings),
    superseded: oneIn(raw, 'superseded', repeats),
    pipeline: textIn(raw, 'pipeline'),
    label: textIn(raw, 'label'),
    since: textIn(raw, 'since'),
    until: textIn(raw, 'until'),
    q: textIn(raw, 'q'),
    after: textIn(raw, 'after'),
  });
}
type RunsAddress = ReturnType<typeof runsSearch>;
/** The filters of a list, without its page. */
export type RunsSearch = Omit<RunsAddress, 'after'>;

/** Cursors of the pages before the shown one and of this one, the oldest first: `Newer` needs them. */
export function readPages({ after = '' }: Pick<RunsAddress, 'after'>): readonly string[] {
  return after === '' ? [] : after.split(' ');
}

export function writePages(cursors: readonly string[]): Pick<RunsAddress, 'after'> {
  return { after: cursors.length === 0 ? undefined : cursors.join(' ') };
}

export function runSearch(raw: RawSearch) {
  return loose({
    view: oneIn(raw, 'view', runViews),
    step: textIn(raw, 'step'),
    item: numberIn(raw, 'item'),
    tab: oneIn(raw, 'tab', stepTabs),
    at: textIn(raw, 'at'),
  });
}

export function reviewsSearch(raw: RawSearch) {
  return loose({ kind: oneIn(raw, 'kind', reviewKinds), mine: flagIn(raw, 'mine') });
}

export function pipelineSearch(raw: RawSearch) {
  return loose({ version: textIn(raw, 'version') });
}

export function editSearch(raw: RawSearch) {
  return loose({ example: flagIn(raw, 'example'), version: textIn(raw, 'version') });
}

export function capabilitySearch(raw: RawSearch) {
  return loose({
    instance: textIn(raw, 'instance'),
    tab: oneIn(raw, 'tab', capabilityTabs),
    from: textIn(raw, 'from'),
  });
}

export const callOutcomes: readonly CallOutcome[] = ['running', 'succeeded', 'failed', 'cancelled', 'cached'];

export function callsSearch(raw: RawSearch) {
  return loose({
    since: textIn(raw, 'since'),
    until: textIn(raw, 'until'),
    capability: textIn(raw, 'capability'),
    endpoint: textIn(raw, 'endpoint'),
    key: textIn(raw, 'key'),
    user: textIn(raw, 'user'),
    label: textIn(raw, 'label'),
    pipeline: textIn(raw, 'pipeline'),
    model: textIn(raw, 'model'),
    outcome: oneIn(raw, 'outcome', callOutcomes),
    run_id: textIn(raw, 'run_id'),
    direct: oneIn(raw, 'direct', ['true', 'false']),
    after: textIn(raw, 'after'),
  });
}
/** The filters of the list, without its page. */
export type CallsSearch = Omit<ReturnType<typeof callsSearch>, 'after'>;

export function costsSearch(raw: RawSearch) {
  return loose({
    period: oneIn(raw, 'period', costPeriods),
    from: dayIn(raw, 'from'),
    to: dayIn(raw, 'to'),
    by: oneIn(raw, 'by', groupings),
    label: textIn(raw, 'label'),
    and: oneIn(raw, 'and', groupings),
    and_label: textIn(raw, 'and_label'),
  });
}
export type CostsSearch = ReturnType<typeof costsSearch>;

export function ledgerSearch(raw: RawSearch) {
  return loose({
    capability: textIn(raw, 'capability'),
    run_id: textIn(raw, 'run_id'),
    since: textIn(raw, 'since'),
    until: textIn(raw, 'until'),
  });
}

export function cacheSearch(raw: RawSearch) {
  return loose({ capability: textIn(raw, 'capability'), after: textIn(raw, 'after') });
}

export function settingsSearch(raw: RawSearch) {
  return loose({ tab: oneIn(raw, 'tab', settingsTabs) });
}
