import type { Command } from 'commander';
import { EventPage, type RunEvent } from '../../contracts/event.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { exitCodes } from '../exit-codes.ts';
import { latestRun, resolveRunId, runPath } from '../input/run-reference.ts';
import type { Shell } from '../shell.ts';
import { formatEvent } from '../watch/event-line.ts';
import { followEvents } from '../watch/follow-events.ts';

interface EventsOptions extends CommonOptions {
  readonly follow?: boolean;
}

/** With --json one document per event. */
async function follow({ client, print, json, shell }: Session, runId: string): Promise<void> {
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  try {
    for await (const event of followEvents(client, runId, { signal: stop.signal })) {
      if (json) print.json(JSON.stringify(event));
      else print.line(formatEvent(event, print.style));
    }
  } finally {
    release();
  }
  if (stop.signal.aborted) shell.exitWith(exitCodes.interrupted);
}

async function readPages({ client }: Session, runId: string): Promise<EventPage> {
  const items: RunEvent[] = [];
  let cursor: string | null = null;
  do {
    const query: Record<string, string | number> = cursor === null ? { limit: 200 } : { cursor, limit: 200 };
    const { value } = await client.get(runPath(runId, '/events'), EventPage, query);
    items.push(...value.items);
    cursor = value.next_cursor;
  } while (cursor !== null);
  return { items, next_cursor: cursor };
}

async function showEvents(reference: string, options: EventsOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const runId = await resolveRunId(session.client, reference);
  if (options.follow === true) return follow(session, runId);
  const page = await readPages(session, runId);
  const { print } = session;
  if (session.json) return print.json(JSON.stringify(page));
  print.lines(page.items.map((event) => formatEvent(event, print.style)));
}

export function registerEventsCommand(program: Command, shell: Shell): void {
  const command = program
    .command('events')
    .description("print a run's log")
    .argument('[run]', 'run id, or @latest', latestRun)
    .option('-f, --follow', 'go on until the run ends')
    .addHelpText('after', '\nExample:\n  capstan events @latest -f')
    .action((reference: string, options: EventsOptions) => showEvents(reference, options, shell));
  addCommonOptions(command);
}
