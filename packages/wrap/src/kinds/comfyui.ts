/**
 * Kind `comfyui`: a workflow that ComfyUI has exported for its API (menu *Export (API)*). The file names the inputs of
 * nodes that callers may set; the workflow's own values are their defaults. Files that the workflow saves are stored at
 * `output_path`.
 *
 * The state of a prompt is polled from `/history` and `/queue`. Progress comes over `/ws`; without it a call works, and
 * reports none.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import { MediaReference } from '@capstan/capability';
import { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { parseJson } from '@capstan/core/json/text';
import { isList } from '@capstan/core/json/values';
import { createNameSuggester } from '@capstan/core/nearest-name';
import { FormData, WebSocket } from 'undici';
import { z } from 'zod';
import { openAsBlob } from '../call-files.ts';
import { askJson, type Exchange } from '../exchange/exchange.ts';
import { providerFailure } from '../exchange/provider-failure.ts';
import { createJobRunner, type JobState, pollFields } from '../poll-job.ts';
import { asObject } from '../templates.ts';
import {
  BaseAddress,
  defineKind,
  Secret,
  type WrapDefaults,
  type WrapHost,
  type WrappedCall,
} from '../wrap-kind.ts';

const WorkflowField = z.strictObject({
  node: z.string(),
  input: z.string(),
  /** The caller gives a media reference, whose file ComfyUI receives. */
  file: z.boolean().default(false),
  /** A random whole number where the caller gives none, as for a seed. */
  random: z.boolean().default(false),
});
type WorkflowField = z.infer<typeof WorkflowField>;

const ComfyuiPart = z.strictObject({
  base_url: BaseAddress,
  token: Secret.optional(),
  workflow: z.string().min(1),
  fields: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/), WorkflowField).default({}),
  outputs: z.array(z.string()).min(1).optional(),
  ...pollFields,
});
type ComfyuiPart = z.infer<typeof ComfyuiPart>;

const Workflow = z.record(
  z.string(),
  z.looseObject({ class_type: z.string(), inputs: z.record(z.string(), Json) }),
);
type Workflow = z.infer<typeof Workflow>;

