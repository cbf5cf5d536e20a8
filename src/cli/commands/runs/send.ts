/** `send`: an outside event for the steps that wait for it. */
import { EventReceipt } from '@capstan/core/contracts/outside-event';
import type { Json } from '@capstan/core/contracts/primitives';
import { jsonBody, path } from '../../client/api-client.ts';
import type { Session } from '../../client/session.ts';
import { command } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { parseJsonInput, readSource } from '../../input/arguments.ts';

interface GivenPayload {
  readonly payload?: string | undefined;
  readonly payloadFile?: string | undefined;
}

async function readPayload(
  { shell }: Session,
  { payload, payloadFile }: GivenPayload,
): Promise<Json | undefined> {
  if (payload !== undefined && payloadFile !== undefined)
    throw new UsageError('only one of --payload and --payload-file can be given');
  if (payload !== undefined) return parseJsonInput('--payload', payload) as Json;
  if (payloadFile === undefined) return undefined;
  return parseJsonInput('--payload-file', (await readSource(payloadFile, shell.stdin)).text) as Json;
}

function describeReceipt({ waiting, refused_by, repeated, kept_until }: EventReceipt): string[] {
  const taken = waiting === 0 ? 'no step waited for it' : `taken by ${waiting} waiting steps`;
  return [
    repeated ? `an event of this id was sent before: ${taken}` : taken,
    ...refused_by.map(
      ({ run_id, step_id, message }) => `refused by step ${step_id} of ${run_id}: ${message}`,
    ),
    `kept until ${kept_until}`,
  ];
}

export const registerSendCommand = command('send', {
  about: 'send an event to the steps that wait for it',
  example: `capstan send payment.settled order-7 --payload '{"sum": 12}'`,
  args: {
    '<event>': 'name of the event',
    '[event-key]': 'which one of the events of this name it is (default: an event without a key)',
  },
  options: {
    '--id <id>': 'its id at its sender: an event of the same name and id is given once',
    '--payload <json>': 'the output of the steps (default: null)',
    '--payload-file <file>': 'the same from a file; - is stdin',
  },
  call: async (session, { event, eventKey: key, id, ...given }) => {
    const payload = await readPayload(session, given);
    return session.client.post(path`/v1/events/${event}`, EventReceipt, jsonBody({ key, id, payload }));
  },
  show: (receipt, { print }) => {
    print.lines(describeReceipt(receipt));
    print.remark(receipt.event_id);
  },
});
