/**
 * A ComfyUI that speaks its recorded protocol: `/prompt`, `/history`, `/queue`, `/interrupt`, `/upload/image`, `/view`
 * and `/ws`. Prompts wait until the test ends them.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

interface Prompt {
  readonly id: string;
  readonly workflow: Record<string, { inputs: Record<string, unknown> }>;
  readonly clientId: string;
  state: 'pending' | 'running' | 'ended' | 'deleted';
  history: object | null;
}

export interface ComfyuiServer {
  readonly url: string;
  readonly prompts: readonly Prompt[];
  /** The multipart bodies of uploaded files. */
  readonly uploads: readonly string[];
  /** `/ws` is refused. */
  refuseSockets(): void;
  /** Whether a client listens for progress. */
  isFollowed(prompt: Prompt): boolean;
  tell(prompt: Prompt, type: string, data: object): void;
  /** Sends a text as it is. */
  tellText(prompt: Prompt, text: string): void;
  finish(prompt: Prompt, outputs: object): void;
  fail(prompt: Prompt, exception: object): void;
  /** Loses queue and history, as a restart does. */
  restart(): void;
  close(): Promise<void>;
}

/** One unmasked text frame of a server. */
function toFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const head =
    payload.length < 126 ? [0x81, payload.length] : [0x81, 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from(head), payload]);
}

function acceptSocket(request: IncomingMessage, socket: Socket): void {
  const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${guid}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
}

interface Comfyui {
  readonly prompts: Prompt[];
  readonly uploads: string[];
}

type Reply = readonly [status: number, body: unknown];

function submit({ prompts }: Comfyui, text: string): Reply {
  const { prompt: workflow, client_id: clientId } = JSON.parse(text);
  if (workflow['6'].inputs.text === 'refused') {
    const node_errors = { 6: { errors: [{ type: 'value_not_in_list', message: 'Value not in list' }] } };
    return [400, { error: { type: 'prompt_outputs_failed_validation' }, node_errors }];
  }
  const id = `prompt-${prompts.length + 1}`;
  prompts.push({
    id,
    workflow,
    clientId,
    state: prompts.some(({ state }) => state === 'running') ? 'pending' : 'running',
    history: null,
  });
  return [200, { prompt_id: id, number: prompts.length, node_errors: {} }];
}

function list({ prompts }: Comfyui, state: Prompt['state']): unknown[] {
  return prompts
    .filter((one) => one.state === state)
    .map(({ id, workflow }, at) => [at, id, workflow, {}, ['9']]);
}

function answer(comfyui: Comfyui, request: string, text: string): Reply {
  const { prompts, uploads } = comfyui;
  const id = request.match(/^GET \/history\/(.+)$/)?.[1];
  if (id !== undefined) {
    const prompt = prompts.find((one) => one.id === id);
    return [200, prompt?.history == null ? {} : { [id]: prompt.history }];
  }
  switch (request) {
    case 'POST /prompt':
      return submit(comfyui, text);
    case 'GET /queue':
      return [200, { queue_running: list(comfyui, 'running'), queue_pending: list(comfyui, 'pending') }];
    case 'POST /queue':
      for (const one of prompts)
        if (one.state === 'pending' && JSON.parse(text).delete.includes(one.id)) one.state = 'deleted';
      return [200, null];
    case 'POST /interrupt':
      // Like older versions: whatever runs.
      for (const one of prompts) if (one.state === 'running') interrupt(one);
      return [200, null];
    case 'POST /upload/image':
      uploads.push(text);
      return [200, { name: `uploaded-${uploads.length}.png`, subfolder: 'in', type: 'input' }];
    default:
      return [404, null];
  }
}

function interrupt(prompt: Prompt): void {
  prompt.state = 'ended';
  prompt.history = {
    outputs: {},
    status: { status_str: 'error', completed: false, messages: [['execution_interrupted', {}]] },
  };
}

function send(response: ServerResponse, [status, body]: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body === null ? '' : JSON.stringify(body));
}

export async function startComfyui(): Promise<ComfyuiServer> {
  const comfyui: Comfyui = { prompts: [], uploads: [] };
  const sockets = new Map<string, Socket>();
  let takesSockets = true;
  const server = createServer((request, response) => {
    const { method, url = '' } = request;
    if (url.startsWith('/view?')) {
      response.writeHead(200, { 'content-type': 'image/png' });
      return void response.end(`bytes of ${new URLSearchParams(url.slice(6)).get('filename')}`);
    }
    request
      .setEncoding('latin1')
      .toArray()
      .then(
        (chunks) => send(response, answer(comfyui, `${method} ${url}`, chunks.join(''))),
        () => response.destroy(),
      );
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    const client = new URL(request.url ?? '', 'http://x').searchParams.get('clientId') ?? '';
    socket.on('error', () => undefined);
    if (!takesSockets) return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
    acceptSocket(request, socket);
    sockets.set(client, socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = (prompt: Prompt, history: object): void => {
    prompt.history = history;
    prompt.state = 'ended';
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    prompts: comfyui.prompts,
    uploads: comfyui.uploads,
    refuseSockets: () => {
      takesSockets = false;
    },
    isFollowed: ({ clientId }) => sockets.has(clientId),
    tell: ({ clientId, id }, type, data) => {
      sockets.get(clientId)?.write(toFrame(JSON.stringify({ type, data: { prompt_id: id, ...data } })));
    },
    tellText: ({ clientId }, text) => void sockets.get(clientId)?.write(toFrame(text)),
    finish: (prompt, outputs) =>
      end(prompt, { outputs, status: { status_str: 'success', completed: true, messages: [] } }),
    fail: (prompt, exception) =>
      end(prompt, {
        outputs: {},
        status: { status_str: 'error', completed: false, messages: [['execution_error', exception]] },
      }),
    restart: () => void comfyui.prompts.splice(0),
    close: async () => {
      const closed = once(server, 'close');
      for (const socket of sockets.values()) socket.destroy();
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
