/** Applies frames to the cached data: small parts in place; the rest is fetched again. */

import type { CapabilityDetail, CapabilitySummary, Instance } from '@capstan/core/contracts/capability';
import type { RunFrame, StreamFrame } from '@capstan/core/contracts/event';
import type { Budget } from '@capstan/core/contracts/money';
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { QueryClient } from '@tanstack/react-query';
import { applyRunFrame, standingOf } from '../api/apply-event.ts';
import { refresh } from './refresh.ts';

interface Page<Item> {
  readonly items: readonly Item[];
}

function isSameInstance(one: Instance, other: Instance): boolean {
  return one.name === other.name && one.endpoint === other.endpoint;
}

/** A new instance is added, a known one replaced. */
function putInstance(instances: readonly Instance[], changed: Instance): Instance[] {
  const isKnown = instances.some((one) => isSameInstance(one, changed));
  return isKnown
    ? instances.map((one) => (isSameInstance(one, changed) ? changed : one))
    : [...instances, changed];
}

/** Whether a list or a count is of the runs in a state, or of those that wait for something. */
function asksForStanding({ queryKey }: { readonly queryKey: readonly unknown[] }): boolean {
  const filter = queryKey[2] as { readonly state?: string; readonly awaiting?: string } | undefined;
  return filter?.state !== undefined || filter?.awaiting !== undefined;
}

function isTurned(run: RunSummary, frame: RunFrame): boolean {
  const waits = [run, frame].map(({ awaiting = [] }) => [...awaiting].sort().join());
  return run.state !== frame.state || waits[0] !== waits[1];
}

function applyRun(queries: QueryClient, frame: RunFrame): void {
  let isListed = false;
  let hasTurned = false;
  queries.setQueriesData<Page<RunSummary>>({ queryKey: ['runs', 'list'] }, (page) => {
    const known = page?.items.find(({ run_id }) => run_id === frame.run_id);
    if (page === undefined || known === undefined) return page;
    isListed = true;
    hasTurned ||= isTurned(known, frame);
    return { ...page, items: page.items.map((run) => applyRunFrame(run, frame)) };
  });
  queries.setQueryData<Run>(['run', frame.run_id], (run) => run && { ...run, ...standingOf(frame) });
  if (isListed && !hasTurned) return;
  // The run leaves the lists for its old state, and enters those for its new one.
  const lists = { queryKey: ['runs', 'list'] };
  refresh(queries, isListed ? { ...lists, predicate: asksForStanding } : lists);
  for (const counts of ['summary', 'count']) refresh(queries, { queryKey: ['runs', counts] });
}

function applyInstance(queries: QueryClient, instance: Instance): void {
  const patch = <Shown extends { readonly instances: readonly Instance[] }>(shown: Shown): Shown => ({
    ...shown,
    instances: putInstance(shown.instances, instance),
  });
  const list = queries.getQueryData<Page<CapabilitySummary>>(['capabilities']);
  if (list !== undefined && !isListed(list, instance)) {
    refresh(queries, { queryKey: ['capabilities'], exact: true });
    refresh(queries, { queryKey: ['validation'] });
  } else if (list !== undefined) {
    const items = list.items.map((one) => (one.name === instance.name ? patch(one) : one));
    queries.setQueryData<Page<CapabilitySummary>>(['capabilities'], { ...list, items });
  }
  applySpec(queries, instance);
  const known = queries.getQueryData<CapabilityDetail>(['capability', instance.name]);
  if (known === undefined) return;
  queries.setQueryData<CapabilityDetail>(['capability', instance.name], patch(known));
  if (!isSpecShown(known, instance)) refresh(queries, { queryKey: ['capability', instance.name] });
}

function isListed({ items }: Page<CapabilitySummary>, { name }: Instance): boolean {
  return items.some((one) => one.name === name);
}

/** The editor's specs are read again when one of them is new. */
function applySpec(queries: QueryClient, instance: Instance): void {
  const { name, spec_digest } = instance;
  const specs = queries.getQueryData<Page<CapabilitySummary>>(['capabilities', 'specs']);
  if (specs === undefined || spec_digest === null) return;
  const known = specs.items.find((one) => one.name === name)?.instances ?? [];
  if (known.some((one) => one.spec_digest === spec_digest)) return;
  refresh(queries, { queryKey: ['capabilities', 'specs'] });
  refresh(queries, { queryKey: ['validation'] });
}

/** False when the spec of an instance was read, or has changed, after its capability was. One is listed for each version. */
function isSpecShown({ specs, instances }: CapabilityDetail, instance: Instance): boolean {
  const { spec_digest, version } = instance;
  if (spec_digest === null) return true;
  const former = instances.find((one) => isSameInstance(one, instance));
  const isNew = former?.spec_digest !== spec_digest;
  return specs.some(({ digest, spec }) => digest === spec_digest || (!isNew && spec.version === version));
}

function applyBudget(queries: QueryClient, budget: Budget): void {
  queries.setQueryData<Page<Budget>>(['budgets'], (page) => {
    if (page === undefined) return page;
    return { items: page.items.map((one) => (one.scope === budget.scope ? budget : one)) };
  });
}

/** The run page handles `step` frames itself. */
export function applyFrame(queries: QueryClient, frame: StreamFrame): void {
  switch (frame.kind) {
    case 'run':
      applyRun(queries, frame.data);
      return;
    case 'review':
      void queries.invalidateQueries({ queryKey: ['reviews'] });
      void queries.invalidateQueries({ queryKey: ['review', frame.data.review_id] });
      return;
    case 'instance':
      applyInstance(queries, frame.data);
      return;
    case 'budget':
      applyBudget(queries, frame.data);
      return;
    case 'reset':
      void queries.invalidateQueries();
      return;
    case 'step':
      return;
  }
}
