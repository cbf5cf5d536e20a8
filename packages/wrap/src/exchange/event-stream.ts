/**
 * The answer of a provider to a request for a stream: server-sent events, or one JSON value, since many answer whole. Its
 * first characters decide which, not its content type, which many servers set wrongly.
 *
 * Bytes become text once, by a decoder that holds the rest of a character until the next read. Nothing is translated
 * here, so that a caller may pass events on as they came.
 */
import { createParser } from 'eventsource-parser';
import { longestAnswer, type ProviderAnswer, tooLarge } from './exchange.ts';
import { providerFailure, shorten } from './provider-failure.ts';

export interface ServerEvent {
  /** Empty: it has none. */
  readonly name: string;
  readonly data: string;
}

/** The last line may lack its end, and so may the last event. */
const closing = '\n\n';
/** Of one event, in characters. */
const longestEvent = 8 * 1024 * 1024;
/** The longest name of a field with its colon: as much of an answer decides what it is. */
const decisiveLength = 6;

/** @param beginning without leading spaces */
function isStream(beginning: string, type: string): boolean {
  if (/^(?:data|event|id|retry)?:/.test(beginning)) return true;
  return type.includes('text/event-stream') && /^[^{[<]/.test(beginning);
}

/** Reads events. @param take answers true when the event was the last one */
function createEventReader(take: (event: ServerEvent) => boolean) {
  let isOver = false;
  const parser = createParser({
    maxBufferSize: longestEvent,
    onEvent: ({ event = '', data }) => {
      if (!isOver && data.trim() !== '') isOver = take({ name: event, data });
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw tooLarge('a line of the answer', longestEvent);
    },
  });
  return {
    /** @returns whether the stream is over */
    feed: (text: string): boolean => {
      parser.feed(text);
      return isOver;
    },
  };
}

/**
 * Reads an answer to its end, or to the event that is the last one.
 * @param take receives each event that has data; answers true for the last one
 * @param pass receives the text of a stream as it came
 * @returns the text of an answer that is no stream; null: it was one
 * @throws CallFailure when the answer breaks off, is too large, or falls silent; and what `take` throws
 */
export async function readEvents(
  answer: ProviderAnswer,
  take: (event: ServerEvent) => boolean,
  pass: (text: string) => void = () => undefined,
): Promise<string | null> {
  const reader = createEventReader(take);
  const decoder = new TextDecoder();
  const type = answer.header('content-type') ?? '';
  const whole: string[] = [];
  let beginning = '';
  let comesInEvents = false;
  await answer.read((chunk) => {
    const text = decoder.decode(chunk, { stream: true });
    if (comesInEvents) {
      pass(text);
      return reader.feed(text);
    }
    whole.push(text);
    if (beginning.length >= decisiveLength) return false;
    beginning = (beginning + text).trimStart();
    comesInEvents = beginning.length > 0 && isStream(beginning, type);
    if (comesInEvents) pass(whole.join(''));
    return comesInEvents && reader.feed(beginning);
  });
  const rest = decoder.decode();
  if (!comesInEvents) return whole.join('') + rest;
  pass(rest);
  reader.feed(rest + closing);
  return null;
}

/** What came where an answer was expected. @param text without secrets */
function describeAnswer({ status, header }: ProviderAnswer, text: string): string {
  const seen = text.trim();
  const excerpt = seen === '' ? 'nothing' : JSON.stringify(shorten(seen, 200));
  return `status ${status}, ${header('content-type') ?? 'no content type'}: ${excerpt}`;
}

/** @param hide takes secrets out of a text */
export function unexpectedAnswer(
  answer: ProviderAnswer,
  text: string,
  hide: (text: string) => string,
): Error {
  const got = describeAnswer(answer, hide(text.slice(0, longestAnswer)));
  return providerFailure('provider_unavailable', `expected an answer of a model, got ${got}`);
}
