/** What the demo leaves: the file that plays, its facts, and for each step who did it and for how much. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { parseMediaReference } from '../../contracts/media.ts';
import type { StackFile } from '../../contracts/stack.ts';
import { linkToConsole } from '../client/console-link.ts';
import type { Session } from '../client/session.ts';
import { getRun } from '../input/run-reference.ts';
import { formatDuration, formatUsd } from '../render/amounts.ts';

const Output = z.object({
  video: z.string(),
  cover: z.string(),
  duration_ms: z.number(),
  loudness_lufs: z.number(),
});

/** Where a media reference lies on this disk; the reference itself when the store is not on it. */
function locate(mediaUrl: string, reference: string): string {
  const path = parseMediaReference(reference);
  if (path === null || !mediaUrl.startsWith('file:///')) return reference;
  return join(fileURLToPath(mediaUrl), path.job_id, path.file);
}

export async function showDemoResult(session: Session, runId: string, info: StackFile): Promise<void> {
  const { client, print } = session;
  const { value: run } = await getRun(client, runId);
  const output = Output.safeParse(run.output);
  if (output.success) {
    const { video, cover, duration_ms, loudness_lufs } = output.data;
    print.lines([
      '',
      `Video     ${locate(info.media_url, video)}`,
      `          ${formatDuration(duration_ms)} long, ${loudness_lufs} LUFS`,
      `Cover     ${locate(info.media_url, cover)}`,
    ]);
  }
  print.line('');
  for (const step of run.steps) {
    print.line(
      `${step.id.padEnd(9)} ${formatUsd(step.cost_usd)} by ${step.capability} at ${step.endpoint ?? '-'}`,
    );
  }
  print.line('');
  await showAddresses(session, info, `/runs/${runId}?view=output`);
}

/** @param place in the console: where its link leads to */
export async function showAddresses({ client, print }: Session, info: StackFile, place = '/'): Promise<void> {
  print.lines([
    `API          ${info.api_url}`,
    `API docs     ${info.api_url}/docs`,
    `Console      ${await linkToConsole(client, place)}`,
    `Temporal UI  ${info.temporal_ui_url ?? 'not known'}`,
    '',
  ]);
}
