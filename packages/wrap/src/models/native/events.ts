/** The events of a provider on their way to a client of its protocol: the text stays as it came. */
import { isList, isPlainObject } from '@capstan/core/json/values';
import { fieldOf, parseObject } from '../protocol.ts';

/** The empty line at the end of an event. A return at the end of the text may be half of a line's end. */
const eventEnd = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|$))/g;

function nameOf(event: string): string {
  return /^event: ?(.*)$/m.exec(event)?.[1]?.trim() ?? '';
}

function dataOf(event: string): string {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => line.slice('data:'.length)).join('\n');
}

/** The router writes the error of a failed call itself. */
function isError(event: string): boolean {
  if (!event.includes('error')) return false;
  const said = parseObject(dataOf(event), JSON.parse);
  return nameOf(event) === 'error' || said?.type === 'error' || (said?.error ?? null) !== null;
}

/** The chunk at the end of OpenAI's streams that counts tokens and has no content. */
function isUsage(event: string): boolean {
  if (!event.includes('"usage"')) return false;
  const said = parseObject(dataOf(event), JSON.parse) ?? {};
  const { choices = null, usage } = said;
  return (
    isList(choices) && choices.length === 0 && isPlainObject(usage) && fieldOf(said, 'error') === undefined
  );
}

export interface EventPasser {
  take(text: string): void;
  /** The rest of a stream whose last event lacks its end. */
  end(): void;
}

/** Passes on whole events, all that have come at once, without errors and without what the client did not ask for. */
export function createEventPasser(hidesUsage: boolean, tell: (events: string) => void): EventPasser {
  let held = '';
  const isHidden = (event: string): boolean => isError(event) || (hidesUsage && isUsage(event));
  return {
    take: (text) => {
      // The end of an event has four characters at most.
      eventEnd.lastIndex = Math.max(0, held.length - 4);
      held += text;
      let from = 0;
      let passed = '';
      for (let end = eventEnd.exec(held); end !== null; end = eventEnd.exec(held)) {
        const event = held.slice(from, eventEnd.lastIndex);
        from = eventEnd.lastIndex;
        if (!isHidden(event)) passed += event;
      }
      held = held.slice(from);
      if (passed !== '') tell(passed);
    },
    end: () => {
      if (held !== '' && !isHidden(held)) tell(held);
      held = '';
    },
  };
}
