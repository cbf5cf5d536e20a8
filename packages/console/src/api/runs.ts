import type { EventPage } from '@capstan/core/contracts/event';
import type { Job } from '@capstan/core/contracts/media';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RerunPreview, RerunRequest, RunActs, RunCount } from '@capstan/core/contracts/run-control';
import type { RunGraph, RunsSummary, RunTimeline } from '@capstan/core/contracts/run-picture';
import type { Awaiting, RunStepItem, StepDetail } from '@capstan/core/contracts/run-step';
import { queryOptions } from '@tanstack/react-query';
import { answerOf, askPlainly, client, newIdempotencyKey } from './client.ts';

export interface RunsFilter {
  readonly state?: Run['state'] | undefined;
  readonly awaiting?: Awaiting | undefined;
  readonly superseded?: 'none' | 'only' | undefined;
  readonly pipeline?: string | undefined;
  readonly label?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly q?: string | undefined;
  readonly schedule_id?: string | undefined;
  readonly order?: 'oldest' | undefined;
}

function toQuery(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.toString();
}

export function runsQuery(filter: RunsFilter, cursor?: string) {
  return queryOptions({
    queryKey: ['runs', 'list', filter, cursor ?? ''],
    queryFn: () =>
      answerOf(
        client.GET('/v1/runs', {
          params: { query: { ...filter, limit: 50, cursor, parent: 'none' } },
        }),
      ),
  });
}

export function runsSummaryQuery(filter: Omit<RunsFilter, 'state' | 'order'> & { readonly buckets: number }) {
  return queryOptions({
    queryKey: ['runs', 'summary', filter],
    queryFn: () => askPlainly<RunsSummary>(`/v1/runs/summary?${toQuery({ ...filter, parent: 'none' })}`),
    staleTime: 10_000,
  });
}

export function readRun(runId: string): Promise<Run> {
  return answerOf(client.GET('/v1/runs/{id}', { params: { path: { id: runId } } })) as Promise<Run>;
}

export function runQuery(runId: string) {
  return queryOptions({
    queryKey: ['run', runId],
    queryFn: () => readRun(runId),
    // The router requests it before the page mounts.
    retryOnMount: false,
  });
}

