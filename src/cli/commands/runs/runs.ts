/**
 * Existing runs: `ls`, `show`, `open` and `events` read them, `pause`, `resume`, `budget` and `cancel` control them.
 */

import { EventPage, LogLevel } from '@capstan/core/contracts/event';
import { Job } from '@capstan/core/contracts/media';
import { Run, RunList, type RunSummary } from '@capstan/core/contracts/run';
import { StepDetail } from '@capstan/core/contracts/run-step';
import { writeJson } from '@capstan/core/json/text';
import { z } from 'zod';
import { getAll, getItems, jsonBody, path } from '../../client/api-client.ts';
import { linkToConsole, openBrowser, type Session } from '../../client/session.ts';
import { command, listed, oneOf, parsed, procedure, type Register } from '../../command.ts';
import { exitCodes, UsageError } from '../../errors.ts';
import {
  getRun,
  latestRun,
  readCeiling,
  readItem,
  readLongLimit,
  resolveRunId,
  runArgument,
} from '../../input/arguments.ts';
import { meansMany, readFilterOptions, runFilterOptions, toReadFilter } from '../../input/run-filter.ts';
import {
  formatAge,
  formatRunState,
  formatSpan,
  formatState,
  formatStepCounts,
  formatUsd,
} from '../../render/formats.ts';
import type { Columns } from '../../render/print.ts';
import { renderStepDetail, showRun } from '../../render/run.ts';
import { type EventFilter, followEvents, formatEvent, isAsked } from '../../watch/events.ts';
import { watchRun } from '../../watch/watch-run.ts';
import { changeMany } from './many-runs.ts';

const runTable: Columns<RunSummary> = [
  ['RUN', 'run_id'],
  ['PIPELINE', ({ pipeline, version }) => `${pipeline}@${version}`, 'shrinks'],
  ['STATE', (run, { style }) => `${formatRunState(run, style)}${style.dim(formatRepeat(run))}`],
  ['STEPS', ({ step_counts }) => formatStepCounts(step_counts), 'right'],
  ['CREATED', ({ created_at }, { now }) => formatAge(created_at, now), 'right'],
  ['TIME', ({ started_at, finished_at }, { now }) => formatSpan(started_at, finished_at, now), 'right'],
  ['COST', ({ cost_usd }) => formatUsd(cost_usd), 'right'],
  ['ERROR', ({ error }) => (error === undefined ? '' : `${error.code}: ${error.message}`), 'shrinks'],
];

function formatRepeat({ superseded_by: newer }: RunSummary): string {
  return newer === undefined ? '' : `, repeated as …${newer.slice(-8)}`;
}

export const registerListCommand = command('ls', {
  about: 'list runs, newest first',
  example: 'capstan ls --state failed --label batch=7',
  options: {
    ...readFilterOptions,
    '-n, --limit <n>': parsed('at most so many', readLongLimit, 20),
  },
  call: ({ client }, { limit, ...given }) =>
    getItems(client, { list: '/v1/runs', schema: RunList, query: toReadFilter(given), most: limit }),
  show: listed(runTable, {
    none: 'no runs',
    more: ({ limit }: { readonly limit: number }) => `the newest ${limit}; there are more`,
  }),
});

async function showStep(
  { client, print, json, shell }: Session,
  runId: string,
  { stepId, item }: { readonly stepId: string; readonly item: number | undefined },
): Promise<void> {
  const { value, text } = await client.get(path`/v1/runs/${runId}/steps/${stepId}`, StepDetail, { item });
  if (json) return print.json(text);
  print.lines(renderStepDetail(value, { style: print.style, width: print.width, now: shell.now() }));
}

export const registerShowCommand = procedure('show', {
  about: 'show a run, or one of its steps with every attempt and why it went where',
  example: 'capstan show @latest --step trim',
  args: runArgument,
  options: {
    '-s, --step <id>': 'show this step',
    '-i, --item <n>': parsed('of a step with for_each: this item, from 1 on', readItem),
    '-w, --watch': 'watch the run to its end; exits like run --watch',
    '--job': 'print the job that it was started with, as JSON',
  },
  run: async (session, { run, step: stepId, item, watch, job }) => {
    const { client, print, json, shell } = session;
    const runId = await resolveRunId(client, run);
    if (watch === true) return shell.exitWith(await watchRun(session, runId));
    if (stepId !== undefined) return showStep(session, runId, { stepId, item });
    if (item !== undefined) throw new UsageError('--item goes with --step');
    const { value, text } = await getRun(client, runId);
    if (job === true) {
      const kept = await client.get(path`/v1/jobs/${value.job_id}`, Job);
      return print.json(writeJson(kept.value.job));
    }
    if (json) return print.json(text);
    showRun(session, value, true);
  },
});

export const registerOpenCommand = procedure('open', {
  about: 'open a run in the console, already signed in',
  example: 'capstan open @latest',
  args: runArgument,
  options: { '--no-browser': 'only print the link' },
  run: async ({ client, print, json, shell }, { run, browser }) => {
    const runId = await resolveRunId(client, run);
    const url = await linkToConsole(client, path`/runs/${runId}`);
    if (json) return print.json(JSON.stringify({ url }));
    print.line(url);
    if (browser === true && shell.stdout.isTTY === true) openBrowser(url);
  },
});

