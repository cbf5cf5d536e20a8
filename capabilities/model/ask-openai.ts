/**
 * One streamed question to an OpenAI-compatible provider. Its messages have the form of the input already, and its
 * chunks that of the pieces that are passed on, so nothing is translated on the way: through the AI SDK, a call takes
 * several times the processor time.
 */

import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { APICallError } from 'ai';
import { Agent, type Dispatcher, interceptors } from 'undici';
import type { AskProvider, ModelAnswer, OfferedTool, Question } from './ask-model.ts';
import type { ModelSettings } from './configuration.ts';
import { describeAnswer } from './faults.ts';
import { type Message, textOf } from './messages.ts';
import { type ChatAnswer, createChatAnswer, createEvents, fieldOf, textField } from './openai-chunks.ts';
import { hideKey } from './terms.ts';
import { decisiveLength, isStream, parseObject, readCompletion } from './whole-answers.ts';

/** Without names of speakers and empty parts, which many providers refuse. */
function toWireMessage(message: Message): JsonObject[] {
  switch (message.role) {
    case 'system':
    case 'developer':
      return []; // they go first, as one
    case 'user': {
      const { content } = message;
      if (typeof content === 'string') return [{ role: 'user', content }];
      const parts = content.filter((part) => part.type !== 'text' || part.text !== '');
      const [first] = parts;
      const isText = parts.length === 1 && first?.type === 'text';
      return [{ role: 'user', content: isText ? first.text : (parts as unknown as Json) }];
    }
    case 'assistant': {
      const { tool_calls = [] } = message;
      const text = textOf(message.content);
      if (tool_calls.length === 0) return [{ role: 'assistant', content: text }];
      return [{ role: 'assistant', content: text === '' ? null : text, tool_calls: [...tool_calls] }];
    }
    case 'tool':
      return [{ role: 'tool', tool_call_id: message.tool_call_id, content: textOf(message.content) }];
  }
}

function toWireTool({ name, description, parameters }: OfferedTool): object {
  const schema = parameters ?? { type: 'object', properties: {} };
  return { type: 'function', function: { name, description, parameters: schema } };
}

function toWireChoice(choice: Question['toolChoice'] = 'auto'): Json {
  return typeof choice === 'object' ? { type: 'function', function: { name: choice.name } } : choice;
}

/** Strict mode of OpenAI refuses most schemas; the answer is checked here anyway. */
function toFormat({ MODEL_STRUCTURED_OUTPUT: way }: ModelSettings, schema: JsonObject): object {
  if (way !== 'json_schema') return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { schema, strict: false, name: 'response' } };
}

/** Fields without a value are left out. */
function toBody(settings: ModelSettings, question: Question): string {
  const { system, messages, tools, json } = question;
  return JSON.stringify({
    model: settings.MODEL_NAME,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...messages.flatMap(toWireMessage),
    ],
    [settings.MODEL_TOKEN_LIMIT_FIELD]: question.maxOutputTokens,
    temperature: question.temperature,
    top_p: question.topP,
    presence_penalty: question.presencePenalty,
    frequency_penalty: question.frequencyPenalty,
    stop: question.stopSequences,
    seed: question.seed,
    response_format: json === undefined ? undefined : toFormat(settings, json.schema),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map(toWireTool), tool_choice: toWireChoice(question.toolChoice) }),
    stream: true,
    stream_options: { include_usage: true },
  });
}

function readText(body: Dispatcher.ResponseData['body'], take: (text: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    body.setEncoding('utf8');
    body.once('end', resolve).once('error', reject);
    body.on('data', (text: string) => {
      try {
        take(text);
      } catch (error) {
        body.off('error', reject).on('error', () => undefined);
        body.destroy();
        reject(error);
      }
    });
  });
}

const longestExcerpt = 65_536;

/** @throws APICallError with the answer */
async function refuse(url: string, { statusCode, headers, body }: Dispatcher.ResponseData): Promise<never> {
  let responseBody = '';
  await readText(body, (text) => {
    if (responseBody.length < longestExcerpt) responseBody += text;
  });
  const parsed = parseObject(responseBody);
  const message = textField(fieldOf(parsed ?? undefined, 'error'), 'message');
  const responseHeaders = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, String(value ?? '')]),
  );
  const facts = { url, requestBodyValues: {}, statusCode, responseHeaders, responseBody };
  throw new APICallError({ ...facts, message, data: message === '' ? undefined : parsed });
}

/** A provider is asked for a stream, and may answer whole (whole-answers.ts). */
async function readAnswer(
  { headers, statusCode, body }: Dispatcher.ResponseData,
  answer: ChatAnswer,
  hide: (text: string) => string,
): Promise<ModelAnswer> {
  const events = createEvents((data) => {
    if (data === '[DONE]') return;
    const chunk = parseObject(data);
    if (chunk === null) throw new Error(`an event of the stream is no object of JSON: ${data.slice(0, 200)}`);
    answer.take(chunk);
  });
  let beginning = '';
  let comesInEvents = false;
  await readText(body, (text) => {
    if (comesInEvents) return events.take(text);
    beginning = beginning.length < decisiveLength ? (beginning + text).trimStart() : beginning + text;
    comesInEvents = isStream(beginning);
    if (comesInEvents) events.take(beginning);
  });
  if (comesInEvents) events.end();
  else {
    const whole = parseObject(beginning);
    const chunks = whole === null ? null : readCompletion(whole);
    if (chunks === null) {
      const type = headers['content-type']?.toString();
      throw new Error(
        `expected an answer of a model, got ${describeAnswer(statusCode, type, hide(beginning))}`,
      );
    }
    for (const chunk of chunks) answer.take(chunk);
  }
  return answer.end();
}

export function createOpenAiAsk(settings: ModelSettings): AskProvider {
  const { MODEL_BASE_URL = '', MODEL_API_KEY: key, MODEL_NAME } = settings;
  const url = new URL(`${MODEL_BASE_URL.replace(/\/$/, '')}/chat/completions`);
  const headers = {
    'content-type': 'application/json',
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
  // The time of a call limits all of it (terms.ts).
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: 5 }));
  return async (question, { signal, onDelta }) => {
    const { origin, pathname: path } = url;
    const body = toBody(settings, question);
    const response = await dispatcher.request({ origin, path, method: 'POST', headers, body, signal });
    if (response.statusCode >= 400) return refuse(url.href, response);
    return readAnswer(response, createChatAnswer(MODEL_NAME, onDelta), hideKey(settings));
  };
}