export function jobQuery(jobId: string) {
  return queryOptions({
    queryKey: ['job', jobId],
    queryFn: () => askPlainly<Job>(`/v1/jobs/${jobId}`),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function runGraphQuery(runId: string) {
  return queryOptions({
    queryKey: ['run', runId, 'graph'],
    queryFn: () => askPlainly<RunGraph>(`/v1/runs/${runId}/graph`),
    staleTime: Number.POSITIVE_INFINITY,
    retryOnMount: false,
  });
}

const mostTimelinePages = 20;

export function timelineQuery(runId: string) {
  return queryOptions({
    queryKey: ['run', runId, 'timeline'],
    queryFn: async (): Promise<RunTimeline> => {
      const rows: RunTimeline['rows'][number][] = [];
      let cursor: string | null | undefined;
      for (let page = 0; page < mostTimelinePages; page++) {
        const query = toQuery({ cursor: cursor ?? undefined });
        const answer = await askPlainly<RunTimeline>(`/v1/runs/${runId}/timeline?${query}`);
        rows.push(...answer.rows);
        cursor = answer.next_cursor;
        if (cursor === null) return { ...answer, rows };
      }
      return { columns: [], rows, next_cursor: cursor ?? null };
    },
  });
}

export function stepQuery(runId: string, stepId: string, item?: number) {
  return queryOptions({
    queryKey: ['run', runId, 'step', stepId, item ?? 0],
    queryFn: (): Promise<StepDetail> =>
      askPlainly(`/v1/runs/${runId}/steps/${stepId}${item === undefined ? '' : `?item=${item}`}`),
  });
}

const mostItemPages = 10;

/** The items of a step that have begun, in order, without their outputs; the first 2,000. */
export function itemsQuery(runId: string, stepId: string) {
  return queryOptions({
    queryKey: ['run', runId, 'items', stepId],
    queryFn: async (): Promise<readonly RunStepItem[]> => {
      const items: RunStepItem[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < mostItemPages; page++) {
        const query = toQuery({ limit: 200, output: 'none', cursor });
        const answer = await askPlainly<PageOfItems>(`/v1/runs/${runId}/steps/${stepId}/items?${query}`);
        items.push(...answer.items);
        if (answer.next_cursor === null) break;
        cursor = answer.next_cursor;
      }
      return items;
    },
  });
}

/** The first 200 items of a step that failed. */
export function failedItemsQuery(runId: string, stepId: string) {
  return queryOptions({
    queryKey: ['run', runId, 'items', stepId, 'failed'],
    queryFn: async (): Promise<readonly RunStepItem[]> => {
      const query = toQuery({ limit: 200, output: 'none', state: 'failed' });
      return (await askPlainly<PageOfItems>(`/v1/runs/${runId}/steps/${stepId}/items?${query}`)).items;
    },
  });
}

/** The first 100 items of a step, with their outputs. */
export async function readItemResults(runId: string, stepId: string): Promise<readonly RunStepItem[]> {
  return (await askPlainly<PageOfItems>(`/v1/runs/${runId}/steps/${stepId}/items?limit=100`)).items;
}

interface PageOfItems {
  readonly items: readonly RunStepItem[];
  readonly next_cursor: string | null;
}

const mostEventPages = 100;

/** The whole log of a run so far, oldest first. */
export function eventsQuery(runId: string) {
  return queryOptions({
    queryKey: ['run', runId, 'events'],
    queryFn: async (): Promise<EventPage['items']> => {
      const items: EventPage['items'] = [];
      let after = 0;
      for (let page = 0; page < mostEventPages; page++) {
        const query = { after, limit: 200 };
        const answer = (await answerOf(
          client.GET('/v1/runs/{id}/events', { params: { path: { id: runId }, query } }),
        )) as EventPage;
        items.push(...answer.items);
        after = items.at(-1)?.seq ?? after;
        if (answer.next_cursor === null) break;
      }
      return items;
    },
  });
}

export interface ManyEnd {
  readonly done: number;
  /** Reasons, without duplicates. */
  readonly refused: readonly string[];
}

export interface ManyChange {
  readonly act: 'cancel' | 'rerun' | 'raise';
  readonly body: object;
  /** Runs that were changed or refused so far. */
  readonly onPage: (count: number) => void;
}

const runsAtOnce = 20;

/** Changes runs by their ids, a part at a time. */
export async function changeChosen(ids: readonly string[], change: ManyChange): Promise<ManyEnd> {
  const ends: ManyEnd[] = [];
  for (let from = 0; from < ids.length; from += runsAtOnce) {
    const part = { run_id: ids.slice(from, from + runsAtOnce).join(',') };
    ends.push(await changeMany(part, { ...change, onPage: (count) => change.onPage(from + count) }));
  }
  return {
    done: ends.reduce((sum, { done }) => sum + done, 0),
    refused: [...new Set(ends.flatMap(({ refused }) => refused))],
  };
}

/** Changes all runs that match a filter, page by page. */
export async function changeMany(
  filter: RunsFilter & { readonly run_id?: string },
  { act, body, onPage }: ManyChange,
): Promise<ManyEnd> {
  let seen = 0;
  let done = 0;
  const refused = new Set<string>();
  let cursor: string | null = null;
  do {
    const query = toQuery({ ...filter, limit: runsAtOnce, cursor: cursor ?? undefined });
    const page: RunActs = await askPlainly(`/v1/runs/bulk/${act}?${query}`, { method: 'POST', body });
    for (const { error } of page.items) {
      if (error === undefined) done++;
      else refused.add(error.detail ?? error.title);
    }
    seen += page.items.length;
    onPage(seen);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return { done, refused: [...refused] };
}

export function runCountQuery(filter: RunsFilter) {
  return queryOptions({
    queryKey: ['runs', 'count', filter],
    queryFn: () => askPlainly<RunCount>(`/v1/runs/count?${toQuery({ ...filter, parent: 'none' })}`),
    staleTime: 10_000,
  });
}

/** All runs that match, with steps and outputs, as a JSON document per line. */
export function exportRuns(filter: RunsFilter): Promise<string> {
  return askPlainly(`/v1/runs/export?${toQuery({ ...filter, parent: 'none' })}`);
}

export type AskedControl = 'pause' | 'resume';

export function controlRun(runId: string, control: AskedControl): Promise<unknown> {
  return askPlainly(`/v1/runs/${runId}/${control}`, { method: 'POST' });
}

export function cancelRun(runId: string, request: { readonly reason?: string }): Promise<unknown> {
  return askPlainly(`/v1/runs/${runId}/cancel`, { method: 'POST', body: request });
}

export function raiseCeiling(runId: string, usd: number | null): Promise<unknown> {
  return askPlainly(`/v1/runs/${runId}/budget`, { method: 'POST', body: { budget_ceiling_usd: usd } });
}

export function previewRerun(runId: string, request: RerunRequest): Promise<RerunPreview> {
  return askPlainly(`/v1/runs/${runId}/rerun`, { method: 'POST', body: { ...request, preview: true } });
}

export function rerun(runId: string, request: RerunRequest): Promise<Run> {
  return askPlainly(`/v1/runs/${runId}/rerun`, { method: 'POST', body: request });
}

export interface RunStart {
  readonly pipeline?: string;
  readonly definition?: object;
  readonly version?: string;
  readonly job: object;
  readonly priority?: string;
  readonly budget_ceiling_usd?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The job of the newest run of a pipeline; null without a run. */
export async function readLastJob(pipeline: string): Promise<JsonObject | null> {
  const page = await askPlainly<{ readonly items: readonly Pick<Run, 'job_id'>[] }>(
    `/v1/runs?${toQuery({ pipeline, limit: 1, parent: 'none' })}`,
  );
  const [last] = page.items;
  return last === undefined ? null : (await askPlainly<Job>(`/v1/jobs/${last.job_id}`)).job;
}

export function startRun(start: RunStart): Promise<Run> {
  return answerOf(
    client.POST('/v1/runs', {
      body: start as never,
      params: { header: { 'idempotency-key': newIdempotencyKey() } as never },
    }),
  ) as Promise<Run>;
}
