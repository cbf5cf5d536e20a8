/** `hosts`: machines whose slots instances share; `hosts drain`, `undrain` and `warm` change all instances of one. */
import { Host, HostList } from '@capstan/core/contracts/host-list';
import { describeDrain } from '@capstan/core/fleet/instance-states';
import { type ApiAnswer, getAll, jsonBody, path } from '../../client/api-client.ts';
import type { Session } from '../../client/session.ts';
import { parsed, procedure } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { readFuture } from '../../input/run-filter.ts';
import type { Columns } from '../../render/print.ts';
import { waitUntilIdle } from './fleet.ts';

const hostTable: Columns<Host> = [
  ['HOST', 'name'],
  ['HELD', ({ held, slots }) => `${held}/${slots}`, 'right'],
  ['MEMORY', ({ memory_gb }) => (memory_gb === undefined ? '' : `${memory_gb} GB`), 'right'],
  ['INSTANCES', ({ instances }) => String(instances.length), 'right'],
  ['CAPABILITIES', ({ capabilities }) => capabilities.join(' '), 'shrinks'],
  ['REASON', ({ drain }) => (drain === undefined ? '' : describeDrain(drain)), 'shrinks'],
];

function listHosts({ client }: Session): Promise<ApiAnswer<{ readonly items: readonly Host[] }>> {
  return getAll(client, '/v1/hosts', HostList);
}

interface HostAct {
  readonly act: 'drain' | 'undrain' | 'warm';
  readonly host: string;
  readonly body?: object;
}

async function changeHost(
  { client, print, json }: Session,
  { act, host, body = {} }: HostAct,
): Promise<void> {
  const answer = await client.post(path`/v1/hosts/${host}/${act}`, Host, jsonBody(body));
  if (json) print.json(answer.text);
  else print.line(describeHost(answer.value));
}

function describeHost({ name, held, slots, instances, drain }: Host): string {
  const states = instances.map((one) => `${one.name} ${one.state}`).join(', ');
  const why = drain === undefined ? '' : `, ${describeDrain(drain)}`;
  return `${name}: ${held} of ${slots} slots held${why}; ${states === '' ? 'no instances' : states}`;
}

/** Of its instances, also those that are no longer shown. @throws UsageError */
async function countOnHost(session: Session, host: string): Promise<number> {
  const found = (await listHosts(session)).value.items.find(({ name }) => name === host);
  if (found === undefined)
    throw new UsageError(`${host} is not listed any more: it has no instance, and its drain has ended`);
  const calls = found.instances.reduce((sum, { in_flight }) => sum + in_flight, 0);
  return Math.max(found.held, calls);
}

const hostArgument = { '<host>': 'its name, as `capstan hosts` shows it' } as const;

const drainCommand = procedure('drain', {
  about: 'send the instances of a host no new calls, also those that register on it later',
  example: 'capstan hosts drain gpu-1 --reason "new driver" --wait',
  args: hostArgument,
  options: {
    '-r, --reason <text>': 'why; all see it in the fleet',
    '--until <time>': parsed('when the drain ends: 2h (from now), a day or a moment', readFuture),
    '--wait': 'wait until no call is open there',
  },
  run: async (session, { reason, until, wait, host }) => {
    await changeHost(session, { act: 'drain', host, body: { reason, until } });
    if (wait === true) await waitUntilIdle(session, () => countOnHost(session, host));
  },
});

const undrainCommand = procedure('undrain', {
  about: 'end the drain of a host, and of the instances that were drained with it',
  example: 'capstan hosts undrain gpu-1',
  args: hostArgument,
  run: (session, { host }) => changeHost(session, { act: 'undrain', host }),
});

const warmCommand = procedure('warm', {
  about: 'send the instances of a host the warm-up calls that they registered',
  example: 'capstan hosts warm gpu-1',
  args: hostArgument,
  run: (session, { host }) => changeHost(session, { act: 'warm', host }),
});

export const registerHostsCommand = procedure('hosts', {
  about: 'show the hosts whose slots instances share, with the slots that calls hold',
  example: 'capstan hosts',
  inner: [drainCommand, undrainCommand, warmCommand],
  run: async (session) => {
    const { print, json } = session;
    const { value, text } = await listHosts(session);
    if (json) return print.json(text);
    if (value.items.length === 0) return print.remark('no instance has named a host');
    print.table(hostTable, value.items);
    for (const { name, warnings } of value.items)
      for (const warning of warnings) print.remark(`${name}: ${warning}`);
  },
});
