import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { measureLoudness, readMeasurement } from '../../capabilities/audio-mix/loudness.ts';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { readWav, secondsOf } from '../../examples/stand-ins/wav.ts';
import { aFolder } from '../../packages/capability/test/support/folders.ts';
import { call, startWrapped } from '../../packages/wrap/test/support.ts';
import { isLong } from '../support/long.ts';
import { keepExamplePicture } from './pictures.ts';
import { findingsOfSwap, useExample } from './support.ts';

const example = useExample('podcast');

interface Output {
  readonly episode: string;
  readonly loudness_lufs: number;
  readonly chapters: readonly { readonly title: string; readonly start_s: number; readonly end_s: number }[];
  readonly clips: readonly string[];
  readonly notes: { readonly title: string; readonly summary: string; readonly notes: string };
}

/** By ffmpeg, which has its own measurement. */
async function loudnessByFfmpeg(path: string): Promise<number> {
  const args = ['-i', path, '-af', measureLoudness, '-f', 'null', '-'];
  const tools = await locateMediaTools(await aFolder());
  return readMeasurement(await runFfmpeg(tools, args, AbortSignal.timeout(600_000))).input_i;
}

function pathOf(reference: string): string {
  return join(new URL(example.capstan.mediaUrl).pathname, reference.slice('media://'.length));
}

test('an episode becomes a levelled file, a clip for each chapter, and show notes, at the price of its calls', async () => {
  const { run_id } = await example.start(JSON.parse(await example.read('job.json')), ['episode.wav']);
  const run = await example.capstan.ended(run_id);
  expect(run).toMatchObject({ state: 'succeeded', labels: { example: 'podcast' }, budget_ceiling_usd: 0.5 });
  const { episode, loudness_lufs, chapters, clips, notes } = run.output as unknown as Output;

  expect(await loudnessByFfmpeg(join(example.folder, 'episode.wav'))).toBeLessThan(-20);
  expect(loudness_lufs).toBeCloseTo(-16, 1);
  expect(Math.abs((await loudnessByFfmpeg(pathOf(episode))) - loudness_lufs)).toBeLessThan(0.3);

  expect(chapters.map(({ title }) => title)).toEqual([
    'Welcome',
    'The stairs',
    'The lamp',
    'The fog',
    'The visitors',
  ]);
  const seconds = await Promise.all(clips.map(async (clip) => secondsOf(await readWav(pathOf(clip)))));
  expect(seconds.map((one) => Number(one.toFixed(2)))).toEqual(
    chapters.map(({ start_s, end_s }) => Number((end_s - start_s).toFixed(2))),
  );
  expect(seconds.reduce((sum, one) => sum + one, 0)).toBeCloseTo(16, 2);
  expect(notes.title).toBe('Harbour Lights: the stairs, the lamp, the fog, the visitors');
  expect(notes.notes.split('\n').slice(2)).toHaveLength(5);

  const asked = await Promise.all(['chapters', 'notes'].map((step) => example.stepOf(run, step)));
  const usage = asked.map(
    ({ output }) => (output as { usage: { input_tokens: number; output_tokens: number } }).usage,
  );
  const editor = usage.reduce(
    (sum, { input_tokens, output_tokens }) => sum + (input_tokens * 0.15 + output_tokens * 0.6) / 1e6,
    0,
  );
  expect(editor).toBeGreaterThan(0);
  const costs = await example.costs();
  expect(costs.transcript).toBe(0.0016); // 16 s at 0.006 USD a minute
  expect(costs['model.editor']).toBeCloseTo(editor, 9);
  expect(run.cost_usd).toBeCloseTo(0.0016 + editor, 9);
  const picture = { path: `/runs/${run_id}`, name: 'example-podcast', height: 600 };
  await keepExamplePicture(example.capstan, { ...picture, prepare: async () => undefined });
});

test('the wrap files of an example serve the steps of the pipeline instead of the stand-ins', async () => {
  expect(await findingsOfSwap(example)).toEqual({
    before: [],
    swapped: ['audio-clip', 'loudness', 'model.editor', 'transcript'],
    errors: [],
  });
});

test.runIf(isLong)('ffmpeg levels and cuts as the stand-ins do', async () => {
  const { ffmpeg } = await locateMediaTools(await aFolder());
  const wrap = async (name: string) =>
    startWrapped((await example.read(`ffmpeg-${name}.wrap.yaml`)).replace('- ffmpeg', `- ${ffmpeg}`));
  const [loudness, clip] = [await wrap('loudness'), await wrap('clip')];
  const audio = 'media://job_1/episode.wav';
  await loudness.put(audio, await readFile(join(example.folder, 'episode.wav')));
  const output_path = 'media://job_1/levelled.wav';
  const levelled = await call(loudness, { audio, loudness_lufs: -16, output_path });
  expect(levelled.body).toMatchObject({ ok: true, output: { output_path } });
  const measured = await loudnessByFfmpeg(join(loudness.mediaFolder, 'job_1/levelled.wav'));
  expect(Math.abs(measured + 16)).toBeLessThan(1.5);
  expect(Math.abs(Number(levelled.body.output?.loudness_lufs) - measured)).toBeLessThan(0.5);

  await clip.put(audio, await loudness.get(output_path));
  const part = 'media://job_1/part.wav';
  const cut = await call(clip, { audio, start_s: 2.5, end_s: 5.75, output_path: part });
  expect(cut.body).toEqual({ ok: true, output: { output_path: part, duration_s: 3.25 } });
  expect(secondsOf(await readWav(join(clip.mediaFolder, 'job_1/part.wav')))).toBeCloseTo(3.25, 2);
});