/** @returns null after a report of the fault */
function readWorkflow({ workflow }: ComfyuiPart, { folder, compile }: WrapHost): Workflow | null {
  const refuse = (message: string, suggestion?: string): null => {
    compile.refuse({ code: 'workflow_invalid', pointer: '/comfyui/workflow', message, suggestion });
    return null;
  };
  try {
    const value: unknown = JSON.parse(readFileSync(resolve(folder, workflow), 'utf8'));
    const parsed = Workflow.safeParse(value);
    if (parsed.success) return parsed.data;
    const isOfEditor = Array.isArray(Reflect.get(Object(value), 'nodes'));
    return refuse(
      isOfEditor ? 'the file is a workflow of the editor' : 'the file is no workflow in the API format',
      'export it with File → Export (API)',
    );
  } catch (error) {
    return refuse(`the file cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** Reports fields that the workflow does not have, or that another node fills. */
function checkFields({ fields, outputs = [] }: ComfyuiPart, workflow: Workflow, { compile }: WrapHost): void {
  const refuse = (pointer: string, message: string, known: readonly string[]): void => {
    const suggestion = createNameSuggester(known)(message.split(' ').at(-1) ?? '');
    compile.refuse({
      code: 'field_unknown',
      pointer,
      message: `${message}; there are ${known.join(', ')}`,
      suggestion,
    });
  };
  const nodes = Object.keys(workflow);
  for (const [name, { node, input }] of Object.entries(fields)) {
    const at = `/comfyui/fields/${name}`;
    const inputs = workflow[node]?.inputs;
    if (inputs === undefined) refuse(`${at}/node`, `the workflow has no node ${node}`, nodes);
    else if (!Object.hasOwn(inputs, input)) {
      refuse(`${at}/input`, `node ${node} has no input ${input}`, Object.keys(inputs));
    } else if (Array.isArray(inputs[input])) {
      const message = `the input ${input} of node ${node} is filled by node ${String(inputs[input][0])}`;
      compile.refuse({ code: 'field_connected', pointer: `${at}/input`, message });
    }
  }
  for (const [at, node] of outputs.entries()) {
    if (workflow[node] === undefined)
      refuse(`/comfyui/outputs/${at}`, `the workflow has no node ${node}`, nodes);
  }
}

const reference = JsonObject.parse(z.toJSONSchema(MediaReference));

function schemaOf({ file, random }: WorkflowField, value: Json | undefined): JsonObject {
  if (file) return reference;
  if (random) return { type: 'integer', minimum: 0 };
  const type = Number.isInteger(value) ? 'number' : typeof value;
  return type === 'string' || type === 'number' || type === 'boolean' ? { type, default: value ?? null } : {};
}

function defaultsOf({ fields }: ComfyuiPart, workflow: Workflow): WrapDefaults {
  const properties = Object.entries(fields).map(([name, field]) => {
    return [name, schemaOf(field, workflow[field.node]?.inputs[field.input])] as const;
  });
  const files = Object.entries(fields).filter(([, { file }]) => file);
  const required = [...files.map(([name]) => name), 'output_path'];
  return {
    input: {
      type: 'object',
      required,
      properties: { ...Object.fromEntries(properties), output_path: reference },
      additionalProperties: false,
    },
    output: {
      type: 'object',
      required: ['output_path', 'output_paths'],
      properties: {
        output_path: { type: 'string' },
        output_paths: { type: 'array', items: { type: 'string' } },
      },
    },
    uploads: { files: { from: '{{ answer.files }}', to: '{{ input.output_path }}' } },
    result: { output_path: '{{ files.files[0] }}', output_paths: '{{ files.files }}' },
  };
}

type Ask = (
  method: string,
  path: string,
  request: Pick<Exchange, 'signal' | 'body' | 'form'>,
) => Promise<Json>;

/** Sends a file to ComfyUI. @returns its name there */
async function sendFile(ask: Ask, path: string, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.append('image', await openAsBlob(path), `${randomUUID()}${extname(basename(path))}`);
  form.append('overwrite', 'true');
  const { name, subfolder } = asObject(await ask('POST', '/upload/image', { form, signal })) ?? {};
  if (typeof name !== 'string')
    throw providerFailure('provider_unavailable', 'ComfyUI has not named the uploaded file');
  return typeof subfolder === 'string' && subfolder !== '' ? `${subfolder}/${name}` : name;
}

/** The workflow with the values of the call. */
async function fillWorkflow(
  workflow: Workflow,
  { part, ask }: { readonly part: ComfyuiPart; readonly ask: Ask },
  call: WrappedCall,
): Promise<JsonObject> {
  const filled = structuredClone(workflow) as Record<string, { inputs: Record<string, Json> }>;
  const given = asObject(call.scope.input) ?? {};
  const { media, signal } = call.context;
  for (const [name, { node, input, file, random }] of Object.entries(part.fields)) {
    const value = given[name] ?? (random ? randomInt(2 ** 47) : undefined);
    const inputs = filled[node]?.inputs;
    if (value === undefined || inputs === undefined) continue;
    inputs[input] = file ? await sendFile(ask, await media.download(String(value)), signal) : value;
  }
  return filled as JsonObject;
}

/** The progress of a prompt by the messages of ComfyUI. Nodes that the workflow does not have are left out. */
function createNodeCount(workflow: Workflow, { progress }: WrappedCall['context']): (message: Json) => void {
  const total = Object.keys(workflow).length;
  const done = new Set<string>();
  let current: string | null = null;
  const nodeOf = (id: Json | undefined): string | null =>
    typeof id === 'string' && Object.hasOwn(workflow, id) ? id : null;
  return (message) => {
    const { type, data = null } = asObject(message) ?? {};
    const { node, nodes, value, max } = asObject(data) ?? {};
    if (type === 'execution_cached' && isList(nodes ?? null)) {
      for (const id of (nodes as readonly Json[]).map(nodeOf)) if (id !== null) done.add(id);
    }
    if (type === 'executing') {
      if (current !== null) done.add(current);
      current = nodeOf(node);
    }
    if (type !== 'progress' && type !== 'executing') return;
    const isPart = typeof value === 'number' && typeof max === 'number' && value >= 0 && max > 0;
    const part = type === 'progress' && isPart ? Math.min(1, value / max) : 0;
    progress(Math.min(1, (done.size + part) / total), current === null ? undefined : `node ${current}`);
  };
}

interface ProgressSource {
  readonly url: string;
  readonly token: string | undefined;
}

/** Reports the progress of the prompts of one client, until it is closed. Frames that are no JSON are left out. */
function followProgress({ url, token }: ProgressSource, take: (message: Json) => void): () => void {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const socket = new WebSocket(url, { headers });
  socket.addEventListener('error', () => undefined);
  socket.addEventListener('message', ({ data }) => {
    const message = typeof data === 'string' ? parseJson(data) : undefined;
    if (message !== undefined) take(message as Json);
  });
  return () => socket.close();
}

/** Whether ComfyUI works on a prompt, or will. */
async function findInQueue(ask: Ask, id: string, signal: AbortSignal): Promise<'running' | 'pending' | null> {
  const queue = asObject(await ask('GET', '/queue', { signal })) ?? {};
  const holds = (list: Json | undefined): boolean =>
    isList(list ?? null) && (list as readonly Json[]).some((entry) => isList(entry) && entry[1] === id);
  if (holds(queue.queue_running)) return 'running';
  return holds(queue.queue_pending) ? 'pending' : null;
}

/** The fault of a prompt; null when it succeeded. */
function findFault(status: JsonObject | null): Extract<JobState, { state: 'failed' }> | null {
  if (status?.status_str !== 'error') return null;
  const messages = isList(status.messages ?? null) ? (status.messages as readonly Json[]) : [];
  const found = messages.flatMap((row) =>
    isList(row) && row[0] === 'execution_error' ? [asObject(row[1] ?? null)] : [],
  );
  const { exception_message: message, exception_type: type, node_id, node_type } = found[0] ?? {};
  if (found.length === 0) return { state: 'failed', error: 'the prompt was interrupted', isTheirs: true };
  const isTheirs = /OutOfMemory/.test(String(type));
  return { state: 'failed', error: `node ${node_id} (${node_type}): ${String(message).trim()}`, isTheirs };
}

/** Addresses of the files that a prompt has saved; previews only when there is nothing else. */
function listFiles(outputs: JsonObject, nodes: readonly string[] | undefined, base: string): string[] {
  const chosen = Object.entries(outputs).filter(([node]) => nodes === undefined || nodes.includes(node));
  const entries = chosen.flatMap(([, output]) =>
    Object.values(asObject(output) ?? {}).flatMap((list) => (isList(list) ? [...list] : [])),
  );
  const files = entries
    .map(asObject)
    .filter((entry): entry is JsonObject => typeof entry?.filename === 'string');
  const saved = files.filter(({ type }) => type !== 'temp');
  return (saved.length > 0 ? saved : files).map(({ filename, subfolder = '', type = 'output' }) => {
    const query = new URLSearchParams({
      filename: String(filename),
      subfolder: String(subfolder),
      type: String(type),
    });
    return `${base}/view?${query}`;
  });
}

function readId(submitted: Json): string {
  const id = asObject(submitted)?.prompt_id;
  if (typeof id === 'string') return id;
  throw providerFailure('provider_unavailable', 'ComfyUI has not answered with a prompt_id');
}

function createPolling(part: ComfyuiPart, base: string, ask: Ask) {
  const readHistory = async (id: string, signal: AbortSignal): Promise<JsonObject | null> =>
    asObject(asObject(await ask('GET', `/history/${encodeURIComponent(id)}`, { signal }))?.[id] ?? null);
  return async (submitted: Json, signal: AbortSignal): Promise<JobState> => {
    const id = readId(submitted);
    let ended = await readHistory(id, signal);
    if (ended === null && (await findInQueue(ask, id, signal)) !== null) return { state: 'running' };
    // It may have ended between the two requests.
    ended ??= await readHistory(id, signal);
    if (ended === null)
      throw providerFailure('provider_config', `ComfyUI does not know the prompt ${id} any more`);
    const fault = findFault(asObject(ended.status ?? null));
    if (fault !== null) return fault;
    const files = listFiles(asObject(ended.outputs ?? null) ?? {}, part.outputs, base);
    if (files.length > 0) return { state: 'done', answer: { files, outputs: ended.outputs ?? {}, id } };
    return { state: 'failed', error: 'the workflow has saved no file', isTheirs: true };
  };
}

export const comfyui = defineKind({
  shape: ComfyuiPart,
  prepare: (part, host) => {
    const workflow = readWorkflow(part, host) ?? {};
    checkFields(
      Object.keys(workflow).length === 0 ? { ...part, fields: {}, outputs: undefined } : part,
      workflow,
      host,
    );
    const base = withoutEndSlashes(part.base_url);
    const at = host.compile.base(part.base_url, '/comfyui/base_url');
    const headers: Record<string, string> =
      part.token === undefined ? {} : { authorization: `Bearer ${part.token}` };
    const ask: Ask = (method, path, request) =>
      askJson({ method, target: at(path), headers, hide: host.hide, ...request });
    const jobs = createJobRunner(part, host);
    const poll = createPolling(part, base, ask);
    const cancel = async (submitted: Json, signal: AbortSignal): Promise<void> => {
      const id = readId(submitted);
      await ask('POST', '/queue', { body: { delete: [id] }, signal });
      // An older ComfyUI interrupts whatever runs, so only when that is this prompt.
      const isRunning = (await findInQueue(ask, id, signal)) === 'running';
      if (isRunning) await ask('POST', '/interrupt', { body: { prompt_id: id }, signal });
    };
    return {
      defaults: defaultsOf(part, workflow),
      fileForm: 'path',
      writesFiles: false,
      originOf: () => ({ url: base, headers }),
      perform: async (call) => {
        const clientId = randomUUID();
        const url = `${base.replace(/^http/, 'ws')}/ws?clientId=${clientId}`;
        const close = followProgress({ url, token: part.token }, createNodeCount(workflow, call.context));
        const submit = async (signal: AbortSignal): Promise<Json> => {
          const prompt = await fillWorkflow(workflow, { part, ask }, call);
          return ask('POST', '/prompt', { body: { prompt, client_id: clientId }, signal });
        };
        return jobs.run({ submit, poll, cancel }, call).finally(close);
      },
    };
  },
});
