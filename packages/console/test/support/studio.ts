/** A project with something to look at: a pipeline, its runs in several states, a review, a skill, costs, a schedule. */

import type { PipelineSubmitted } from '@capstan/core/contracts/pipeline-answers';
import type { Run } from '@capstan/core/contracts/run';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { CapstanClient } from '../../../../test/support/capstan.ts';
import { reviewOf } from '../../../../test/support/reviews.ts';
import type { SharedCapstan } from '../../../../test/support/shared-capstan.ts';
import { waitFor } from '../../../../test/support/wait.ts';
import { type Look, launchBrowser, type OpenPage, signIn } from './browser.ts';
import { provideConsole } from './built-console.ts';
import { borrowPage, closeLentTabs } from './kept-tabs.ts';
import { shareFleet } from './shared-fleet.ts';

export interface Studio {
  readonly capstan: SharedCapstan;
  readonly done: string;
  readonly failed: string;
  /** Waits for a review at `sound`. */
  readonly waiting: string;
  /** What it asks. */
  readonly correction: string;
  /** Asked by a step; it stays open. */
  readonly question: string;
}

export const reel = `# Cuts, joins and shows
pipeline: reel
version: "1.0"
description: Cuts each clip, joins them and makes a cover
job_schema:
  type: object
  required: [clips]
  properties:
    clips: { type: array, items: { type: string } }
    title: { type: string, default: My reel }
    rate: { type: [integer, string], default: 44100 }
steps:
  - id: trim
    capability: trim
    for_each: { items: "{{ job.clips }}" }
    input: { clip: "{{ item }}" }
  - id: sound
    capability: resample
    input: { rate: "{{ job.rate }}" }
  - id: join
    capability: join
    input: { parts: "{{ steps.trim.output }}", title: "{{ job.title }}" }
    depends_on: [sound]
output: { title: "{{ steps.join.output.title }}" }
`;

export async function startRunOf(capstan: SharedCapstan, job: object): Promise<string> {
  const { status, body } = await capstan.request<Run>('POST', '/v1/runs', { pipeline: 'reel', job });
  if (status !== 202) throw new Error(`POST /v1/runs: ${status} ${JSON.stringify(body)}`);
  return body.run_id;
}

/** Until its other steps have ended too. */
function restingBeside({ read }: SharedCapstan, run: string): Promise<boolean> {
  return waitFor(`the other steps of ${run}`, async () => {
    const { steps } = await read<Run>(`/v1/runs/${run}`);
    return steps.some(({ id, state }) => id === 'trim' && state === 'succeeded');
  });
}

interface Asked {
  readonly run: string;
  readonly review: string;
}

/** A run that waits for a review at `sound`, whose input `resample` refuses. */
async function askCorrection(capstan: SharedCapstan): Promise<Asked> {
  const run = await startRunOf(capstan, { clips: ['a', 'b'], title: 'Two', rate: '44.1k' });
  return { run, review: (await reviewOf(capstan, run, 'sound')).review_id };
}

/** A run that asks a person and does nothing else. */
export async function askQuestion(
  capstan: CapstanClient,
  { input, ...more }: { readonly schema?: object; readonly input?: object } = {},
): Promise<Asked> {
  const question = { title: 'May it be published?', ...more };
  const step = { id: 'publish', review: question, ...(input === undefined ? {} : { input }) };
  const { run_id } = await capstan.submit([step]);
  const review = await waitFor(`the question of ${run_id}`, async () => {
    const { body } = await capstan.request<Run>('GET', `/v1/runs/${run_id}`);
    return body.steps[0]?.review_id;
  });
  return { run: run_id, review };
}

async function furnish({ request }: SharedCapstan): Promise<void> {
  const yaml = { 'content-type': 'application/yaml' };
  await request<PipelineSubmitted>('POST', '/v1/pipelines', reel, yaml);
  const second = reel.replace('"1.0"', '"1.1"').replace('and makes a cover', 'in order');
  await request('POST', '/v1/pipelines', second, yaml);
  await request('PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 2 });
  const schedule = { name: 'morning', pipeline: 'reel', cron: '0 7 29 2 *', timezone: 'Europe/Berlin' };
  await request('POST', '/v1/schedules', { ...schedule, job: { clips: ['a'] } });
}

/** A project of its own, over the fleet of all. */
async function openStudio(): Promise<Studio> {
  await provideConsole();
  const capstan = await shareFleet();
  await furnish(capstan);
  const done = await startRunOf(capstan, { clips: ['a', 'b', 'c'], title: 'One', rate: 44_100 });
  const broken = [{ id: 'one', capability: 'resample', input: { rate: 'x' }, escalate: { enabled: false } }];
  const failed = (await capstan.submit(broken)).run_id;
  const [correction, question] = await Promise.all([askCorrection(capstan), askQuestion(capstan)]);
  await Promise.all([capstan.ended(done), capstan.ended(failed), restingBeside(capstan, correction.run)]);
  return {
    capstan,
    done,
    failed,
    waiting: correction.run,
    correction: correction.review,
    question: question.review,
  };
}

/** Whom a test sends to look at the studio. */
export interface Visitors {
  readonly studio: Studio;
  /** A person with the key of the studio. @param expected errors that the test provokes */
  readonly visit: (look?: Look, expected?: RegExp | null) => Promise<OpenPage>;
  /** @param key null: a person without a session */
  readonly visitAs: (key: string | null, look?: Look, expected?: RegExp | null) => Promise<OpenPage>;
}

/** One Chromium for all files of a test worker: it ends with that. */
let launched: Promise<Browser> | null = null;

export function shareBrowser(): Promise<Browser> {
  launched ??= launchBrowser();
  return launched;
}

/** One for all files of a test worker that change nothing which another one looks at. */
let shared: Promise<Studio> | null = null;

function shareStudio(): Promise<Studio> {
  shared ??= openStudio();
  return shared;
}

function visitWhom(open: () => Promise<Studio>): Visitors {
  let opened: readonly [Studio, Browser] | null = null;
  const find = (): readonly [Studio, Browser] => {
    if (opened === null) throw new Error('the studio is opened before the first test');
    return opened;
  };
  beforeAll(async () => {
    opened = await Promise.all([open(), shareBrowser()]);
  });
  afterAll(closeLentTabs);
  const visitAs: Visitors['visitAs'] = async (key, look = {}, expected = null) => {
    const [{ capstan }, browser] = find();
    const page = await borrowPage(browser, capstan.url, look, expected);
    if (key !== null) await signIn(page, capstan.url, key);
    return page;
  };
  return {
    get studio() {
      return find()[0];
    },
    visit: (look, expected) => visitAs(find()[0].capstan.key, look, expected),
    visitAs,
  };
}

/** A studio of the file that calls it, from before its first test on. */
export function useStudio(): Visitors {
  return visitWhom(openStudio);
}

/** Of a file whose tests look at what they have made, or at common objects: its runs stay, its answers too. */
export function useSharedStudio(): Visitors {
  return visitWhom(shareStudio);
}
