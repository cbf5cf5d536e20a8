/** An example as its page starts it: its own files and stand-ins, with the common Capstan. */
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Capability, type RunningInstance, readSettings, startInstance } from '@capstan/capability';
import type { CostSeries } from '@capstan/core/contracts/money';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { createInputForms } from '@capstan/core/definitions/input-forms';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { readWrapFile } from '@capstan/wrap/wrap-file';
import { afterAll, beforeAll } from 'vitest';
import { parse } from 'yaml';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';

type Values = Readonly<Record<string, unknown>>;

export interface Example {
  readonly capstan: SharedCapstan;
  readonly folder: string;
  /** A file of the example. */
  read(file: string): Promise<string>;
  /** Starts a run of its pipeline. @param files of the example, which the job names as media://job/NAME */
  start(job: Values, files?: readonly string[]): Promise<Run>;
  /** The bytes of a file in the media store. */
  media(reference: string): Promise<Buffer>;
  stepOf(run: Run, step: string): Promise<StepDetail>;
  /** USD of the project today, by capability. */
  costs(): Promise<Readonly<Record<string, number>>>;
}

async function listStandIns(folder: string): Promise<readonly Capability[]> {
  const names = await readdir(`${folder}stand-ins`);
  const modules = names.map((name) => import(`${folder}stand-ins/${name}/index.ts`));
  return (await Promise.all(modules)).map(({ capability }) => capability);
}

/** Uploads files to a new job. @returns the job with references to it */
async function upload(example: Example, job: Values, files: readonly string[]): Promise<Values> {
  const { capstan, folder } = example;
  const { body } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  for (const name of files) {
    const authorization = `Bearer ${capstan.key}`;
    const content = new Uint8Array(await readFile(folder + name));
    const place = `${capstan.url}/v1/media/${body.job_id}/${name}`;
    const { ok, status } = await fetch(place, { method: 'PUT', headers: { authorization }, body: content });
    if (!ok) throw new Error(`PUT ${place}: ${status}`);
  }
  return JSON.parse(JSON.stringify(job).replaceAll('media://job/', `media://${body.job_id}/`));
}

/** From before the first test of the file until after its last. */
export function useExample(name: string): Example {
  const folder = fileURLToPath(new URL(`../../examples/${name}/`, import.meta.url));
  const instances: RunningInstance[] = [];
  const example = {
    folder,
    read: (file) => readFile(folder + file, 'utf8'),
    start: async (job, files = []) => {
      const definition = parse(await example.read('pipeline.yaml'));
      const given = files.length === 0 ? job : await upload(example, job, files);
      const answer = await example.capstan.request<Run>('POST', '/v1/runs', { definition, job: given });
      if (answer.status !== 202) throw new Error(`POST /v1/runs: ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
    media: (reference) => readFile(fileURLToPath(`${example.capstan.mediaUrl}/${reference.slice(8)}`)),
    stepOf: async ({ run_id }, step) =>
      (await example.capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/${step}`)).body,
    costs: async () => {
      const { body } = await example.capstan.request<CostSeries>('GET', '/v1/costs/series?by=capability');
      return Object.fromEntries(body.series.map(({ name, usd }) => [name, usd]));
    },
  } as { -readonly [Key in keyof Example]: Example[Key] };
  beforeAll(async () => {
    example.capstan = await shareCapstan();
    const { url, key, mediaUrl } = example.capstan;
    const settings = readSettings({ PORT: '0', ROUTER_URL: url, ROUTER_TOKEN: key, MEDIA_URL: mediaUrl });
    const options = { settings, print: () => undefined, graceMs: 0 };
    const standIns = await listStandIns(folder);
    instances.push(...(await Promise.all(standIns.map((one) => startInstance(one, options)))));
  });
  afterAll(async () => {
    await Promise.all(instances.map((instance) => instance.stop()));
  });
  return example;
}

/** The capabilities of the wrap files in a folder; each variable of their text has an address. */
async function listWrapped(folder: string): Promise<readonly Capability[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.wrap.yaml'));
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(folder + file, 'utf8');
      const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
      const environment = Object.fromEntries(names.map((name) => [name, 'https://service.example.com']));
      const reading = readWrapFile(text, { folder, stateDir: '/nowhere', environment });
      if ('findings' in reading) throw new Error(`${file}: ${JSON.stringify(reading.findings)}`);
      return reading.capability;
    }),
  );
}

/**
 * The findings of a check of the pipeline: all of them with the stand-ins (`before`), and the errors where the wrap files
 * do all the work that they can, and stand-ins the rest.
 */
export async function findingsOfSwap({ folder, read }: Example) {
  const text = await read('pipeline.yaml');
  const [standIns, wrapped] = await Promise.all([listStandIns(folder), listWrapped(folder)]);
  const taken = new Set(wrapped.map(({ spec }) => spec.name));
  const check = (capabilities: readonly Capability[]) => {
    const forms = createInputForms();
    const specs = new Map(
      capabilities.map(({ spec }) => [spec.name, forms.addSpec(spec.name, spec)] as const),
    );
    const specsOf = ({ capability = '' }) => [specs.get(capability) ?? []].flat();
    const facts = { knownCapabilities: new Set(specs.keys()), strict: true, specsOf };
    return readDefinition({ text, contentType: null }, facts).findings;
  };
  const after = check([...wrapped, ...standIns.filter(({ spec }) => !taken.has(spec.name))]);
  return {
    before: check(standIns),
    swapped: [...taken].sort(),
    errors: after.filter(({ severity }) => severity === 'error'),
  };
}