/** Prints one JSON document per event with --json. */
async function follow(
  { client, print, json, shell }: Session,
  runId: string,
  filter: EventFilter,
): Promise<void> {
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  try {
    for await (const event of followEvents(client, runId, { signal: stop.signal })) {
      if (!isAsked(event, filter)) continue;
      if (json) print.json(writeJson(event));
      else print.line(formatEvent(event, print.style));
    }
  } finally {
    release();
  }
  if (stop.signal.aborted) shell.exitWith(exitCodes.interrupted);
}

export const registerEventsCommand = procedure('events', {
  about: "print a run's log, or what the capabilities of its steps logged",
  example: 'capstan events @latest -f --step trim --level warn',
  args: runArgument,
  options: {
    '-f, --follow': 'continue until the run ends',
    '-s, --step <id>': 'only lines of this step',
    '-l, --level <level>': oneOf('only what capabilities logged, from this level on', LogLevel.options),
  },
  run: async (session, { run, follow: follows, ...filter }) => {
    const { client, print, json } = session;
    const runId = await resolveRunId(client, run);
    if (follows === true) return follow(session, runId, filter);
    const { value, text } = await getAll(client, path`/v1/runs/${runId}/events`, EventPage);
    const items = value.items.filter((event) => isAsked(event, filter));
    if (json) return print.json(items.length === value.items.length ? text : writeJson({ ...value, items }));
    print.lines(items.map((event) => formatEvent(event, print.style)));
  },
});

/** `pause`, or its inverse `resume`. */
function stopCommand(act: 'pause' | 'resume', about: string): Register {
  return command(act, {
    about,
    example: `capstan ${act} @latest`,
    args: runArgument,
    call: async ({ client }, { run }) =>
      client.post(path`/v1/runs/${await resolveRunId(client, run)}/${act}`, Run, jsonBody({})),
    show: act === 'pause' ? showPaused : showState,
  });
}

/** Open calls and child runs that are named. */
const mostNamed = 5;

function showPaused({ run_id, state, pause }: Run, { print }: Session): void {
  print.line(`${formatState(state, print.style)}  ${run_id}`);
  if (pause === undefined) return;
  const { open_calls, open_call_count: count, open_child_runs: children, held_steps: steps } = pause;
  const calls = open_calls
    .slice(0, mostNamed)
    .map(
      ({ step_id, item, endpoint }) =>
        `${step_id}${item === undefined ? '' : ` item ${item}`} on ${endpoint}`,
    );
  const more = count > calls.length ? ` and ${count - calls.length} more` : '';
  print.line(count === 0 ? 'no call is open' : `still finishes: ${calls.join(', ')}${more}`);
  if (children.length > 0)
    print.line(`child runs continue; pause each by itself: ${children.slice(0, mostNamed).join(', ')}`);
  print.line(steps === 1 ? '1 step waits for the resume' : `${steps} steps wait for the resume`);
}

function showState({ state, run_id }: Run, { print }: Session): void {
  print.line(`${formatState(state, print.style)}  ${run_id}`);
}

export const registerPauseCommand = stopCommand(
  'pause',
  'start nothing new in a run, no retry either; list the open calls that finish',
);

export const registerResumeCommand = stopCommand('resume', 'resume a paused run');

export const registerBudgetCommand = command('budget', {
  about: 'give a run another budget; steps that wait for budget continue',
  example: 'capstan budget @latest 2.50',
  args: {
    '<run>': 'run id, or @latest',
    '<usd>': parsed('US dollars for the whole run, or none', readCeiling),
  },
  call: async ({ client }, { run, usd: budget_ceiling_usd }) => {
    const runId = await resolveRunId(client, run);
    return client.post(path`/v1/runs/${runId}/budget`, Run, jsonBody({ budget_ceiling_usd }));
  },
  show: ({ run_id, budget_ceiling_usd: ceiling, cost_usd }, { print }) => {
    const limit = ceiling === null ? 'none' : formatUsd(ceiling);
    print.line(`ceiling ${limit}, spent ${formatUsd(cost_usd)}  ${run_id}`);
  },
});

export const registerCancelCommand = procedure('cancel', {
  about: 'cancel a run and abort its running calls, or all runs that filters choose',
  help: `
Examples:
  capstan cancel @latest --reason "wrong clip"
  capstan cancel --label batch=7 --state running --preview`,
  args: { '[run]': 'run id, or @latest (default: @latest, unless filters choose many)' },
  options: {
    ...runFilterOptions,
    '-r, --reason <text>': 'kept with the run',
    '--terminate': 'end it at once, without waiting for what runs',
    '-w, --wait': 'wait until it has ended; exits 0 when it was cancelled',
    '--preview': 'only count the runs that filters choose',
  },
  run: async (session, { run, reason, terminate, wait, preview: isPreview, ...given }) => {
    const { client, print, json, shell } = session;
    const mode = terminate === true ? 'terminate' : 'graceful';
    if (meansMany({ run, ...given })) {
      if (wait === true) throw new UsageError('--wait is for one run');
      return changeMany(session, { act: 'cancel', given, body: { reason, mode }, isPreview });
    }
    if (isPreview === true) throw new UsageError('--preview counts runs; give a filter such as --label');
    const runId = await resolveRunId(client, run ?? latestRun);
    await client.post(path`/v1/runs/${runId}/cancel`, z.unknown(), jsonBody({ reason, mode }));
    if (wait === true) {
      const code = await watchRun(session, runId);
      return shell.exitWith(code === exitCodes.cancelled ? exitCodes.ok : code || exitCodes.failed);
    }
    const { value, text } = await getRun(client, runId);
    if (json) return print.json(text);
    showState(value, session);
  },
});
