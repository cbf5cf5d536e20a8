/** The open wait of a step in words, and the commands that end a wait for an outside event. */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Json } from '@capstan/core/contracts/primitives';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { describeEvent } from '@capstan/core/outside-events/rules';
import { shortEndpoint } from '../../../../decision/lanes-model.ts';
import { createExample } from '../../../../form/schema-model.ts';

type ShownWait = Pick<StepDetail, 'awaiting' | 'endpoint' | 'event' | 'open_wait'>;

/** The awaited thing; null: the condition of the step names it already. */
export function describeOpenWait({ awaiting, endpoint, event, open_wait }: ShownWait): string | null {
  if (awaiting === 'callback')
    return endpoint === undefined
      ? 'Waits for its answer'
      : `Waits for the answer of ${shortEndpoint(endpoint)}`;
  if (awaiting !== 'event' || event === undefined) return null;
  return `Waits for the event ${describeEvent({ name: event, key: open_wait?.event_key ?? '' })}`;
}

/** A payload that the step accepts, as far as an example of its schema is accepted. */
export function examplePayload({ steps }: Pick<PipelineDefinition, 'steps'>, stepId: string): Json {
  const schema = steps.find(({ id }) => id === stepId)?.event?.schema;
  return schema === undefined ? null : createExample(schema, schema);
}

/** One word of a POSIX shell. */
function quote(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

interface EventToSend {
  readonly name: string;
  /** null: an event without a key. */
  readonly key: string | null;
  readonly payload: Json;
}

interface EventCommands {
  readonly curl: string;
  readonly capstan: string;
}

/** @param origin of the server: `http://localhost:8080` */
export function commandsForEvent({ name, key, payload }: EventToSend, origin: string): EventCommands {
  const body = JSON.stringify(key === null ? { payload } : { key, payload });
  const curl = [
    `curl -X POST ${quote(`${origin}/v1/events/${name}`)}`,
    '-H "Authorization: Bearer $CAPSTAN_API_KEY" -H "Content-Type: application/json"',
    `-d ${quote(body)}`,
  ];
  // A key such as -7 is no option.
  const last = key === null ? [] : key.startsWith('-') ? ['--', quote(key)] : [quote(key)];
  const given = payload === null ? [] : ['--payload', quote(JSON.stringify(payload))];
  return { curl: curl.join(' '), capstan: ['capstan send', name, ...given, ...last].join(' ') };
}
