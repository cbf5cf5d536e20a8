/** Watches the erasure of a project to its end. Ctrl-C only stops the watching. */
import { setTimeout as delay } from 'node:timers/promises';
import { Erasure } from '../../contracts/access.ts';
import { erasureCounted } from '../../contracts/bounds.ts';
import type { ApiAnswer } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { exitCodes } from '../exit-codes.ts';
import { formatCounts } from '../render/row-counts.ts';

const pollMs = 500;

export function erasurePath(projectId: string): string {
  return `/v1/projects/${encodeURIComponent(projectId)}/erasure`;
}

/** What is left, on one line. */
function describeLeft({ left }: Erasure): string {
  const counts = formatCounts(left, erasureCounted).map((line) => line.trim().replaceAll(/ +/g, ' '));
  return counts.length === 0 ? 'left: the ledger and the audit log' : `left: ${counts.join(', ')}`;
}

function showEnd({ print, json }: Session, projectId: string, { value, text }: ApiAnswer<Erasure>): void {
  if (json) {
    print.json(text);
    return;
  }
  print.line(`${projectId} is erased; ledger and audit log call it ${value.pseudonym}`);
  const lines = formatCounts(value.deleted);
  if (lines.length > 0) print.lines(['deleted:', ...lines]);
}

/** @param first how far it is now @returns the exit code */
export async function watchErasure(
  session: Session,
  projectId: string,
  first: ApiAnswer<Erasure>,
): Promise<number> {
  const { client, print, json, shell } = session;
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  try {
    let answer = first;
    let told = '';
    while (answer.value.state !== 'erased') {
      const line = describeLeft(answer.value);
      if (line !== told && !json) print.remark(line);
      told = line;
      await delay(pollMs, undefined, { signal: stop.signal });
      answer = await client.get(erasurePath(projectId), Erasure);
    }
    showEnd(session, projectId, answer);
    return exitCodes.ok;
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
    print.remark(`The erasure goes on. Watch again: capstan projects erase ${projectId} --yes`);
    return exitCodes.interrupted;
  } finally {
    release();
  }
}
